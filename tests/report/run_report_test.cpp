#include "report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "platform/platform.h"
#include "report/made_up_run.h"
#include "report/scaling.h"
#include "report/trace_page.h"
#include "support/error_text.h"
#include "support/places.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Page, Base64IsTheStandards) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Page, ColumnsStartWhereBrowsersCanReadThem) {
  PageData page(Json::object());
  page.add("a", std::vector<std::uint8_t>{1, 2, 3});
  page.add("b", std::vector<double>{1.5});
  const Json& columns = page.json().at("columns");
  EXPECT_EQ(columns[0].at("count"), 3);
  EXPECT_EQ(columns[1].at("offset"), 8);
  EXPECT_EQ(columns[1].at("type"), "f64");
}

TEST(Report, HoldsEveryTaskAndIdleStretch) {
  const trace::Record record = made_up_record(1000, 4);
  const trace::Analysis analysis = trace::analyse(record, trace::whole_window(record));
  const PageData page = run_page("r", Json::object(), {}, &record, &analysis);
  std::map<std::string, std::size_t> counts;
  for (const Json& column : page.json().at("columns")) counts[column.at("name")] = column["count"];
  EXPECT_EQ(counts.at("task.start"), 1000u);
  EXPECT_EQ(counts.at("task.phase"), 1000u);
  EXPECT_EQ(counts.at("idle.cause"), analysis.idle.size());
  EXPECT_EQ(counts.at("mark.time"), 20u);
  EXPECT_EQ(page.json().at("trace").at("workers").size(), 4u);
  EXPECT_EQ(page.json()["trace"].at("phases").size(), 4u);
}

TEST(Report, ShowsTheLastTestByClassIfAPageHoldsThem) {
  const auto tested = [](std::size_t classes) {
    const Json row{{"name", "cat"}, {"count", 1}, {"accuracy", 1.0}};
    return Json{{"step", 7}, {"per_class", Json(classes, row)}, {"confusion", Json::array()}};
  };
  PageData page(Json::object());
  add_classes(page, tested(101));
  EXPECT_FALSE(page.json().contains("classes"));
  add_classes(page, tested(100));
  EXPECT_EQ(page.json().at("classes").at("per_class").size(), 100u);
  EXPECT_EQ(page.json()["classes"].at("step"), 7);
}

TEST(Report, OfMoreTasksThanAPageHoldsSaysHowManyItShows) {
  const trace::Record record = made_up_record(1000, 4);
  const trace::Analysis analysis = trace::analyse(record, trace::whole_window(record));
  const PageData cut = run_page("r", Json::object(), {}, &record, &analysis, 600);
  EXPECT_THAT(cut.json().at("trace").at("notice").get<std::string>(),
              HasSubstr("shows the first 600 of 1,000 tasks; regatta report RUN --window A:B"));
  for (const Json& column : cut.json().at("columns"))
    if (column.at("name") == "task.start") {
      EXPECT_EQ(column.at("count"), 600);
    }
  const PageData whole = run_page("r", Json::object(), {}, &record, &analysis, 1000);
  EXPECT_FALSE(whole.json().at("trace").contains("notice"));
}

TEST(Report, OfAWindowHoldsItsStepsAlone) {
  const TemporaryFolder folder;
  write_made_up_run(folder.path() / "run", 1000, 4);
  const auto written = folder.path() / "page.html";
  write_report(folder.path() / "run", written, 3, 4);
  write_report(folder.path() / "run", folder.path() / "whole.html");
  EXPECT_LT(read_file(written).size(), read_file(folder.path() / "whole.html").size());
  EXPECT_THAT(error_text([&] { write_report(folder.path() / "run", written, 9000, 9001); }),
              HasSubstr("9000"));
}

std::map<std::string, std::string> tiles_of(const PageData& page) {
  std::map<std::string, std::string> tiles;
  for (const Json& each : page.json().at("tiles"))
    tiles[each.at("label")] =
        each.at("value").get<std::string>() + " " + each.at("unit").get<std::string>();
  return tiles;
}

TEST(Report, OfSimulatedStepsTellsTheirTimeThroughputAndEnergyWithoutTheWarmUp) {
  trace::Record record = made_up_record(1020, 4);
  record.metadata["simulated"] = "a platform";
  record.metadata[trace::first_step_key] = "6";
  record.metadata[trace::last_step_key] = "20";
  record.metadata[trace::samples_key] = "96";
  for (trace::Counter& each : record.counters) each.value = each.step < 6 ? 50 : 3;
  const trace::Analysis analysis = trace::analyse(record, trace::whole_window(record));
  auto tiles = tiles_of(run_page("r", Json::object(), {}, &record, &analysis));
  const double step = trace::seconds(record.marks[19].time - record.marks[4].time) / 15;
  EXPECT_NEAR(std::stod(tiles["step time"]), 1e3 * step, 0.01 * 1e3 * step);
  EXPECT_THAT(tiles["step time"], HasSubstr(" ms"));
  EXPECT_EQ(tiles["energy"], "3 J a step");
  std::string rate = tiles["throughput"];
  std::erase(rate, ',');
  EXPECT_NEAR(std::stod(rate), 96 / step, 1);
}

TEST(Report, OfSeveralNodesNamesLanesSitesAndLinks) {
  trace::Record record = made_up_record(1000, 4);
  const std::vector<std::string> nodes{"north-0", "north-1", "south-0", "south-1"};
  for (std::size_t w = 0; w < 4; ++w) record.workers[w] = {"cpu 0", "cpu", nodes[w], "cpu"};
  record.links = {{"north-0", "hill", 5000, 1}, {"hill", "north-0", 0, 0}};
  record.transfers = {{0, record.tasks[3].start, record.tasks[3].end, 5000}};
  const trace::Analysis analysis = trace::analyse(record, trace::whole_window(record));
  Json run = Json::object();
  run["platform"] = read_platform(test_files() / "platforms/two-sites.json").to_json();
  const PageData page = run_page("r", run, {}, &record, &analysis);
  const Json& trace = page.json().at("trace");
  EXPECT_EQ(trace.at("workers").at(2).at("name"), "south-0 · cpu 0");
  EXPECT_EQ(trace.at("workers").at(2).at("node"), "south-0");
  EXPECT_EQ(trace.at("switches").at("north-1").at(0), "hill");
  EXPECT_EQ(trace.at("switches").at("south-0").at(0), "shore");
  EXPECT_EQ(trace.at("links").at(0).at("name"), "north-0 → hill");
  EXPECT_GT(trace.at("links").at(0).at("busy_s").get<double>(), 0);
}

TEST(Report, OfARunWithoutATraceHasItsCurves) {
  const TemporaryFolder folder;
  write_made_up_run(folder.path() / "run", 0, 2);
  const RunCurves curves = read_curves(folder.path() / "run");
  EXPECT_EQ(curves.steps.points().size(), 400u);
  EXPECT_EQ(curves.epochs.size(), 4u);
  EXPECT_DOUBLE_EQ(curves.steps.points().back().learning_rate, 0.02);
  const PageData page =
      run_page("run", read_json(folder.path() / "run/run.json"), curves, nullptr, nullptr);
  EXPECT_NEAR(page.json().at("warm_up").at("steps").get<double>(), 30, 1);
  EXPECT_FALSE(page.json().contains("trace"));
}

TEST(Report, OfALongRunHasFewPointsThatTellOfAllSteps) {
  const TemporaryFolder folder;
  std::string metrics;
  for (std::int64_t step = 4; step <= 400'000; step += 4)
    metrics += trace::to_json({.step = step,
                               .steps = 4,
                               .loss = 1,
                               .loss_min = 0.5,
                               .loss_max = step == 200'000 ? 99.0 : 2.0,
                               .images_per_s = 100})
                   .dump() +
               "\n";
  folder.file("metrics.jsonl", metrics);
  folder.file("run.json", "{}");
  const RunCurves curves = read_curves(folder.path());
  EXPECT_LE(curves.steps.points().size(), 10'000u);
  EXPECT_EQ(curves.steps.points().back().step, 400'000);
  EXPECT_EQ(std::ranges::max(curves.steps.points(), {}, &trace::StepStretch::loss_max).loss_max,
            99);
  write_report(folder.path(), folder.path() / "report.html");
  EXPECT_LT(std::filesystem::file_size(folder.path() / "report.html"), 2'000'000u);
}

std::string tile_of(const PageData& page, const std::string& label) {
  for (const Json& each : page.json().at("tiles"))
    if (each.at("label") == label) return each.at("value");
  return "";
}

TEST(Report, ThroughputIsWhatTheRunSaysOrImagesOverTime) {
  RunCurves curves;
  // Every other step takes nine times as long.
  for (std::int64_t step = 1; step <= 100; ++step)
    curves.steps.add({.step = step, .loss = 1, .images_per_s = step % 2 == 0 ? 900.0 : 100.0});
  Json run{{"recipe", {{"batch", 10}}}};
  const PageData running = run_page("run", run, curves, nullptr, nullptr);
  EXPECT_NEAR(std::stod(tile_of(running, "throughput")), 180, 2);
  EXPECT_EQ(tile_of(running, "disturbed"), "");
  run["speed"] = {{"images_per_s", 777.0}, {"taken_by_others", 0.12}};
  const PageData ended = run_page("run", run, curves, nullptr, nullptr);
  EXPECT_EQ(tile_of(ended, "throughput"), "777");
  EXPECT_EQ(tile_of(ended, "disturbed"), "12");
}

TEST(Report, IsOneFileThatNoTextOfARunCanBreak) {
  const TemporaryFolder folder;
  write_made_up_run(folder.path() / "run", 100, 2);
  write_report(folder.path() / "run", folder.path() / "report.html");
  const std::string html = read_file(folder.path() / "report.html");
  EXPECT_THAT(html, HasSubstr("<!doctype html>"));
  EXPECT_THAT(html, HasSubstr("made-up \\u003c/script> & co"));
  EXPECT_THAT(html, HasSubstr("\"advice\":[{\"what\":"));
  for (const char* outside : {"src=\"http", "href=\"http", "url(http", "@import"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST(Report, OfAFolderWithoutARunIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { write_report(folder.path(), folder.path() / "r.html"); }),
              HasSubstr("is not the folder of a run"));
}

TEST(Report, StepsShareTheIdleTimeAndTheEnergy) {
  const trace::Record record = made_up_record(1020, 4);
  const trace::Analysis analysis = trace::analyse(record, trace::whole_window(record));
  const std::vector<StepUse> uses = use_by_step(record, analysis);
  ASSERT_EQ(uses.size(), 20u);
  double idle = 0, begin = trace::seconds(analysis.window.start);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    EXPECT_GE(uses[i].idle_share, 0);
    EXPECT_LE(uses[i].idle_share, 1);
    EXPECT_EQ(uses[i].joules, 0.25);
    idle += uses[i].idle_share * 4 * (trace::seconds(record.marks[i].time) - begin);
    begin = trace::seconds(record.marks[i].time);
  }
  double all = 0;
  for (const trace::WorkerUse& worker : analysis.workers) all += trace::seconds(worker.idle);
  EXPECT_NEAR(idle, all, 1e-6);
}

// For the browser's tests: REGATTA_MAKE_RUN=FOLDER:TASKS writes a run folder with its report, and a
// page of scaling.
TEST(ReportFixture, IsWrittenWhereAskedFor) {
  const char* wanted = std::getenv("REGATTA_MAKE_RUN");
  if (!wanted) GTEST_SKIP() << "set REGATTA_MAKE_RUN=FOLDER:TASKS to write one";
  const std::string text = wanted;
  const std::size_t colon = text.rfind(':');
  const std::filesystem::path folder = text.substr(0, colon);
  write_made_up_run(folder, std::stoll(text.substr(colon + 1)), 8);
  write_report(folder, folder / report_name);
  const trace::Record record = made_up_record(300, 2);
  const trace::Analysis analysis = trace::analyse(record, trace::whole_window(record));
  const PageData cut =
      run_page("cut", Json::object(), read_curves(folder), &record, &analysis, 100);
  write_file(folder / "cut.html", cut.html());
  std::vector<ScalingCell> cells;
  for (const int workers : {1, 2, 4, 8})
    cells.push_back(
        {"eager", "1x28x28", 64, workers, {{std::vector(50, 1.0 / workers), 64}}, {}, {}});
  write_file(folder / "scaling.html", scaling_page(analyse_scaling("tiny", cells), Json()).html());
}

}  // namespace
}  // namespace regatta
