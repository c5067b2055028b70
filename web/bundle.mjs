// Bundles the page (scripts, styles, uPlot) into one HTML text and writes it as C++ that defines
// report_page.
//
//   node bundle.mjs PACKAGES OUT.cpp      PACKAGES holds node_modules (scripts/web find)
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [packages, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(packages, "package.json"))("esbuild");

const { outputFiles } = await esbuild.build({
  entryPoints: [join(here, "main.js")],
  bundle: true, minify: true, write: false, outdir: "out", format: "iife", target: "es2022",
  charset: "utf8", legalComments: "inline", logLevel: "warning",
  nodePaths: [join(packages, "node_modules")],
});
const text = (ending) => outputFiles.find((file) => file.path.endsWith(ending)).text.trim();

// A function as replacement: "$" in the bundle means nothing.
const licence = readFileSync(join(packages, "node_modules/uplot/LICENSE"), "utf8");
const page = readFileSync(join(here, "page.html"), "utf8")
  .replace("<!--LICENCE-->", () => `<!-- Charts are drawn by uPlot:\n${licence}-->`)
  .replace("/*STYLE*/", () => text(".css").replaceAll("</", "<\\/"))
  .replace("/*SCRIPT*/", () => text(".js").replaceAll("</script", "<\\/script"));

const escaped = JSON.stringify(page).slice(1, -1).replaceAll("??", "?\\?");
// Pieces, so that no line is endless and no escape sequence is cut.
const pieces = escaped.match(/(?:\\.|[^\\]){1,4000}/gsu);
writeFileSync(out, `// Made by web/bundle.mjs.
#include "report/page.h"
namespace regatta {
const std::string_view report_page =
${pieces.map((piece) => `    "${piece}"`).join("\n")};
}  // namespace regatta
`);
