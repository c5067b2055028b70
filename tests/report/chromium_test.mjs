// Opens reports in a headless Chromium and uses them as a person would.
//
//   node chromium_test.mjs PACKAGES REGATTA_TESTS
//
// PACKAGES holds node_modules (scripts/web find); REGATTA_TESTS writes the runs. CHROMIUM names the
// browser (default: chromium in PATH).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, tests] = process.argv.slice(2);
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");
const executablePath = process.env.CHROMIUM ?? execFileSync("which", ["chromium"]).toString().trim();
const folder = mkdtempSync(join(tmpdir(), "regatta-report-"));

// A run folder with its report, and a page of scaling, made by the tests' program.
function makeRun(tasks) {
  const run = join(folder, `run${tasks}`);
  execFileSync(tests, ["--gtest_filter=ReportFixture.*", "--gtest_brief=1"],
    { env: { ...process.env, REGATTA_MAKE_RUN: `${run}:${tasks}` } });
  return run;
}

// Opens a page, lets `use` at it, and wants silence on the console and on the network.
async function withPage(browser, file, use) {
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
  const complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) complaints.push(`asked for ${request.url()}`); });
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector("html[data-ready=yes]");
  await use(page);
  assert.deepEqual(complaints, [], "the console is silent");
  await page.close();
}

async function useTimeline(page, tasks) {
  const line = page.locator("#timeline"), canvas = line.locator("canvas");
  const state = () => line.evaluate((box) => ({ ...box.dataset, from: Number(box.dataset.from), to: Number(box.dataset.to) }));
  // A frame has been drawn when the next but one begins.
  const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

  const whole = await state();
  assert.equal(Number(whole.tasks), Number(tasks), "the page shows every task");
  assert.equal(await page.locator(".notice").count(), 0, "so it has nothing to excuse");
  for (const id of ["throughput", "loss", "accuracy", "idle", "workers", "utilisation", "facts", "classes", "confusion"])
    assert.equal(await page.locator(`#${id}`).count(), 1, `there is a part '${id}'`);
  await useClasses(page);
  await drawn();
  const colours = await canvas.evaluate((surface) => {
    const { data } = surface.getContext("2d").getImageData(0, 0, surface.width, surface.height);
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return seen.size;
  });
  assert.ok(colours > 10, "tasks are drawn in colours");

  const box = await canvas.boundingBox();
  const middle = { x: box.x + box.width / 2, y: box.y + 75 };
  await page.mouse.click(middle.x, middle.y);
  await page.mouse.move(middle.x, middle.y);
  const started = Date.now();
  for (let i = 0; i < 8; ++i) {
    await page.mouse.wheel(0, -240);
    await drawn();
  }
  const near = await state();
  assert.ok(near.to - near.from < (whole.to - whole.from) / 50, "the wheel zooms in");
  const frame = (Date.now() - started) / 8;
  console.log(`${tasks} tasks: ${frame.toFixed(0)} ms a zoom step`);
  // Two frames are waited for, on a machine that may be busy with other tests.
  assert.ok(frame < 500, `zooming is fluent, not ${frame} ms a step`);

  await page.mouse.move(middle.x, middle.y);
  await page.mouse.down();
  await page.mouse.move(middle.x + 120, middle.y, { steps: 4 });
  await page.mouse.up();
  assert.ok((await state()).from < near.from, "dragging pans");
  const before = await state();
  await page.keyboard.press("d");
  assert.ok((await state()).from > before.from, "D pans");
  await page.keyboard.press("s");
  assert.ok((await state()).to - (await state()).from > before.to - before.from, "S zooms out");

  // Somewhere along the first lane there is a task under the pointer.
  let hovered = "";
  for (let x = 120; x < box.width - 10 && !hovered.startsWith("task"); x += 20) {
    await page.mouse.move(box.x + x, middle.y);
    hovered = (await state()).hover;
  }
  assert.match(hovered, /^task \d+$/, "hovering finds a task");
  const tip = await page.locator("#tip").innerText();
  assert.match(tip, /took/);
  assert.match(tip, /step/);

  await page.locator("[data-toggle=critical]").click();
  assert.equal(await page.locator("[data-toggle=critical]").getAttribute("aria-pressed"), "true");
  await page.locator("#theme").click();
  await drawn();
  await canvas.dblclick({ position: { x: box.width / 2, y: 80 } });
  const again = await state();
  assert.equal(again.to - again.from, whole.to - whole.from, "a double click shows everything");
}

async function useClasses(page) {
  const table = await page.locator("#classes tbody").innerText();
  assert.match(table, /cat\s+4\s+75/, "each class has its accuracy");
  const map = page.locator("#confusion canvas");
  await map.scrollIntoViewIfNeeded();
  const box = await map.boundingBox();
  // The first row's second column, right of the names and below them.
  await page.mouse.move(box.x + 110 + (box.width - 110) / 2, box.y + 70 + 15);
  assert.match(await page.locator("#tip").innerText(), /cat taken for dog[^]*images\s*1[^]*25/);
  await page.mouse.move(0, 0);
  await page.evaluate(() => scrollTo(0, 0));
}

async function useCut(page) {
  assert.equal(await page.locator("#timeline").getAttribute("data-tasks"), "100");
  const notice = page.locator("#timeline .notice");
  assert.ok(await notice.isVisible(), "what is left out is said");
  assert.match(await notice.innerText(), /first 100 of 300 tasks; .*--window A:B/);
}

async function useScaling(page) {
  for (const id of ["speedup", "efficiency"])
    assert.equal(await page.locator(`#${id} canvas`).count(), 1, `there is a chart '${id}'`);
  assert.ok(await page.locator("table.rows tbody tr").count() >= 3, "there is a table");
}

const browser = await chromium.launch({
  executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
try {
  for (const tasks of [2000, 100000]) {
    const run = makeRun(tasks);
    await withPage(browser, join(run, "report.html"), (page) => useTimeline(page, tasks));
    if (tasks !== 2000) continue;
    await withPage(browser, join(run, "cut.html"), useCut);
    await withPage(browser, join(run, "scaling.html"), useScaling);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
