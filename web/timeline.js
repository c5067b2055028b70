// The timeline: a lane per worker, coloured by phase; steps, idle time with its cause, critical path.
import { canvas, element, hideTip, section, showTip, swatch } from "./dom.js";
import { seconds, tickStep } from "./format.js";
import { Brushes, sweep } from "./lanes.js";
import { causeColour, css, phaseColour, phaseKind } from "./theme.js";
import { busyBins, none } from "./tracks.js";
import { steer, View } from "./view.js";

const gutter = 96, overview = 34, ruler = 22, font = "12px system-ui, 'DejaVu Sans', sans-serif";

export function timeline(data, tracks) {
  const { trace } = data.json;
  const { tasks, idle, column, idleColumn } = tracks;
  const kinds = [...new Set(trace.phases.map(phaseKind))];
  const kindOfPhase = trace.phases.map((name) => kinds.indexOf(phaseKind(name)));
  const phase = column("phase"), critical = column("critical"), cause = idleColumn("cause");
  const markTimes = data.column("mark.time"), markSteps = data.column("mark.step");
  const lane = Math.max(12, Math.min(30, Math.floor(620 / trace.workers.length)));
  const top = overview + ruler + 6, height = top + trace.workers.length * lane + 18;
  const state = { critical: false, idle: true, range: null };
  const profile = totalProfile(tracks, trace.workers.length);

  let surface = null;
  const view = new View(tracks.end, () => {
    surface.redraw();
    box.dataset.from = view.from;
    box.dataset.to = view.to;
  });
  const plotWidth = (width) => width - gutter;
  const xOf = (time, width) => gutter + ((time - view.from) / view.span()) * plotWidth(width);
  const timeAt = (x) => view.from + ((x - gutter) / plotWidth(surface.holder.clientWidth)) * view.span();

  function drawOverview(context, width) {
    const w = plotWidth(width), bin = w / profile.length;
    context.fillStyle = css("--lane");
    context.fillRect(gutter, 0, w, overview);
    context.fillStyle = css("--mark");
    for (let i = 0; i < profile.length; ++i)
      context.fillRect(gutter + i * bin, overview * (1 - profile[i]), Math.ceil(bin), overview * profile[i]);
    const x0 = gutter + (view.from / view.end) * w, x1 = gutter + (view.to / view.end) * w;
    context.globalAlpha = 0.2;
    context.fillStyle = css("--accent");
    context.fillRect(x0, 0, Math.max(2, x1 - x0), overview);
    context.globalAlpha = 1;
    context.strokeStyle = css("--accent");
    context.strokeRect(x0 + 0.5, 0.5, Math.max(2, x1 - x0) - 1, overview - 1);
  }

  function drawRuler(context, width) {
    context.fillStyle = css("--soft");
    context.strokeStyle = css("--line");
    context.textAlign = "center";
    const step = tickStep(view.span(), plotWidth(width) / 120);
    context.beginPath();
    for (let i = Math.ceil(view.from / step); i * step <= view.to; ++i) {
      const x = Math.round(xOf(i * step, width)) + 0.5;
      context.fillText(tickText(i * step, step, view.to), Math.max(x, gutter + 16), overview + 15);
      context.moveTo(x, top - 4);
      context.lineTo(x, height - 16);
    }
    context.stroke();
  }

  function drawMarks(context, width) {
    const visible = [];
    for (let i = 0; i < markTimes.length; ++i)
      if (markTimes[i] >= view.from && markTimes[i] <= view.to) visible.push(i);
    if (visible.length > plotWidth(width) / 6) return;
    context.strokeStyle = context.fillStyle = css("--ink");
    context.textAlign = "right";
    context.globalAlpha = 0.55;
    context.setLineDash([3, 3]);
    context.beginPath();
    for (const i of visible) {
      const x = Math.round(xOf(markTimes[i], width)) + 0.5;
      context.moveTo(x, top - 6);
      context.lineTo(x, height);
      if (visible.length <= plotWidth(width) / 70) context.fillText(`step ${markSteps[i]}`, x - 4, height - 4);
    }
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  function drawLane(context, index, width) {
    const y = top + index * lane, high = lane - 3, brushes = new Brushes(), labels = [];
    context.fillStyle = css("--lane");
    context.fillRect(gutter, y, plotWidth(width), high);
    if (state.idle) {
      const shade = new Brushes();
      sweep(idle, index, view, plotWidth(width), (i) => cause[idle.order[i]], trace.causes.length,
        (i, x, w) => shade.add(causeColour(cause[idle.order[i]]), gutter + x, y, w, high),
        (x, share, kind) => shade.add(causeColour(kind), gutter + x, y + high * (1 - share), 1, high * share));
      context.globalAlpha = 0.28;
      shade.paint(context);
      context.globalAlpha = 1;
    }
    const strong = [];
    sweep(tasks, index, view, plotWidth(width), (i) => kindOfPhase[phase[tasks.order[i]]], kinds.length,
      (i, x, w) => {
        const task = tasks.order[i];
        brushes.add(phaseColour(kinds[kindOfPhase[phase[task]]]), gutter + x, y, w > 4 ? w - 1 : w, high);
        if (w > 46) labels.push([shortName(task), gutter + Math.max(x, 0) + 4, Math.min(w, plotWidth(width) - Math.max(x, 0)) - 8]);
        if (state.critical && critical[task]) strong.push([gutter + x, w]);
      },
      (x, share, kind) => brushes.add(phaseColour(kinds[kind]), gutter + x, y + high * (1 - share), 1, high * share));
    context.globalAlpha = state.critical ? 0.35 : 1;
    brushes.paint(context);
    context.globalAlpha = 1;
    context.fillStyle = "#fff";
    context.textAlign = "left";
    if (lane >= 15) for (const [text, x, room] of labels) fitText(context, text, x, y + high / 2 + 4, room);
    context.fillStyle = css("--critical");
    for (const [x, w] of strong) context.fillRect(x, y, Math.max(w - 1, 1), high);
    context.fillStyle = css("--ink");
    context.textAlign = "right";
    fitText(context, trace.workers[index].name, gutter - 10, y + high / 2 + 4, gutter - 14);
  }

  function draw(context, width) {
    context.font = font;
    drawRuler(context, width);
    context.save();
    context.beginPath();
    context.rect(0, top, width, height - top);
    context.clip();
    for (let i = 0; i < trace.workers.length; ++i) drawLane(context, i, width);
    drawMarks(context, width);
    if (state.range) {
      const [a, b] = state.range.map((time) => xOf(time, width));
      context.globalAlpha = 0.25;
      context.fillStyle = css("--accent");
      context.fillRect(Math.min(a, b), top, Math.abs(b - a), height - top);
      context.globalAlpha = 1;
    }
    context.restore();
    context.clearRect(0, 0, gutter, top - 6);
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

  function hover(event, x, y) {
    const index = Math.floor((y - top) / lane);
    box.dataset.hover = "";
    if (x < gutter || index < 0 || index >= trace.workers.length) return hideTip();
    const time = timeAt(x), reach = (2 * view.span()) / plotWidth(surface.holder.clientWidth);
    const found = tasks.at(index, time, reach);
    const { name } = trace.workers[index];
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

  surface = canvas(height, draw);
  surface.surface.setAttribute("aria-label", `timeline of ${tasks.order.length} tasks on ${trace.workers.length} workers`);
  const toOverview = (x) => ((x - gutter) / plotWidth(surface.holder.clientWidth)) * view.end;
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
      trace.causes.map(({ name }, i) => (cause.includes(i) ? swatch(`${causeColour(i)}66`, `idle: ${name}`) : null))));
  box.querySelector("h2").after(
    act("+", "zoom in (W)", () => view.zoom(0.5)), act("−", "zoom out (S)", () => view.zoom(2)),
    act("all", "the whole run (0)", () => view.all()),
    critical.includes(1) ? toggle("critical", "critical path") : "", toggle("idle", "idle causes"));
  Object.assign(box.dataset, { tasks: tasks.order.length, from: view.from, to: view.to, hover: "" });
  return box;
}

// Share of all workers that were busy, along the whole run.
function totalProfile(tracks, workers) {
  const bins = 400, total = new Float64Array(bins);
  for (let lane = 0; lane < workers; ++lane) busyBins(tracks, lane, bins).forEach((busy, i) => { total[i] += busy; });
  const full = (workers * tracks.end) / bins;
  return total.map((busy) => Math.min(1, busy / full));
}

function tickText(time, step, last) {
  const [unit, scale] = last >= 1 ? ["s", 1] : last >= 1e-3 ? ["ms", 1e3] : ["µs", 1e6];
  const decimals = Math.max(0, -Math.floor(Math.log10(step * scale) + 1e-9));
  return `${(time * scale).toFixed(decimals)} ${unit}`;
}

function fitText(context, text, x, y, room) {
  if (context.measureText(text).width <= room) return context.fillText(text, x, y);
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > room) --end;
  if (end > 1) context.fillText(`${text.slice(0, end)}…`, x, y);
}
