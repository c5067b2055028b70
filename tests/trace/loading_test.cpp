#include "trace/loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/bound.h"
#include "trace/doctor.h"

namespace regatta::trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Loading, TheLongestStageBringsTheWayOut) {
  const LoadingTimes decoding{.reading = 1, .decoding = 7, .transforms = 2};
  EXPECT_EQ(longest_stage(decoding), LoadStage::decoding);
  EXPECT_EQ(advice_on(decoding, "folder:my photos").what, "decoding takes 70% of loading");
  EXPECT_EQ(advice_on(decoding, "folder:my photos").fix,
            "regatta data prepare 'folder:my photos' decodes once");
  EXPECT_THAT(advice_on({.transforms = 1}, "folder:x").fix, HasSubstr("prepare folder:x resizes"));
  EXPECT_THAT(advice_on({.transforms = 1}, "shards:x").fix,
              AllOf(HasSubstr("a cheaper --augment"), Not(HasSubstr("prepare"))));
  EXPECT_THAT(advice_on({.reading = 2, .disk_bytes = 50e6}, "shards:x").what,
              HasSubstr("100% of loading, with 25 MB/s from the disk"));
  EXPECT_THAT(advice_on({.reading = 2}, "shards:x").fix, HasSubstr("in memory: more --workers"));
  EXPECT_THAT(advice_on({.wire = 1}, "npy:x,y").what, HasSubstr("the way to the GPU"));
  EXPECT_THAT(advice_on({.other = 1}, "mnist").what, HasSubstr("making samples up"));
}

TEST(Loading, NumbersComeBackFromJson) {
  const LoadingTimes times{
      .reading = 1, .decoding = 2, .transforms = 3, .wire = 4, .other = 5, .disk_bytes = 6};
  const Json json = to_json(times);
  EXPECT_DOUBLE_EQ(json["seconds"].get<double>(), 15);
  EXPECT_DOUBLE_EQ(json["decoding"].get<double>(), 2.0 / 15);
  const LoadingTimes back = loading_times(json);
  EXPECT_DOUBLE_EQ(back.wire, 4);
  EXPECT_DOUBLE_EQ(back.other, 5);
  EXPECT_DOUBLE_EQ(back.disk_bytes, 6);
  EXPECT_EQ(to_json(LoadingTimes{})["decoding"], 0.0);
}

// One worker for ten steps of 100 ns: it loads `load` ns, computes `compute`, and sleeps.
Record steps_of(Time load, Time compute) {
  Record record;
  record.workers = {{"cpu 0", "cpu", "here", "cpu"}};
  record.kinds = {{.job = "train", .phases = "load", .group = "cpu"},
                  {.job = "train", .phases = "forward+backward+update", .group = "cpu"}};
  for (std::int64_t step = 0; step < 10; ++step) {
    const Time begin = step * 100, loaded = begin + load;
    const auto task = [&](std::int64_t id, std::int32_t kind, Time ready, Time start, Time end) {
      record.tasks.push_back({.id = 2 * step + id,
                              .kind = kind,
                              .worker = 0,
                              .step = step + 1,
                              .submit = 0,
                              .ready = ready,
                              .start = start,
                              .end = end});
    };
    task(0, 0, begin, begin, loaded);
    task(1, 1, loaded, begin + 100 - compute, begin + 100);
    record.dependencies.push_back({2 * step + 1, 2 * step});
    record.marks.push_back({"step", step + 1, begin + 100});
  }
  return record;
}

void add_loading(Record& record, const LoadingTimes& times, double waited_s) {
  for (std::int64_t step = 1; step <= 10; ++step)
    add_counters(times, waited_s, step, 100 * step,
                 [&](const Counter& counter) { record.counters.push_back(counter); });
}

TEST(Loading, ARecordTellsItOfTheStepsOfAWindow) {
  Record record = steps_of(60, 30);
  const Window whole = window_of_steps(record, 1, 10);
  EXPECT_FALSE(loading_in(record, whole));
  EXPECT_THAT(loader_text(loading_in(record, whole), 1e-6, ""), HasSubstr("not available"));
  EXPECT_TRUE(loader_json(loading_in(record, whole), 1e-6, "").is_null());
  add_loading(record, {.reading = 20e-9, .decoding = 40e-9, .disk_bytes = 5}, 60e-9);
  const auto found = loading_in(record, window_of_steps(record, 3, 4));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->waited_s, 120e-9, 1e-15);
  EXPECT_NEAR(found->times.decoding, 80e-9, 1e-15);
  EXPECT_NEAR(found->times.disk_bytes, 10, 1e-9);
  EXPECT_THAT(loader_text(found, 200e-9, "folder:x"),
              AllOf(HasSubstr("waited for data 60.0% of the time"),
                    HasSubstr("decoding takes 67% of loading")));
  EXPECT_EQ(loader_json(found, 200e-9, "folder:x").at("bottleneck"), "decoding");
  EXPECT_NEAR(loader_json(found, 200e-9, "folder:x").at("data_wait").get<double>(), 0.6, 1e-9);
}

TEST(Loading, RanksWaitSideBySide) {
  Record record = steps_of(60, 30);
  add_loading(record, {.reading = 20e-9}, 60e-9);
  add_loading(record, {.reading = 10e-9}, 40e-9);  // of a second rank
  const auto found = loading_in(record, whole_window(record));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->waited_s, 500e-9, 1e-15);
  EXPECT_NEAR(found->times.reading, 300e-9, 1e-15);
}

TEST(Loading, TheDoctorNamesTheStageAndItsWayOut) {
  Record record = steps_of(60, 30);
  record.metadata["recipe"] = R"({"data": "folder:x", "batch": 4})";
  add_loading(record, {.reading = 10e-9, .decoding = 50e-9}, 60e-9);
  const std::vector<Finding> found = diagnose(record, analyse(record, whole_window(record)));
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found.front().what, AllOf(HasSubstr("loaded samples or waited for them"),
                                        HasSubstr("decoding takes 83% of loading")));
  EXPECT_EQ(found.front().fix, "To load faster: regatta data prepare folder:x decodes once.");
  EXPECT_EQ(found.front().flag, "--data shards:DIR");
  EXPECT_NEAR(found.front().gain, 0.6, 1e-6);
}

std::string verdict(const Record& record) {
  const auto bound = bound_of(record, analyse(record, whole_window(record)));
  return bound ? std::string(bound_name(bound->bound)) : "";
}

TEST(Bound, IsWhatTakesMostOfTheWorkersTime) {
  EXPECT_EQ(verdict(steps_of(60, 40)), "starved by I/O");
  EXPECT_EQ(verdict(steps_of(10, 90)), "bound by computing");
  // The task is ready all the time, but is not started.
  EXPECT_EQ(verdict(steps_of(10, 20)), "launch-bound");
  const Record loading = steps_of(60, 40);
  const auto shares = bound_of(loading, analyse(loading, whole_window(loading)));
  EXPECT_NEAR(shares->loading, 0.6, 1e-9);
  EXPECT_NEAR(shares->computing, 0.4, 1e-9);
  EXPECT_NEAR(shares->computing + shares->loading + shares->launching + shares->waiting, 1, 1e-9);
  EXPECT_FALSE(bound_of(Record{}, Analysis{}));
}

TEST(Bound, OperatorsTellArithmeticFromMemory) {
  Record record = steps_of(10, 90);
  EXPECT_THAT(text_of(*bound_of(record, analyse(record, whole_window(record)))),
              HasSubstr("not available without --trace ops"));
  record.operator_kinds = {{"a", "conv", "forward"},
                           {"b", "batch_norm", "forward"},
                           {"load", "load", "load"},
                           {"a", "conv", "pack"}};
  const auto add = [&](std::int32_t kind, Time start, Time end) {
    record.operators.push_back({1, kind, 0, start, end});
  };
  add(2, 0, 10);
  add(3, 10, 40);
  add(0, 40, 50);
  add(1, 50, 80);
  const auto shares = bound_of(record, analyse(record, whole_window(record)));
  EXPECT_EQ(shares->bound, Bound::memory);
  EXPECT_NEAR(*shares->arithmetic, 0.9 / 4, 1e-9);
  EXPECT_NEAR(*shares->streaming, 0.9 * 3 / 4, 1e-9);
  EXPECT_EQ(to_json(*shares).at("by"), "memory-bound");
  record.operators.back().end = 55;
  EXPECT_EQ(verdict(record), "compute-bound");
}

}  // namespace
}  // namespace regatta::trace
