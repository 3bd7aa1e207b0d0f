/**
 * Tacit on the device: decide, show, report privately.
 *
 * A reward never leaves the device. Every decision that was shown is answered by exactly one report, at
 * the time that was fixed when it was shown, whatever happened until then: a click neither makes
 * nor hastens it, and its absence does not prevent it.
 */
import { channel, type Channel, type Instructions, type Random, type Value } from "./channel.ts";
import { bestStore, type Store } from "./storage.ts";

export { channel, type Channel, type Instructions, type Random, type Value } from "./channel.ts";
export { indexedStore, localStore, memoryStore, type Store } from "./storage.ts";

export interface ClientOptions {
  /** Where the service is, such as `https://decide.example.org`. */
  url: string;
  /** A token that may decide and report. */
  token: string;
  experiment: string;
  /** The most that one report may cost; a server that asks for more gets no report. */
  maxEpsilon: number;
  /** The most that all reports kept in this storage may cost together; no limit unless given. */
  budget?: number;
  /** Where owed reports wait; the best the browser has unless given. */
  storage?: Store;
  /** Called when a reward came after `reportAt`, too late. Count it here: to send it would tell of it. */
  onLate?: (decision: Decision) => void;
  /** Random bytes; `crypto.getRandomValues` unless given, which is for tests. */
  random?: Random;
  fetch?: typeof fetch;
  /** Milliseconds since 1970; `Date.now` unless given, which is for tests. */
  now?: () => number;
}

export interface Request {
  person?: string;
  eligible?: string[];
  contexts?: Record<string, number[]>;
}

export interface Decision {
  id: string;
  option: string;
  probability: number;
  /** When the report goes out, in seconds since 1970; `shown` fixes it. Null if none is asked for. */
  reportAt: number | null;
  /** What the report will cost; 0 if none is sent. */
  epsilon: number;
  /** Why no report will be sent, or what the server said. */
  reason: string;
}

export interface Client {
  /** Ask the service what to show; rejects if it cannot be asked. */
  decide(request?: Request): Promise<Decision>;
  /** Say that the option was shown. Resolves once a report is owed and kept; false if none will be sent. */
  shown(decision: Decision): Promise<boolean>;
  /**
   * Note the reward: the first one of this page before `reportAt` counts. Nothing is sent now, nothing rejects.
   * Resolves to whether it counts: false if it was late (see `onLate`), second, or if no report is owed.
   */
  reward(decision: Decision, value: number | boolean): Promise<boolean>;
  /** Send what is due now; a page does this by itself, a service worker calls it. */
  flush(): Promise<void>;
  /** Stop the timer; what is owed stays in the storage. */
  close(): void;
}

/** What is kept of a decision that was shown. */
interface Owed {
  instructions: Instructions;
  /** Milliseconds since 1970. */
  due: number;
  /** The report: of the default reward from the start, until a reward replaces it. 0.2.0 kept none. */
  value?: Value;
  /** Whether the server knows that it was shown. */
  confirmed?: boolean;
  /** Whether it was sent, perhaps in vain: then it stays as it is. */
  sent?: boolean;
}

/** A decision of this page that may be reported on. */
interface Held {
  asked: Channel;
  instructions: Instructions;
  /** Milliseconds since 1970. */
  decided: number;
  shown?: Promise<boolean>;
}

const UNIT = 2 ** 40;
const LONGEST = 2 ** 31 - 1;
const RETRY = 30_000;

/** Connect to one experiment. */
export function createClient(options: ClientOptions): Client {
  const { url, token, experiment, maxEpsilon, budget = Infinity, random, onLate } = options;
  if (!(maxEpsilon > 0)) throw new Error("tacit: expected maxEpsilon > 0");
  const store = options.storage ?? bestStore();
  const now = options.now ?? Date.now;
  const ask = options.fetch ?? globalThis.fetch.bind(globalThis);
  const base = `${url.replace(/\/$/, "")}/v1/experiments/${encodeURIComponent(experiment)}`;
  const prefix = `tacit ${base} `;
  const held = new Map<string, Held>();
  // In memory only: in the storage it would tell who had a reward.
  const rewarded = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let flushing: Promise<void> | undefined;
  let closed = false;

  const post = (path: string, body: unknown, keepalive = false): Promise<Response> =>
    ask(base + path, {
      method: "POST",
      keepalive,
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });

  async function decide(request: Request = {}): Promise<Decision> {
    const bytes = new Uint8Array(16);
    crypto.getRandomValues(bytes);
    // An id made here: a repeated request gets the stored answer, not a second decision.
    const id = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const body = { id, ...request };
    let answer = await post("/decisions", body).catch(() => undefined);
    if (!answer || answer.status >= 500) answer = await post("/decisions", body);
    if (!answer.ok) throw new Error(`tacit: ${experiment} answered ${answer.status}`);
    const { option, probability, report_at, instructions, reason = "" } = await answer.json();
    const decision = { id, option, probability, reportAt: report_at ?? null, epsilon: 0, reason };
    if (!instructions) return decision;
    try {
      const asked = channel(instructions);
      if (asked.epsilon > maxEpsilon) throw new Error("tacit: asks for more than maxEpsilon");
      if (!Number.isFinite(report_at)) throw new Error("tacit: instructions refused (report_at)");
      held.set(id, { asked, instructions, decided: now() });
      decision.epsilon = asked.epsilon;
    } catch (error) {
      decision.reason = (error as Error).message;
    }
    return decision;
  }

  async function shown(decision: Decision): Promise<boolean> {
    const mine = held.get(decision.id);
    return mine ? (mine.shown ??= owe(decision, mine).catch(() => false)) : false;
  }

  async function owe(decision: Decision, { asked, instructions, decided }: Held): Promise<boolean> {
    const { id } = decision;
    // Its time counts from here, by this clock: an answer that is lost must not change it.
    const due = decision.reportAt! * 1000 + now() - decided;
    // Charged before anything is owed: a crash in between charges too much, never too little.
    const units = Math.ceil(asked.epsilon * UNIT);
    let paid = false;
    await store.update<number>("tacit spent", (spent = 0) => {
      paid = budget === Infinity || spent + units <= budget * UNIT;
      return paid ? spent + units : spent;
    });
    if (!paid) return false;
    decision.reportAt = due / 1000;
    await store.update<Owed>(prefix + id, () => ({ instructions, due, value: asked.draw(undefined, random) }));
    schedule(due);
    void announce(id).catch(() => undefined);
    return true;
  }

  /** Let the server know that a decision was shown; false if it wants no report. */
  async function announce(id: string): Promise<boolean> {
    const answer = await post(`/decisions/${id}/shown`, {});
    if (unsure(answer)) throw new Error();
    const wanted = answer.ok && Number.isFinite((await answer.json()).report_at);
    await store.update<Owed>(prefix + id, (owed) => owed && (wanted ? { ...owed, confirmed: true } : undefined));
    return wanted;
  }

  async function reward(decision: Decision, value: number | boolean): Promise<boolean> {
    const { id, reportAt } = decision;
    // An error that only a click can cause would tell of the click.
    try {
      if (rewarded.has(id) || (held.has(id) && !(await held.get(id)!.shown))) return false;
      let counts = false;
      // The clock is read while no other tab can read the report: what comes later is never sent.
      await store.update<Owed>(prefix + id, (owed) =>
        (counts = !!owed && !owed.sent && now() < owed.due)
          ? { ...owed!, value: channel(owed!.instructions).draw(value, random) }
          : owed);
      if (counts) rewarded.add(id);
      else if (onLate && reportAt && now() >= reportAt * 1000) queueMicrotask(() => onLate(decision));
      return counts;
    } catch {
      return false;
    }
  }

  /** Send one report if it is due; return when to come again. */
  async function send(key: string): Promise<number> {
    const id = key.slice(prefix.length);
    const read = () =>
      store.update<Owed>(key, (owed) =>
        owed && owed.value === undefined && owed.due <= now()
          ? { ...owed, value: channel(owed.instructions).draw(undefined, random) } // of 0.2.0
          : owed);
    let owed = await read();
    if (!owed) return Infinity;
    if (owed.due > now()) return owed.due;
    if (!owed.confirmed && !(await announce(id))) return Infinity;
    // Read once it is due: from here to sending nothing is drawn or written, a reward was written when it came.
    owed = await read();
    if (!owed) return Infinity;
    const answer = await post("/reports", { v: 1, id, value: owed.value }, true).catch(() => undefined);
    if (!answer || unsure(answer)) {
      await store.update<Owed>(key, (old) => old && { ...old, sent: true });
      return now() + RETRY;
    }
    held.delete(id);
    rewarded.delete(id);
    await store.update(key, () => undefined);
    return Infinity;
  }

  async function flushOnce(): Promise<void> {
    let next = Infinity;
    for (const key of await store.keys()) {
      if (key.startsWith(prefix)) next = Math.min(next, await send(key).catch(() => now() + RETRY));
    }
    schedule(next);
  }

  const flush = (): Promise<void> =>
    (flushing ??= flushOnce().catch(() => schedule(now() + RETRY)).finally(() => (flushing = undefined)));

  let planned = Infinity;
  function schedule(at: number): void {
    if (closed || at >= planned) return;
    clearTimeout(timer);
    planned = at;
    timer = setTimeout(() => {
      planned = Infinity;
      void flush();
    }, Math.min(Math.max(at - now(), 0), LONGEST));
    (timer as { unref?: () => void }).unref?.();
  }

  void flush();
  return {
    decide,
    shown,
    reward,
    flush,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** Whether the same request may still succeed later. */
function unsure(answer: Response): boolean {
  return answer.status >= 500 || answer.status === 408 || answer.status === 429;
}
