/** Reports follow the exact probabilities: 5 standard errors, a false alarm in 1.7 million. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { channel } from "../src/index.ts";

const RUNS = Number(process.env.TACIT_REPORTS ?? 1_000_000);
const KEEP = 6584790284606575 / (6584790284606575 + 2422408970134413);
const asked = (weights: number[]) => ({
  v: 1, trust: "local", default: 0,
  question: { low: 0, high: 1, levels: 2 },
  answer: { kind: "window", cells: 2, width: 1, weights },
});

function errors(weights: number[], reward: number, chance: number, runs: number): number {
  const { draw } = channel(asked(weights));
  let ones = 0;
  for (let i = 0; i < runs; i++) ones += draw(reward) as number;
  return Math.abs(ones / runs - chance) / Math.sqrt((chance * (1 - chance)) / runs);
}

test(`${RUNS} reports at epsilon 1`, () => {
  const weights = [6584790284606575, 2422408970134413];
  assert.ok(errors(weights, 1, KEEP, RUNS) < 5);
  assert.ok(errors(weights, 0, 1 - KEEP, 50_000) < 5);
  assert.ok(errors(weights, 0.3, 0.3 * KEEP + 0.7 * (1 - KEEP), 50_000) < 5);
});

test("a wrong threshold is noticed", () => {
  assert.ok(errors([3292395142303287, 2422408970134413], 1, KEEP, 100_000) > 5);
});
