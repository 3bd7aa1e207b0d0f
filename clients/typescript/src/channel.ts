/**
 * From instructions to a reported value: checked first, drawn exactly, whatever the reward is.
 *
 * The rules are those of `docs/device.md`; `vectors/` holds what every language must reproduce bit
 * for bit. All integers are below 2^53, so doubles are exact.
 */

/** What a server asks for; see `schemas/instructions.schema.json`. */
export interface Instructions {
  v: 1;
  trust: "local" | "central";
  question: Record<string, unknown>;
  answer: Record<string, unknown>;
  default: number;
}

export type Value = number | number[];

/** Fills an array with random bytes, as `crypto.getRandomValues` does. */
export type Random = (bytes: Uint8Array) => unknown;

export interface Channel {
  /** The largest log ratio of two probabilities of one report, rounded upwards. */
  epsilon: number;
  /** The report of a reward, which may be anything and never throws. */
  draw(reward: unknown, random?: Random): Value;
}

type Below = (n: number) => number;
type Drawn = (symbol: number, below: Below) => Value;

const WORD = 2 ** 53;
const MAX = WORD - 1;
const UP = 1 + 2 ** -49; // more than rounding can have taken away

const secure: Random = (bytes) => crypto.getRandomValues(bytes as Uint8Array<ArrayBuffer>);

/** Check instructions completely; anything wrong throws before a reward is seen. */
export function channel(instructions: unknown): Channel {
  const { v, trust, question, answer, default: otherwise } = fields(
    instructions, "v", "trust", "question", "answer", "default",
  );
  need(v === 1, "v");
  const missing = size(otherwise, "default");
  const kind = (answer as { kind?: unknown } | null)?.kind;
  need(trust === (kind === "identity" ? "central" : "local"), "trust");
  if (kind === "identity") {
    fields(answer, "kind");
    const { low, high } = ends(fields(question, "low", "high"), missing);
    return {
      epsilon: Infinity,
      draw: (reward) => Math.min(Math.max(usable(reward, missing), low), high) + 0,
    };
  }
  const ask = question && typeof question === "object" && "cuts" in question ? cuts : levels;
  const [symbols, place] = ask(question, missing);
  need(typeof kind === "string" && Object.hasOwn(answers, kind), "answer.kind");
  const [exact, drawn] = answers[kind as string]!(answer, symbols);
  const epsilon = exact * UP;
  need(epsilon <= 30, "epsilon");
  return {
    epsilon,
    draw(reward, random = secure) {
      const below = uniform(random);
      const at = place(usable(reward, missing));
      const symbol = Math.floor(at);
      return drawn(symbol + +(below(WORD) < (at - symbol) * WORD), below);
    },
  };
}

function uniform(random: Random): Below {
  const bytes = new Uint8Array(7);
  return (n) => {
    while (n > 1) {
      random(bytes);
      bytes[0]! &= 31;
      const word = bytes.reduce((all, byte) => all * 256 + byte, 0);
      if (word < WORD - (WORD % n)) return word % n;
    }
    return 0;
  };
}

const usable = (reward: unknown, missing: number): number =>
  typeof reward === "boolean" || Number.isFinite(reward) ? Number(reward) : missing;

function levels(question: unknown, missing: number): [number, (reward: number) => number] {
  const asked = fields(question, "low", "high", "levels");
  const { low, high } = ends(asked, missing);
  const top = whole(asked.levels, 2, 65537, "levels") - 1;
  return [top + 1, (reward) =>
    Math.min(((Math.min(Math.max(reward, low), high) - low) * top) / (high - low), top)];
}

function cuts(question: unknown, _missing: number): [number, (reward: number) => number] {
  const asked = fields(question, "cuts", "labels");
  const at = list(asked.cuts, 1024, "cuts").map((cut) => size(cut, "cuts"));
  need(at.every((cut, i) => !i || at[i - 1]! < cut), "cuts");
  const labels = list(asked.labels, 1024, "labels").map((l) => whole(l, 0, at.length, "labels"));
  const symbols = Math.max(...labels) + 1;
  need(labels.length === at.length + 1 && symbols > 1 && new Set(labels).size === symbols, "labels");
  return [symbols, (reward) => labels[at.reduce((n, cut) => n + +(cut < reward), 0)]!];
}

const answers: Record<string, (answer: unknown, symbols: number) => [number, Drawn]> = {
  table(answer, symbols) {
    const rows = weightRows(fields(answer, "kind", "rows").rows, symbols);
    const total = sum(rows[0]!);
    return [
      Math.max(...rows[0]!.map((_, i) => {
        const column = rows.map((row) => row[i]!);
        return ratio(Math.max(...column), Math.min(...column));
      })),
      (symbol, below) => {
        const word = below(total);
        let end = 0;
        return rows[symbol]!.slice(0, -1).reduce((n, weight) => n + +(word >= (end += weight)), 0);
      },
    ];
  },

  window(answer, symbols) {
    const [cells, width, inside, outside, total] = weighted(answer, 65537);
    need(cells - width + 1 === symbols, "cells");
    return [ratio(inside, outside), (symbol, below) => {
      const word = below(total);
      const beyond = word - width * inside;
      const offset = beyond < 0 ? Math.floor(word / inside) : width + Math.floor(beyond / outside);
      return (symbol + offset) % cells;
    }];
  },

  subset(answer, symbols) {
    const [cells, width, inside, outside, total] = weighted(answer, 1024);
    need(cells === symbols, "cells");
    return [ratio(inside, outside), (symbol, below) => {
      const bits = new Array<number>(cells).fill(0);
      let left = width - (bits[symbol] = +(below(total) < width * inside));
      for (let i = 1; i < cells; i++) left -= bits[(symbol + i) % cells] = +(below(cells - i) < left);
      return bits;
    }];
  },

  unary(answer, symbols) {
    const asked = fields(answer, "kind", "bits", "rows");
    const bits = whole(asked.bits, 1, 1024, "bits");
    need(symbols === bits || symbols === bits + 1, "bits");
    const rows = weightRows(asked.rows, 2);
    const [cold, hot] = rows as [number[], number[]];
    need(cold.length === 2, "rows");
    const [zero, one] = [0, 1].map((bit) => ratio(cold[bit]!, hot[bit]!)) as [number, number];
    return [bits > 1 ? zero + one : Math.max(zero, one), (symbol, below) =>
      Array.from({ length: bits }, (_, bit) =>
        +(below(cold[0]! + cold[1]!) >= (bit === symbol ? hot : cold)[0]!))];
  },

  noise(answer, symbols) {
    const scale = whole(fields(answer, "kind", "scale").scale, 1, 2 ** 46, "scale");
    return [(symbols - 1) / scale, (symbol, below) =>
      Math.max(-(2 ** 52), Math.min(symbol + laplace(scale, below), 2 ** 52))];
  },
};

/** x with probability proportional to exp(-|x| / scale): Canonne, Kamath, Steinke (2020). */
function laplace(scale: number, below: Below): number {
  for (;;) {
    const part = below(scale);
    if (!coin(part, scale, below)) continue;
    let rest = 0;
    while (coin(1, 1, below)) rest++;
    const far = part + scale * rest;
    const negative = below(2);
    if (far || !negative) return negative ? -far : far;
  }
}

/** True with probability exp(-a / b). */
function coin(a: number, b: number, below: Below): boolean {
  let i = 1;
  while (below(b) < a && below(i) === 0) i++;
  return i % 2 === 1;
}

const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);

const ratio = (a: number, b: number): number => Math.log1p(Math.abs(a - b) / Math.min(a, b));

function weighted(answer: unknown, most: number): [number, number, number, number, number] {
  const asked = fields(answer, "kind", "cells", "width", "weights");
  const cells = whole(asked.cells, 2, most, "cells");
  const width = whole(asked.width, 1, cells - 1, "width");
  const weights = list(asked.weights, 2, "weights").map((w) => whole(w, 1, MAX, "weights"));
  need(weights.length === 2, "weights");
  const [inside, outside] = weights as [number, number];
  const total = width * inside + (cells - width) * outside;
  need(total <= MAX, "weights");
  return [cells, width, inside, outside, total];
}

function weightRows(value: unknown, count: number): number[][] {
  const rows = list(value, 64, "rows").map((row) =>
    list(row, 64, "rows").map((weight) => whole(weight, 1, MAX, "rows")));
  const [first] = rows as [number[]];
  need(
    rows.length === count && first.length > 1 && sum(first) <= MAX &&
      rows.every((row) => row.length === first.length && sum(row) === sum(first)),
    "rows",
  );
  return rows;
}

function ends(asked: Record<string, unknown>, missing: number): { low: number; high: number } {
  const low = size(asked.low, "low");
  const high = size(asked.high, "high");
  need(low < high && low <= missing && missing <= high, "range");
  return { low, high };
}

function fields(value: unknown, ...names: string[]): Record<string, unknown> {
  const held = value && typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : [];
  need(held.length === names.length && names.every((name) => held.includes(name)), names.join());
  return value as Record<string, unknown>;
}

function list(value: unknown, most: number, name: string): unknown[] {
  need(Array.isArray(value) && value.length > 0 && value.length <= most, name);
  return value as unknown[];
}

function size(value: unknown, name: string): number {
  need(Number.isFinite(value) && Math.abs(value as number) <= MAX, name);
  return value as number;
}

function whole(value: unknown, least: number, most: number, name: string): number {
  need(Number.isInteger(value) && (value as number) >= least && (value as number) <= most, name);
  return value as number;
}

function need(holds: boolean, name: string): void {
  if (!holds) throw new Error(`tacit: instructions refused (${name})`);
}
