// The last test class by class: how often each was recognised, and what it was taken for.
import { canvas, element, hideTip, rows, section, showTip } from "./dom.js";
import { percent } from "./format.js";
import { css } from "./theme.js";

export function classes({ json }) {
  if (!json.classes) return null;
  const { per_class: list, confusion, step } = json.classes;
  return element("div", { class: "columns" }, table(list, step), confusion ? heatMap(list, confusion) : null);
}

function table(list, step) {
  const lines = list.map(({ name, count, accuracy }) => [name, count, accuracy === null ? "–" : percent(accuracy)]);
  return section("classes", "Accuracy by class", `test after step ${step}`,
    element("div", { style: { maxHeight: "520px", overflowY: "auto" } }, rows(["class", "images", "accuracy"], lines)));
}

// A row for each class, a column for each answer; the colour tells the share of the row. Right answers
// lie on the diagonal and have a colour of their own.
function heatMap(list, confusion) {
  const count = list.length, gutter = 110, head = 70, foot = 4;
  const size = Math.max(5, Math.min(30, 480 / count));
  const sums = confusion.map((row) => row.reduce((sum, one) => sum + one, 0));
  const share = (of, as) => (sums[of] > 0 ? confusion[of][as] / sums[of] : 0);
  const shown = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
  const surface = canvas(head + count * size + foot, (context, width) => {
    const cell = (width - gutter) / count;
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    for (let of = 0; of < count; ++of) {
      const y = head + of * size;
      for (let as = 0; as < count; ++as) {
        const x = gutter + as * cell, gap = size > 12 ? 1 : 0;
        context.fillStyle = css("--lane");
        context.fillRect(x, y, cell - gap, size - gap);
        context.globalAlpha = share(of, as);
        context.fillStyle = css(of === as ? "--accent" : "--critical");
        context.fillRect(x, y, cell - gap, size - gap);
        context.globalAlpha = 1;
      }
    }
    context.fillStyle = css("--ink");
    const every = Math.ceil(13 / size), everyColumn = Math.ceil(13 / cell);
    context.textAlign = "right";
    for (let of = 0; of < count; of += every)
      context.fillText(shown(list[of].name, 16), gutter - 8, head + (of + 0.5) * size + 4);
    context.textAlign = "left";
    for (let as = 0; as < count; as += everyColumn) {
      context.save();
      context.translate(gutter + (as + 0.5) * cell + 4, head - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(shown(list[as].name, 9), 0, 0);
      context.restore();
    }
  });
  surface.surface.addEventListener("pointermove", (event) => {
    const box = surface.surface.getBoundingClientRect();
    const of = Math.floor((event.clientY - box.top - head) / size);
    const as = Math.floor(((event.clientX - box.left - gutter) / (box.width - gutter)) * count);
    if (of < 0 || of >= count || as < 0 || as >= count) return hideTip();
    return showTip(event, of === as ? `${list[of].name}, recognised` : `${list[of].name} taken for ${list[as].name}`, [
      ["images", confusion[of][as]], ["of the class", percent(share(of, as))]]);
  });
  surface.surface.addEventListener("pointerleave", hideTip);
  return section("confusion", "What each class was taken for", "rows: the class; columns: the answer", surface.holder);
}
