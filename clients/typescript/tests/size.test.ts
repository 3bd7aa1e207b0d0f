/** Small enough for any page. */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

test("the client is at most 4,000 bytes, minified and compressed", async () => {
  const entry = fileURLToPath(new URL("../src/index.ts", import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [entry], bundle: true, minify: true, format: "esm", write: false,
  });
  const size = gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
  assert.ok(size <= 4000, `${size} bytes`);
});
