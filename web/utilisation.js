// How busy each worker was: a heat strip along the run, and what its time went into.
import { element, hideTip, section, showTip, swatch } from "./dom.js";
import { percent, seconds } from "./format.js";
import { laneCanvas, laneTools, rowLabel } from "./lane_rows.js";
import { LaneList } from "./lane_tree.js";
import { causeColour, css } from "./theme.js";

export function utilisation(tracks, tree) {
  const bins = 300, width = tracks.end / bins, list = new LaneList(tree);
  const known = new Map();
  const busyOf = (node) => {
    if (!known.has(node)) known.set(node, tracks.tasks.busy(node.counted ?? [node.lane], 0, tracks.end, bins));
    return known.get(node);
  };
  const surface = laneCanvas(list, { top: 20, bottom: 0 }, () => 20, (context, total, height, rows) => {
    const cell = total / bins;
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    for (const { row: { node }, y, high } of rows) {
      if (!node) continue;
      context.fillStyle = css("--lane");
      context.fillRect(0, y, total, high - 2);
      context.fillStyle = css("--accent");
      busyOf(node).forEach((share, i) => {
        context.globalAlpha = share;
        context.fillRect(i * cell, y, cell + 0.5, high - 2);
      });
      context.globalAlpha = 1;
    }
    context.clearRect(0, 0, total, 20);
    context.fillStyle = css("--soft");
    context.textAlign = "left";
    context.fillText("0 s", 0, 13);
    context.textAlign = "right";
    context.fillText(seconds(tracks.end), total, 13);
  });
  surface.surface.addEventListener("pointermove", (event) => {
    const box = surface.surface.getBoundingClientRect();
    const node = surface.rowAt(event.clientY - box.top)?.node;
    const bin = Math.floor(((event.clientX - box.left) / box.width) * bins);
    if (!node || bin < 0 || bin >= bins) return hideTip();
    return showTip(event, node.name, [
      ["busy", percent(busyOf(node)[bin])],
      ["from", seconds(bin * width)], ["to", seconds((bin + 1) * width)]]);
  });
  surface.surface.addEventListener("pointerleave", hideTip);
  const box = section("utilisation", "Utilisation of each worker", "the stronger the colour, the busier", surface.holder);
  box.querySelector("h2").after(...laneTools(list));
  return box;
}

// Of each worker's time: busy, overhead, and idle by cause. Of a group, the mean.
export function workerShares(data, tree) {
  const { workers, causes, wall_s: wall } = data.json.trace;
  if (!workers.some((worker) => worker.busy_s !== undefined)) return null;
  const part = (share, colour, title) =>
    element("i", { style: { width: `${100 * share}%`, background: colour }, title: `${title} ${percent(share)}` });
  const cells = (node) => {
    const lanes = node.counted ?? [node.lane];
    const mean = (pick) => lanes.reduce((sum, lane) => sum + (pick(workers[lane]) ?? 0), 0) / lanes.length / wall;
    return [element("span", { class: "bar" },
      part(mean((worker) => worker.busy_s), "var(--accent)", "busy"),
      part(mean((worker) => worker.overhead_s), "var(--mark)", "overhead"),
      causes.map(({ name }, i) => part(mean((worker) => worker.idle_by_cause?.[i]), `${causeColour(i)}88`, name))),
    element("span", { class: "number" }, `${percent(mean((worker) => worker.busy_s))} busy`)];
  };
  const list = new LaneList(tree), bars = element("div", { class: "bars workers" });
  const fill = () => bars.replaceChildren(...list.rows().flatMap((row) => [
    rowLabel(list, row), ...(row.node ? cells(row.node) : [element("span"), element("span")])]));
  list.listeners.push(fill);
  fill();
  const box = section("workers", "Where each worker's time went", "", bars,
    element("div", { class: "legend" }, swatch("var(--accent)", "busy"), swatch("var(--mark)", "overhead"),
      causes.map(({ name }, i) => (workers.some((worker) => worker.idle_by_cause?.[i] > 0)
        ? swatch(`${causeColour(i)}88`, name) : null))));
  box.querySelector("h2").after(...laneTools(list));
  return box;
}

export function idleCauses(data) {
  const { causes } = data.json.trace;
  const total = causes.reduce((sum, { seconds: time }) => sum + time, 0);
  const shown = causes.map((cause, i) => ({ ...cause, i })).filter(({ seconds: time }) => time > 0)
    .sort((a, b) => b.seconds - a.seconds);
  const most = shown[0]?.seconds ?? 1;
  return section("idle", "Why workers were idle", total > 0 ? `${seconds(total)} over all workers` : "",
    shown.length === 0 ? element("p", { class: "soft" }, "They were not.") :
      element("div", { class: "bars" }, shown.flatMap(({ name, why, seconds: time, i }) => [
        element("span", {}, name),
        element("span", { class: "bar" },
          element("i", { style: { width: `${(100 * time) / most}%`, background: causeColour(i) } })),
        element("span", { class: "number" }, `${seconds(time)} · ${percent(time / total)}`),
        why ? element("span", { class: "why" }, why) : null])));
}
