// Which stretch of time is shown, and how keys, wheel and pointer change it.

const smallest = 1e-7;  // seconds across the whole width: ten clock ticks

export class View {
  constructor(end, changed) {
    Object.assign(this, { end, from: 0, to: end, changed });
  }
  set(from, to) {
    const span = Math.min(Math.max(to - from, smallest), this.end);
    this.from = Math.min(Math.max(from, 0), this.end - span);
    this.to = this.from + span;
    this.changed();
  }
  span() { return this.to - this.from; }
  all() { this.set(0, this.end); }
  zoom(factor, around = (this.from + this.to) / 2) {
    const span = this.span() * factor, share = (around - this.from) / this.span();
    this.set(around - share * span, around + (1 - share) * span);
  }
  pan(share) { this.set(this.from + share * this.span(), this.to + share * this.span()); }
}

// W and S zoom, A and D pan, as in other viewers of traces; so do the arrows.
const keys = {
  w: (view, at) => view.zoom(0.7, at), s: (view, at) => view.zoom(1 / 0.7, at),
  a: (view) => view.pan(-0.15), d: (view) => view.pan(0.15),
  "+": (view) => view.zoom(0.7), "-": (view) => view.zoom(1 / 0.7), 0: (view) => view.all(),
  arrowleft: (view) => view.pan(-0.15), arrowright: (view) => view.pan(0.15),
};

// `timeAt(x)` and `isPlot(x, y)` read positions on the surface; `hover(event)` is told of the rest.
export function steer(surface, view, { timeAt, hover, leave, range }) {
  let drag = null, pointer = null;
  const position = (event) => {
    const box = surface.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  surface.tabIndex = 0;
  surface.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    // Until it was clicked, the wheel belongs to the page.
    if (!event.ctrlKey && !sideways && document.activeElement !== surface) return;
    event.preventDefault();
    const amount = Math.max(-1, Math.min(1, (event.deltaY || event.deltaX) / 240));
    if (sideways) view.pan(0.25 * Math.max(-1, Math.min(1, (event.deltaX || event.deltaY) / 240)));
    else view.zoom(2 ** amount, timeAt(position(event).x));
  }, { passive: false });
  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    surface.focus({ preventScroll: true });
    surface.setPointerCapture(event.pointerId);
    const { x } = position(event);
    drag = { x, from: view.from, to: view.to, select: event.shiftKey };
    surface.classList.toggle("dragging", !drag.select);
    leave();
  });
  surface.addEventListener("pointermove", (event) => {
    const { x, y } = position(event);
    pointer = x;
    if (!drag) return hover(event, x, y);
    if (drag.select) return range(timeAt(drag.x), timeAt(x));
    const moved = (timeAt(drag.x) - timeAt(x));
    view.set(drag.from + moved, drag.to + moved);
    [drag.x, drag.from, drag.to] = [x, view.from, view.to];
  });
  const stop = (event) => {
    if (drag?.select) {
      const [a, b] = [timeAt(drag.x), timeAt(position(event).x)].sort((p, q) => p - q);
      range(null);
      if (b > a) view.set(a, b);
    }
    drag = null;
    surface.classList.remove("dragging");
  };
  surface.addEventListener("pointerup", stop);
  surface.addEventListener("pointercancel", stop);
  surface.addEventListener("pointerleave", () => { pointer = null; leave(); });
  surface.addEventListener("dblclick", () => view.all());
  surface.addEventListener("keydown", (event) => {
    const act = keys[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(view, pointer === null ? undefined : timeAt(pointer));
  });
}
