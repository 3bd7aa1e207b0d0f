/** The part of the service that a client talks to, with a switch for the network. */

const RESPONSE = {
  v: 1, trust: "local", default: 0,
  question: { low: 0, high: 1, levels: 2 },
  answer: { kind: "window", cells: 2, width: 1, weights: [6584790284606575, 2422408970134413] },
};

export interface Received {
  at: number;
  path: string;
  body: string;
}

export class FakeService {
  received: Received[] = [];
  /** `up`, `down` (nothing arrives), `deaf` (arrives, the answer is lost) or a status to answer. */
  network: "up" | "down" | "deaf" | number = "up";
  instructions: unknown = RESPONSE;
  reportAfter = 60;
  /** Whether a decision that was shown is to be reported on; not if a person's budget is used up. */
  wanted = true;
  readonly now: () => number;

  constructor(now: () => number = Date.now) {
    this.now = now;
  }

  fetch = async (address: string | URL | Request, init?: RequestInit): Promise<Response> => {
    await Promise.resolve();
    if (this.network === "down") throw new TypeError("offline");
    const path = new URL(String(address)).pathname.replace("/v1/experiments/news", "");
    const body = String(init?.body);
    this.received.push({ at: this.now(), path, body });
    if (this.network === "deaf") throw new TypeError("connection lost");
    if (typeof this.network === "number") return new Response("{}", { status: this.network });
    const report_at = this.now() / 1000 + this.reportAfter;
    if (path.endsWith("/shown")) return Response.json({ report_at: this.wanted ? report_at : null });
    if (path !== "/decisions") return Response.json({});
    return Response.json({
      id: JSON.parse(body).id,
      option: "red",
      probability: 0.5,
      report_at,
      instructions: this.instructions,
      reason: "learn",
    });
  };

  sent(path: string): Received[] {
    return this.received.filter((each) => each.path === path);
  }

  reports(id: string): Received[] {
    return this.sent("/reports").filter((each) => JSON.parse(each.body).id === id);
  }
}
