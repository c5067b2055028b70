// Rows of lanes: their labels, which fold and unfold, and a canvas beside them that draws those in
// sight.
import { element } from "./dom.js";
import { percent } from "./format.js";

// What stands before a row: a lane's name, or a button that opens what is below.
export function rowLabel(list, { node, fold, count, depth }) {
  const style = { paddingLeft: `${14 * depth}px` };
  if (fold)
    return element("button", { class: "row fold", style, on: { click: () => list.toggle(list.whole, fold) } },
      `⋯ ${count.toLocaleString("en-US")} more`);
  if (!node.children)
    return element("div", { class: "row", style, "data-lane": node.link ? `link ${node.lane}` : node.lane }, node.name);
  const open = Boolean(list.text) || list.open.has(node);
  return element("button", { class: "row group", style, "aria-expanded": String(open), on: { click: () => list.toggle(list.open, node) } },
    element("i", {}, open ? "▾" : "▸"), node.name,
    element("small", {}, ` ${node.lanes.length.toLocaleString("en-US")} · ${percent(node.busy)}`));
}

// A box that filters by name, and buttons that unfold and fold; nothing where a glance shows all.
export function laneTools(list) {
  if (list.lanes().length <= 12) return [];
  const box = element("input", { type: "search", placeholder: "filter lanes", "aria-label": "filter lanes by name",
    on: { input: () => list.filter(box.value) } });
  const button = (text, title, action) => element("button", { title, on: { click: () => { box.value = ""; action(); } } }, text);
  return [box, ...(list.foldable() ? [
    button("unfold all", "show every lane", () => { list.text = ""; list.openAll(); }),
    button("fold", "the busiest and the idlest", () => list.reset())] : [])];
}

// Labels on the left, a canvas on the right that stays in sight while rows scroll past; `top` and
// `bottom` pixels of it are not for rows. `draw(context, width, height, rows)` gets the rows in sight: {row, y, high}.
export function laneCanvas(list, { top, bottom }, rowHeight, draw) {
  const surface = element("canvas");
  const labels = element("div", { class: "labels", style: { paddingBottom: `${bottom}px` } });
  const plot = element("div", { class: "plot" }, element("div", { class: "stay" }, surface));
  const holder = element("div", { class: "lanes" }, labels, plot);
  let rows = [], tops = [], wanted = false;
  const fill = () => {
    rows = list.rows();
    labels.style.setProperty("--row", `${rowHeight(rows.length)}px`);
    labels.replaceChildren(element("div", { class: "corner", style: { height: `${top}px` } }), ...rows.map((row) => rowLabel(list, row)));
    tops = [];
    redraw();
  };
  // Labels may break into several lines, so rows are as high as the page makes them.
  const measure = () => {
    tops = Array.from(labels.children).slice(1).map((label) => label.offsetTop);
    tops.push(labels.offsetHeight - bottom);
  };
  const firstBelow = (y) => {
    let low = 0, high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle + 1] > y) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const paint = () => {
    wanted = false;
    const width = plot.clientWidth, ratio = devicePixelRatio || 1;
    if (width === 0) return;
    if (tops.length === 0) measure();
    const height = holder.clientHeight, scroll = holder.scrollTop;
    const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
    if (surface.width !== pixels[0] || surface.height !== pixels[1]) [surface.width, surface.height] = pixels;
    Object.assign(surface.style, { width: `${width}px`, height: `${height}px` });
    const context = surface.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const shown = [];
    for (let i = firstBelow(scroll + top); i < rows.length && tops[i] < scroll + height; ++i)
      shown.push({ row: rows[i], y: tops[i] - scroll, high: tops[i + 1] - tops[i] });
    draw(context, width, height, shown);
  };
  const redraw = () => {
    if (!wanted) requestAnimationFrame(paint);
    wanted = true;
  };
  list.listeners.push(fill);
  fill();
  new ResizeObserver(() => { tops = []; redraw(); }).observe(holder);
  holder.addEventListener("scroll", redraw);
  addEventListener("theme", redraw);
  return {
    holder, surface, redraw,
    width: () => plot.clientWidth,
    rowAt: (y) => {
      const at = firstBelow(y + holder.scrollTop);
      return y >= top && at < rows.length ? rows[at] : null;
    },
  };
}
