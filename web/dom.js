// Elements from names, attributes and children; text only ever becomes text.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, handler] of Object.entries(value)) made.addEventListener(event, handler);
    else if (key === "style") Object.assign(made.style, value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function section(id, title, hint, ...children) {
  return element("section", { id },
    element("div", { class: "head" }, element("h2", {}, title),
      hint ? element("span", { class: "hint" }, hint) : null),
    ...children);
}

export function rows(headings, lines, numberFrom = 1) {
  const kind = (i) => (i >= numberFrom ? "number" : "");
  return element("div", { class: "scroll" }, element("table", { class: "rows" },
    element("thead", {}, element("tr", {}, headings.map((text, i) => element("th", { class: kind(i) }, text)))),
    element("tbody", {}, lines.map((line) =>
      element("tr", {}, line.map((text, i) => element("td", { class: kind(i) }, String(text))))))));
}

export function swatch(colour, text) {
  return element("span", { class: "key" },
    element("i", { class: "swatch", style: { background: colour } }), text);
}

let tip;
export function showTip(event, title, lines) {
  tip ??= document.body.appendChild(element("div", { id: "tip", role: "tooltip" }));
  tip.replaceChildren(element("b", {}, title),
    element("table", {}, lines.map(([name, value]) =>
      element("tr", {}, element("td", {}, name), element("td", {}, value)))));
  tip.style.display = "block";
  const { width, height } = tip.getBoundingClientRect();
  const left = event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 6))}px`;
}
export function hideTip() {
  if (tip) tip.style.display = "none";
}

// A canvas as wide as its parent, sharp on any screen; `draw` gets the context and its size.
export function canvas(height, draw) {
  const surface = element("canvas");
  const holder = element("div", { class: "canvas" }, surface);
  let wanted = false;
  const paint = () => {
    wanted = false;
    const width = holder.clientWidth, ratio = devicePixelRatio || 1;
    if (width === 0) return;
    const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
    if (surface.width !== pixels[0] || surface.height !== pixels[1]) [surface.width, surface.height] = pixels;
    surface.style.height = `${height}px`;
    const context = surface.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, width, height);
  };
  const redraw = () => {
    if (!wanted) requestAnimationFrame(paint);
    wanted = true;
  };
  new ResizeObserver(redraw).observe(holder);
  addEventListener("theme", redraw);
  return { holder, surface, redraw };
}
