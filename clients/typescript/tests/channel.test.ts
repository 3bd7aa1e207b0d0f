/** What holds for every channel, every reward and every instruction that anybody may think of. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { channel, type Random } from "../src/channel.ts";

const FOLDER = new URL("../../../vectors/", import.meta.url);
const vectors = readdirSync(FOLDER).filter((name) => name.endsWith(".json"))
  .flatMap((name) => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as any[]);
const good = vectors.filter((each) => !each.refused).map((each) => each.instructions);

/** Bytes that follow from a seed (mulberry32), and how many were drawn. */
function seeded(seed: number): { random: Random; drawn: () => number } {
  let state = seed;
  let count = 0;
  const byte = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) & 255;
  };
  return {
    random(out) {
      count += out.length;
      for (let i = 0; i < out.length; i++) out[i] = byte();
    },
    drawn: () => count,
  };
}

test("no reward throws, and none costs other bytes", () => {
  fc.assert(fc.property(fc.constantFrom(...good), fc.anything(), fc.nat(), (asked, reward, seed) => {
    const [one, two] = [seeded(seed), seeded(seed)];
    const { draw } = channel(asked);
    const value = draw(reward, one.random);
    draw(undefined, two.random);
    assert.equal(one.drawn(), two.drawn());
    assert.ok([value].flat().every(Number.isFinite));
  }), { numRuns: 2000 });
});

test("whatever is sent as instructions is refused or followed within 30", () => {
  const changed = fc.tuple(fc.constantFrom(...good), fc.string(), fc.jsonValue())
    .map(([asked, key, value]) => ({ ...asked, [key]: value }));
  const inside = fc.tuple(fc.constantFrom(...good), fc.constantFrom("question", "answer"), fc.jsonValue())
    .chain(([asked, half, value]) => fc.constantFrom(...Object.keys(asked[half]))
      .map((key) => ({ ...asked, [half]: { ...asked[half], [key]: value } })));
  let refused = 0;
  fc.assert(fc.property(fc.oneof(fc.jsonValue(), changed, inside), (asked) => {
    try {
      const { epsilon, draw } = channel(asked);
      assert.ok(epsilon <= 30 || epsilon === Infinity);
      draw(1);
    } catch (error) {
      refused++;
      assert.match((error as Error).message, /^tacit: instructions refused/);
    }
  }), { numRuns: 2000 });
  assert.ok(refused > 500);
});

/** Feeds whole numbers below 2^53 as the words of a draw. */
function words(...numbers: number[]): Random {
  let at = 0;
  return (out) => {
    let word = numbers[at++]!;
    for (let i = 6; i >= 0; i--) {
      out[i] = word % 256;
      word = Math.floor(word / 256);
    }
  };
}

function worstRatio(rows: number[][], total: number): { stated: number; exact: number } {
  const { epsilon, draw } = channel({
    v: 1, trust: "local", default: 0,
    question: { low: 0, high: rows.length - 1, levels: rows.length },
    answer: { kind: "table", rows },
  });
  const counts = rows.map((row, symbol) => {
    const seen = row.map(() => 0);
    for (let word = 0; word < total; word++) seen[draw(symbol, words(0, word)) as number]!++;
    return seen;
  });
  const columns = rows[0]!.map((_, i) => counts.map((seen) => seen[i]!));
  return { stated: epsilon, exact: Math.max(...columns.map((c) => Math.log(Math.max(...c) / Math.min(...c)))) };
}

test("counting every word of a table gives the epsilon that the client computes", () => {
  const tables = fc.integer({ min: 2, max: 4 }).chain((width) => fc.array(
    fc.array(fc.integer({ min: 1, max: 9 }), { minLength: width, maxLength: width }), { minLength: 2, maxLength: 4 },
  )).map((rows) => {
    const total = Math.max(...rows.map((row) => row.reduce((a, b) => a + b))) + 1;
    return { total, rows: rows.map((row) => row.with(-1, row.at(-1)! + total - row.reduce((a, b) => a + b))) };
  });
  fc.assert(fc.property(tables, ({ rows, total }) => {
    const { stated, exact } = worstRatio(rows, total);
    assert.ok(stated >= exact && stated <= exact * (1 + 1e-9) + 1e-12, `${stated} ${exact}`);
  }), { numRuns: 300 });
});
