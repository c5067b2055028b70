// Light and dark, and the colours that mean something.
import { element } from "./dom.js";

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const asked = matchMedia("(prefers-color-scheme: dark)");
function apply(theme) {
  document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("theme"));
}
export function startTheme() {
  apply(asked.matches ? "dark" : "light");
  asked.addEventListener("change", () => apply(asked.matches ? "dark" : "light"));
}
export function themeButton() {
  const flip = () => apply(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  return element("button", { id: "theme", on: { click: flip }, title: "light or dark" }, "◐ theme");
}

const phases = {
  "forward and backward": "#6d63d6", backward: "#e0852b", forward: "#3a86c8", "weight gradient": "#efb36b",
  "combine gradient": "#93489a", combine: "#bf5f9f", reduce: "#1f9e79", update: "#58ad46",
  pack: "#97bd4b", deliver: "#c8a02a", load: "#8791a0", other: "#6b7684",
};

// A task may do several phases; its colour is that of the weightiest.
export function phaseKind(name) {
  const parts = name.replaceAll("_", " ").split("+").map((part) => part.trim());
  if (parts.includes("forward") && parts.includes("backward")) return "forward and backward";
  return Object.keys(phases).find((phase) => parts.includes(phase)) ?? "other";
}
export const linkColour = "#2f9c95";
export const phaseColour = (kind) => phases[kind];

const causes = ["#b8463f", "#d08a3c", "#c9b23d", "#7a9a4e", "#4b9a93", "#5b7fb5", "#8b6bb0", "#b0658f", "#8a8177", "#6b7684"];
export const causeColour = (index) => causes[index % causes.length];
