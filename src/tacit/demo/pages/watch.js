import { createClient, memoryStore } from "./client.js";

const by = (id) => document.getElementById(id);
const made = (tag, text, kind) => Object.assign(document.createElement(tag), { textContent: text, className: kind ?? "" });
let client;

function row(option) {
  const line = made("div", "", "row");
  const rail = made("div", "", "rail");
  const fill = made("div", "", "fill");
  fill.style.width = `${100 * option.share}%`;
  rail.append(fill);
  const worth = option.estimate === null ? "-" : option.estimate.toFixed(2);
  line.append(made("span", option.option), rail, made("span", `${Math.round(100 * option.share)}% · ${worth}`, "n"));
  line.title = `estimated ${worth}; the truth, which only this demonstration knows, is ${option.truth}`;
  return line;
}

async function refresh() {
  const data = await (await fetch("/demo/data")).json();
  client ??= createClient({ url: location.origin, token: data.token, experiment: data.experiment, maxEpsilon: data.epsilon, storage: memoryStore() });
  by("came").textContent = `${data.came} of ${data.visitors} visitors came. Each bar is the share of them who were shown a headline; the number beside it is what the service thinks it is worth.`;
  by("options").replaceChildren(...data.options.map(row));
  by("latest").replaceChildren(...data.latest.toReversed().map((visit) => {
    const line = document.createElement("tr");
    line.append(made("td", visit.option), made("td", visit.clicked ? "clicked" : "did not click"), made("td", visit.sent ?? "-", "bit"));
    return line;
  }));
  by("spent").textContent = `Every device spends epsilon ${data.epsilon} on its one report: the bit is the truth with probability ${(1 / (1 + Math.exp(-data.epsilon))).toFixed(2)}.`;
  by("sentence").textContent = data.sentence;
}

by("ask").addEventListener("click", async () => {
  const decision = await client.decide();
  await client.shown(decision);
  const headline = made("button", decision.option);
  headline.addEventListener("click", async () => {
    await client.reward(decision, 1);
    by("mine").textContent = "Noted on this device. Nothing was sent because of it.";
  });
  by("headline").replaceChildren(headline);
  by("mine").textContent = "One report goes out in two seconds, clicked or not.";
});

setInterval(() => refresh().catch(() => undefined), 1000);
refresh();
