// Loss, accuracy and throughput, drawn by uPlot.
import uPlot from "uplot";
import { element, section } from "./dom.js";
import { digits, seconds } from "./format.js";
import { css } from "./theme.js";

// A chart as wide as its parent, redrawn when the theme changes. `shade` is [from, to] of x.
export function chart({ x, series, height = 250, xName, log = false, shade = null, points = false, whole = false }) {
  const holder = element("div", { class: "chart" });
  let plot = null;
  const axis = (extra) => ({
    stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 },
    font: "12px system-ui, 'DejaVu Sans', sans-serif", ...extra,
  });
  const drawShade = (u) => {
    if (!shade) return;
    const left = u.valToPos(shade[0], "x", true), right = u.valToPos(shade[1], "x", true);
    u.ctx.save();
    u.ctx.fillStyle = css("--warm");
    u.ctx.fillRect(Math.max(left, u.bbox.left), u.bbox.top,
      Math.min(right, u.bbox.left + u.bbox.width) - Math.max(left, u.bbox.left), u.bbox.height);
    u.ctx.restore();
  };
  const make = () => {
    plot?.destroy();
    if (holder.clientWidth === 0) return;
    plot = new uPlot({
      width: holder.clientWidth, height,
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      axes: [axis({ ...(whole ? { incrs: [1, 2, 4, 8, 16, 32, 64, 128] } : {}), label: xName, labelSize: 22, size: 34, labelFont: "12px system-ui, 'DejaVu Sans', sans-serif" }),
        axis({ size: 62, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : digits(tick))) })],
      series: [{ label: xName, value: (_, v) => (v === null ? "–" : digits(v)) },
        ...series.map((line) => ({
          label: line.label, stroke: line.colour ?? css("--accent"), width: line.width ?? 1.6, dash: line.dash,
          points: { show: line.points ?? points, size: 6 }, alpha: line.alpha ?? 1, spanGaps: true,
          value: (_, v) => (v === null || v === undefined ? "–" : digits(v)),
        }))],
      hooks: { drawClear: [drawShade] },
    }, [x, ...series.map((line) => line.values)], holder);
  };
  new ResizeObserver(() => {
    if (!plot) make();
    else if (plot.width !== holder.clientWidth) plot.setSize({ width: holder.clientWidth, height });
  }).observe(holder);
  addEventListener("theme", make);
  return holder;
}

// The median of each step's neighbourhood: one slow step leaves no dent.
function smooth(values) {
  const reach = Math.max(2, Math.floor(values.length / 100));
  if (values.length < 12) return null;
  return Array.from(values, (_, i) => {
    const around = Array.from(values.slice(Math.max(0, i - reach), i + reach + 1)).sort((a, b) => a - b);
    return around[around.length >> 1];
  });
}

// Thousands of points on a few hundred pixels say no more than some of them. `picks` say what stands
// for a group of values of each column; without one, the first of them.
function thinned(columns, picks = [], most = 4000) {
  const stride = Math.max(1, Math.ceil(columns[0].length / most));
  return columns.map((column, c) => Array.from({ length: Math.ceil(column.length / stride) }, (_, i) =>
    picks[c] ? picks[c](...column.slice(i * stride, (i + 1) * stride)) : column[i * stride]));
}

function warmUpText({ course, steps, seconds: time }) {
  if (course === "flat") return "no warm-up";
  if (course === "unsteady") return "no steady state: run longer, or look for what disturbs it";
  const word = course === "warm-up" ? "warm-up" : "faster start";
  return `${word}: ${steps} step${steps === 1 ? "" : "s"}, ${seconds(time)}`;
}

export function throughput(data) {
  const [x, rate] = thinned([data.column("step.number"), data.column("step.rate")]);
  if (x.length < 2) return null;
  const middle = smooth(rate), { warm_up: warm } = data.json;
  const lines = [{ label: "images/s", values: rate, alpha: middle ? 0.35 : 1, width: 1.2 }];
  if (middle) lines.push({ label: "median", values: middle, width: 2 });
  return section("throughput", "Throughput", warm ? warmUpText(warm) : "",
    chart({ x, xName: "step", series: lines, shade: warm?.steps > 0 ? [x[0], x[0] + warm.steps] : null }));
}

// A point of a long run tells of several steps: their mean, and the extremes beside it.
export function loss(data) {
  const columns = ["number", "loss", "loss_min", "loss_max"].map((name) => data.column(`step.${name}`));
  const [x, values, least, largest] = thinned(columns, [null, null, Math.min, Math.max]);
  if (x.length < 2) return null;
  const middle = smooth(values), positive = least.every((v) => v > 0);
  const wide = positive && Math.max(...largest) > 20 * Math.min(...least);
  const lines = [{ label: "loss", values, alpha: middle ? 0.35 : 1, width: 1.2 }];
  if (middle) lines.push({ label: "median", values: middle, width: 2 });
  if (largest.some((v, i) => v > least[i]))
    lines.push({ label: "largest", values: largest, alpha: 0.35, width: 1 }, { label: "least", values: least, alpha: 0.35, width: 1 });
  return section("loss", "Training loss", wide ? "logarithmic" : "", chart({ x, xName: "step", series: lines, log: wide }));
}

export function learningRate(data) {
  const [x, values] = thinned([data.column("step.number"), data.column("step.learning_rate")]);
  if (x.length < 2 || !values.some(Number.isFinite)) return null;
  return section("learning-rate", "Learning rate", "", chart({ x, xName: "step", series: [{ label: "learning rate", values }] }));
}

// One chart for training and test after each epoch; `unit` goes into the legend.
function byEpoch(data, id, title, key, factor, unit) {
  const rows = data.json.epochs ?? [];
  const column = (name, times = 1) => rows.map((row) => (row[name] === undefined || row[name] === null ? null : times * row[name]));
  const lines = [{ label: `train${unit}`, values: column(`train_${key}`, factor), points: true },
    { label: `test${unit}`, values: column(`test_${key}`, factor), colour: "#e0852b", points: true }]
    .filter(({ values }) => values.some((value) => value !== null));
  if (lines.length === 0) return null;
  return section(id, title, "after each epoch",
    chart({ x: column("epoch"), xName: "epoch", series: lines, points: true, whole: true }));
}
export const accuracy = (data) => byEpoch(data, "accuracy", "Accuracy", "accuracy", 100, " %");
export const epochLoss = (data) => byEpoch(data, "epoch-loss", "Loss, training and test", "loss", 1, "");
