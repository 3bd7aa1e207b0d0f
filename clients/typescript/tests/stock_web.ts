/** The stock OFREP web provider, as a page uses it; bundled for a browser and run in Node alike. */
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
import { OpenFeature } from "@openfeature/web-sdk";
import { memoryStore } from "../src/index.ts";
import { TacitProvider } from "../src/openfeature.ts";

const authorized = (token: string) => ({ headers: [["authorization", `Bearer ${token}`]] as [string, string][] });

/** What the SDK makes of a flag, and whether a second look finds nothing new. */
export async function stockWeb(url: string, token: string, flag: string): Promise<object> {
  const statuses: number[] = [];
  const provider = new OFREPWebProvider({
    baseUrl: url, cacheMode: "disabled", ...authorized(token),
    fetchImplementation: async (...request) => {
      const answer = await fetch(...request);
      statuses.push(answer.status);
      return answer;
    },
  });
  await OpenFeature.setContext({ targetingKey: "ann" });
  await OpenFeature.setProviderAndWait(provider);
  await OpenFeature.setContext({ targetingKey: "ann", again: true });
  const client = OpenFeature.getClient();
  const found = client.getStringDetails(flag, "none");
  const missing = client.getStringDetails("missing", "none");
  const wrong = client.getBooleanDetails(flag, false);
  await OpenFeature.close();
  return { found, missing, wrong, statuses };
}

/** Our own provider: a flag that is read is shown, and tracking it is the reward. */
export async function ours(url: string, token: string, flag: string, clicked: boolean): Promise<object> {
  const provider = new TacitProvider({
    url, token, maxEpsilon: 1, flags: [flag], storage: memoryStore(),
  });
  await OpenFeature.setContext({ targetingKey: "ben" });
  await OpenFeature.setProviderAndWait(provider);
  const client = OpenFeature.getClient();
  const found = client.getStringDetails(flag, "none");
  if (clicked) client.track(flag, { value: 1 });
  await new Promise((resolve) => setTimeout(resolve, 1200));
  await OpenFeature.close();
  return { found };
}
