// Opens reports in a headless Chromium and uses them as a person would.
//
//   node chromium_test.mjs PACKAGES REGATTA_TESTS REGATTA
//
// PACKAGES holds node_modules (scripts/web find); REGATTA_TESTS writes runs that nobody ran, REGATTA
// simulates one of a thousand nodes. CHROMIUM names the browser (default: chromium in PATH). How long
// pages take to open and how fluently they pan is printed, not judged: machines differ.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// A newer Node.js elsewhere in PATH would hide what the one that Debian has cannot run.
const debians = "/usr/bin/node";
if (existsSync(debians))
  assert.equal(realpathSync(process.execPath), realpathSync(debians), "Debian's own Node.js runs this test");

const [packages, tests, regatta] = process.argv.slice(2);
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

function simulateThousandNodes() {
  const run = join(folder, "thousand");
  const platform = fileURLToPath(new URL("../../platforms/thousand.json", import.meta.url));
  execFileSync(regatta, ["simulate", "--model", "resnet50", "--platform", platform, "--batch", "32000", "--batch-norm",
    "group:1", "--shares", "speed",     "--steps", "6", "--out", run]);
  return run;
}

// Opens a page, lets `use` at it, and wants silence on the console and on the network.
async function withPage(browser, file, use, width = 1360) {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  const complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) complaints.push(`asked for ${request.url()}`); });
  const started = Date.now();
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector("html[data-ready=yes]");
  await drawn(page);
  await use(page, Date.now() - started);
  assert.deepEqual(complaints, [], "the console is silent");
  await page.close();
}

// A frame has been drawn when the next but one begins.
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

async function useTimeline(page, tasks) {
  const line = page.locator("#timeline"), canvas = line.locator("canvas");
  const state = () => line.evaluate((box) => ({ ...box.dataset, from: Number(box.dataset.from), to: Number(box.dataset.to) }));

  const whole = await state();
  assert.equal(Number(whole.tasks), Number(tasks), "the page shows every task");
  assert.equal(await page.locator(".notice").count(), 0, "so it has nothing to excuse");
  for (const id of ["advice", "throughput", "loss", "epoch-loss", "accuracy", "learning-rate", "idle", "workers", "utilisation", "facts", "classes", "confusion"])
    assert.equal(await page.locator(`#${id}`).count(), 1, `there is a part '${id}'`);
  assert.match(await page.locator("#advice").innerText(), /try --\S+/, "the doctor's advice names a flag");
  assert.match(await page.locator("#epoch-loss .u-legend").innerText(), /test/, "the test loss is there");
  assert.equal(await line.locator(".row.group, .row.fold").count(), 0, "a few lanes need no groups");
  await useClasses(page);
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
    await drawn(page);
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
  for (let x = 10; x < box.width - 10 && !hovered.startsWith("task"); x += 20) {
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
  await drawn(page);
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

// Frames a second while keys pan to and fro for two seconds.
async function panned(page) {
  return page.evaluate(() => new Promise((done) => {
    const canvas = document.querySelector("#timeline canvas"), begin = performance.now();
    const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    for (let i = 0; i < 4; ++i) press("w");
    let frames = 0;
    const frame = (now) => {
      press(Math.floor(frames / 8) % 2 === 0 ? "d" : "a");
      ++frames;
      if (now - begin < 2000) requestAnimationFrame(frame);
      else done((1000 * frames) / (performance.now() - begin));
    };
    requestAnimationFrame(frame);
  }));
}

async function useThousandNodes(page, opened) {
  const line = page.locator("#timeline"), press = (name) => line.getByRole("button", { name, exact: true }).click();
  const names = (section = "#timeline") => page.locator(`${section} .row[data-lane]`).allTextContents();
  console.log(`a thousand nodes: opened in ${opened} ms, pans at ${(await panned(page)).toFixed(0)} frames a second`);

  const first = await names(), workers = (all) => all.filter((name) => !name.includes("→"));
  assert.ok(first.length > 10 && first.length < 60, `the rest is folded: ${first.length} lanes are shown`);
  for (const name of workers(first)) assert.match(name, /^(new|old|gpu)-\d+ · (cpu|cuda) \d+$/, "a lane carries node and device");
  assert.ok(first.some((name) => /^(new|old|gpu)-\d+ → rack-\d+$/.test(name)), "links are lanes");
  for (const section of ["#workers", "#utilisation"])
    assert.ok((await names(section)).length < 60, `${section} is folded`);

  const busy = (await line.locator(".row.group", { hasText: "rack-" }).allTextContents()).map((text) => Number(text.match(/(\d+)%/)[1]));
  assert.deepEqual(busy, [...busy].sort((a, b) => b - a), "racks stand in the order of their work");

  // A rack opens and closes; its middle unfolds.
  const closed = line.locator(".row.group[aria-expanded=false]").first();
  const rack = (await closed.textContent()).match(/rack-\d+/)[0];
  const row = line.locator(".row.group", { hasText: new RegExp(`${rack}\\b`) }).first();
  await row.click();
  assert.equal((await names()).length, first.length + 6, "an opened rack shows its busiest and idlest");
  await row.click();
  assert.equal((await names()).length, first.length);

  await press("unfold all");
  const all = await names();
  assert.equal(workers(all).length, 1800, "every worker has a lane");
  assert.equal(new Set(all).size, all.length, "and every lane a name of its own");
  assert.ok(all.length > 3000, "as every link that carried something");
  const last = line.locator(".row[data-lane]").last();
  await last.scrollIntoViewIfNeeded();
  await drawn(page);
  assert.ok(await last.isVisible(), "the last lane can be reached");
  await press("fold");
  assert.deepEqual(await names(), first);

  await line.getByRole("searchbox").fill("gpu-17 ");
  assert.deepEqual(workers(await names()).sort(), ["gpu-17 · cpu 0", "gpu-17 · cpu 1", "gpu-17 · cpu 2", "gpu-17 · cpu 3", "gpu-17 · cuda 0"]);
  await line.getByRole("searchbox").fill("rack-3 ");
  assert.equal(workers(await names()).length, 40, "a rack's name finds its nodes");
  await line.getByRole("searchbox").fill("");
  assert.deepEqual(await names(), first);

  const tiles = await page.locator(".tile .label").allTextContents();
  for (const label of ["step time", "throughput", "energy"]) assert.ok(tiles.includes(label), `a simulated page tells its ${label}`);
}

// On a narrow screen nothing hangs out of its card, and no label is cut.
async function useNarrow(page) {
  const wide = await page.evaluate(() => [document.scrollingElement, ...document.querySelectorAll("section, .tile, .row")]
    .filter((part) => part.scrollWidth > part.clientWidth + 1)
    .map((part) => `${part.tagName} ${part.id} ${part.textContent.slice(0, 40)}`));
  assert.deepEqual(wide, [], "everything fits 420 pixels");
}

async function useCut(page) {
  assert.equal(await page.locator("#timeline").getAttribute("data-tasks"), "100");
  const notice = page.locator("#timeline .notice");
  assert.ok(await notice.isVisible(), "what is left out is said");
  assert.match(await notice.innerText(), /first 100 of 300 tasks; .*--window A:B/);
}

// A search of four jobs, and its page.
function searchTickets() {
  const search = join(folder, "search");
  execFileSync(regatta, ["tickets", "search", "--model", "tiny", "--data", "synth:1x12x12/3@40", "--test", "synth:1x12x12/3@16",
    "--batch", "8", "--masks", "1", "--deterministic", "--workers", "1", "--out", search], { env: { ...process.env, STARPU_WORKERS_NOBIND: "1" } });
  execFileSync(regatta, ["tickets", "report", search]);
  return join(search, "report.html");
}

async function useTickets(page) {
  for (const id of ["tickets", "scaling"])
    assert.equal(await page.locator(`#${id} canvas`).count(), 1, `there is a chart '${id}'`);
  assert.equal(await page.locator("#jobs tbody tr").count(), 4, "all jobs are listed");
  assert.equal(await page.locator("#heat tbody tr").count(), 1, "there is a row of masks");
  assert.equal(await page.locator("#jobs-timeline i").count(), 4, "jobs lie on the workers' lines");
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
    await withPage(browser, join(run, "report.html"), useNarrow, 420);
    await withPage(browser, join(run, "cut.html"), useCut);
    await withPage(browser, join(run, "scaling.html"), useScaling);
  }
  const thousand = join(simulateThousandNodes(), "report.html");
  await withPage(browser, thousand, useThousandNodes);
  const tickets = searchTickets();
  await withPage(browser, tickets, useTickets);
  await withPage(browser, tickets, useNarrow, 420);
  await withPage(browser, thousand, useNarrow, 420);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
