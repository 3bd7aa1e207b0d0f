/**
 * A provider for OpenFeature's web SDK whose `track` is the reward.
 *
 * A flag is an experiment. Decisions are made when the provider starts and when the context changes, a
 * flag that is read counts as shown, and `track(flag, context, { value })` notes the reward on the
 * device, from where one private report goes out at its time.
 */
import { createClient, type Client, type ClientOptions, type Decision } from "./index.ts";

interface Context {
  targetingKey?: string;
  [key: string]: unknown;
}

interface Resolution<T> {
  value: T;
  variant?: string;
  reason: string;
  // OpenFeature has an enumeration here, and this file no dependency.
  errorCode?: any;
  flagMetadata?: Record<string, string | number | boolean>;
}

export interface ProviderOptions extends Omit<ClientOptions, "experiment"> {
  /** The flags that are experiments of the service. */
  flags: string[];
}

/** Decisions as flags, rewards as tracking events. */
export class TacitProvider {
  readonly metadata = { name: "tacit" };
  readonly runsOn = "client";
  readonly #clients: Map<string, Client>;
  #decisions = new Map<string, Decision>();

  constructor({ flags, ...options }: ProviderOptions) {
    this.#clients = new Map(
      flags.map((experiment) => [experiment, createClient({ ...options, experiment })]),
    );
  }

  async initialize(context: Context = {}): Promise<void> {
    const fresh = new Map<string, Decision>();
    await Promise.all([...this.#clients].map(async ([flag, client]) => {
      const person = context.targetingKey;
      const decision = await client.decide(person ? { person } : {}).catch(() => undefined);
      if (decision) fresh.set(flag, decision);
    }));
    this.#decisions = fresh;
  }

  onContextChange(_before: Context, context: Context): Promise<void> {
    return this.initialize(context);
  }

  async onClose(): Promise<void> {
    for (const client of this.#clients.values()) client.close();
  }

  resolveStringEvaluation(flag: string, value: string): Resolution<string> {
    const decision = this.#decisions.get(flag);
    if (!decision) {
      return this.#clients.has(flag)
        ? { value, reason: "DEFAULT" }
        : { value, reason: "ERROR", errorCode: "FLAG_NOT_FOUND" };
    }
    void this.#clients.get(flag)!.shown(decision);
    const { id, option, probability } = decision;
    return { value: option, variant: option, reason: "SPLIT", flagMetadata: { id, probability } };
  }

  resolveBooleanEvaluation(flag: string, value: boolean): Resolution<boolean> {
    return this.#parsed(flag, value, (option) =>
      option === "true" ? true : option === "false" ? false : undefined);
  }

  resolveNumberEvaluation(flag: string, value: number): Resolution<number> {
    return this.#parsed(flag, value, (option) => {
      const number = option.trim() === "" ? NaN : Number(option);
      return Number.isFinite(number) ? number : undefined;
    });
  }

  resolveObjectEvaluation<T>(flag: string, value: T): Resolution<T> {
    return this.#parsed(flag, value, (option) => {
      try {
        const parsed: unknown = JSON.parse(option);
        return typeof parsed === "object" ? (parsed as T) : undefined;
      } catch {
        return undefined;
      }
    });
  }

  /** Note the reward of the flag's decision: `details.value`, or 1 without it. */
  track(flag: string, _context?: Context, details?: { value?: number }): void {
    const decision = this.#decisions.get(flag);
    if (decision) void this.#clients.get(flag)!.reward(decision, details?.value ?? 1);
  }

  #parsed<T>(flag: string, value: T, parse: (option: string) => T | undefined): Resolution<T> {
    const option = this.#decisions.get(flag)?.option;
    const parsed = option === undefined ? undefined : parse(option);
    if (option !== undefined && parsed === undefined) {
      return { value, reason: "ERROR", errorCode: "TYPE_MISMATCH" };
    }
    const resolved = this.resolveStringEvaluation(flag, "");
    return { ...resolved, value: parsed ?? value } as Resolution<T>;
  }
}
