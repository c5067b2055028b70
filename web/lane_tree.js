// Lanes as a tree: switches of the platform, nodes, workers; beside them the links that carried
// something. Where they are more than a screen shows, a group shows its busiest and its idlest.

const mostShown = 40;  // lanes in all that need no folding
const busiestAndIdlest = [3, 3], busiestLinks = [8, 0];

const isGroup = (node) => node.children !== undefined;

function childOf(group, name) {
  let child = group.byName.get(name);
  if (!child) {
    child = { name, children: [], byName: new Map(), ends: busiestAndIdlest };
    group.byName.set(name, child);
    group.children.push(child);
  }
  return child;
}

// A group of one is no group.
function withoutSingles(node) {
  if (!isGroup(node)) return node;
  node.children = node.children.map(withoutSingles);
  return node.children.length === 1 ? node.children[0] : node;
}

// Workers that only feed GPUs are there to wait: they do not make a group idle.
function summarise(node, path) {
  node.path = `${path} ${node.name}`.toLowerCase();
  if (!isGroup(node)) return [node];
  node.lanes = node.children.flatMap((child) => summarise(child, node.path));
  const working = node.lanes.filter((lane) => !lane.feeds);
  const counted = working.length > 0 ? working : node.lanes;
  node.busy = counted.reduce((sum, { busy }) => sum + busy, 0) / counted.length;
  node.counted = counted.map(({ lane }) => lane);
  return node.lanes;
}

function fold(node) {
  if (!isGroup(node)) return;
  node.folded = true;
  node.children.sort((a, b) => b.busy - a.busy);
  node.children.forEach(fold);
}

// The root of all workers. Its lanes are {name, lane, busy}, its groups {name, children, lanes, busy,
// counted}: the lanes below, and the numbers of those that its share of busy time is the mean of.
export function workerTree({ workers, switches = {}, wall_s: wall }) {
  const root = childOf({ byName: new Map(), children: [] }, "");
  const several = new Set(workers.map(({ node }) => node)).size > 1;
  workers.forEach(({ name, node, group, busy_s: busy = 0 }, lane) => {
    const above = several ? [...(switches[node] ?? []), node] : [];
    above.reduce(childOf, root).children.push({ name, lane, busy: busy / wall, feeds: group === "host" });
  });
  let top = withoutSingles(root);
  if (!isGroup(top)) top = { ...root, children: [top] };
  summarise(top, "");
  if (workers.length > mostShown) fold(top);
  return top;
}

// The group of all links that carried something, the busiest first; null if none is known.
export function linkTree({ links = [], wall_s: wall }) {
  const children = links.map(({ name, busy_s: busy }, lane) => ({ name, lane, link: true, busy: busy / wall }))
    .filter(({ busy }) => busy > 0).sort((a, b) => b.busy - a.busy);
  if (children.length === 0) return null;
  const group = { name: "links", link: true, children, ends: busiestLinks, folded: children.length > busiestLinks[0] + 1 };
  summarise(group, "");
  return group;
}

// Which rows of a tree are shown: {node, depth}, or {fold, count, depth} in place of folded ones.
export class LaneList {
  constructor(workers, links = null) {
    Object.assign(this, { workers, links, open: new Set(), whole: new Set(), listeners: [] });
    this.reset();
  }
  lanes() { return [...this.workers.lanes, ...(this.links?.lanes ?? [])]; }
  groups() {
    const below = (node) => (isGroup(node) ? [node, ...node.children.flatMap(below)] : []);
    return [...below(this.workers), ...(this.links ? [this.links] : [])];
  }
  foldable() { return this.groups().some(({ folded }) => folded); }

  // Without folding all groups are open; with it the busiest and the idlest of the first level.
  reset() {
    this.text = "";
    this.whole.clear();
    const { children, folded } = this.workers;
    const first = folded ? [children[0], children.at(-1)] : this.groups();
    this.open = new Set([...first, this.links]);
    this.tell();
  }
  openAll() {
    this.open = new Set(this.groups());
    this.whole = new Set(this.groups());
    this.tell();
  }
  filter(text) {
    this.text = text.trimStart().toLowerCase();
    this.tell();
  }
  toggle(set, group) {
    if (!set.delete(group)) set.add(group);
    this.tell();
  }
  tell() { for (const listener of this.listeners) listener(); }

  rows() {
    const out = [];
    const found = (node) => (isGroup(node) ? node.lanes.some(found) : node.path.includes(this.text));
    const add = (group, depth) => {
      const shown = this.text ? group.children.filter(found) : group.children;
      const [first, last] = group.ends, count = shown.length - first - last;
      const folded = group.folded && !this.text && !this.whole.has(group) && count > 1;
      shown.forEach((node, i) => {
        if (folded && i >= first && i < shown.length - last) {
          if (i === first) out.push({ fold: group, count, depth });
          return;
        }
        out.push({ node, depth });
        if (isGroup(node) && (this.text || this.open.has(node))) add(node, depth + 1);
      });
    };
    add(this.workers, 0);
    if (this.links && (!this.text || found(this.links))) {
      out.push({ node: this.links, depth: 0 });
      if (this.text || this.open.has(this.links)) add(this.links, 1);
    }
    return out;
  }
}
