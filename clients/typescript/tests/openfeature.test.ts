/** The provider in OpenFeature's own web SDK. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenFeature } from "@openfeature/web-sdk";
import { memoryStore } from "../src/index.ts";
import { TacitProvider } from "../src/openfeature.ts";
import { FakeService } from "./fake_service.ts";

test("a flag is a decision, reading it shows it, tracking it is the reward", async () => {
  const service = new FakeService();
  service.reportAfter = 0.3;
  const provider = new TacitProvider({
    url: "https://decide.test", token: "t", maxEpsilon: 1, flags: ["news"],
    storage: memoryStore(), fetch: service.fetch, random: (bytes: Uint8Array) => bytes.fill(0),
  });
  await OpenFeature.setContext({ targetingKey: "ann" });
  await OpenFeature.setProviderAndWait(provider);
  const client = OpenFeature.getClient();
  assert.equal(JSON.parse(service.sent("/decisions")[0]!.body).person, "ann");
  assert.equal(service.received.length, 1);

  const details = client.getStringDetails("news", "none");
  assert.equal(details.value, "red");
  assert.equal(details.flagMetadata.probability, 0.5);
  client.track("news", { value: 1 });
  assert.equal(client.getBooleanDetails("news", false).errorCode, "TYPE_MISMATCH");
  assert.equal(client.getStringDetails("other", "none").errorCode, "FLAG_NOT_FOUND");
  assert.equal(client.getStringValue("other", "none"), "none");

  const id = details.flagMetadata.id as string;
  while (!service.reports(id).length) await new Promise((resolve) => setTimeout(resolve, 10));
  const [report] = service.reports(id);
  const [decided] = service.sent("/decisions");
  assert.ok(report!.at >= decided!.at + 300, "a report left before its time");
  assert.equal(JSON.parse(report!.body).value, 1);
  await OpenFeature.close();
});

test("a service that cannot be reached leaves the default", async () => {
  const service = new FakeService();
  service.network = "down";
  const provider = new TacitProvider({
    url: "https://decide.test", token: "t", maxEpsilon: 1, flags: ["news"],
    storage: memoryStore(), fetch: service.fetch,
  });
  await OpenFeature.setProviderAndWait(provider);
  assert.equal(OpenFeature.getClient().getStringValue("news", "none"), "none");
  await OpenFeature.close();
});
