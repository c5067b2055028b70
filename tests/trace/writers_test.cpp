#include "trace/writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "support/temporary_folder.h"
#include "trace/toy_run.h"

namespace regatta::trace {
namespace {

using testing::HasSubstr;

Record sample() {
  Record record = toy_run({.seed = 5, .steps = 3});
  record.counters = {{"energy cpu", "J", "estimate", 2, 40, 1.5}};
  record.operator_kinds = {{"conv1", "conv", "forward"}};
  record.operators = {{2, 0, 1, record.tasks[2].start, record.tasks[2].end}};
  record.kinds[0].phases = "odd \"name\"\n+\xff";
  return record;
}

std::string written(void (*write)(std::ostream&, const Record&), const Record& record) {
  std::ostringstream out;
  write(out, record);
  return out.str();
}

TEST(PerfettoWriter, HasATrackPerWorkerASlicePerTaskAndPairedArrows) {
  const Record record = sample();
  const Json json = Json::parse(written(write_perfetto, record));
  std::map<std::string, int> count;
  std::map<long long, int> arrows;
  std::set<int> tracks;
  for (const Json& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    ++count[phase];
    if (phase == "X") tracks.insert(event["tid"].get<int>());
    if (phase == "s") arrows[event["id"]] += 1;
    if (phase == "f") arrows[event["id"]] -= 1;
    if (event.contains("ts")) {
      EXPECT_GE(event["ts"].get<double>(), 0);
    }
  }
  EXPECT_EQ(count["X"], static_cast<int>(record.tasks.size() + record.operators.size()));
  EXPECT_EQ(count["C"], 1);
  EXPECT_EQ(count["i"], 3);
  EXPECT_EQ(tracks.size(), record.workers.size());
  EXPECT_GT(arrows.size(), 10u);
  for (const auto& [id, balance] : arrows) EXPECT_EQ(balance, 0) << id;
}

// Two nodes, whose workers have the same names, and a link between them.
Record of_two_nodes() {
  Record record = toy_run({.seed = 7, .workers = 2, .steps = 2});
  record.workers = {{"cpu 0", "cpu", "north", "cpu"}, {"cpu 0", "cpu", "south", "cpu"}};
  record.links = {{"north", "hill", 0, 0}, {"hill", "south", 2000, 1}};
  record.transfers = {{1, 1000, 5000, 2000}};
  return record;
}

TEST(PerfettoWriter, HasAProcessPerNodeAndAThreadPerWorkerAndLink) {
  const Record record = of_two_nodes();
  const Json json = Json::parse(written(write_perfetto, record));
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  std::map<std::pair<int, int>, int> slices;
  const auto at = [](const Json& event) {
    return std::pair(event["pid"].get<int>(), event["tid"].get<int>());
  };
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "process_name")
      processes[event["pid"].get<int>()] = event["args"]["name"].get<std::string>();
    if (event["name"] == "thread_name")
      threads[at(event)] = event["args"]["name"].get<std::string>();
    if (event["ph"] == "X") ++slices[at(event)];
  }
  std::set<std::string> lanes;
  for (const auto& [thread, name] : threads) {
    lanes.insert(processes.at(thread.first) + ": " + name);
    EXPECT_GT(slices[thread], 0) << name;
  }
  EXPECT_EQ(lanes, (std::set<std::string>{"north: cpu 0 (cpu)", "south: cpu 0 (cpu)",
                                          "links: hill → south"}));
  EXPECT_EQ(slices.size(), threads.size());
}

TEST(CsvWriter, HasALinePerTask) {
  const std::string text = written(write_csv, toy_run({.steps = 2}));
  EXPECT_EQ(std::ranges::count(text, '\n'), 41);
  EXPECT_THAT(text, HasSubstr("id,step,job,phases"));
  const std::string odd = written(write_csv, sample());
  EXPECT_THAT(odd, HasSubstr("\"odd \"\"name\"\""));
}

std::string output_of(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const std::size_t length = std::fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, length);
  return ::pclose(pipe) == 0 ? text : "failed: " + text;
}

// pajeng's own reader is the judge (Debian: pajeng).
TEST(PajeWriter, HasContainersPerNodeAndLink) {
  const TemporaryFolder folder;
  const auto file = folder.file("trace.paje", written(write_paje, of_two_nodes()));
  const std::string dump = output_of("pj_dump '" + file.string() + "'");
  for (const char* container :
       {", Node, ", "north · cpu 0", "south · cpu 0", "hill → south", "Carrying"})
    EXPECT_THAT(dump, HasSubstr(container));
  EXPECT_THAT(dump, testing::Not(HasSubstr("north → hill"))) << "it carried nothing";
}

TEST(PajeWriter, LoadsInPajeng) {
  const TemporaryFolder folder;
  Record record = sample();
  // It tells microseconds.
  for (Task& task : record.tasks)
    for (Time* time : {&task.submit, &task.ready, &task.start, &task.end, &task.acquire})
      *time *= 1000;
  const auto file = folder.file("trace.paje", written(write_paje, record));
  const std::string dump = output_of("pj_dump '" + file.string() + "'");
  ASSERT_FALSE(dump.starts_with("failed")) << dump;
  int executing = 0, links = 0, workers = 0;
  double busy = 0;
  std::istringstream lines(dump);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("State") && line.find("Executing") != std::string::npos) {
      ++executing;
      // State, container, type, start, end, duration, ...
      std::istringstream fields(line);
      std::string field;
      for (int i = 0; i < 6; ++i) std::getline(fields, field, ',');
      busy += std::stod(field);
    }
    links += line.starts_with("Link");
    workers += line.starts_with("Container") && line.find(", Worker,") != std::string::npos;
  }
  EXPECT_EQ(workers, static_cast<int>(record.workers.size()));
  EXPECT_GT(links, 5);
  double expected = 0;
  int tasks = 0;
  for (const Task& task : record.tasks) {
    expected += seconds(task.duration());
    tasks += task.duration() > 0;
  }
  EXPECT_GE(executing, tasks);
  EXPECT_NEAR(busy, expected, 1e-9 * static_cast<double>(record.tasks.size()));
  for (const char* state : {"Sleeping", "Scheduling", "Overhead", "Idle", "Fetching Input"})
    EXPECT_THAT(dump, HasSubstr(state));
}

}  // namespace
}  // namespace regatta::trace
