// What regatta doctor says of the run.
import { element, section } from "./dom.js";
import { percent } from "./format.js";

export function advice(data) {
  const { advice: findings = [] } = data.json;
  if (findings.length === 0) return null;
  return section("advice", "What would help", "gains are at best; regatta doctor tells the same",
    element("ol", { class: "advice" }, findings.map(({ what, fix, flag, gain }) =>
      element("li", {}, element("div", {}, what), element("div", { class: "soft" }, fix),
        element("div", { class: "soft" }, "try ", element("code", {}, flag), ` · gains at most ${percent(gain)} of the time`)))));
}
