#include "trace/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "support/error_text.h"
#include "support/temporary_folder.h"
#include "trace/analysis.h"
#include "trace/sqlite.h"
#include "trace/toy_run.h"

namespace regatta::trace {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Record full_record() {
  Record record = toy_run({.seed = 3});
  record.metadata["plan"] = "one\ntwo";
  record.operator_kinds = {{"conv1", "conv", "forward"}};
  record.operators = {{2, 0, 1, 5, 9}, {-1, 0, -1, 7, 11}};
  record.links = {{"ram", "gpu", 123, 4}, {"gpu", "ram", 7, 1}};
  record.transfers = {{0, 3, 9, 123}, {1, 4, 5, 7}};
  record.counters = {{"energy cpu", "J", "estimate", 2, 40, 1.5}};
  return record;
}

std::string all_of(const Record& record) {
  std::string text;
  for (const Task& each : record.tasks)
    for (const std::int64_t number :
         {each.id, std::int64_t{each.kind}, std::int64_t{each.worker}, each.step, each.submit,
          each.ready, each.start, each.end, each.acquire, each.predicted})
      text += std::to_string(number) + " ";
  for (const Dependency& each : record.dependencies)
    text += std::to_string(each.task) + "<" + std::to_string(each.on) + " ";
  for (const Mark& each : record.marks) text += each.name + std::to_string(each.time) + " ";
  for (const Operator& each : record.operators)
    text += std::to_string(each.task) + "," + std::to_string(each.worker) + " ";
  for (const Counter& each : record.counters) text += each.name + each.unit + each.source;
  for (const Transfer& each : record.transfers)
    for (const std::int64_t number : {std::int64_t{each.link}, each.start, each.end, each.bytes})
      text += std::to_string(number) + " ";
  return text;
}

TEST(TraceStore, ARecordComesBackAsItWas) {
  const TemporaryFolder folder;
  Record record = full_record();
  const auto twice = std::ranges::unique(record.dependencies, {}, [](const Dependency& each) {
    return std::pair(each.task, each.on);
  });
  record.dependencies.erase(twice.begin(), twice.end());
  write_store(folder.path() / store_name, record);
  const Record again = read_store(store_of(folder.path()));
  EXPECT_EQ(all_of(again), all_of(record));
  EXPECT_EQ(again.kinds, record.kinds);
  EXPECT_EQ(again.operator_kinds, record.operator_kinds);
  EXPECT_EQ(again.workers.size(), record.workers.size());
  EXPECT_EQ(again.metadata.at("plan"), "one\ntwo");
  EXPECT_EQ(again.links.front().bytes, 123);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);  // nothing unfinished
}

TEST(TraceStore, IsARegularFileAndFollowsLinks) {
  const TemporaryFolder folder;
  fs::create_symlink("real.sqlite", folder.path() / "link.sqlite");
  write_store(folder.path() / "link.sqlite", full_record());
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link.sqlite"));
  EXPECT_EQ(read_store(folder.path() / "real.sqlite").tasks.size(), full_record().tasks.size());
  EXPECT_THAT(error_text([] { write_store("/dev/null", full_record()); }),
              testing::HasSubstr("'/dev/null': it is not a regular file"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(TraceStore, ViewsAgreeWithTheAnalysis) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / store_name;
  const Record record = full_record();
  write_store(file, record);
  write_analysis(file, record);
  const Analysis found = analyse(record, whole_window(record));
  const auto number = [&](const std::string& sql) { return std::stod(query(file, sql)[1][0]); };
  EXPECT_NEAR(
      number("SELECT sum(seconds) FROM idle_causes") * 1e9,
      static_cast<double>(std::accumulate(found.causes.begin(), found.causes.end(), Time{})), 1e-3);
  EXPECT_NEAR(number("SELECT sum(busy_s) FROM busy_by_worker") * 1e9,
              static_cast<double>(found.work), 1e-3);
  EXPECT_NEAR(number("SELECT sum(duration_s) FROM critical_path") * 1e9,
              static_cast<double>(found.critical), 1e-3);
  EXPECT_EQ(query(file, "SELECT * FROM helpful_tasks").size(), found.kinds.size() + 1);
  EXPECT_EQ(number("SELECT count(*) FROM timeline"), static_cast<double>(record.tasks.size()));
  for (const char* view : {"timeline", "idle_by_task", "by_segment", "by_phase", "by_chunk",
                           "by_step", "by_operator", "mispredicted", "energy_by_step", "by_link"})
    EXPECT_GT(query(file, std::string("SELECT * FROM ") + view).size(), 1u) << view;
  // A second analysis replaces the first.
  write_analysis(file, record);
  EXPECT_EQ(number("SELECT count(*) FROM worker_use"), static_cast<double>(found.workers.size()));
}

TEST(TraceStore, ViewsTellTheNodeOfAWorkerAndTheTimeOfALink) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / store_name;
  Record record = full_record();
  for (std::size_t w = 0; w < record.workers.size(); ++w)
    record.workers[w] = {"cpu 0", "cpu", "n" + std::to_string(w), "cpu"};
  write_store(file, record);
  write_analysis(file, record);
  for (const char* view : {"timeline", "busy_by_worker", "critical_path"})
    EXPECT_EQ(query(file, std::string("SELECT DISTINCT node FROM ") + view +
                              " WHERE node = 'n1' AND worker = 'cpu 0'")
                  .size(),
              2u)
        << view;
  const auto links = query(file, "SELECT from_memory, to_memory, busy_s * 1e9 FROM by_link");
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[1][0] + " " + links[1][1], "ram gpu");
  EXPECT_NEAR(std::stod(links[1][2]), 6, 1e-6);
}

TEST(TraceStore, OfAnEarlierVersionHasNoTransfersButIsRead) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / store_name;
  write_store(file, full_record());
  Database(file, Database::Access::change).run("DROP VIEW by_link; DROP TABLE transfers");
  const Record record = read_store(file);
  EXPECT_TRUE(record.transfers.empty());
  EXPECT_EQ(record.links.size(), 2u);
}

TEST(Record, LanesOfSeveralNodesCarryTheirNode) {
  Record record;
  record.workers = {{"cpu 0", "cpu", "a", "cpu"}, {"cpu 1", "cpu", "a", "cpu"}};
  EXPECT_EQ(lane_names(record), (std::vector<std::string>{"cpu 0", "cpu 1"}));
  record.workers.push_back({"cpu 0", "cpu", "b", "cpu"});
  EXPECT_EQ(lane_names(record), (std::vector<std::string>{"a · cpu 0", "a · cpu 1", "b · cpu 0"}));
  EXPECT_EQ(link_name({"a", "b"}), "a → b");
  EXPECT_EQ(link_name({"backbone", ""}), "backbone");
}

TEST(Record, ATransferOfNoLinkIsAFault) {
  Record record = full_record();
  record.transfers.push_back({2, 9, 3, 1});
  EXPECT_THAT(faults(record), testing::ElementsAre(HasSubstr("link is not in the record"),
                                                   HasSubstr("transfer's times run backwards")));
}

TEST(TraceStore, QuestionsOnlyRead) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / store_name;
  write_store(file, toy_run({}));
  const auto refused = [&](const std::string& sql) {
    return error_text([&] { query(file, sql); });
  };
  EXPECT_THAT(refused("DELETE FROM tasks"), HasSubstr("not authorized"));
  EXPECT_THAT(refused("ATTACH '/tmp/x' AS x"), HasSubstr("not authorized"));
  EXPECT_THAT(refused("SELECT 1; SELECT 2"), HasSubstr("one statement at a time"));
  EXPECT_THAT(refused("SELEC 1"), HasSubstr("syntax error"));
  EXPECT_THAT(refused(""), HasSubstr("the question is empty"));
}

TEST(TraceStore, AWrongFileIsRefusedInOneLine) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / store_name;
  EXPECT_THAT(error_text([&] { store_of(folder.path()); }), HasSubstr("regatta train --trace"));
  EXPECT_THAT(error_text([&] { store_of(folder.path() / "no"); }), HasSubstr("does not exist"));
  std::ofstream(file) << std::string(5000, 'x');
  EXPECT_THAT(error_text([&] { read_store(file); }), HasSubstr("not a database"));
  fs::remove(file);
  write_store(file, toy_run({.steps = 40}));
  const auto size = fs::file_size(file);
  for (const auto part : {size / 2, size / 4, size / 8}) {
    fs::resize_file(file, part);
    const std::string error = error_text([&] { read_store(file); });
    EXPECT_NE(error, "no error");
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(TraceStore, AnUnsoundRecordIsRefused) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / store_name;
  Record record = toy_run({});
  record.tasks[3].worker = 99;
  write_store(file, record);
  EXPECT_THAT(error_text([&] { read_store(file); }),
              HasSubstr("task 3: its worker is not in the record"));
  record = toy_run({});
  record.tasks[5].end = record.tasks[5].start - 1;
  write_store(file, record);
  EXPECT_THAT(error_text([&] { read_store(file); }), HasSubstr("its times run backwards"));
}

TEST(TraceStore, WhatIsNotFinishedLeavesNothing) {
  const TemporaryFolder folder;
  {
    StoreWriter writer(folder.path() / store_name);
    writer.add(Worker{"cpu 0", "cpu", "here", "cpu"});
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_THAT(error_text([&] { StoreWriter writer(folder.path() / "no" / store_name); }),
              HasSubstr("cannot create"));
}

}  // namespace
}  // namespace regatta::trace
