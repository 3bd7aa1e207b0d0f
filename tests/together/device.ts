/**
 * The TypeScript client, driven from outside over lines of JSON: an operation in, what it asked of the network out.
 *
 * It has no clock, no socket and no disk of its own: the time comes with each operation, requests go out as lines,
 * and its storage tells what it holds and how often it was written.
 */
import { createInterface } from "node:readline";
import { createClient, type Client, type Decision, type Store } from "../../clients/typescript/src/index.ts";

const say = (what: unknown) => process.stdout.write(JSON.stringify(what) + "\n");
const waiting = new Map<number, (reply: { status: number; body: string }) => void>();
let client: Client | undefined, kept = new Map<string, unknown>();
let decisions = new Map<string, Decision>();
let now = 0, asked = 0, writes = 0;

const storage: Store = {
  async update<T>(key: string, change: (old: T | undefined) => T | undefined) {
    const old = kept.get(key) as T | undefined, value = change(old);
    if (JSON.stringify(old) !== JSON.stringify(value)) writes++;
    if (value === undefined) kept.delete(key);
    else kept.set(key, value);
    return value;
  },
  keys: async () => [...kept.keys()],
};

const ask: typeof fetch = (address, init) => {
  const number = asked++;
  say({ fetch: number, path: new URL(String(address)).pathname, body: init?.body, writes });
  return new Promise((resolve) =>
    waiting.set(number, ({ status, body }) => resolve(new Response(body, { status }))));
};

async function settled(): Promise<void> {
  for (let quiet = 0; quiet < 3; quiet++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (waiting.size > 0) quiet = -1;
  }
}

async function run(op: any): Promise<unknown> {
  now = op.now;
  writes = 0;
  if (op.op === "open") {
    client?.close();
    kept = new Map();
    decisions = new Map();
    client = createClient({
      url: "http://testserver", token: op.token, experiment: "x", maxEpsilon: Infinity, storage, fetch: ask,
      now: () => now,
    });
    return null;
  }
  if (op.op === "decide") {
    const decision = await client!.decide(op.request);
    decisions.set(op.id, decision);
    return decision;
  }
  if (op.op === "shown") return client!.shown(decisions.get(op.id)!);
  if (op.op === "reward") return client!.reward(decisions.get(op.id)!, op.value);
  if (op.op === "flush") return client!.flush();
  return null;
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const message = JSON.parse(line);
  if ("reply" in message) {
    const answer = waiting.get(message.reply)!;
    waiting.delete(message.reply);
    answer(message);
    return;
  }
  try {
    const result = await run(message);
    await settled();
    say({ done: result ?? null, kept: Object.fromEntries(kept) });
  } catch (error) {
    await settled();
    say({ error: String(error), kept: Object.fromEntries(kept) });
  }
});
