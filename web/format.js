// Numbers as people read them.

export function seconds(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "–";
  if (size === 0) return "0 s";
  if (size < 0.9995e-6) return `${(value * 1e9).toFixed(0)} ns`;
  if (size < 0.9995e-3) return `${digits(value * 1e6)} µs`;
  if (size < 0.9995) return `${digits(value * 1e3)} ms`;
  if (size < 120) return `${digits(value)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

// Three digits that count.
export function digits(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return size === 0 ? "0" : size >= 0.01 ? value.toFixed(2) : value.toPrecision(2);
}

export function percent(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%` : "–";
}

// A round step for about `count` ticks over `range`.
export function tickStep(range, count) {
  const rough = range / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= rough);
}
