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
