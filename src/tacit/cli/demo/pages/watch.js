const by = (id) => document.getElementById(id);
const made = (tag, text, kind) => Object.assign(document.createElement(tag), { textContent: text, className: kind ?? "" });
const percent = (share) => `${100 * Math.min(Math.max(share, 0), 1)}%`;

function row(label, number, ...marks) {
  const line = made("div", "", "row");
  const rail = made("div", "", "rail");
  rail.append(...marks);
  line.append(made("span", label), rail, made("span", number, "n"));
  return line;
}

function mark(kind, from, to) {
  const one = made("div", "", kind);
  one.style.left = percent(from);
  if (to !== undefined) one.style.width = percent(Math.min(to, 1) - Math.max(from, 0));
  return one;
}

function worth(option) {
  const marks = [mark("truth", option.truth)];
  if (option.low !== null) marks.unshift(mark("band", option.low, option.high));
  if (option.estimate !== null) marks.push(mark("point", option.estimate));
  const line = row(option.option, option.estimate === null ? "none yet" : option.estimate.toFixed(2), ...marks);
  line.title = `the truth is ${option.truth}`;
  return line;
}

function visited({ option, clicked, sent, where }) {
  const line = document.createElement("tr");
  line.append(made("td", option), made("td", clicked ? "clicked" : "no click"), made("td", sent, "bit"), made("td", where, "quiet"));
  return line;
}

async function refresh() {
  const data = await (await fetch("/demo/data")).json();
  if (!data.came) return;
  const truth = 1 / (1 + Math.exp(-data.epsilon));
  const browsers = data.in_browsers ? `, ${data.in_browsers.toLocaleString("en")} of them in a real browser` : "";
  by("came").textContent = `${data.came.toLocaleString("en")} visitors came${browsers}. The service decides what each is shown, learns from their reports, and never sees a click. ${data.late}`;
  by("shares").replaceChildren(...data.options.map((each) => row(each.option, `${Math.round(100 * each.share)}%`, mark("fill", 0, each.share))));
  by("worth").replaceChildren(...data.options.map(worth));
  if (data.latest.length) by("latest").replaceChildren(...data.latest.toReversed().map(visited));
  by("spent").textContent = `Every device spends epsilon ${data.epsilon} on its one report: the bit is the truth with probability ${truth.toFixed(2)}, whoever reads it. All ${data.came.toLocaleString("en")} together: ${data.spent.toFixed(0)}, but never more than ${data.epsilon} about one click.`;
  by("sentence").textContent = data.sentence;
}

const again = setInterval(() => refresh().catch(() => {
  clearInterval(again);
  by("came").textContent += " The demonstration has ended.";
}), 1000);
refresh();
