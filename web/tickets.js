// The page of `regatta tickets report`: accuracy against pruning by reset point, controls beside it,
// and how the workers were used.
import { chart } from "./curves.js";
import { element, hideTip, rows, section, showTip } from "./dom.js";
import { digits, percent, seconds } from "./format.js";

const colours = ["#3a86c8", "#e0852b", "#1f9e79", "#bf5f9f", "#6d63d6", "#c8a02a"];
const kindColours = { dense: "#8791a0", ticket: "#3a86c8", fresh: "#e0852b", random: "#bf5f9f" };
const kindNames = { ticket: "ticket", fresh: "fresh weights", random: "random mask" };
const points = (share) => (100 * share).toFixed(2);

export function tickets(data) {
  const { json } = data;
  const resets = [...new Set(json.cells.filter(({ kind }) => kind !== "dense").map(({ reset }) => reset))].sort((a, b) => a - b);
  const levels = Array.from({ length: json.levels }, (_, i) => i + 1);
  const cell = (kind, reset, level) => json.cells.find((one) => one.kind === kind && one.reset === reset && one.level === level);
  const name = (reset) => json.cells.find((one) => one.reset === reset)?.reset_text ?? String(reset);
  const dense = json.cells.find(({ kind }) => kind === "dense");
  const context = { json, resets, levels, cell, name, dense };
  return [byReset(context), element("div", { class: "columns" }, resets.map((reset) => besideControls(context, reset))),
    heatMap(context), wins(context), layers(context), scalingOf(context), timeline(context), jobs(context)];
}

// A line with its least and largest over seeds.
function band({ levels, cell }, kind, reset, label, colour, dash) {
  const pick = (key) => levels.map((level) => { const one = cell(kind, reset, level); return one ? 100 * one[key] : null; });
  if (pick("mean").every((value) => value === null)) return [];
  return [{ label, values: pick("mean"), colour, dash, points: true, width: 2 },
    { label: "least", values: pick("low"), colour, alpha: 0.35, width: 1 },
    { label: "largest", values: pick("high"), colour, alpha: 0.35, width: 1 }];
}

const denseLine = ({ levels, dense }) => (dense ? [{ label: "dense", values: levels.map(() => 100 * dense.mean), colour: kindColours.dense, dash: [2, 4], width: 1.2 }] : []);

function byReset(context) {
  const { levels, resets, name, cell } = context;
  const left = levels.map((level) => resets.map((reset) => cell("ticket", reset, level)).find(Boolean)?.density);
  return section("tickets", "Tickets by reset point", `test accuracy, % ; weights left: ${left.map((x) => (x === undefined ? "–" : percent(x))).join(", ")}`,
    chart({ x: levels, xName: "level of pruning", height: 340, whole: true, series: [
      ...resets.flatMap((reset, i) => band(context, "ticket", reset, `reset ${name(reset)}`, colours[i % colours.length])),
      ...denseLine(context)] }));
}

function besideControls(context, reset) {
  return section("", `Reset to ${context.name(reset)}`, "test accuracy, %; thin lines: least and largest over seeds",
    chart({ x: context.levels, xName: "level of pruning", height: 280, whole: true, series: [
      ...Object.keys(kindNames).flatMap((kind) => band(context, kind, reset, kindNames[kind], kindColours[kind])),
      ...denseLine(context)] }));
}

// Colours from the worst to the best of the table.
function shaded(value, low, high) {
  const share = high > low ? (value - low) / (high - low) : 1;
  return `color-mix(in srgb, #1f9e79 ${Math.round(75 * share)}%, transparent)`;
}

function table(id, title, hint, headings, lines) {
  return section(id, title, hint, element("div", { class: "scroll" }, element("table", { class: "rows" },
    element("thead", {}, element("tr", {}, headings.map((text, i) => element("th", { class: i > 0 ? "number" : "" }, text)))),
    element("tbody", {}, lines.map((line) => element("tr", {}, line.map((one, i) =>
      element("td", { class: i > 0 ? "number" : "", style: one?.colour ? { background: one.colour } : {} }, one?.text ?? one ?? ""))))))));
}

function heatMap({ levels, resets, cell, name, json }) {
  const all = json.cells.filter(({ kind }) => kind === "ticket").map(({ mean }) => mean);
  const low = Math.min(...all), high = Math.max(...all);
  return table("heat", "Mask by reset point", "mean test accuracy of tickets, %",
    ["level", "weights left", ...resets.map((reset) => `reset ${name(reset)}`)],
    levels.map((level) => [level, percent(resets.map((reset) => cell("ticket", reset, level)).find(Boolean)?.density ?? NaN),
      ...resets.map((reset) => {
        const one = cell("ticket", reset, level);
        return one ? { text: `${points(one.mean)}`, colour: shaded(one.mean, low, high) } : "";
      })]));
}

function wins({ json }) {
  if (json.wins.length === 0) return null;
  return section("wins", "Where tickets begin to win", "from that level on, the worst ticket beats the best control", rows(
    ["reset", "against", "from level", "margin at the last level", "spread over seeds"],
    json.wins.map((win) => [win.reset_text, kindNames[win.over], win.from_level ?? "nowhere",
      `${win.margin >= 0 ? "+" : ""}${points(win.margin)} points`, `${points(win.spread)} points`])));
}

function layers({ json, levels }) {
  const found = json.rows.filter(({ kind, layers: all }) => kind === "ticket" && all.length > 0);
  if (found.length === 0) return null;
  const names = found[0].layers.map((layer) => layer.name);
  const mean = (level, i) => {
    const values = found.filter((row) => row.level === level).map((row) => row.layers[i]?.density).filter(Number.isFinite);
    return values.length > 0 ? values.reduce((a, b) => a + b) / values.length : NaN;
  };
  return table("layers", "Weights left by layer", "mean over tickets of a level", ["layer", ...levels.map((level) => `level ${level}`)],
    names.map((layer, i) => [layer, ...levels.map((level) => {
      const value = mean(level, i);
      return { text: percent(value), colour: shaded(value, 0, 1) };
    })]));
}

function scalingOf({ json: { scaling } }) {
  if (scaling.curve.length === 0) return null;
  const x = scaling.curve.map(({ workers }) => workers);
  return section("scaling", "Speed-up over workers",
    `measured ${scaling.speed_up.toFixed(2)} with ${scaling.workers} worker${scaling.workers === 1 ? "" : "s"}; the heterogeneous ideal is ${scaling.ideal.toFixed(2)}, efficiency ${percent(scaling.of_ideal)}`,
    chart({ x, xName: "equal workers", height: 280, whole: true, series: [
      { label: "whole jobs, planned", values: scaling.curve.map(({ planned }) => planned), points: true, width: 2 },
      { label: `Amdahl, ${percent(scaling.chain_share)} serial (longest chain)`, values: scaling.curve.map(({ amdahl }) => amdahl), colour: "#e0852b", dash: [4, 4] },
      { label: "measured", values: x.map((n) => (n === scaling.workers ? scaling.speed_up : null)), colour: "#d6204e", points: true },
      { label: "ideal", values: x, colour: "#8791a0", dash: [2, 4], width: 1.2 }] }));
}

function timeline({ json: { spans, rows: all } }) {
  if (spans.length === 0) return null;
  const kinds = new Map(all.map((row) => [row.id, row.kind]));
  const begin = Math.min(...spans.map((span) => span.begin)), end = Math.max(...spans.map((span) => span.end));
  const workers = [...new Set(spans.map(({ worker }) => worker))];
  const place = (span) => ({ position: "absolute", top: "0", bottom: "0", left: `${100 * (span.begin - begin) / (end - begin)}%`,
    width: `max(1px, ${100 * (span.end - span.begin) / (end - begin)}%)`, opacity: span.finished ? "1" : "0.35",
    background: kindColours[kinds.get(span.job)] ?? "#8791a0", borderRight: "1px solid var(--card)" });
  return section("jobs-timeline", "Jobs by worker", `${seconds(end - begin)} in all, by the machines' own clocks; pale: not finished there`,
    element("div", { class: "bars" }, workers.flatMap((worker) => {
      const own = spans.filter((span) => span.worker === worker);
      return [element("div", {}, worker), element("div", { style: { position: "relative", height: "18px", background: "var(--lane)" } },
        own.map((span) => element("i", { style: place(span), on: {
          mousemove: (event) => showTip(event, span.job, [["time", seconds(span.end - span.begin)], ["finished", span.finished ? "yes" : "no"]]),
          mouseleave: hideTip } }))),
      element("div", { class: "number" }, `${own.filter(({ finished }) => finished).length} jobs`)];
    })));
}

function jobs({ json: { rows: all } }) {
  return section("jobs", "Jobs", "time and joules of the worker that finished the job", rows(
    ["job", "weights left", "test accuracy", "time", "images/s", "joules", "worker"],
    all.map((row) => [row.id, percent(row.density), row.test_accuracy === null ? "–" : `${points(row.test_accuracy)}%`, seconds(row.seconds),
      digits(row.images_per_s), row.joules === null ? "–" : `${digits(row.joules)}${row.joules_measured ? "" : " (estimate)"}`, row.worker])));
}
