// Draws one lane of a timeline. What is narrower than a pixel is merged: a column is as high as its
// share of busy time, in the colour of what took most of it. So any number of tasks stays fluent, and
// nothing is hidden by what happens to be drawn last.

// Rectangles by colour: a canvas is much faster when it need not change its brush.
export class Brushes {
  constructor() { this.by = new Map(); }
  add(colour, x, y, width, height) {
    let list = this.by.get(colour);
    if (!list) this.by.set(colour, (list = []));
    list.push(x, y, width, height);
  }
  paint(context) {
    for (const [colour, list] of this.by) {
      context.fillStyle = colour;
      for (let i = 0; i < list.length; i += 4) context.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
    }
  }
}

// Calls box(position, x, width) for what is wide enough, column(x, share, kind) for what is merged.
export function sweep(track, lane, view, width, kindOf, kinds, box, column) {
  const scale = width / view.span(), last = track.first[lane + 1];
  const weight = new Float64Array(kinds);
  let pixel = -1;
  const flush = () => {
    if (pixel < 0) return;
    let total = 0, most = 0;
    for (let k = 0; k < kinds; ++k) {
      total += weight[k];
      if (weight[k] > weight[most]) most = k;
    }
    if (total > 0) column(pixel, Math.min(1, total), most);
    weight.fill(0);
  };
  for (let i = track.firstAfter(lane, view.from); i < last && track.start[i] < view.to; ++i) {
    const left = Math.max(-2, (track.start[i] - view.from) * scale);
    const right = Math.min(width + 2, (track.end[i] - view.from) * scale);
    if (right - left >= 2) {
      box(i, left, right - left);
      continue;
    }
    // A merged one may lie across the border of two columns.
    const kind = kindOf(i);
    for (let x = Math.floor(left); x <= Math.floor(right); ++x) {
      const share = Math.min(right, x + 1) - Math.max(left, x);
      if (share <= 0) continue;
      if (x !== pixel) {
        flush();
        pixel = x;
      }
      weight[kind] += share;
    }
  }
  flush();
}

// A column per pixel, as high as its share of `high`; neighbours of the same height are drawn at once.
export function columns(context, shares, y, high) {
  let from = 0, height = 0;
  for (let x = 0; x <= shares.length; ++x) {
    const next = x < shares.length ? Math.round(high * shares[x]) : -1;
    if (next === height) continue;
    if (height > 0) context.fillRect(from, y + high - height, x - from, height);
    [from, height] = [x, next];
  }
}
