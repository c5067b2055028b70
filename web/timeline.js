// The timeline: a lane per worker, coloured by phase, and a lane per link; steps, idle time with its
// cause, critical path.
import { element, hideTip, section, showTip, swatch } from "./dom.js";
import { digits, percent, seconds, tickStep } from "./format.js";
import { laneCanvas, laneTools } from "./lane_rows.js";
import { LaneList, linkTree } from "./lane_tree.js";
import { Brushes, columns, sweep } from "./lanes.js";
import { causeColour, css, linkColour, phaseColour, phaseKind } from "./theme.js";
import { none } from "./tracks.js";
import { steer, View } from "./view.js";

const overview = 34, ruler = 22, font = "12px system-ui, 'DejaVu Sans', sans-serif";
const top = overview + ruler + 6, bottom = 18;  // what does not scroll above and below the lanes

export function timeline(data, tracks, workers) {
  const { trace } = data.json;
  const { tasks, idle, transfers, column, idleColumn } = tracks;
  const kinds = [...new Set(trace.phases.map(phaseKind))];
  const kindOfPhase = trace.phases.map((name) => kinds.indexOf(phaseKind(name)));
  const phase = column("phase"), critical = column("critical"), cause = idleColumn("cause");
  const markTimes = data.column("mark.time"), markSteps = data.column("mark.step");
  const bytes = data.column("transfer.bytes");
  const list = new LaneList(workers, linkTree(trace));
  const state = { critical: false, idle: true, range: null };
  const profile = tasks.busy(workers.counted, 0, tracks.end, 400);

  let surface = null;
  const view = new View(tracks.end, () => {
    surface.redraw();
    box.dataset.from = view.from;
    box.dataset.to = view.to;
  });
  const xOf = (time, width) => ((time - view.from) / view.span()) * width;
  const timeAt = (x) => view.from + (x / surface.width()) * view.span();

  function drawOverview(context, width) {
    const bin = width / profile.length;
    context.fillStyle = css("--lane");
    context.fillRect(0, 0, width, overview);
    context.fillStyle = css("--mark");
    for (let i = 0; i < profile.length; ++i)
      context.fillRect(i * bin, overview * (1 - profile[i]), Math.ceil(bin), overview * profile[i]);
    const x0 = (view.from / view.end) * width, x1 = (view.to / view.end) * width;
    context.globalAlpha = 0.2;
    context.fillStyle = css("--accent");
    context.fillRect(x0, 0, Math.max(2, x1 - x0), overview);
    context.globalAlpha = 1;
    context.strokeStyle = css("--accent");
    context.strokeRect(x0 + 0.5, 0.5, Math.max(2, x1 - x0) - 1, overview - 1);
  }

  function drawRuler(context, width, height) {
    context.fillStyle = css("--soft");
    context.strokeStyle = css("--line");
    context.textAlign = "center";
    const step = tickStep(view.span(), width / 120);
    context.beginPath();
    for (let i = Math.ceil(view.from / step); i * step <= view.to; ++i) {
      const x = Math.round(xOf(i * step, width)) + 0.5;
      const text = tickText(i * step, step, view.to), half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(x, half), width - half), overview + 15);
      context.moveTo(x, top - 4);
      context.lineTo(x, height);
    }
    context.stroke();
  }

  function drawMarks(context, width, height) {
    const visible = [];
    for (let i = 0; i < markTimes.length; ++i)
      if (markTimes[i] >= view.from && markTimes[i] <= view.to) visible.push(i);
    context.clearRect(0, height - bottom, width, bottom);
    if (visible.length > width / 6) return;
    context.strokeStyle = context.fillStyle = css("--ink");
    context.textAlign = "right";
    context.globalAlpha = 0.55;
    context.setLineDash([3, 3]);
    context.beginPath();
    for (const i of visible) {
      const x = Math.round(xOf(markTimes[i], width)) + 0.5;
      context.moveTo(x, top - 6);
      context.lineTo(x, height);
      if (visible.length <= width / 70 && x > 60) context.fillText(`step ${markSteps[i]}`, x - 4, height - 4);
    }
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  // Of a group, the share of its lanes that were busy; nothing beside a fold.
  function drawRow(context, { row, y, high: whole }, width) {
    const high = whole - 3, { node } = row;
    if (!node) return;
    context.fillStyle = css("--lane");
    context.fillRect(0, y, width, high);
    if (!node.children && !node.link) return drawLane(context, node.lane, y, high, width);
    const busy = (node.link ? transfers : tasks).busy(node.counted ?? [node.lane], view.from, view.to, Math.max(1, Math.floor(width)));
    context.fillStyle = node.link ? linkColour : css("--accent");
    context.globalAlpha = node.children ? 0.55 : 0.85;
    columns(context, busy, y, high);
    context.globalAlpha = 1;
  }

  function drawLane(context, index, y, high, width) {
    const brushes = new Brushes(), labels = [];
    if (state.idle) {
      const shade = new Brushes();
      sweep(idle, index, view, width, (i) => cause[idle.order[i]], trace.causes.length,
        (i, x, w) => shade.add(causeColour(cause[idle.order[i]]), x, y, w, high),
        (x, share, kind) => shade.add(causeColour(kind), x, y + high * (1 - share), 1, high * share));
      context.globalAlpha = 0.28;
      shade.paint(context);
      context.globalAlpha = 1;
    }
    const strong = [];
    sweep(tasks, index, view, width, (i) => kindOfPhase[phase[tasks.order[i]]], kinds.length,
      (i, x, w) => {
        const task = tasks.order[i];
        brushes.add(phaseColour(kinds[kindOfPhase[phase[task]]]), x, y, w > 4 ? w - 1 : w, high);
        if (w > 46) labels.push([shortName(task), Math.max(x, 0) + 4, Math.min(w, width - Math.max(x, 0)) - 8]);
        if (state.critical && critical[task]) strong.push([x, w]);
      },
      (x, share, kind) => brushes.add(phaseColour(kinds[kind]), x, y + high * (1 - share), 1, high * share));
    context.globalAlpha = state.critical ? 0.35 : 1;
    brushes.paint(context);
    context.globalAlpha = 1;
    context.fillStyle = "#fff";
    context.textAlign = "left";
    for (const [text, x, room] of labels) fitText(context, text, x, y + high / 2 + 4, room);
    context.fillStyle = css("--critical");
    for (const [x, w] of strong) context.fillRect(x, y, Math.max(w - 1, 1), high);
  }

  function draw(context, width, height, rows) {
    context.font = font;
    drawRuler(context, width, height);
    context.save();
    context.beginPath();
    context.rect(0, top, width, height - top);
    context.clip();
    for (const row of rows) drawRow(context, row, width);
    drawMarks(context, width, height);
    if (state.range) {
      const [a, b] = state.range.map((time) => xOf(time, width));
      context.globalAlpha = 0.25;
      context.fillStyle = css("--accent");
      context.fillRect(Math.min(a, b), top, Math.abs(b - a), height - top);
      context.globalAlpha = 1;
    }
    context.restore();
    drawOverview(context, width);
  }

  const segmentName = (task) => trace.segments[column("segment")[task]];
  const shortName = (task) => {
    const segment = segmentName(task);
    return kinds[kindOfPhase[phase[task]]] + (segment ? ` ${segment}` : "");
  };

  function describeTask(task) {
    const ready = column("ready")[task], predicted = column("predicted")[task], acquire = column("acquire")[task];
    const duration = column("duration")[task], chunk = column("chunk")[task], segment = segmentName(task);
    return [
      ["does", trace.phases[phase[task]].replaceAll("_", " ").replaceAll("+", ", ")],
      segment ? ["segment", segment + (column("part")[task] === 0xffff ? "" : `, part ${column("part")[task]}`)] : null,
      chunk !== 0xffff ? ["chunk", String(chunk)] : null,
      ["step", String(column("step")[task])],
      ["took", seconds(duration) + (predicted > 0 ? `, predicted ${seconds(predicted)}` : "")],
      ready >= 0 ? ["was ready", `${seconds(ready)} before it began`] : null,
      acquire > 0 ? ["fetched data for", seconds(acquire)] : null,
      ["began at", seconds(column("start")[task])],
      critical[task] ? ["critical", "on the longest path"] : null,
    ].filter(Boolean);
  }

  function describeIdle(i) {
    const which = idle.order[i], waited = idleColumn("task")[which];
    const lines = [["because", trace.causes[cause[which]].name], ["for", seconds(idle.end[i] - idle.start[i])]];
    if (waited !== none && waited !== undefined) lines.push(["waited for", `${shortName(waited)}, step ${column("step")[waited]}`]);
    const why = trace.causes[cause[which]].why;
    if (why) lines.push(["that is", why]);
    return lines;
  }

  function describeGroup({ lanes, busy }) {
    return [["lanes", String(lanes.length)], ["busy", percent(busy)], ["shown", "how many of them were busy, along the run"]];
  }

  function describeTransfer(i) {
    const size = bytes[transfers.order[i]], time = transfers.end[i] - transfers.start[i];
    return [["carried", `${digits(size / 1e6)} MB`], ["in", seconds(time)], ["at", `${digits(size / 1e6 / time)} MB/s`],
      ["began at", seconds(transfers.start[i])]];
  }

  function hover(event, x, y) {
    const node = surface.rowAt(y)?.node;
    box.dataset.hover = "";
    if (!node) return hideTip();
    if (node.children) return showTip(event, node.name, describeGroup(node));
    const time = timeAt(x), reach = (2 * view.span()) / surface.width(), { name, lane: index } = node;
    if (node.link) {
      const carried = transfers.at(index, time, reach);
      return carried < 0 ? hideTip() : showTip(event, name, describeTransfer(carried));
    }
    const found = tasks.at(index, time, reach);
    if (found >= 0) {
      const task = tasks.order[found];
      box.dataset.hover = `task ${task}`;
      return showTip(event, `${shortName(task)} on ${name}`, describeTask(task));
    }
    const asleep = idle.at(index, time, reach);
    if (asleep < 0) return hideTip();
    box.dataset.hover = `idle ${idle.order[asleep]}`;
    return showTip(event, `${name} idle`, describeIdle(asleep));
  }

  surface = laneCanvas(list, { top, bottom }, (rows) => Math.max(20, Math.min(30, Math.floor(560 / rows))), draw);
  surface.surface.setAttribute("aria-label", `timeline of ${tasks.order.length} tasks on ${trace.workers.length} workers`);
  const toOverview = (x) => (x / surface.width()) * view.end;
  // The strip above moves the view; the lanes below zoom and pan it.
  surface.surface.addEventListener("pointerdown", (event) => {
    const area = surface.surface.getBoundingClientRect();
    if (event.clientY - area.top > overview) return;
    const centre = toOverview(event.clientX - area.left), half = view.span() / 2;
    view.set(centre - half, centre + half);
  });
  steer(surface.surface, view, {
    timeAt, hover,
    leave: () => { hideTip(); box.dataset.hover = ""; },
    range: (a, b) => { state.range = a === null ? null : [a, b]; surface.redraw(); },
  });

  const toggle = (name, text) => {
    const button = element("button", { "aria-pressed": String(state[name]), "data-toggle": name }, text);
    button.addEventListener("click", () => {
      state[name] = !state[name];
      button.setAttribute("aria-pressed", String(state[name]));
      surface.redraw();
    });
    return button;
  };
  const act = (text, title, action) => element("button", { title, on: { click: action } }, text);
  const box = section("timeline", "Timeline",
    "click, then scroll to zoom · drag to pan · shift-drag a range · W A S D · double-click: all",
    trace.notice ? element("p", { class: "notice" }, trace.notice) : null,
    surface.holder,
    element("div", { class: "legend" },
      kinds.map((kind) => swatch(phaseColour(kind), kind)),
      list.links ? swatch(linkColour, "link carries data") : null,
      trace.causes.map(({ name }, i) => (cause.includes(i) ? swatch(`${causeColour(i)}66`, `idle: ${name}`) : null))));
  box.querySelector("h2").after(
    act("+", "zoom in (W)", () => view.zoom(0.5)), act("−", "zoom out (S)", () => view.zoom(2)),
    act("all", "the whole run (0)", () => view.all()),
    critical.includes(1) ? toggle("critical", "critical path") : "", toggle("idle", "idle causes"),
    ...laneTools(list));
  Object.assign(box.dataset, { tasks: tasks.order.length, from: view.from, to: view.to, hover: "" });
  return box;
}

function tickText(time, step, last) {
  const [unit, scale] = last >= 1 ? ["s", 1] : last >= 1e-3 ? ["ms", 1e3] : ["µs", 1e6];
  const decimals = Math.max(0, -Math.floor(Math.log10(step * scale) + 1e-9));
  return `${(time * scale).toFixed(decimals)} ${unit}`;
}

// Few texts are measured again and again.
const widths = new Map();
function widthOf(context, text) {
  if (!widths.has(text)) widths.set(text, context.measureText(text).width);
  return widths.get(text);
}

function fitText(context, text, x, y, room) {
  if (widthOf(context, text) <= room) return context.fillText(text, x, y);
  let end = Math.floor((text.length * room) / widthOf(context, text));
  while (end > 1 && widthOf(context, `${text.slice(0, end)}…`) > room) --end;
  if (end > 1) context.fillText(`${text.slice(0, end)}…`, x, y);
}
