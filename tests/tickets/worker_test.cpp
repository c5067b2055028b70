// Workers against each other on files that misbehave, in simulated time: every job is done once.
#include "tickets/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "base/random.h"
#include "tickets/faulty_files.h"

namespace regatta::tickets {
namespace {

constexpr double job_seconds = 8, checkpoint_seconds = 2;

Search small_search() {
  Search search;
  search.last_step = 8;
  search.samples_per_step = 1;
  search.steps_per_epoch = 8;
  search.seeds = {1, 2};
  search.resets = {0};
  search.levels = 3;
  search.lease = Seconds{30};
  search.jobs = make_jobs(search);
  return search;
}

// What training leaves on disk, by job and claim; and how often which part was trained.
struct Trained {
  std::map<std::pair<std::size_t, int>, double> saved;  // seconds of work in the last checkpoint
  double spent = 0;                                     // by all workers together
};

class FakeJob : public RunningJob {
 public:
  FakeJob(Store& store, Trained& trained, std::size_t job, int claim, double speed)
      : store_(store), trained_(trained), key_(job, claim), speed_(speed), last_(store.time) {
    for (int earlier = 1; earlier < claim; ++earlier)
      done_ = std::max(done_, trained.saved[{job, earlier}]);
  }

  std::optional<Outcome> poll() override {
    const double step = (store_.time - last_).count() * speed_;
    last_ = store_.time;
    done_ += step;
    trained_.spent += step;
    double& saved = trained_.saved[key_];
    saved = std::max(saved, std::floor(done_ / checkpoint_seconds) * checkpoint_seconds);
    if (done_ >= job_seconds)
      return Outcome{.result = {{"outcome", key_.first}}, .images_per_s = speed_};
    if (stopped_) {
      saved = done_;
      return Outcome{.kind = Outcome::Kind::stopped};
    }
    return std::nullopt;
  }
  void stop() override { stopped_ = true; }

 private:
  Store& store_;
  Trained& trained_;
  std::pair<std::size_t, int> key_;
  double speed_, done_ = 0;
  Seconds last_;
  bool stopped_ = false;
};

class FakeTrainer : public Trainer {
 public:
  FakeTrainer(Store& store, Trained& trained, double speed)
      : store_(store), trained_(trained), speed_(speed) {}
  std::unique_ptr<RunningJob> start(const SearchFolder& folder, std::size_t job, int claim,
                                    int) override {
    if (full_disk)
      throw InputError("cannot write 'mask.safetensors': " + std::string(std::strerror(ENOSPC)));
    // No worker begins a job that has a result, whatever it believes to see.
    for (int number = claim + 1; number < claim + 3; ++number) {
      char name[32];
      std::snprintf(name, sizeof name, "log-%04d.json", number);
      const auto path = job_folder(folder.path(), folder.jobs()[job].id) / name;
      if (const auto at = store_.files.find(path.string()); at != store_.files.end()) {
        EXPECT_EQ(at->second.bytes.find("\"result\""), std::string::npos);
      }
    }
    return std::make_unique<FakeJob>(store_, trained_, job, claim, speed_);
  }

  bool full_disk = false;  // where jobs are prepared

 private:
  Store& store_;
  Trained& trained_;
  double speed_;
};

// A process on a machine of its own.
struct Process {
  Process(Store& store, Trained& trained, const std::string& name, double speed, Seconds offset)
      : files(store, offset),
        folder(files, "search"),
        trainer(store, trained, speed),
        worker(std::make_unique<Worker>(
            files, folder, trainer, WorkerOptions{.name = name, .machine = name.substr(0, 1)})) {}

  void kill() {
    files.cut_off = true;  // not even a farewell
    worker.reset();
  }

  FaultyFiles files;
  SearchFolder folder;
  FakeTrainer trainer;
  std::unique_ptr<Worker> worker;
  Seconds asleep_until{0};
  bool ended = false;
};

class Workers : public testing::Test {
 protected:
  Workers() {
    FaultyFiles files(store);
    SearchFolder::write(files, "search", search);
    store.time = Seconds{1};
  }

  std::unique_ptr<Process> process(const std::string& name, double speed = 1,
                                   Seconds offset = Seconds{0}) {
    auto made = std::make_unique<Process>(store, trained, name, speed, offset);
    return made;
  }

  // A tenth of a second for all of them. True while one has something to do.
  bool tick(std::vector<std::unique_ptr<Process>>& all) {
    store.time += Seconds{0.1};
    bool busy = false;
    for (auto& each : all) {
      if (!each->worker || each->ended || store.time < each->asleep_until) continue;
      each->ended = !each->worker->round();
      busy |= !each->ended;
    }
    return busy;
  }

  void run(std::vector<std::unique_ptr<Process>>& all) {
    for (int ticks = 0; tick(all); ++ticks) ASSERT_LT(ticks, 100000) << "it never ends";
  }

  // Every job has one result, which is its log's last entry.
  void expect_all_done() {
    FaultyFiles files(store);
    SearchFolder folder(files, "search");
    folder.refresh();
    for (std::size_t job = 0; job < folder.jobs().size(); ++job) {
      const JobState& state = folder.state(job);
      EXPECT_TRUE(state.done()) << folder.jobs()[job].id;
      EXPECT_EQ(std::ranges::count(state.entries, EntryKind::result, &LogEntry::kind), 1);
    }
  }

  double all_work() const { return job_seconds * static_cast<double>(search.jobs.size()); }

  const Search search = small_search();
  Store store;
  Trained trained;
};

TEST_F(Workers, OneDoesAllJobsInOrder) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("a"));
  run(all);
  expect_all_done();
  EXPECT_NEAR(trained.spent, all_work(), 0.1 * all_work());
}

TEST_F(Workers, SeveralShareTheJobsAndNothingIsTrainedTwice) {
  std::vector<std::unique_ptr<Process>> all;
  for (const char* name : {"a", "b", "c"}) all.push_back(process(name));
  run(all);
  expect_all_done();
  EXPECT_NEAR(trained.spent, all_work(), 0.1 * all_work());
  EXPECT_LT(store.time.count(), 0.6 * all_work());
}

TEST_F(Workers, ClocksMayBeAnHourApart) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("a", 1, Seconds{3600}));
  all.push_back(process("b", 1, Seconds{-3600}));
  run(all);
  expect_all_done();
  EXPECT_NEAR(trained.spent, all_work(), 0.1 * all_work());
}

TEST_F(Workers, ADeadWorkersJobGoesOnFromItsLastCheckpoint) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("a"));
  for (int i = 0; i < 50; ++i) tick(all);  // 5 seconds into the first job
  all.front()->kill();
  all.push_back(process("b"));
  run(all);
  expect_all_done();
  EXPECT_NEAR(trained.spent, all_work() + 1, 0.1 * job_seconds * 14);
}

TEST_F(Workers, OneThatIsAskedToStopGivesItsJobBackAtOnce) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("a"));
  for (int i = 0; i < 50; ++i) tick(all);
  all.front()->worker->stop();
  run(all);
  EXPECT_TRUE(all.front()->ended);
  const double before = store.time.count();
  all.front()->worker.reset();
  all.push_back(process("b"));
  run(all);
  expect_all_done();
  EXPECT_LT(store.time.count() - before, all_work() + 5) << "no lease had to run out";
}

TEST_F(Workers, OneThatSleptLongerThanTheLeaseLosesItsJobAndFindsOut) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("a"));
  for (int i = 0; i < 30; ++i) tick(all);
  all.front()->asleep_until = store.time + Seconds{60};
  all.push_back(process("b"));
  run(all);
  expect_all_done();
}

TEST_F(Workers, AFullDiskIsWaitedOutForAWhileAndThenEndsTheWorker) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("a"));
  for (int i = 0; i < 30; ++i) tick(all);
  all.front()->files.full = true;
  for (int i = 0; i < 200; ++i) tick(all);
  all.front()->files.full = false;
  for (int i = 0; i < 30; ++i) tick(all);
  all.front()->files.full = true;
  EXPECT_THROW(run(all), InputError);
  all.clear();
  all.push_back(process("b"));
  run(all);
  expect_all_done();
}

TEST_F(Workers, AFullDiskWhileAJobIsPreparedEndsTheWorkerAndNotTheJob) {
  for (const char* name : {"a", "b", "c"}) {  // more often than a job may fail
    std::vector<std::unique_ptr<Process>> all;
    all.push_back(process(name));
    all.front()->trainer.full_disk = true;
    EXPECT_THROW(run(all), InputError);
  }
  FaultyFiles files(store);
  SearchFolder folder(files, "search");
  folder.refresh();
  for (std::size_t job = 0; job < folder.jobs().size(); ++job) {
    EXPECT_EQ(folder.state(job).failures(), 0);
    EXPECT_FALSE(folder.state(job).claimed()) << "it was given back";
  }
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("d"));
  run(all);
  expect_all_done();
}

TEST_F(Workers, AnAnswerThatWasLostDoesNotLoseTheClaim) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("a"));
  all.front()->files.lose_answers = 1;
  run(all);
  expect_all_done();
  EXPECT_NEAR(trained.spent, all_work(), 0.1 * all_work());
}

// A result that is on its way for longer than the lease: meanwhile the job is taken over and done.
TEST_F(Workers, AStalledResultOfAJobThatWasTakenOverCountsForNothing) {
  std::vector<std::unique_ptr<Process>> all, others;
  all.push_back(process("a"));
  for (int i = 0; i < 30; ++i) tick(all);
  std::filesystem::path late;
  all.front()->files.stall = [&](const std::filesystem::path& path) {
    late = path;
    others.push_back(process("b"));
    for (int i = 0; i < 600; ++i) tick(others);  // a minute
  };
  while (others.empty()) tick(all);
  ASSERT_TRUE(store.files.contains(late.string()));
  EXPECT_NE(store.files[late.string()].bytes.find("\"claim\""), std::string::npos)
      << "the other worker's claim stands where the result was to go";
  EXPECT_NE(store.files[late.string()].bytes.find("\"b\""), std::string::npos);
  all.push_back(std::move(others.front()));
  run(all);
  expect_all_done();
  EXPECT_NEAR(trained.spent, all_work() + 2, 0.1 * all_work()) << "no more than one job's rest";
}

// Its claims stand in the logs, but nobody sees it count.
TEST_F(Workers, OneWhoseLeaseIsLostLosesItsJobsAndStopsWorkingOnThem) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("slow", 0.1));  // a job takes it 80 seconds
  all.front()->files.mute = true;
  for (int i = 0; i < 20; ++i) tick(all);
  all.push_back(process("b"));
  run(all);
  expect_all_done();
  FaultyFiles files(store);
  SearchFolder folder(files, "search");
  folder.refresh();
  const JobState& first = folder.state(0);
  EXPECT_EQ(first.entries.front().worker, "slow");
  EXPECT_EQ(first.last().worker, "b") << "it was taken over when the lease had run out";
  EXPECT_LT(trained.spent, all_work() + 2 * 80 * 0.1 * static_cast<double>(search.jobs.size()));
}

TEST_F(Workers, OneThatSeesOldFilesDoesNoWorkOfOthersTwice) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("a"));
  all.push_back(process("b"));
  all.back()->files.stale = Seconds{45};  // longer than the lease
  run(all);
  expect_all_done();
  EXPECT_NEAR(trained.spent, all_work(), 0.1 * all_work());
}

TEST_F(Workers, AHeartbeatThatVanishesFromTheDiskForAMomentCostsNothing) {
  std::vector<std::unique_ptr<Process>> all;
  for (const char* name : {"a", "b"}) all.push_back(process(name));
  for (int ticks = 0; tick(all); ++ticks) {
    ASSERT_LT(ticks, 100000) << "it never ends";
    if (ticks % 70 == 0)
      for (const char* name : {"a", "b"})
        store.files.erase(heartbeat_file("search", name).string());
  }
  expect_all_done();
  EXPECT_NEAR(trained.spent, all_work(), 0.1 * all_work());
}

TEST_F(Workers, FasterOnesDoMore) {
  std::vector<std::unique_ptr<Process>> all;
  all.push_back(process("f", 4));
  all.push_back(process("s", 1));
  run(all);
  expect_all_done();
  // The heterogeneous ideal is work / 5; jobs are whole and wait for each other.
  EXPECT_LT(store.time.count(), 1.5 * all_work() / 5);
}

// Random kills, sleeps, restarts, full disks, lost answers and old listings.
TEST_F(Workers, NothingIsLostOrDoneTwiceWhateverHappens) {
  int all_kills = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    store = Store{};
    trained = Trained{};
    FaultyFiles files(store);
    SearchFolder::write(files, "search", search);
    store.time = Seconds{1};
    std::uint64_t draws = 0;
    const auto chance = [&](double share) {
      return random_uniform(seed, stream_of("faults"), draws++) < share;
    };
    int started = 0, kills = 0;
    std::vector<std::unique_ptr<Process>> all;
    const auto fresh = [&] {
      const double speed = 1 + static_cast<double>(started % 3);
      auto made = process(std::to_string(started % 4) + "-" + std::to_string(started), speed,
                          Seconds{1000.0 * started});
      ++started;
      made->files.stale = Seconds{chance(0.3) ? 5.0 : 0.0};
      return made;
    };
    for (int i = 0; i < 4; ++i) all.push_back(fresh());
    for (int ticks = 0; ticks < 100000; ++ticks) {
      bool busy = false;
      try {
        busy = tick(all);
      } catch (const InputError&) {
        busy = true;  // a full disk ended one; it is started again below
        for (auto& each : all)
          if (each->files.full) each->kill();
      }
      if (!busy && std::ranges::all_of(all, [](const auto& each) { return each->ended; })) break;
      for (auto& each : all) {
        if (!each->worker) {
          if (chance(0.02)) each = fresh();
          continue;
        }
        if (each->ended || kills >= 40) {
          each->files.full = false;
          continue;
        }
        if (chance(0.004)) {
          each->kill();
          ++kills;
        } else if (chance(0.003)) {
          each->asleep_until = store.time + Seconds{chance(0.5) ? 5.0 : 60.0};
        } else if (chance(0.003)) {
          each->files.lose_answers = 1;
        } else if (chance(0.003)) {
          each->files.full = !each->files.full;
        }
      }
    }
    expect_all_done();
    if (HasFailure()) return;
    all_kills += kills;
  }
  EXPECT_GE(all_kills, 20);
}

}  // namespace
}  // namespace regatta::tickets
