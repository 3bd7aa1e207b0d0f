// Draws the figures of the report: bands, values under the pointer, series that can be hidden, log axes.
// No library and no address: the namespace of SVG is taken from the page's own empty drawings.
"use strict";

const MARKERS = [
  (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
  (r) => `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0z`,
  (r) => `M0,${-1.2 * r}L${1.2 * r},${r}H${-1.2 * r}z`,
  (r) => `M0,${1.2 * r}L${1.2 * r},${-r}H${-1.2 * r}z`,
  (r) => `M${-r / 2.5},${-r}h${r / 1.25}v${r / 1.67}h${r / 1.67}v${r / 1.25}h${-r / 1.67}v${r / 1.67}h${-r / 1.25}v${-r / 1.67}h${-r / 1.67}v${-r / 1.25}h${r / 1.67}z`,
  (r) => `M${-r},${-r}L${r},${r}M${-r},${r}L${r},${-r}`,
];
const MARKS_ON_A_LINE = 8;
const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function short(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e9 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

function powerText(value) {
  const [digits, power] = value.toExponential(3).split("e");
  const raised = power.replace("+", "").replace(/./g, (c) => RAISED[c]);
  return Number(digits) === 1 ? `10${raised}` : `${Number(digits)}×10${raised}`;
}

function tickText(value) {
  const size = Math.abs(value);
  if (size > 0 && (size >= 1e6 || size < 1e-3)) return powerText(value);
  return size >= 1000 ? value.toLocaleString("en") : String(Number(value.toPrecision(6)));
}

function scale(low, high, from, to, log) {
  const f = log ? Math.log : (v) => v;
  const a = f(low), b = f(high);
  const at = (v) => from + ((f(v) - a) / (b - a)) * (to - from);
  return Object.assign(at, { ticks: log ? logTicks(low, high) : linearTicks(low, high), low, high });
}

function linearTicks(low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return ticks;
}

function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const digits = decades > 3 ? [1] : decades > 1.8 ? [1, 3] : decades > 0.5 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const every = Math.max(1, Math.round(decades / 6));
  const ticks = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); k++) {
    if (k % every) continue;
    for (const d of digits) {
      const tick = d * 10 ** k;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}

function range(values, log, zero) {
  const kept = values.filter((v) => v !== null && v !== undefined && (!log || v > 0));
  if (!kept.length) return log ? [1, 10] : [0, 1];
  let low = Math.min(...kept), high = Math.max(...kept);
  if (log) {
    if (low === high) return [low / 2, high * 2];
    const pad = (high / low) ** 0.05;
    return [low / pad, high * pad];
  }
  if (zero) { low = Math.min(0, low); high = Math.max(0, high); }
  if (low === high) return [low - 1, high + 1];
  const pad = 0.05 * (high - low);
  return [zero && low === 0 ? 0 : low - pad, zero && high === 0 ? 0 : high + pad];
}

class Chart {
  constructor(box) {
    this.box = box;
    this.data = JSON.parse(box.querySelector("script").textContent);
    this.svg = box.querySelector("svg");
    this.bars = this.data.kind === "bar";
    this.map = this.data.kind === "map";
    this.shown = this.data.series.map(() => true);
    this.logY = this.data.y_log;
    const all = this.data.series.flatMap((s) => s.x);
    this.xs = [...new Set(all)].filter((x) => x !== null && (!this.data.x_log || x > 0)).sort((a, b) => a - b);
    this.at = this.xs.length - 1;
    this.legend();
    if (!this.bars && !this.map) this.listen();
    new ResizeObserver(() => this.draw()).observe(this.svg.parentElement);
    addEventListener("beforeprint", () => this.draw(640));
  }

  element(name, attributes, parent = this.svg, text = "") {
    const made = document.createElementNS(this.svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  }

  legend() {
    const list = this.box.querySelector(".legend");
    this.where = this.box.querySelector(".where");
    this.entries = this.data.series.map((series, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Hide or show";
      button.setAttribute("aria-pressed", "true");
      const swatch = this.element("svg", { width: 26, height: 14, "aria-hidden": "true" }, button);
      if (this.bars) {
        this.element("rect", { x: 5, y: 1, width: 14, height: 12, rx: 2, class: `fill ${this.look(i)}` }, swatch);
      } else {
        this.element("path", { d: "M0,7H26", class: `line ${this.look(i)}` }, swatch);
        if (!series.dashed) this.marker(swatch, i, 13, 7, 4);
      }
      const label = document.createElement("span");
      label.textContent = series.label;
      const value = document.createElement("b");
      button.append(label, value);
      button.addEventListener("click", () => {
        this.shown[i] = !this.shown[i];
        button.setAttribute("aria-pressed", String(this.shown[i]));
        this.draw();
      });
      list.append(button);
      return { button, value };
    });
    const values = this.data.series.flatMap((s) => s.y).filter((v) => v !== null);
    const spread = Math.max(...values) / Math.min(...values);
    if (values.length && Math.min(...values) > 0 && (this.logY || spread > 8)) {
      const toggle = document.createElement("button");
      toggle.type = "button";
      toggle.className = "axis";
      const say = () => { toggle.textContent = this.logY ? "Linear axis" : "Log axis"; };
      say();
      toggle.addEventListener("click", () => { this.logY = !this.logY; say(); this.draw(); });
      this.box.querySelector(".tools").prepend(toggle);
    }
  }

  look(i) {
    const colour = this.data.colours[i];
    return `c${colour % 7}${this.data.series[i].dashed ? " dashed" : ""}${colour < 7 ? "" : " again"}`;
  }

  marker(parent, i, x, y, r) {
    const shape = MARKERS[this.data.colours[i] % MARKERS.length];
    this.element("path", { d: shape(r), transform: `translate(${x},${y})`, class: `mark ${this.look(i)}` }, parent);
  }

  draw(forced = 0) {
    const width = this.svg.parentElement.clientWidth || forced;
    if (!width) return;
    this.svg.replaceChildren();
    this.width = width;
    if (this.bars) this.drawBars();
    else if (this.map) this.drawMap();
    else this.drawLines();
  }

  size(height) {
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
  }

  drawLines() {
    const { width, data } = this;
    const height = Math.round(Math.min(380, Math.max(250, width * 0.55)));
    this.size(height);
    const series = data.series.filter((_, i) => this.shown[i]);
    const values = series.flatMap((s) => [...s.y, ...s.low, ...s.high]).filter((v) => v !== null);
    const yRange = range(values, this.logY, false), lowest = Math.min(...values);
    if (!this.logY && lowest >= 0 && lowest < 0.4 * yRange[1]) yRange[0] = 0;
    const bottom = height - 42, top = 28;
    this.y = scale(...yRange, bottom, top, this.logY);
    const texts = this.y.ticks.map(tickText);
    const left = 14 + 7.2 * Math.max(...texts.map((t) => t.length), 1), right = width - 14;
    let xRange = range(this.xs, data.x_log, false);
    if (data.kind === "line" && this.xs.length > 1) xRange = [this.xs[0], this.xs.at(-1)];
    this.x = scale(...xRange, left, right, data.x_log);
    Object.assign(this, { bottom, top, left, right });
    this.y.ticks.forEach((tick, i) => {
      const y = this.y(tick);
      this.element("path", { d: `M${left},${y}H${right}`, class: "grid" });
      this.element("text", { x: left - 7, y: y + 4, "text-anchor": "end" }, this.svg, texts[i]);
    });
    let free = -Infinity;
    const few = data.kind === "points" && this.xs.length <= 10;
    for (const tick of few ? this.xs : this.x.ticks) {
      const x = this.x(tick), text = tickText(tick), half = 3.8 * text.length;
      this.element("path", { d: `M${x},${bottom}v5`, class: "axisline" });
      const middle = Math.min(x, width - half);
      if (middle - half < free) continue;
      this.element("text", { x: middle, y: bottom + 19, "text-anchor": "middle" }, this.svg, text);
      free = middle + half + 8;
    }
    this.element("path", { d: `M${left},${bottom}H${right}`, class: "axisline" });
    this.element("text", { x: (left + right) / 2, y: height - 5, "text-anchor": "middle", class: "label" }, this.svg, data.x_label);
    this.element("text", { x: 2, y: 14, class: "label" }, this.svg, data.y_label);
    data.series.forEach((s, i) => this.shown[i] && s.low.length === s.x.length && this.band(s, i));
    data.series.forEach((s, i) => this.shown[i] && this.line(s, i));
    this.pointer = this.element("g", { class: "pointer" });
    this.read(this.at);
  }

  place(x, y) {
    const bad = x === null || y === null || (this.data.x_log && x <= 0);
    if (bad) return null;
    if (this.logY && y <= 0) return [this.x(x), this.bottom];
    return [this.x(x), Math.min(this.bottom, Math.max(this.top - 6, this.y(y)))];
  }

  band(series, i) {
    const up = [], down = [];
    series.x.forEach((x, k) => {
      const a = this.place(x, series.high[k]), b = this.place(x, series.low[k]);
      if (a && b) { up.push(a); down.unshift(b); }
    });
    if (up.length < 2) return;
    this.element("path", { d: `M${up.concat(down).map((p) => p.map((v) => v.toFixed(1)).join(",")).join("L")}z`, class: `band ${this.look(i)}` });
  }

  line(series, i) {
    let path = "", pen = "M";
    const places = series.x.map((x, k) => {
      const y = series.y[k];
      return this.logY && y !== null && y <= 0 ? null : this.place(x, y);
    });
    for (const p of places) {
      if (!p) { pen = "M"; continue; }
      path += `${pen}${p[0].toFixed(1)},${p[1].toFixed(1)}`;
      pen = "L";
    }
    this.element("path", { d: path, class: `line ${this.look(i)}` });
    if (series.dashed) return;
    const every = this.data.kind === "line" ? Math.max(1, Math.round(places.length / MARKS_ON_A_LINE)) : 1;
    const first = this.data.kind === "line" && every > 1 ? Math.floor((every * (i + 1)) / (this.data.series.length + 1)) : 0;
    places.forEach((p, k) => p && k % every === first % every && this.marker(this.svg, i, p[0], p[1], 4));
  }

  drawBars() {
    const { data, width } = this;
    const visible = data.series.map((_, i) => i).filter((i) => this.shown[i]);
    const thick = visible.length > 4 ? 13 : 16, gap = 3, head = 22;
    const group = head + visible.length * (thick + gap) + 8;
    const top = 24, height = top + data.ticks.length * group + 8;
    this.size(height);
    const used = visible.flatMap((i) => [...data.series[i].y, ...data.series[i].low, ...data.series[i].high]);
    const values = visible.flatMap((i) => data.series[i].y).filter((v) => v !== null);
    const [low, high] = range(used, this.logY, true);
    const x = scale(!this.logY && values.every((v) => v >= 0) ? 0 : low, high, 2, width - 76, this.logY);
    const zero = this.logY ? 2 : x(0);
    this.element("text", { x: 2, y: 14, class: "label" }, this.svg, data.y_label + (this.logY ? " (log axis)" : ""));
    data.ticks.forEach((tick, t) => {
      const y0 = top + t * group;
      this.element("text", { x: 2, y: y0 + 15, class: "group" }, this.svg, tick);
      this.element("path", { d: `M${zero},${y0 + head - gap}V${y0 + group - 8}`, class: "axisline" });
      visible.forEach((i, row) => {
        const series = data.series[i], k = series.x.indexOf(t);
        const value = k < 0 ? null : series.y[k];
        if (value === null || value === undefined) return;
        const y = y0 + head + row * (thick + gap);
        const end = this.logY && value <= 0 ? 2 : x(value);
        this.element("rect", { x: Math.min(zero, end), y, width: Math.max(1, Math.abs(end - zero)), height: thick, rx: 2, class: `fill ${this.look(i)}` });
        let text = Math.max(zero, end);
        if (series.low.length === series.x.length && series.low[k] !== null && series.high[k] !== null) {
          const a = this.logY && series.low[k] <= 0 ? 2 : Math.max(2, x(series.low[k])), b = x(series.high[k]), m = y + thick / 2;
          this.element("path", { d: `M${a},${m}H${b}M${a},${m - 4}v8M${b},${m - 4}v8`, class: "whisker" });
          text = Math.max(text, b);
        }
        const label = this.element("text", { x: text + 6, y: y + thick / 2 + 4, class: "value" }, this.svg, short(value));
        const interval = series.low.length ? `, 95% interval ${short(series.low[k])} to ${short(series.high[k])}` : "";
        this.element("title", {}, label.previousElementSibling, `${tick}: ${series.label} ${short(value)}${interval}`);
      });
    });
  }

  drawMap() {
    const { data, width } = this, { panels } = data;
    const columns = Math.min(panels.length, width > 560 ? 3 : 2), gap = 14, left = 40, head = 24, foot = 46;
    const wide = (width - left - 4 - gap * (columns - 1)) / columns, tall = Math.max(130, Math.min(190, 0.75 * wide));
    const rows = Math.ceil(panels.length / columns), block = head + tall + foot;
    this.size(18 + rows * block + 80);
    this.element("text", { x: 2, y: 14, class: "label" }, this.svg, data.y_label);
    panels.forEach((panel, i) => {
      const column = i % columns, x0 = left + column * (wide + gap), y0 = 18 + Math.floor(i / columns) * block + head;
      const x = scale(panel.x_edges[0], panel.x_edges.at(-1), x0, x0 + wide, data.x_log);
      const y = scale(panel.y_edges[0], panel.y_edges.at(-1), y0 + tall, y0, false);
      this.element("text", { x: x0, y: y0 - 7, class: "group" }, this.svg, panel.label);
      this.cells(panel, x, y);
      const curve = panel.curve.x.map((v, k) => `${x(v).toFixed(1)},${y(panel.curve.y[k]).toFixed(1)}`).join("L");
      for (const kind of ["under", "over"]) this.element("path", { d: `M${curve}`, class: kind });
      const labels = [];
      for (const contour of panel.contours) this.contour(contour, x, y, labels);
      let free = -Infinity;
      for (const tick of panel.x) {
        const text = data.x_log ? powerText(tick) : tickText(tick), half = 3.8 * text.length;
        if (x(tick) - half < free) continue;
        this.element("text", { x: x(tick), y: y0 + tall + 16, "text-anchor": "middle" }, this.svg, text);
        free = x(tick) + half + 6;
      }
      this.element("text", { x: x0 + wide / 2, y: y0 + tall + 34, "text-anchor": "middle", class: "label" }, this.svg, data.x_label);
      if (column) return;
      for (const tick of y.ticks) this.element("text", { x: x0 - 6, y: y(tick) + 4, "text-anchor": "end" }, this.svg, tickText(tick));
    });
    this.colourBar(left, 18 + rows * block + 4, Math.min(360, width - left - 12));
  }

  cells(panel, x, y) {
    const { data } = this;
    panel.values.forEach((column, i) => column.forEach((value, k) => {
      if (value === null) return;
      const a = x(panel.x_edges[i]), b = x(panel.x_edges[i + 1]), c = y(panel.y_edges[k + 1]), d = y(panel.y_edges[k]);
      const cell = this.element("rect", { x: a, y: c, width: b - a + 0.5, height: d - c + 0.5, fill: this.colour(value) });
      const said = `${panel.label}, ${data.x_label} ${short(panel.x[i])}, ${data.y_label} ${short(panel.y[k])}: ${short(value, 3)}`;
      this.element("title", {}, cell, said);
      for (const kind of ["pointermove", "pointerdown"]) cell.addEventListener(kind, () => { this.where.textContent = said; });
    }));
  }

  // A label that would cover another is left out: the colour bar has its value too.
  contour({ level, lines, at }, x, y, labels) {
    for (const line of lines) {
      const path = line.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("L");
      this.element("path", { d: `M${path}`, class: "contour" });
    }
    const text = short(level), here = [x(at[0]), y(at[1]) + 4, 3.4 * text.length];
    if (labels.some(([a, b, half]) => Math.abs(a - here[0]) < half + here[2] && Math.abs(b - here[1]) < 13)) return;
    labels.push(here);
    this.element("text", { x: here[0], y: here[1], "text-anchor": "middle", class: "height" }, this.svg, text);
  }

  colour(value) {
    const { low, high, colours } = this.data;
    const place = (Math.log(value / low) / Math.log(high / low)) * (colours.length - 1);
    const k = Math.min(colours.length - 2, Math.max(0, Math.floor(place))), share = place - k;
    const part = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
    return `rgb(${[0, 1, 2].map((i) => Math.round(part(colours[k], i) * (1 - share) + part(colours[k + 1], i) * share)).join(",")})`;
  }

  colourBar(left, top, wide) {
    const { low, high, levels, value_label: said, panels } = this.data, steps = 60;
    const x = scale(low, high, left, left + wide, true);
    for (let i = 0; i < steps; i++) {
      const value = low * (high / low) ** ((i + 0.5) / steps);
      this.element("rect", { x: left + (i * wide) / steps, y: top, width: wide / steps + 0.5, height: 12, fill: this.colour(value) });
    }
    for (const level of levels) {
      this.element("path", { d: `M${x(level)},${top}v16`, class: "axisline" });
      this.element("text", { x: x(level), y: top + 28, "text-anchor": "middle" }, this.svg, short(level));
    }
    this.element("text", { x: left, y: top + 48, class: "label" }, this.svg, said);
    for (const kind of ["under", "over"]) this.element("path", { d: `M${left},${top + 64}h34`, class: kind });
    this.element("text", { x: left + 42, y: top + 68, class: "label" }, this.svg, panels[0].curve.label);
  }

  listen() {
    const { svg } = this;
    svg.addEventListener("pointermove", (event) => this.follow(event));
    svg.addEventListener("pointerdown", (event) => this.follow(event));
    svg.addEventListener("pointerleave", () => this.label?.remove());
    svg.addEventListener("keydown", (event) => {
      const last = this.xs.length - 1;
      const step = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last, PageDown: this.at + 10, PageUp: this.at - 10 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      this.read(Math.min(last, Math.max(0, step)), true);
    });
  }

  follow(event) {
    const frame = this.svg.getBoundingClientRect();
    const px = event.clientX - frame.left, py = event.clientY - frame.top;
    let best = 0;
    this.xs.forEach((x, k) => { if (Math.abs(this.x(x) - px) < Math.abs(this.x(this.xs[best]) - px)) best = k; });
    this.read(best);
    let near = null;
    for (const point of this.points) {
      if (!near || Math.abs(point.y - py) < Math.abs(near.y - py)) near = point;
    }
    this.label?.remove();
    if (!near) return;
    const flip = near.x > (this.left + this.right) / 2;
    this.label = this.element("text", { x: near.x + (flip ? -9 : 9), y: Math.max(12, near.y - 9), "text-anchor": flip ? "end" : "start", class: "near" }, this.svg, `${near.label}: ${short(near.value)}`);
  }

  // On lines whose points differ, the point nearest to x stands for it.
  index(series, x) {
    const exact = series.x.indexOf(x);
    if (exact >= 0 || this.data.kind !== "line" || x < series.x[0] || x > series.x.at(-1)) return exact;
    let best = 0;
    series.x.forEach((other, k) => { if (Math.abs(other - x) < Math.abs(series.x[best] - x)) best = k; });
    return best;
  }

  read(at, aloud = false) {
    this.at = at;
    this.pointer.replaceChildren();
    this.label?.remove();
    this.points = [];
    const x = this.xs[at];
    if (x === undefined) return;
    this.element("path", { d: `M${this.x(x)},${this.top - 6}V${this.bottom}`, class: "guide" }, this.pointer);
    const said = [`${this.data.x_label || "at"} ${short(x)}`];
    this.data.series.forEach((series, i) => {
      const k = this.index(series, x), { value } = this.entries[i];
      const y = k < 0 ? null : series.y[k];
      value.textContent = k < 0 ? "" : short(y);
      if (k < 0 || y === null) return;
      const low = series.low[k], high = series.high[k];
      if (low !== undefined && high !== undefined && (low !== y || high !== y)) {
        const interval = document.createElement("i");
        interval.textContent = `${short(low, 3)} to ${short(high, 3)}`;
        value.append(interval);
      }
      const place = this.shown[i] && (!this.logY || y > 0) ? this.place(series.x[k], y) : null;
      if (!place) return;
      said.push(`${series.label} ${short(y)}`);
      this.points.push({ x: place[0], y: place[1], label: series.label, value: y });
      this.element("circle", { cx: place[0], cy: place[1], r: 5.5, class: `ring ${this.look(i)}` }, this.pointer);
    });
    this.where.textContent = `${this.data.x_label || "x"}: ${short(x)}`;
    if (aloud) this.box.querySelector(".aloud").textContent = said.join("; ");
  }
}

for (const box of document.querySelectorAll(".chart")) new Chart(box);

function markPage() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const page = (target && target.closest(".page")) || document.querySelector(".page");
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash !== `#${page.id}`) {
      link.removeAttribute("aria-current");
      continue;
    }
    link.setAttribute("aria-current", "page");
    const list = link.closest("ul");
    list.scrollLeft += link.getBoundingClientRect().left - (list.clientWidth - link.offsetWidth) / 2;
  }
}
addEventListener("hashchange", markPage);
markPage();
