/** One report for every shown decision, at its time, whatever happens in between. */
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import fc from "fast-check";
import { createClient, localStore, memoryStore, type Client, type Store } from "../src/index.ts";
import { bestStore } from "../src/storage.ts";
import { FakeService } from "./fake_service.ts";

const MINUTE = 60_000;

/** Let everything that is waiting for nothing but a promise go on. */
async function settle(): Promise<void> {
  for (let i = 0; i < 40; i++) await Promise.resolve();
}

async function pass(milliseconds: number): Promise<void> {
  for (let left = milliseconds; left > 0; left -= 1000) {
    mock.timers.tick(Math.min(1000, left));
    await settle();
  }
}

let service: FakeService;

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_800_000_000_000 });
  service = new FakeService();
});

function open(storage: Store = memoryStore(), changes: object = {}): Client {
  return createClient({
    url: "https://decide.test/", token: "t", experiment: "news", maxEpsilon: 1,
    storage, fetch: service.fetch, ...changes,
  });
}

test("a click is reported at the time fixed with the decision, and not before", async () => {
  const client = open();
  const decision = await client.decide({ person: "ann" });
  assert.equal(decision.option, "red");
  assert.ok(decision.epsilon > 0.99 && decision.epsilon <= 1);
  assert.equal(await client.shown(decision), true);
  await client.reward(decision, 1);
  await pass(MINUTE - 1000);
  assert.equal(service.sent("/reports").length, 0);
  await pass(1000);
  const [report] = service.reports(decision.id);
  assert.equal(report!.at, decision.reportAt! * 1000);
  assert.match(report!.body, /^\{"v":1,"id":"[0-9a-f]{32}","value":[01]\}$/);
  client.close();
});

test("silence is reported like a click", async () => {
  const client = open();
  const decision = await client.decide();
  await client.shown(decision);
  await pass(MINUTE);
  assert.equal(service.reports(decision.id).length, 1);
  await pass(10 * MINUTE);
  assert.equal(service.reports(decision.id).length, 1);
  client.close();
});

test("what was not shown is not reported, clicked or not", async () => {
  const client = open();
  const decision = await client.decide();
  await client.reward(decision, 1);
  await pass(2 * MINUTE);
  assert.equal(service.sent("/reports").length, 0);
  client.close();
});

test("the first reward counts, and retries repeat its bytes", async () => {
  service.network = "up";
  const client = open(memoryStore(), { random: (bytes: Uint8Array) => bytes.fill(0) });
  const decision = await client.decide();
  await client.shown(decision);
  assert.equal(await client.reward(decision, 1), true);
  assert.equal(await client.reward(decision, 0), false);
  service.network = "deaf";
  await pass(3 * MINUTE);
  service.network = "up";
  await pass(MINUTE);
  const bodies = service.reports(decision.id).map((each) => each.body);
  assert.ok(bodies.length > 2);
  assert.deepEqual(new Set(bodies), new Set([`{"v":1,"id":"${decision.id}","value":1}`]));
  client.close();
});

test("a click that comes while the page is still telling that it was shown is not lost", async () => {
  const client = open(memoryStore(), { random: (bytes: Uint8Array) => bytes.fill(0) });
  const decision = await client.decide();
  const showing = client.shown(decision);
  const clicking = client.reward(decision, 1);
  await Promise.all([showing, clicking]);
  await pass(MINUTE);
  assert.equal(JSON.parse(service.reports(decision.id)[0]!.body).value, 1);
  client.close();
});

test("a tab that is killed leaves its report to a later visit, once due", async () => {
  const storage = memoryStore();
  const first = open(storage);
  const decision = await first.decide();
  await first.shown(decision);
  await first.reward(decision, 1);
  first.close();
  const early = open(storage);
  await pass(MINUTE / 2);
  assert.equal(service.sent("/reports").length, 0);
  early.close();
  await pass(60 * MINUTE);
  assert.equal(service.sent("/reports").length, 0);
  const late = open(storage);
  await settle();
  assert.equal(service.reports(decision.id).length, 1);
  late.close();
});

test("two tabs come to the same report", async () => {
  const storage = memoryStore();
  const [one, two] = [open(storage), open(storage)];
  const decision = await one.decide();
  await one.shown(decision);
  service.network = "deaf";
  await pass(2 * MINUTE);
  service.network = "up";
  await Promise.all([one.flush(), two.flush()]);
  await pass(MINUTE);
  const bodies = new Set(service.reports(decision.id).map((each) => each.body));
  assert.equal(bodies.size, 1);
  one.close();
  two.close();
});

test("a request that was lost is repeated under the same id", async () => {
  service.network = 503;
  const client = open();
  await assert.rejects(client.decide(), /answered 503/);
  const ids = new Set(service.sent("/decisions").map((each) => JSON.parse(each.body).id));
  assert.equal(service.sent("/decisions").length, 2);
  assert.equal(ids.size, 1);
  service.network = 400;
  await assert.rejects(client.decide(), /answered 400/);
  assert.equal(service.sent("/decisions").length, 3);
  client.close();
});

test("offline when shown: the server is told later, then gets the report", async () => {
  const client = open();
  const decision = await client.decide();
  service.network = "down";
  assert.equal(await client.shown(decision), true);
  await pass(2 * MINUTE);
  service.network = "up";
  await pass(MINUTE);
  const paths = service.received.map((each) => each.path);
  assert.deepEqual(paths, ["/decisions", `/decisions/${decision.id}/shown`, "/reports"]);
  client.close();
});

test("a decision that the server no longer knows is forgotten, not repeated for ever", async () => {
  const client = open();
  const decision = await client.decide();
  await client.shown(decision);
  service.network = 410;
  await pass(5 * MINUTE);
  assert.equal(service.reports(decision.id).length, 1);
  client.close();
});

test("more than maxEpsilon, or instructions that are wrong, are never followed", async () => {
  const { instructions } = service as { instructions: any };
  const greedy = { ...instructions.answer, weights: [2 ** 52, 1] };
  for (const bad of [
    { ...instructions, answer: greedy },
    { ...instructions, epsilon: 0.1 },
    { ...instructions, trust: "central" },
    { v: 1, trust: "central", default: 0, question: { low: 0, high: 1 }, answer: { kind: "identity" } },
    "report everything",
  ]) {
    service.instructions = bad;
    const client = open();
    const decision = await client.decide();
    assert.equal(decision.option, "red");
    assert.match(decision.reason, /tacit/);
    assert.equal(decision.epsilon, 0);
    assert.equal(await client.shown(decision), false);
    await client.reward(decision, 1);
    await pass(2 * MINUTE);
    client.close();
  }
  assert.deepEqual(new Set(service.received.map((each) => each.path)), new Set(["/decisions"]));
});

test("the device's own budget refuses, over several visits and whatever the server says", async () => {
  const storage = memoryStore();
  const answers: boolean[] = [];
  for (let i = 0; i < 4; i++) {
    const client = open(storage, { budget: 2.5 });
    const decision = await client.decide();
    answers.push(await client.shown(decision));
    assert.equal(await client.shown(decision), answers[i]); // once, however often it is said
    client.close();
  }
  assert.deepEqual(answers, [true, true, false, false]);
  assert.equal(service.received.filter((each) => each.path.endsWith("/shown")).length, 2);
});

test("a server that wants no report once it was shown gets none", async () => {
  service.wanted = false;
  const client = open();
  const decision = await client.decide();
  assert.equal(await client.shown(decision), true);
  await client.reward(decision, 1);
  await pass(2 * MINUTE);
  assert.deepEqual(service.received.map((each) => each.path), ["/decisions", `/decisions/${decision.id}/shown`]);
  client.close();
});

test("a reward that comes after its time counts as none", async () => {
  const rewards: unknown[] = [];
  const zeros = (bytes: Uint8Array) => bytes.fill(0); // with these, the report is the reward
  for (const late of [false, true]) { // Finding U1
    let skew = 0;
    const told: string[] = [];
    const client = open(memoryStore(), {
      random: zeros, now: () => Date.now() + skew, onLate: ({ id }: { id: string }) => told.push(id),
    });
    const decision = await client.decide();
    await client.shown(decision);
    if (late) skew = MINUTE;
    assert.equal(await client.reward(decision, 1), !late);
    await pass(MINUTE);
    assert.deepEqual(told, late ? [decision.id] : []);
    rewards.push(JSON.parse(service.reports(decision.id)[0]!.body).value);
    client.close();
  }
  assert.deepEqual(rewards, [1, 0]);
});

test("its time counts from when it was shown, whether or not the answer comes", async () => { // Finding U1
  for (const network of ["up", "down", "deaf"] as const) {
    service = new FakeService();
    const client = open();
    const decision = await client.decide();
    await pass(45_000);
    service.network = network;
    assert.equal(await client.shown(decision), true);
    await settle();
    service.network = "up";
    assert.equal(decision.reportAt! * 1000, Date.now() + MINUTE);
    await pass(MINUTE - 1000);
    assert.equal(service.sent("/reports").length, 0);
    assert.equal(await client.reward(decision, 1), true);
    await pass(1000);
    assert.equal(service.reports(decision.id)[0]!.at, decision.reportAt! * 1000);
    client.close();
  }
});

test("a clock that is set back does not change what was sent", async () => {
  for (const again of [false, true]) {
    const storage = memoryStore();
    let skew = 0;
    const changes = { random: (bytes: Uint8Array) => bytes.fill(0), now: () => Date.now() + skew };
    let client = open(storage, changes);
    const decision = await client.decide();
    await client.shown(decision);
    service.network = "deaf";
    await pass(MINUTE);
    skew = -MINUTE;
    if (again) {
      client.close();
      client = open(storage, changes);
    }
    assert.equal(await client.reward(decision, 1), false);
    service.network = "up";
    await pass(3 * MINUTE);
    const values = service.reports(decision.id).map((each) => JSON.parse(each.body).value);
    assert.ok(values.length >= 2);
    assert.deepEqual(new Set(values), new Set([0]));
    client.close();
  }
});

/** localStorage over a map. */
function localMap(kept: Map<string, string>): Store {
  return localStore(new Proxy({
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }, { ownKeys: () => [...kept.keys()], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }) }) as unknown as Storage);
}

/**
 * What a store sees of one visit: what is kept before its time, and what is done from then to sending.
 *
 * `old` keeps no report when a decision is shown, so that it is drawn at its time without a reward: 0.2.0.
 */
async function watched(kind: string, click: boolean, old: boolean): Promise<{ kept: string; done: string[] }> {
  service = new FakeService();
  const inner = kind === "memory" ? memoryStore() : localMap(new Map());
  let kept = "";
  const done: string[] = [];
  const storage: Store = {
    keys: () => inner.keys(),
    update: (key, change) => inner.update(key, (before: any) => {
      let after: any = change(before);
      if (old && before === undefined && after?.instructions) delete after.value;
      done.push(after === before ? "read" : "write");
      if (after?.instructions) kept = JSON.stringify(after);
      return after;
    }),
  };
  const random = (bytes: Uint8Array) => {
    done.push("draw");
    crypto.getRandomValues(bytes as Uint8Array<ArrayBuffer>);
  };
  const client = open(storage, {
    random, fetch: (...args: Parameters<typeof fetch>) => (done.push("send"), service.fetch(...args)),
  });
  const decision = await client.decide();
  await client.shown(decision);
  await settle();
  if (click) await client.reward(decision, 1);
  const before = kept.replace(decision.id, "").replace(/"value":[01]/, '"value":0');
  done.length = 0;
  await pass(MINUTE);
  client.close();
  assert.equal(service.reports(decision.id).length, 1);
  return { kept: before, done: done.slice(0, done.indexOf("send") + 1) };
}

for (const kind of ["memory", "localStorage"]) {
  test(`${kind}: a reward changes neither the form of what is kept nor what is done at its time`, async () => {
    const seen = async (old: boolean) => {
      const found = [];
      for (const click of [false, true]) {
        mock.timers.reset();
        mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_800_000_000_000 });
        found.push(await watched(kind, click, old));
      }
      return found as [Awaited<ReturnType<typeof watched>>, Awaited<ReturnType<typeof watched>>];
    };
    // Findings P2 and P10
    const [silent, clicked] = await seen(false);
    assert.deepEqual(silent, clicked);
    assert.deepEqual(silent.done, ["read", "read", "send"]);
    // The twin.
    const [quiet, loud] = await seen(true);
    assert.notEqual(quiet.kept, loud.kept);
    assert.notDeepEqual(quiet.done, loud.done);
  });
}

test("a storage that fails owes nothing, and a click on it raises nothing", async () => {
  const kept = memoryStore();
  let broken = true;
  const storage: Store = {
    update: (key, change) => (broken ? Promise.reject(new Error("quota")) : kept.update(key, change)),
    keys: () => kept.keys(),
  };
  const client = open(storage);
  const lost = await client.decide();
  assert.equal(await client.shown(lost), false);
  await client.reward(lost, 1);
  broken = false;
  const decision = await client.decide();
  assert.equal(await client.shown(decision), true);
  broken = true;
  await client.reward(decision, 1);
  await pass(2 * MINUTE);
  assert.equal(service.sent("/reports").length, 0); // what cannot be read is not sent
  broken = false;
  await pass(MINUTE);
  assert.equal(service.reports(lost.id).length, 0);
  assert.equal(service.reports(decision.id).length, 1);
  client.close();
});

test("a budget that cannot be kept is spent", async () => {
  const answers: boolean[] = [];
  for (const changes of [{ budget: 5 }, {}]) {
    const client = open(bestStore(), changes); // Node has neither IndexedDB nor localStorage
    answers.push(await client.shown(await client.decide()));
    client.close();
  }
  assert.deepEqual(answers, [false, true]);
});

test("a server that asks for nothing gets nothing", async () => {
  service.instructions = null;
  const client = open();
  const decision = await client.decide();
  assert.equal(decision.reason, "learn");
  assert.equal(await client.shown(decision), false);
  client.close();
});

test("localStorage keeps what is owed", async () => {
  const kept = new Map<string, string>();
  const store = localMap(kept);
  const client = open(store);
  const decision = await client.decide();
  await client.shown(decision);
  client.close();
  const later = open(store);
  await pass(MINUTE);
  assert.equal(service.reports(decision.id).length, 1);
  assert.deepEqual([...kept.keys()], ["tacit spent"]);
  later.close();
});

let clicked = 0;
const STEPS = ["decide", "decide", "shown", "shown", "shown", "click", "click", "click", "kill", "reopen", "second tab", "online", "offline", "deaf",
  "wait", "wait long", "clock"] as const;

test("any order of events: at most one report, its bytes fixed, never before its time", async () => {
  const property = fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { minLength: 12, maxLength: 40, size: "max" }), async (steps) => {
    mock.timers.reset();
    mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_800_000_000_000 });
    service = new FakeService();
    const storage = memoryStore();
    let skew = 0;
    const now = () => Date.now() + skew;
    const visit = () => open(storage, { now });
    let tabs = [visit()];
    const decisions: { decision: Awaited<ReturnType<Client["decide"]>>; tab: Client; owed: boolean }[] = [];
    for (const step of steps) {
      const last = decisions.at(-1);
      const tab = tabs[0];
      if (step === "decide" && tab) {
        await tab.decide().then((decision) => decisions.push({ decision, tab, owed: false }), () => undefined);
      } else if (step === "shown" && last && tabs.includes(last.tab)) last.owed ||= await last.tab.shown(last.decision);
      else if (step === "click" && last && tabs.includes(last.tab)) {
        await last.tab.reward(last.decision, 1);
        clicked += +last.owed;
      }
      else if (step === "kill") tabs.splice(0).forEach((each) => each.close());
      else if (step === "reopen" && !tab) tabs = [visit()];
      else if (step === "second tab") tabs.push(visit());
      else if (step === "online") service.network = "up";
      else if (step === "offline") service.network = "down";
      else if (step === "deaf") service.network = "deaf";
      else if (step === "wait") await pass(MINUTE / 3);
      else if (step === "wait long") await pass(3 * MINUTE);
      else if (step === "clock") skew += 10_000;
    }
    service.network = "up";
    tabs.push(visit());
    await pass(4 * MINUTE);
    tabs.forEach((each) => each.close());
    for (const { decision, owed } of decisions) {
      const reports = service.reports(decision.id);
      assert.equal(new Set(reports.map((each) => each.body)).size, owed ? 1 : 0);
      for (const { at } of reports) assert.ok(at + skew >= decision.reportAt! * 1000);
    }
  });
  // Where chance clicked seldom, more orders are tried.
  for (let i = 0; i < 5 && clicked <= 20; i++) await fc.assert(property, { numRuns: 60 });
  assert.ok(clicked > 20, "too few clicks to say anything");
});

test("when a report is sent does not depend on whether there was a click", async () => {
  const times: number[][] = [];
  for (const click of [false, true]) {
    mock.timers.reset();
    mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_800_000_000_000 });
    service = new FakeService();
    const client = open();
    for (let i = 0; i < 3; i++) {
      const decision = await client.decide();
      await client.shown(decision);
      await pass(7000);
      if (click) await client.reward(decision, 1);
    }
    await pass(2 * MINUTE);
    times.push(service.received.map((each) => each.at));
    client.close();
  }
  assert.deepEqual(times[0], times[1]);
});
