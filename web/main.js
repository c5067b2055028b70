// Builds the page from its data.
import "./style.css";
import "uplot/dist/uPlot.min.css";
import { advice } from "./advice.js";
import { classes } from "./classes.js";
import { accuracy, epochLoss, learningRate, loss, throughput } from "./curves.js";
import { readData } from "./data.js";
import { element, rows, section } from "./dom.js";
import { workerTree } from "./lane_tree.js";
import { scaling } from "./scaling.js";
import { startTheme, themeButton } from "./theme.js";
import { tickets } from "./tickets.js";
import { timeline } from "./timeline.js";
import { readTracks } from "./tracks.js";
import { idleCauses, utilisation, workerShares } from "./utilisation.js";

function heading({ title, subtitle }) {
  document.title = title;
  return element("header", {},
    element("div", { class: "titles" }, element("h1", {}, title), element("div", { class: "soft" }, subtitle ?? "")),
    themeButton());
}

function tiles(list = []) {
  return element("div", { class: "tiles" }, list.map(({ label, value, unit, note }) =>
    element("div", { class: "tile" }, element("div", { class: "label" }, label),
      element("div", { class: "value" }, value, unit ? element("span", { class: "unit" }, unit) : null),
      note ? element("div", { class: "note" }, note) : null)));
}

function facts(groups = []) {
  if (groups.length === 0) return null;
  return section("facts", "The run", "", element("div", { class: "facts" }, groups.map(({ name, rows: lines }) =>
    element("div", {}, element("h3", {}, name), element("table", { class: "rows" },
      lines.map(([label, value]) => element("tr", {}, element("td", {}, label), element("td", {}, value))))))));
}

const tables = (list = []) => list.map(({ title, hint, headings, rows: lines }) =>
  section("", title, hint, rows(headings, lines)));

function run(data) {
  const traced = data.json.trace ? readTracks(data) : null;
  const workers = traced ? workerTree(data.json.trace) : null;
  const parts = [];
  if (traced) parts.push(timeline(data, traced, workers), advice(data));
  parts.push(element("div", { class: "columns" }, throughput(data), loss(data), epochLoss(data), accuracy(data),
    learningRate(data),
    ...(traced ? [idleCauses(data), workerShares(data, workers)] : [])));
  parts.push(classes(data));
  if (traced) parts.push(utilisation(traced, workers));
  parts.push(element("div", { class: "columns" }, tables(data.json.tables)), facts(data.json.facts));
  return parts;
}

async function start() {
  startTheme();
  const data = await readData();
  const kinds = { run, scaling: (all) => [...scaling(all), facts(all.json.facts)], tickets: (all) => [...tickets(all), facts(all.json.facts)] };
  document.getElementById("page").replaceChildren(heading(data.json), tiles(data.json.tiles),
    ...kinds[data.json.kind](data).filter(Boolean),
    element("footer", {}, `regatta ${data.json.version}`));
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  document.getElementById("page").replaceChildren(element("p", {}, `This page could not be drawn: ${error.message}`));
  throw error;
});
