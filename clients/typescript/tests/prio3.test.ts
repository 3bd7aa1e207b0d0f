/** Shares of the official vectors and of our own, bit for bit; what cannot be split is refused. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { bestChunk, randomSize, shard, type Circuit } from "../src/prio3.ts";

const OWN = new URL("../../../vectors/aggregation/prio3.json", import.meta.url);
const OFFICIAL = new URL("../../../../shared/vdaf/", import.meta.url);

interface Vector {
  shares: number;
  length?: number;
  chunk_length?: number;
  ctx: string;
  operations: { operation: string }[];
  reports: { measurement: number; nonce: string; rand: string; public_share: string; input_shares: string[] }[];
}

const bytes = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (all: Uint8Array) => Buffer.from(all).toString("hex");
const circuitOf = ({ length, chunk_length: chunk }: Vector): Circuit => (length ? { length, chunk } : {});

function follow(vector: Vector): void {
  for (const { measurement, nonce, rand, public_share, input_shares } of vector.reports) {
    const made = shard(circuitOf(vector), bytes(vector.ctx), measurement, bytes(nonce), bytes(rand));
    assert.equal(hex(made.publicShare), public_share);
    assert.deepEqual([hex(made.leaderShare), hex(made.helperShare)], input_shares);
  }
}

test("our own vectors", () => {
  for (const vector of JSON.parse(readFileSync(OWN, "utf8")) as Vector[]) follow(vector);
});

test("the official vectors", { skip: !existsSync(OFFICIAL) && "the draft's vectors are not here" }, () => {
  let met = 0;
  for (const file of readdirSync(OFFICIAL).filter((name) => /^Prio3(Count|Histogram)_\d/.test(name))) {
    const vector = JSON.parse(readFileSync(new URL(file, OFFICIAL), "utf8")) as Vector;
    if (vector.shares !== 2) continue; // this client splits between two
    follow(vector);
    met++;
  }
  assert.ok(met >= 4, String(met));
});

test("a vector has teeth", () => {
  const [vector] = JSON.parse(readFileSync(OWN, "utf8")) as [Vector];
  vector.reports[0]!.measurement ^= 1;
  assert.throws(() => follow(vector));
});

test("the chunk is the best one", () => assert.deepEqual([6, 24, 96, 320].map(bestChunk), [2, 8, 14, 22]));

test("what cannot be split is refused", () => {
  const circuit = { length: 4 };
  const random = new Uint8Array(randomSize(circuit));
  for (const symbol of [-1, 4, 0.5, NaN]) {
    assert.throws(() => shard(circuit, new Uint8Array(), symbol, new Uint8Array(16), random), /symbol/);
  }
  assert.throws(() => shard(circuit, new Uint8Array(), 1, new Uint8Array(15), random), /nonce/);
  assert.throws(() => shard(circuit, new Uint8Array(), 1, new Uint8Array(16), random.subarray(1)), /random/);
});
