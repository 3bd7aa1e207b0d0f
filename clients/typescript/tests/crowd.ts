/**
 * Many visitors with clients of their own, in real time: `node crowd.ts URL VISITORS CLIENT`.
 *
 * Half of them click, somewhere between the decision and its report. CLIENT is `real`, `halved` (its
 * threshold to lie is) or `hasty` (a click is sent at once). Prints which decisions were clicked.
 */
import { createClient, memoryStore } from "../src/index.ts";

const [url, count, kind] = process.argv.slice(2) as [string, string, string];
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const clicked: Record<string, boolean> = {};
let unsent = Number(count);

const counted: typeof fetch = async (address, init) => {
  const answer = await fetch(address, init);
  if (String(address).endsWith("/reports")) unsent--;
  if (kind !== "halved" || !String(address).endsWith("/decisions")) return answer;
  const said = (await answer.json()) as any;
  const [truth, lie] = said.instructions.answer.weights;
  said.instructions.answer.weights = [truth + Math.ceil(lie / 2), Math.floor(lie / 2)];
  return Response.json(said);
};

async function visit(clicks: boolean): Promise<() => Promise<void>> {
  let ahead = 0;
  const client = createClient({
    url, token: "t", experiment: "news", maxEpsilon: 2, storage: memoryStore(), fetch: counted,
    now: () => Date.now() + ahead,
  });
  const decision = await client.decide();
  await client.shown(decision);
  clicked[decision.id] = clicks;
  return async () => {
    await pause(Math.random() * 0.8 * (decision.reportAt! * 1000 - Date.now()));
    if (!clicks) return;
    await client.reward(decision, 1);
    if (kind === "hasty") {
      ahead = 1e9;
      await client.flush();
    }
  };
}

const visits: Promise<void>[] = [];
const entries = Array.from({ length: 32 }, async (_, entry) => {
  for (let i = entry; i < Number(count); i += 32) visits.push((await visit(Math.random() < 0.5))());
});
await Promise.all(entries);
await Promise.all(visits);
while (unsent > 0) await pause(20);
console.log(JSON.stringify(clicked));
