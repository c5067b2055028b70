// The page of `regatta bench scaling`: throughput against workers, efficiency, Amdahl's law.
import { chart } from "./curves.js";
import { element, rows, section } from "./dom.js";
import { digits, percent, seconds } from "./format.js";

const colours = ["#3a86c8", "#e0852b", "#1f9e79", "#bf5f9f", "#6d63d6", "#c8a02a"];

export function scaling(data) {
  const { series } = data.json;
  const x = [...new Set(series.flatMap(({ rows: all }) => all.map((row) => row.workers)))].sort((a, b) => a - b);
  const along = ({ rows: all }, pick) => x.map((workers) => {
    const row = all.find((one) => one.workers === workers);
    return row ? pick(row) : null;
  });
  const lines = series.map((one, i) => ({
    label: one.name, values: along(one, (row) => row.speedup), colour: colours[i % colours.length], points: true, width: 2,
  }));
  const laws = series.flatMap((one, i) => (one.amdahl_serial_fraction === null ? [] : [{
    label: `Amdahl ${percent(one.amdahl_serial_fraction)} serial`, dash: [4, 4], width: 1.2, alpha: 0.8,
    colour: colours[i % colours.length],
    values: x.map((n) => x[0] / (one.amdahl_serial_fraction + (1 - one.amdahl_serial_fraction) / (n / x[0]))),
  }]));
  return [
    element("div", { class: "columns" },
      section("speedup", "Speedup", "against one worker; dashed: ideal and Amdahl's law",
        chart({ x, xName: "workers", height: 320, whole: true, series: [...lines, ...laws,
          { label: "ideal", values: x, colour: "#8791a0", dash: [2, 4], width: 1.2 }] })),
      section("efficiency", "Efficiency", "percent of ideal",
        chart({ x, xName: "workers", height: 320, whole: true, series: series.map((one, i) => ({
          label: one.name, values: along(one, (row) => row.efficiency), colour: colours[i % colours.length], points: true, width: 2,
        })) }))),
    ...series.map(table)];
}

function table({ name, rows: all, amdahl_serial_fraction: serial, amdahl_interval: interval }) {
  const hint = serial === null ? "" : `Amdahl: ${percent(serial)} serial (${percent(interval[0])} to ${percent(interval[1])})`;
  const ideal = all.some((row) => row.ideal_images_per_s !== undefined);
  const causes = all.some((row) => row.idle_causes);
  const taken = all.some((row) => row.taken_by_others !== null);
  return section("", name, hint, rows(
    ["workers", "images/s", "interval", "median", "speedup", "efficiency", "warm-up",
      ...(taken ? ["CPU time taken by others"] : []), ...(ideal ? ["of the groups' own"] : []), ...(causes ? ["idle because"] : [])],
    all.map((row) => [row.workers, digits(row.images_per_s), `${digits(row.interval[0])} – ${digits(row.interval[1])}`,
      digits(row.median_images_per_s), row.speedup.toFixed(2), `${row.efficiency.toFixed(1)}%`,
      `${row.warmup_steps} steps, ${seconds(row.warmup_s)}${row.course === "unsteady" ? ", unsteady" : ""}`,
      ...(taken ? [row.taken_by_others === null ? "" : percent(row.taken_by_others)] : []),
      ...(ideal ? [row.ideal_images_per_s === undefined ? "" : `${row.ideal_efficiency.toFixed(1)}% of ${digits(row.ideal_images_per_s)}`] : []),
      ...(causes ? [causesText(row.idle_causes)] : [])])));
}

const causesText = (causes) => Object.entries(causes ?? {}).filter(([, share]) => share >= 0.01)
  .sort((a, b) => b[1] - a[1]).map(([name, share]) => `${name} ${percent(share)}`).join(", ");
