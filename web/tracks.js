// Tasks, idle stretches and transfers sorted by lane and time, and the questions a timeline asks of
// them.

export const none = 0xffffffff;

// Columns, which come sorted by start, re-ordered by lane; `first[lane]` to `first[lane + 1]` are a
// lane's.
class Track {
  constructor(lanes, lane, start, duration) {
    const count = start.length;
    this.first = new Uint32Array(lanes + 1);
    for (let i = 0; i < count; ++i) this.first[lane[i] + 1] += 1;
    for (let l = 0; l < lanes; ++l) this.first[l + 1] += this.first[l];
    const next = this.first.slice();
    this.order = new Uint32Array(count);
    this.start = new Float64Array(count);
    this.end = new Float64Array(count);
    this.last = 0;
    for (let i = 0; i < count; ++i) {
      const at = next[lane[i]]++;
      this.order[at] = i;
      this.start[at] = start[i];
      this.end[at] = start[i] + duration[i];
      this.last = Math.max(this.last, this.end[at]);
    }
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

  // The share of each of `bins` equal stretches of [from, to) in which a lane was busy, averaged over
  // lanes. Each task costs the same, however many bins it covers.
  busy(lanes, from, to, bins) {
    const scale = bins / (to - from), share = new Float64Array(bins + 1), slope = new Float64Array(bins + 2);
    for (const lane of lanes) {
      for (let i = this.firstAfter(lane, from); i < this.first[lane + 1] && this.start[i] < to; ++i) {
        const left = Math.max(0, (this.start[i] - from) * scale), right = Math.min(bins, (this.end[i] - from) * scale);
        const first = Math.floor(left), last = Math.floor(right);
        if (first === last) {
          share[first] += right - left;
          continue;
        }
        share[first] += first + 1 - left;
        share[last] += right - last;
        slope[first + 1] += 1;
        slope[last] -= 1;
      }
    }
    const mean = new Float32Array(bins);
    for (let bin = 0, whole = 0; bin < bins; ++bin) {
      whole += slope[bin];
      mean[bin] = Math.min(1, (share[bin] + whole) / lanes.length);
    }
    return mean;
  }
}

export function readTracks(data) {
  const { workers, links = [] } = data.json.trace;
  const column = (name) => data.column(`task.${name}`);
  const track = (name, lane, lanes) =>
    new Track(lanes, data.column(`${name}.${lane}`), data.column(`${name}.start`), data.column(`${name}.duration`));
  const tasks = track("task", "worker", workers.length), idle = track("idle", "worker", workers.length);
  const transfers = track("transfer", "link", links.length);
  const end = Math.max(tasks.last, idle.last, transfers.last) || 1;
  return { tasks, idle, transfers, column, idleColumn: (name) => data.column(`idle.${name}`), end };
}
