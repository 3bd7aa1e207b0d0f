/**
 * Prio3 of VDAF draft 20, the client's part: a symbol becomes two shares that tell nothing alone, with a proof.
 *
 * `vectors/aggregation` holds what every language must reproduce bit for bit. BigInt does not run in constant
 * time: somebody who measures this device's time closely may learn of the symbol.
 */
import { turboshake128 } from "@noble/hashes/sha3-addons.js";

/** A kind of report: one of `length` symbols, or one bit. */
export interface Circuit {
  /** How many symbols there are; leave it out for one bit. */
  length?: number;
  /** How many entries one step of the proof checks. */
  chunk?: number;
}

export interface Shares {
  publicShare: Uint8Array;
  leaderShare: Uint8Array;
  helperShare: Uint8Array;
}

interface Field {
  p: bigint;
  size: number;
  /** An element of order 2^`twos`. */
  root: bigint;
  twos: bigint;
}

const VERSION = 18;
const SEED = 32;
const field = (p: bigint, size: number, twos: bigint): Field =>
  ({ p, size, twos, root: power(7n, (p - 1n) / 2n ** twos, p) });
const LARGE = field(2n ** 128n - 28n * 2n ** 64n + 1n, 16, 66n);
const SMALL = field(2n ** 64n - 2n ** 32n + 1n, 8, 32n);

/** How many random bytes a report takes. */
export const randomSize = (circuit: Circuit): number => (circuit.length ? 4 : 2) * SEED;

/** Split a symbol; `random` is used once, `nonce` has 16 bytes and is public. */
export function shard(
  circuit: Circuit, context: Uint8Array, symbol: number, nonce: Uint8Array, random: Uint8Array,
): Shares {
  const histogram = circuit.length !== undefined;
  const length = circuit.length ?? 1;
  const symbols = histogram ? length : 2;
  need(Number.isInteger(symbol) && symbol >= 0 && symbol < symbols, "symbol");
  need(nonce.length === 16, "nonce");
  need(random.length === randomSize(circuit), "random");
  const { p, size } = histogram ? LARGE : SMALL;
  const L = histogram ? circuit.chunk ?? bestChunk(length) : 1;
  const calls = Math.ceil(length / L);
  const n = 2 ** (32 - Math.clz32(calls));
  const proofLength = 2 * L + 2 * n - 1;
  const hash = (usage: number, seed: Uint8Array, ...binder: Uint8Array[]) => {
    const tag = join(Uint8Array.of(VERSION, 0, 0, 0, 0, histogram ? 4 : 1, 0, usage), context);
    const start = Uint8Array.of(tag.length & 255, tag.length >> 8);
    return turboshake128.create({ D: 1 }).update(join(start, tag, Uint8Array.of(SEED), seed, ...binder));
  };
  const expand = (usage: number, seed: Uint8Array, binder: number[], count: number): bigint[] => {
    const stream = hash(usage, seed, Uint8Array.from(binder));
    const found: bigint[] = [];
    while (found.length < count) {
      const value = read(stream.xof(size));
      if (value < p) found.push(value);
    }
    return found;
  };
  const less = (all: bigint[], other: bigint[]) => all.map((value, i) => mod(value - other[i]!, p));

  const seeds = Array.from({ length: random.length / SEED }, (_, i) => random.subarray(i * SEED, (i + 1) * SEED));
  const [key, blind, leaderBlind] = [seeds[0]!, seeds[1]!, seeds[2]!];
  const vector = Array.from({ length }, (_, i) => (histogram ? BigInt(i === symbol) : BigInt(symbol)));
  const share = expand(1, key, [1], length);
  const leader = less(vector, share);
  let parts: Uint8Array[] = [];
  let joint: bigint[] = [];
  if (histogram) {
    const part = (who: number, by: Uint8Array, of: bigint[]) =>
      hash(7, by, Uint8Array.of(who), nonce, write(of, size)).xof(SEED);
    parts = [part(0, leaderBlind, leader), part(1, blind, share)];
    joint = expand(3, hash(6, new Uint8Array(SEED), ...parts).xof(SEED), [1], calls);
  }
  const proof = prove(histogram ? LARGE : SMALL, vector, expand(4, seeds.at(-1)!, [1], 2 * L), joint, L, n);
  const leaderProof = less(proof, expand(2, key, [1, 1], proofLength));
  const blinds = histogram ? [leaderBlind, blind] : [new Uint8Array(), new Uint8Array()];
  return {
    publicShare: join(...parts),
    leaderShare: join(write(leader, size), write(leaderProof, size), blinds[0]!),
    helperShare: join(key, blinds[1]!),
  };
}

/** The seeds of the wires, then the products of the wires at all but the last of the 2n-th roots of unity. */
function prove(
  { p, root, twos }: Field, vector: bigint[], seeds: bigint[], joint: bigint[], L: number, n: number,
): bigint[] {
  const wires = seeds.map((seed) => [seed, ...Array<bigint>(n - 1).fill(0n)]);
  if (joint.length === 0) wires.forEach((wire) => (wire[1] = vector[0]!));
  joint.forEach((r, i) => {
    let power = r;
    for (let j = 0; j < L; j++) {
      const x = vector[i * L + j] ?? 0n;
      wires[2 * j]![i + 1] = (power * x) % p;
      wires[2 * j + 1]![i + 1] = mod(x - 1n, p);
      power = (power * r) % p;
    }
  });
  const step = power(root, 2n ** twos / BigInt(2 * n), p);
  const points = Array.from({ length: 2 * n }, (_, k) => power(step, BigInt(k), p));
  const nodes = points.filter((_, k) => k % 2 === 0);
  const products: bigint[] = [];
  for (let k = 0; k < 2 * n - 1; k++) {
    let at = wires.map((wire) => wire[k / 2]!);
    if (k % 2) {
      const x = points[k]!;
      const top = (power(x, BigInt(n), p) - 1n) * inverse(BigInt(n), p);
      const basis = nodes.map((node) => mod(top * node % p * inverse(mod(x - node, p), p), p));
      at = wires.map((wire) => wire.reduce((sum, value, i) => sum + value * basis[i]!, 0n) % p);
    }
    let product = 0n;
    for (let j = 0; j < L; j++) product += at[2 * j]! * at[2 * j + 1]!;
    products.push(product % p);
  }
  return [...seeds, ...products];
}

/** The chunk with the smallest upload: one that wastes no padding. */
export function bestChunk(length: number): number {
  const size = (chunk: number) => 2 * chunk + 2 * 2 ** (32 - Math.clz32(Math.ceil(length / chunk)));
  let best = length;
  for (let k = 1; 2 ** (k - 1) <= length; k++) {
    const chunk = Math.ceil(length / (2 ** k - 1));
    if (size(chunk) < size(best)) best = chunk;
  }
  return best;
}

const mod = (value: bigint, p: bigint): bigint => ((value % p) + p) % p;

function power(base: bigint, exponent: bigint, p: bigint): bigint {
  let result = 1n;
  for (let b = base, e = exponent; e > 0n; e >>= 1n, b = (b * b) % p) if (e & 1n) result = (result * b) % p;
  return result;
}

const inverse = (value: bigint, p: bigint): bigint => power(value, p - 2n, p);

function read(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]!);
  return value;
}

function write(values: bigint[], size: number): Uint8Array {
  const out = new Uint8Array(values.length * size);
  values.forEach((value, k) => {
    for (let i = 0; i < size; i++, value >>= 8n) out[k * size + i] = Number(value & 255n);
  });
  return out;
}

function join(...parts: Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function need(holds: boolean, what: string): void {
  if (!holds) throw new Error(`tacit: shard refused (${what})`);
}
