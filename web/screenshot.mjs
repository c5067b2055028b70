// A picture of a page, for the docs.
//
//   node screenshot.mjs PACKAGES PAGE.html OUT.png [--dark] [--zoom N] [--height PIXELS]
//
// --zoom takes N steps into the timeline and shows the critical path. CHROMIUM names the browser.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, file, out, ...flags] = process.argv.slice(2);
const value = (flag, otherwise) => (flags.includes(flag) ? Number(flags[flags.indexOf(flag) + 1]) : otherwise);
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({
  viewport: { width: 1280, height: value("--height", 720) }, colorScheme: flags.includes("--dark") ? "dark" : "light",
});
await page.goto(pathToFileURL(resolve(file)).href);
await page.waitForSelector("html[data-ready=yes]");
const zoom = value("--zoom", 0);
if (zoom > 0) {
  const box = await page.locator("#timeline canvas").boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + 80);
  for (let i = 0; i < zoom; ++i) await page.mouse.wheel(0, -240);
  await page.mouse.move(box.x + box.width / 2 + 4, box.y + 80);
}
await page.waitForTimeout(500);
await page.screenshot({ path: out });
await browser.close();
