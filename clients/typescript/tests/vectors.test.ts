/** What every language must reproduce, and what every language must refuse. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { channel, type Random } from "../src/channel.ts";

const FOLDER = new URL("../../../vectors/", import.meta.url);

interface Vector {
  about: string;
  instructions: unknown;
  refused?: boolean;
  epsilon: number | "inf";
  random: string;
  reward: unknown;
  report: { value: unknown };
}

function recorded(hex: string): { random: Random; left: () => number } {
  const bytes = Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  let at = 0;
  return {
    random(out) {
      assert.ok(at + out.length <= bytes.length, "more bytes were drawn than recorded");
      out.set(bytes.subarray(at, (at += out.length)));
    },
    left: () => bytes.length - at,
  };
}

let met = 0;
for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".json"))) {
  const vectors = JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")) as Vector[];
  test(file, () => {
    for (const vector of vectors) {
      met++;
      if (vector.refused) {
        assert.throws(() => channel(vector.instructions), /instructions refused/, vector.about);
        continue;
      }
      const { random, left } = recorded(vector.random);
      const asked = channel(vector.instructions);
      assert.deepEqual(asked.draw(vector.reward, random), vector.report.value, vector.about);
      assert.equal(left(), 0, `${vector.about}: bytes are left`);
      if (asked.epsilon !== Infinity) {
        const stated = Number(vector.epsilon);
        assert.ok(Math.abs(asked.epsilon - stated) <= 1e-12 * stated, vector.about);
      }
    }
  });
}

test("all vectors were read", () => assert.ok(met > 400, String(met)));
