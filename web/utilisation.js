// How busy each worker was: a heat strip along the run, and what its time went into.
import { canvas, element, hideTip, section, showTip, swatch } from "./dom.js";
import { percent, seconds } from "./format.js";
import { causeColour, css } from "./theme.js";
import { busyBins } from "./tracks.js";

const gutter = 96, strip = 18;

export function utilisation(data, tracks) {
  const { workers } = data.json.trace;
  const bins = 300, height = workers.length * strip + 24;
  const busy = workers.map((_, lane) => busyBins(tracks, lane, bins));
  const width = tracks.end / bins;
  const surface = canvas(height, (context, total) => {
    const cell = (total - gutter) / bins;
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    workers.forEach(({ name }, lane) => {
      const y = lane * strip;
      context.fillStyle = css("--lane");
      context.fillRect(gutter, y, total - gutter, strip - 2);
      context.fillStyle = css("--accent");
      for (let i = 0; i < bins; ++i) {
        context.globalAlpha = busy[lane][i] / width;
        context.fillRect(gutter + i * cell, y, cell + 0.5, strip - 2);
      }
      context.globalAlpha = 1;
      context.fillStyle = css("--ink");
      context.textAlign = "right";
      context.fillText(name, gutter - 10, y + strip - 6);
    });
    context.fillStyle = css("--soft");
    context.textAlign = "left";
    context.fillText("0 s", gutter, height - 6);
    context.textAlign = "right";
    context.fillText(seconds(tracks.end), total, height - 6);
  });
  surface.surface.addEventListener("pointermove", (event) => {
    const box = surface.surface.getBoundingClientRect();
    const lane = Math.floor((event.clientY - box.top) / strip);
    const bin = Math.floor(((event.clientX - box.left - gutter) / (box.width - gutter)) * bins);
    if (lane < 0 || lane >= workers.length || bin < 0 || bin >= bins) return hideTip();
    return showTip(event, workers[lane].name, [
      ["busy", percent(busy[lane][bin] / width)],
      ["from", seconds(bin * width)], ["to", seconds((bin + 1) * width)]]);
  });
  surface.surface.addEventListener("pointerleave", hideTip);
  return section("utilisation", "Utilisation of each worker", "the stronger the colour, the busier", surface.holder);
}

// Of each worker's time: busy, overhead, and idle by cause.
export function workerShares(data) {
  const { workers, causes, wall_s: wall } = data.json.trace;
  if (!workers.some((worker) => worker.busy_s !== undefined)) return null;
  const part = (share, colour, title) =>
    element("i", { style: { width: `${100 * share}%`, background: colour }, title: `${title} ${percent(share)}` });
  return section("workers", "Where each worker's time went", "",
    element("div", { class: "bars" }, workers.flatMap((worker) => [
      element("span", {}, worker.name),
      element("span", { class: "bar" },
        part(worker.busy_s / wall, "var(--accent)", "busy"),
        part(worker.overhead_s / wall, "var(--mark)", "overhead"),
        (worker.idle_by_cause ?? []).map((time, i) => part(time / wall, `${causeColour(i)}88`, causes[i].name))),
      element("span", { class: "number" }, `${percent(worker.busy_s / wall)} busy`)])),
    element("div", { class: "legend" }, swatch("var(--accent)", "busy"), swatch("var(--mark)", "overhead"),
      causes.map(({ name }, i) => (workers.some((worker) => worker.idle_by_cause?.[i] > 0)
        ? swatch(`${causeColour(i)}88`, name) : null))));
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
