// What a search found, from the logs of its jobs.
#include "tickets/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "tickets/faulty_files.h"
#include "tickets/line.h"
#include "tickets/status.h"

namespace regatta::tickets {
namespace {

using testing::HasSubstr;

class Found : public testing::Test {
 protected:
  Found() {
    search.last_step = 10;
    search.samples_per_step = 10;
    search.steps_per_epoch = 5;
    search.seeds = {1, 2};
    search.resets = {0, 5};
    search.levels = 2;
    search.rate = 0.5;
    search.jobs = make_jobs(search);
    SearchFolder::write(files, "search", search);
    folder.emplace(files, "search");
  }

  // Jobs of two workers, one after the other; tickets of the last level beat their controls.
  void finish(std::size_t job, double accuracy) {
    const std::string worker = job % 2 == 0 ? "a" : "b";
    JobLog& log = folder->log(job);
    const double at = 100 + 10 * static_cast<double>(job / 2);
    log.append(1, {EntryKind::claim, worker, {{"at", at}, {"machine", worker}}});
    log.append(2, {EntryKind::result,
                   worker,
                   {{"at", at + 10},
                    {"machine", worker},
                    {"claim", 1},
                    {"seconds", 10.0},
                    {"images_per_s", worker == "a" ? 10.0 : 5.0},
                    {"joules", 3.0},
                    {"outcome",
                     {{"density", folder->jobs()[job].keep},
                      {"test_accuracy", accuracy},
                      {"layers", {{{"name", "conv"}, {"weights", 4}, {"kept", 1}}}}}}}});
  }

  void finish_all() {
    for (std::size_t job = 0; job < search.jobs.size(); ++job) {
      const Job& its = search.jobs[job];
      const double seed = 0.01 * static_cast<double>(its.seed);
      const double good = its.kind == JobKind::ticket && its.level == 2 ? 0.2 : 0;
      finish(job, 0.5 + seed + good);
    }
  }

  Search search;
  Store store;
  FaultyFiles files{store};
  std::optional<SearchFolder> folder;
};

TEST_F(Found, CellsHaveMeanAndRangeOverSeeds) {
  finish_all();
  const Results results = results_of(*folder);
  const Cell* cell = results.find(JobKind::ticket, 5, 2);
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->seeds, 2);
  EXPECT_NEAR(cell->mean, 0.715, 1e-12);
  EXPECT_NEAR(cell->low, 0.71, 1e-12);
  EXPECT_NEAR(cell->high, 0.72, 1e-12);
  EXPECT_DOUBLE_EQ(cell->density, 0.25);
  // A control with new weights starts at step 0, and still stands beside its ticket.
  EXPECT_NE(results.find(JobKind::fresh, 5, 2), nullptr);
  // The first level's mask is the same at both reset points.
  EXPECT_NE(results.find(JobKind::fresh, 0, 1), nullptr);
  EXPECT_NE(results.find(JobKind::fresh, 5, 1), nullptr);
}

TEST_F(Found, TicketsWinWhereTheWorstBeatsTheBestControl) {
  finish_all();
  const Results results = results_of(*folder);
  ASSERT_EQ(results.wins.size(), 4u);  // two reset points, two controls
  for (const Win& win : results.wins) {
    EXPECT_EQ(win.level, 2);
    EXPECT_NEAR(win.margin, 0.2, 1e-12);
    EXPECT_NEAR(win.spread, 0.01, 1e-12);
  }
}

TEST_F(Found, SpeedUpIsAgainstTheFastestWorkerAlone) {
  finish_all();
  const Scaling scaling = results_of(*folder).scaling;
  EXPECT_EQ(scaling.workers, 2u);
  EXPECT_DOUBLE_EQ(scaling.ideal, 1.5);
  double images = 0;
  for (const Job& job : search.jobs) images += static_cast<double>(job.steps * 10);
  EXPECT_DOUBLE_EQ(scaling.work_s, images / 10);
  EXPECT_DOUBLE_EQ(scaling.speed_up, scaling.work_s / scaling.span_s);
  ASSERT_GE(scaling.curve.size(), 4u);
  EXPECT_DOUBLE_EQ(scaling.curve.front().planned, 1);
  for (const Scaling::Point& point : scaling.curve) {
    EXPECT_LE(point.planned, point.workers + 1e-9);
    EXPECT_LE(point.amdahl, point.workers + 1e-9);
  }
}

// One worker that does two jobs at a time, each at 5 images a second.
TEST_F(Found, AWorkersSpeedIsThatOfItsJobsSideBySide) {
  double images = 0, at = 100;
  for (std::size_t job = 0; job < search.jobs.size(); job += 2, at += 20)
    for (const std::size_t each : {job, job + 1}) {
      images += static_cast<double>(search.jobs[each].steps * 10);
      JobLog& log = folder->log(each);
      log.append(1, {EntryKind::claim, "a", {{"at", at}}});
      log.append(2, {EntryKind::result,
                     "a",
                     {{"at", at + 20},
                      {"claim", 1},
                      {"images_per_s", 5.0},
                      {"outcome", {{"test_accuracy", 0.5}}}}});
    }
  const Scaling scaling = results_of(*folder).scaling;
  EXPECT_DOUBLE_EQ(scaling.ideal, 1);
  EXPECT_DOUBLE_EQ(scaling.work_s, images / 10);
  EXPECT_LE(scaling.of_ideal, 1);
  EXPECT_DOUBLE_EQ(scaling.of_ideal, scaling.speed_up);
}

// Two sittings with a night in between, each with a worker of its own on the same machine.
TEST_F(Found, AWorkerThatIsStartedAgainIsTheSameOneAndPausesDoNotCount) {
  double images = 0, at = 100;
  for (std::size_t job = 0; job < search.jobs.size(); ++job, at += 10) {
    if (job == search.jobs.size() / 2) at += 30000;
    const std::string worker = at < 30000 ? "evening" : "morning";
    images += static_cast<double>(search.jobs[job].steps * 10);
    JobLog& log = folder->log(job);
    log.append(1, {EntryKind::claim, worker, {{"at", at}, {"machine", "m"}}});
    log.append(2, {EntryKind::result,
                   worker,
                   {{"at", at + 10},
                    {"machine", "m"},
                    {"claim", 1},
                    {"images_per_s", 10.0},
                    {"outcome", {{"test_accuracy", 0.5}}}}});
  }
  const Scaling scaling = results_of(*folder).scaling;
  EXPECT_EQ(scaling.workers, 1u);
  EXPECT_DOUBLE_EQ(scaling.ideal, 1);
  EXPECT_DOUBLE_EQ(scaling.pauses_s, 30000);
  EXPECT_DOUBLE_EQ(scaling.span_s, 10 * static_cast<double>(search.jobs.size()));
  EXPECT_DOUBLE_EQ(scaling.work_s, images / 10);
}

// Worker "a" computes longer than a lease, while "b" finishes one job, rests, and finishes another.
TEST_F(Found, AJobThatIsUnderWayIsNoPause) {
  folder->log(0).append(1, {EntryKind::claim, "a", {{"at", 105.0}}});
  double at = 100;
  for (const std::size_t job : {1, 2}) {
    JobLog& log = folder->log(job);
    log.append(1, {EntryKind::claim, "b", {{"at", at}}});
    log.append(2, {EntryKind::result,
                   "b",
                   {{"at", at + 10},
                    {"claim", 1},
                    {"images_per_s", 10.0},
                    {"outcome", {{"test_accuracy", 0.5}}}}});
    at += 30000;
  }
  const Scaling scaling = results_of(*folder).scaling;
  EXPECT_DOUBLE_EQ(scaling.pauses_s, 0);
  EXPECT_DOUBLE_EQ(scaling.span_s, 30010);
}

TEST_F(Found, CsvHasALineForEveryJobThatIsDone) {
  finish(0, 0.5);
  finish(1, 0.25);
  const std::string csv = results_csv(results_of(*folder));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
  EXPECT_THAT(csv, HasSubstr("seed1-dense,dense,1,0,0,1,0.5,"));
}

TEST_F(Found, StatusTellsWhatIsLeftAndHowLongItTakes) {
  finish(0, 0.5);
  Heartbeat heartbeat;
  heartbeat.images_per_s = 10;
  const SearchStatus status = status_of(*folder, {{"a", heartbeat}}, {"a"});
  EXPECT_EQ(status.done, 1u);
  EXPECT_EQ(status.open(), search.jobs.size() - 1);
  double images = 0;
  for (std::size_t job = 1; job < search.jobs.size(); ++job)
    images += static_cast<double>(search.jobs[job].steps * 10);
  ASSERT_TRUE(status.left);
  EXPECT_NEAR(status.left->count(), images / 10, 1e-9);
  EXPECT_THAT(status_text(status), HasSubstr("1 done"));
}

TEST_F(Found, AFailedJobTakesThoseThatWaitForItAlong) {
  for (int i = 0; i < most_failures; ++i) {
    JobLog& log = folder->log(0);
    log.append(log.state().next(), {EntryKind::claim, "a", {}});
    log.append(log.state().next(), {EntryKind::failed, "a", {{"why", "the loss is nan"}}});
  }
  const SearchStatus status = status_of(*folder, {}, {});
  EXPECT_EQ(status.hopeless, search.jobs.size() / 2);  // all of the first seed
  EXPECT_THAT(status_text(status), HasSubstr("the loss is nan"));
  EXPECT_FALSE(folder->over());
  for (std::size_t job = 0; job < search.jobs.size(); ++job)
    if (search.jobs[job].seed == 2) finish(job, 0.5);
  EXPECT_THAT(status_text(status_of(*folder, {}, {})), HasSubstr("--again"));
}

TEST(Line, HalfWayIsTheMean) {
  const auto file = [](float value) {
    TensorFile made;
    made.tensors.push_back({"w", Dtype::f32, {1}, std::string(4, '\0')});
    std::memcpy(made.tensors[0].bytes.data(), &value, 4);
    return made;
  };
  float middle = 0;
  const TensorFile mixed = between(file(1), file(4), 0.5);
  std::memcpy(&middle, mixed.tensors[0].bytes.data(), 4);
  EXPECT_EQ(middle, 2.5f);
  TensorFile other = file(1);
  other.tensors[0].name = "v";
  EXPECT_THROW(between(file(1), other, 0.5), InputError);
}

TEST(Line, TheBarrierIsTheHighestPointAboveTheMeanOfTheEnds) {
  EXPECT_DOUBLE_EQ(barrier({0.25, 0.75, 0.5}), 0.375);
  EXPECT_DOUBLE_EQ(barrier({0.25, 0.25, 0.25}), 0);
}

}  // namespace
}  // namespace regatta::tickets
