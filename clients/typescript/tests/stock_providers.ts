/** Real SDKs against a real service: `node stock_providers.ts URL TOKEN FLAG` prints what they made of it. */
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OpenFeature } from "@openfeature/server-sdk";
import { channel } from "../src/index.ts";
import { ours, stockWeb } from "./stock_web.ts";

async function stockServer(url: string, token: string, flag: string): Promise<object> {
  const provider = new OFREPProvider({ baseUrl: url, headers: [["authorization", `Bearer ${token}`]] });
  await OpenFeature.setProviderAndWait(provider);
  const client = OpenFeature.getClient();
  const found = await client.getStringDetails(flag, "none", { targetingKey: "cleo" });
  const missing = await client.getStringDetails("missing", "none", { targetingKey: "cleo" });
  const wrong = await client.getNumberDetails(flag, 0, { targetingKey: "cleo" });
  await OpenFeature.close();
  const asked = channel(JSON.parse(found.flagMetadata.instructions as string));
  return { found, missing, wrong, report: { v: 1, id: found.flagMetadata.id, value: asked.draw(1) } };
}

const [url, token, flag] = process.argv.slice(2) as [string, string, string];
console.log(JSON.stringify({
  server: await stockServer(url, token, flag),
  web: await stockWeb(url, token, flag),
  clicked: await ours(url, token, flag, true),
  silent: await ours(url, token, flag, false),
}));
