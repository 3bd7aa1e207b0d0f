import { createClient } from "./client.js";

const by = (id) => document.getElementById(id);
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
// A visitor of the simulated crowd tells the demonstration what happened; you tell nobody.
const word = new URLSearchParams(location.search).get("crowd");
const note = (body) => word && fetch("/demo/noted", { method: "POST", body: JSON.stringify({ ...body, word }) });

const data = await (await fetch("/demo/data")).json();
let shown, late = false;

/** The network as it is, with an eye on the reports. */
async function watched(address, init) {
  const answer = await fetch(address, init);
  if (String(address).endsWith("/reports")) {
    const { id, value } = JSON.parse(init.body);
    if (id === shown?.id) {
      by("receives").textContent = init.body;
      by("when").textContent = "Sent, at the time that was fixed when you were shown the headline. The value is the truth about a click " +
        `with probability ${(1 / (1 + Math.exp(-shown.epsilon))).toFixed(2)}, and a lie otherwise.`;
    }
    note({ id, value });
  }
  return answer;
}

const client = createClient({
  url: location.origin, token: data.token, experiment: data.experiment, maxEpsilon: data.epsilon, fetch: watched,
  onLate: () => (late = true),
});

async function visit() {
  by("headline").disabled = true;
  late = false;
  shown = await client.decide();
  await client.shown(shown);
  by("headline").textContent = shown.option;
  by("headline").disabled = false;
  by("story").textContent = "Click the headline if you would read it, or leave it.";
  by("knows").textContent = "The headline was shown. No click so far.";
  by("receives").textContent = "Nothing yet.";
  const seconds = Math.max(0, shown.reportAt - Date.now() / 1000).toFixed(0);
  by("when").textContent = `One report goes out in about ${seconds} seconds, clicked or not.`;
}

by("headline").addEventListener("click", async () => {
  await client.reward(shown, 1);
  by("knows").textContent = "The headline was shown and clicked.";
  if (late) {
    by("story").textContent = "The report went out before this click, which therefore counts for nothing.";
    return;
  }
  by("story").textContent = "There is no more to the story. The click stays on this device; nothing was sent because of it.";
});
by("again").addEventListener("click", visit);

await visit();
if (word) {
  const clicked = Math.random() < data.options.find((each) => each.option === shown.option).truth;
  await pause(0.5 + Math.random() / 2);
  if (clicked) by("headline").click();
  await pause(0.1);
  await note({ id: shown.id, option: shown.option, clicked, late, epsilon: shown.epsilon });
  await pause(0.3);
  location.reload(); // The report waits in this browser; the next page sends it when it is due.
}
