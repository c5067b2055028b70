// Tasks and idle stretches sorted by worker and time, and the questions a timeline asks of them.

export const none = 0xffffffff;

// Columns re-ordered by (lane, start); `first[lane]` to `first[lane + 1]` are a lane's.
class Track {
  constructor(lanes, lane, start, duration) {
    const count = start.length;
    this.order = new Uint32Array(count).map((_, i) => i);
    this.order.sort((a, b) => lane[a] - lane[b] || start[a] - start[b]);
    this.start = Float64Array.from(this.order, (i) => start[i]);
    this.end = Float64Array.from(this.order, (i) => start[i] + duration[i]);
    this.first = new Uint32Array(lanes + 1);
    for (let i = 0; i < count; ++i) this.first[lane[i] + 1] += 1;
    for (let l = 0; l < lanes; ++l) this.first[l + 1] += this.first[l];
  }

  // The first of a lane that ends after `time` (ends rise with starts, but for overlaps).
  firstAfter(lane, time) {
    let low = this.first[lane], high = this.first[lane + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // The position at `time` in a lane, within `reach` on either side; -1 if there is none.
  at(lane, time, reach) {
    let best = -1, distance = reach;
    for (let i = this.firstAfter(lane, time - reach); i < this.first[lane + 1]; ++i) {
      if (this.start[i] > time + reach) break;
      const away = Math.max(0, this.start[i] - time, time - this.end[i]);
      if (away <= distance) [best, distance] = [i, away];
    }
    return best;
  }
}

export function readTracks(data) {
  const { workers } = data.json.trace;
  const column = (name) => data.column(`task.${name}`);
  const tasks = new Track(workers.length, column("worker"), column("start"), column("duration"));
  const idle = new Track(workers.length, data.column("idle.worker"), data.column("idle.start"),
    data.column("idle.duration"));
  let end = 0;
  for (const track of [tasks, idle]) for (const time of track.end) end = Math.max(end, time);
  return { tasks, idle, column, idleColumn: (name) => data.column(`idle.${name}`), end: end || 1 };
}

// Seconds of each of `bins` equal stretches in which a lane was busy.
export function busyBins(tracks, lane, bins) {
  const { tasks, end } = tracks, width = end / bins, busy = new Float64Array(bins);
  for (let i = tasks.first[lane]; i < tasks.first[lane + 1]; ++i) {
    let bin = Math.min(bins - 1, Math.floor(tasks.start[i] / width));
    for (; bin < bins && bin * width < tasks.end[i]; ++bin)
      busy[bin] += Math.min(tasks.end[i], (bin + 1) * width) - Math.max(tasks.start[i], bin * width);
  }
  return busy.map((time) => Math.min(time, width));
}
