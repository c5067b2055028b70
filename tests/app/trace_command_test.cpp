// Training with --trace, and what the commands make of the record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "app/tracing.h"
#include "base/files.h"
#include "base/json.h"
#include "support/error_text.h"
#include "support/file_size_limit.h"
#include "support/places.h"
#include "support/program_run.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"
#include "trace/analysis.h"
#include "trace/store.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::string> train_tiny(const fs::path& out, std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "train",    "--model", "tiny",      "--data", "synth:1x28x28/10@96", "--test", "none",
      "--epochs", "3",       "--batch",   "16",     "--workers",           "2",      "--chunks",
      "4",        "--out",   out.string()};
  // Two workers, whatever the profile of this machine says of so small a network.
  arguments.insert(arguments.end(), {"--granularity", "fixed"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// One traced run for all claims about it: 18 steps, of which the second half is recorded.
class TracedRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    run_ = new ProgramRun(run_regatta(train_tiny(path(), {"--trace", "ops"})));
  }
  static void TearDownTestSuite() {
    delete run_;
    delete folder_;
  }
  static fs::path path() { return folder_->path() / "run"; }
  static inline TemporaryFolder* folder_ = nullptr;
  static inline ProgramRun* run_ = nullptr;
};

TEST_F(TracedRun, EveryTaskOfTheWindowIsThereAndSound) {
  ASSERT_EQ(run_->code, 0) << run_->err;
  EXPECT_THAT(run_->out, HasSubstr("trace: "));
  EXPECT_THAT(run_->out, HasSubstr(" tasks of 9 steps"));
  const trace::Record record = trace::read_store(trace::store_of(path()));
  EXPECT_EQ(record.workers.size(), 2u);
  EXPECT_EQ(record.metadata.at("first_step"), "10");
  EXPECT_EQ(record.metadata.at("last_step"), "18");
  std::map<std::int64_t, int> tasks;
  for (const trace::Task& task : record.tasks) {
    ++tasks[task.step];
    EXPECT_LE(task.submit, task.ready);
    EXPECT_LE(task.ready, task.start);
    EXPECT_LE(task.start, task.end);
    EXPECT_GT(task.predicted, 0);
    EXPECT_GT(task.acquire, 0);
    EXPECT_GE(task.start - task.acquire, task.submit);
    const trace::TaskKind& kind = record.kind_of(task);
    EXPECT_EQ(kind.job, "train");
    EXPECT_FALSE(kind.phases.empty());
  }
  // Four chunks: four loads, four forward-backward, one reduce-update-pack.
  for (std::int64_t step = 10; step <= 18; ++step) EXPECT_EQ(tasks[step], 9) << step;
  // What a task waits for has ended before it starts.
  std::map<std::int64_t, const trace::Task*> by_id;
  for (const trace::Task& task : record.tasks) by_id[task.id] = &task;
  EXPECT_GT(record.dependencies.size(), 100u);
  for (const trace::Dependency& each : record.dependencies)
    if (by_id.contains(each.on)) {
      EXPECT_LE(by_id.at(each.on)->end, by_id.at(each.task)->start);
    }
  std::set<std::string> marks;
  for (const trace::Mark& mark : record.marks)
    marks.insert(mark.name + std::to_string(mark.number));
  for (const char* mark : {"step9", "step10", "step18", "epoch3"})
    EXPECT_TRUE(marks.contains(mark));
}

TEST_F(TracedRun, OperatorsLieInsideTheirTasks) {
  const trace::Record record = trace::read_store(trace::store_of(path()));
  ASSERT_FALSE(record.operators.empty());
  std::set<std::string> ops;
  const std::int64_t first = record.tasks.front().id;
  for (const trace::Operator& each : record.operators) {
    const trace::Task& task = record.tasks[static_cast<std::size_t>(each.task - first)];
    EXPECT_GE(each.start, task.start);
    EXPECT_LE(each.end, task.end);
    ops.insert(record.operator_kinds[static_cast<std::size_t>(each.kind)].op);
  }
  for (const char* op : {"conv", "dense", "load", "reduce", "update"})
    EXPECT_TRUE(ops.contains(op)) << op;
}

TEST_F(TracedRun, JoulesAreThereForEveryStepAndSayTheirSource) {
  const auto rows =
      trace::query(trace::store_of(path()), "SELECT step, source, joules FROM energy_by_step");
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows[1][0], "10");
  EXPECT_GE(std::stod(rows[1][2]), 0);
}

TEST_F(TracedRun, JsonAccountsForEveryWorker) {
  const fs::path file = folder_->path() / "trace.json";
  const ProgramRun run = run_regatta({"trace", path().string(), "--json", file.string()});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("why workers slept"));
  const Json json = read_json(file);
  const double wall = json["wall_s"];
  EXPECT_GT(wall, 0);
  double idle = 0, causes = 0;
  ASSERT_EQ(json["workers"].size(), 2u);
  for (const Json& worker : json["workers"]) {
    EXPECT_NEAR(worker["busy_s"].get<double>() + worker["idle_s"].get<double>() +
                    worker["overhead_s"].get<double>(),
                wall, 1e-9);
    idle += worker["idle_s"].get<double>();
  }
  for (const auto& [cause, value] : json["idle_causes"].items()) causes += value.get<double>();
  EXPECT_NEAR(idle, causes, 1e-9);
  EXPECT_LE(json["critical_path_s"].get<double>(), wall);
  EXPECT_LE(json["bound_s"].get<double>(), wall);
  EXPECT_GT(json["efficiency"].get<double>(), 0);
  EXPECT_LE(json["efficiency"].get<double>(), 1);
  EXPECT_EQ(json["steps"], 9);
  EXPECT_GE(json["tasks"].get<int>(), 70);
}

TEST_F(TracedRun, AWindowIsAPartOfTheWhole) {
  const fs::path file = folder_->path() / "window.json";
  ASSERT_EQ(
      run_regatta({"trace", path().string(), "--window", "12:14", "--json", file.string()}).code,
      0);
  EXPECT_EQ(read_json(file)["steps"], 3);
  EXPECT_EQ(run_regatta({"trace", path().string(), "--window", "1:2"}).code, 2);
  EXPECT_EQ(run_regatta({"trace", path().string(), "--window", "9:x"}).code, 2);
  EXPECT_EQ(run_regatta({"trace", path().string(), "--window", "5:4"}).code, 2);
}

TEST_F(TracedRun, ExportsAndQuestionsWork) {
  for (const char* format : {"perfetto", "paje", "csv"}) {
    const fs::path file = folder_->path() / format;
    const ProgramRun run =
        run_regatta({"trace", path().string(), "--to", format, "--out", file.string()});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_GT(fs::file_size(file), 1000u);
  }
  const ProgramRun asked =
      run_regatta({"trace", path().string(), "--sql", "SELECT phase, tasks FROM by_phase"});
  EXPECT_EQ(asked.code, 0);
  EXPECT_THAT(asked.out, HasSubstr("forward"));
  EXPECT_EQ(run_regatta({"trace", path().string(), "--sql", "DROP TABLE tasks"}).code, 2);
}

TEST_F(TracedRun, TheDoctorHasThreeFindingsWithGainAndFlag) {
  const fs::path file = folder_->path() / "doctor.json";
  const ProgramRun run = run_regatta({"doctor", path().string(), "--json", file.string()});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json findings = read_json(file)["findings"];
  ASSERT_EQ(findings.size(), 3u);
  double before = 1e9;
  for (const Json& finding : findings) {
    EXPECT_TRUE(finding["flag"].get<std::string>().starts_with("--"));
    EXPECT_LE(finding["gain"].get<double>(), 1);
    if (finding["predicted"].get<bool>()) continue;  // these come first, whatever they gain
    EXPECT_LE(finding["gain_s"].get<double>(), before);
    before = finding["gain_s"];
  }
  EXPECT_THAT(run.out, HasSubstr("1. "));
  EXPECT_THAT(run.out, HasSubstr("try --"));
}

TEST_F(TracedRun, SaysOfEveryStepWhatOthersTook) {
  const trace::Record record = trace::read_store(trace::store_of(path()));
  std::set<std::int64_t> steps;
  for (const trace::Counter& counter : record.counters)
    if (counter.name == trace::taken_counter) {
      EXPECT_GE(counter.value, 0);
      EXPECT_LE(counter.value, 1);
      steps.insert(counter.step);
    }
  // Where the kernel does not count, there is nothing to say.
  if (fs::exists("/proc/self/task/" + std::to_string(::gettid()) + "/schedstat")) {
    EXPECT_EQ(steps.size(), 9u);
  }
}

// The same run, but every moment of it a hundred times as late: the trace alone finds it as good as
// before, since all tasks are longer alike.
TEST(Doctor, TellsARunThatIsSlowerThanThisMachineShouldBe) {
  const TemporaryFolder folder;
  const ScopedVariable profiles("REGATTA_PROFILES", (folder.path() / "profiles").string());
  ASSERT_EQ(run_regatta({"calibrate", "--model", "tiny", "--batch", "16", "--workers", "2",
                         "--seconds", "0.5"})
                .code,
            0);
  const fs::path run = folder.path() / "run";
  ASSERT_EQ(run_regatta(train_tiny(run, {"--trace"})).code, 0);
  trace::Record record = trace::read_store(trace::store_of(run));
  const auto later = [](trace::Time& time) {
    if (time != trace::unknown) time *= 100;
  };
  for (trace::Task& task : record.tasks)
    for (trace::Time* time : {&task.submit, &task.ready, &task.start, &task.end, &task.acquire})
      later(*time);
  for (trace::Mark& mark : record.marks) later(mark.time);
  record.operators.clear();
  for (trace::Counter& counter : record.counters)
    if (counter.name == trace::taken_counter) counter.value = 0.8;
  fs::remove(trace::store_of(run));
  trace::write_store(run / trace::store_name, record);
  const fs::path json = folder.path() / "doctor.json";
  const ProgramRun done = run_regatta({"doctor", run.string(), "--json", json.string()});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json result = read_json(json);
  EXPECT_GT(result["step_s"].get<double>(), 2 * result["predicted_step_s"].get<double>());
  EXPECT_THAT(done.out, HasSubstr("times as long as it should"));
  EXPECT_THAT(done.out, HasSubstr("disturbed: others took 80% of the workers' CPU time"));
}

// A task for each operator and image, of a network whose operators take microseconds.
TEST(Doctor, NamesThePlanThatTheProfilePredictsToBeFaster) {
  const TemporaryFolder folder;
  const ScopedVariable profiles("REGATTA_PROFILES", (folder.path() / "profiles").string());
  ASSERT_EQ(run_regatta({"calibrate", "--model", "tiny", "--batch", "16", "--workers", "2",
                         "--seconds", "0.5"})
                .code,
            0);
  const fs::path run = folder.path() / "run", json = folder.path() / "doctor.json";
  ASSERT_EQ(run_regatta({"train",      "--model",   "tiny",     "--data",   "synth:1x28x28/10@96",
                         "--test",     "none",      "--epochs", "3",        "--batch",
                         "16",         "--workers", "2",        "--chunks", "16",
                         "--segments", "op",        "--trace",  "--out",    run.string()})
                .code,
            0);
  const ProgramRun done = run_regatta({"doctor", run.string(), "--json", json.string()});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json best = read_json(json)["findings"][0];
  EXPECT_TRUE(best["predicted"].get<bool>()) << done.out;
  EXPECT_THAT(best["finding"].get<std::string>(),
              HasSubstr("By the profile of this machine another plan takes"));
  EXPECT_TRUE(best["flag"].get<std::string>().starts_with("--")) << best;
  EXPECT_GT(best["gain"].get<double>(), 0.3);
}

TEST(TraceFlags, StepsAreChosenByHandOrAfterWarmUp) {
  using app::default_steps;
  EXPECT_EQ(default_steps(0, 100).first, 11);
  EXPECT_EQ(default_steps(0, 100).last, 30);
  EXPECT_EQ(default_steps(0, 8).first, 5);
  EXPECT_EQ(default_steps(0, 8).last, 8);
  EXPECT_EQ(default_steps(0, 1).first, 1);
  EXPECT_EQ(default_steps(50, 100).first, 61);
  EXPECT_EQ(app::parse_steps("--x", "7").last, 7);
  EXPECT_THAT(error_text([] { app::parse_steps("--x", "0:3"); }), HasSubstr("--x 0:3"));
  EXPECT_THAT(error_text([] { app::parse_steps("--x", "3:2"); }), HasSubstr("before the first"));
}

TEST(TraceFlags, WrongOnesLeaveNoRunBehind) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "run";
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--trace", "kernels"},
                                                {"--trace-steps", "90:99"},
                                                {"--trace-steps", "a"}}) {
    const ProgramRun run = run_regatta(train_tiny(out, flags));
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("--trace"));
    EXPECT_FALSE(fs::exists(out));
  }
}

TEST(TraceFlags, ARunOfEachReductionIsAccountedFor) {
  for (const char* reduction : {"loop", "redux", "slots"}) {
    const TemporaryFolder folder;
    const fs::path out = folder.path() / "run";
    // Both workers compute, however busy the machine is: of one alone there is nothing to reduce.
    const ProgramRun run =
        run_regatta(train_tiny(out, {"--trace", "--trace-steps", "1:18", "--reduction", reduction,
                                     "--placement", "hybrid"}));
    ASSERT_EQ(run.code, 0) << run.err;
    const trace::Record record = trace::read_store(trace::store_of(out));
    const trace::Analysis found = trace::analyse(record, trace::whole_window(record));
    EXPECT_EQ(found.steps, 18);
    for (const trace::WorkerUse& use : found.workers)
      EXPECT_EQ(use.busy + use.idle + use.overhead, found.wall());
    // StarPU's own reductions are tasks of the record too.
    EXPECT_EQ(std::string(reduction) == "redux",
              std::ranges::any_of(record.kinds, [](const trace::TaskKind& kind) {
                return kind.phases == "reduce" && kind.group.empty();
              }));
  }
}

TEST(TraceFlags, ATraceThatFindsNoRoomCostsNothingElse) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", result = folder.path() / "result.json";
  std::vector<std::string> arguments =
      train_tiny(run, {"--trace-steps", "1:240", "--trace", "ops", "--json", result.string()});
  *(std::ranges::find(arguments, "--epochs") + 1) = "40";
  const FileSizeLimit full(100'000);
  const ProgramRun done = run_regatta(arguments);
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("trace.sqlite"));
  EXPECT_TRUE(read_json(result).contains("energy"));
  EXPECT_TRUE(read_json(run / "run.json").contains("speed"));
  for (const auto& each : fs::directory_iterator(run))
    EXPECT_THAT(each.path().filename().string(), testing::Not(HasSubstr(".part")));
}

TEST(TraceCommand, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(run_regatta({"trace", folder.path().string()}).err,
              HasSubstr("record one with regatta train --trace"));
  EXPECT_THAT(run_regatta({"trace"}).err, HasSubstr("give either a RUN or --import FILE"));
  EXPECT_EQ(run_regatta({"doctor", folder.path().string()}).code, 2);
  const auto file = folder.file("bad.trace", "no trace");
  EXPECT_THAT(run_regatta({"trace", "--import", file.string()}).err, HasSubstr("not a Paje trace"));
  EXPECT_FALSE(fs::exists(file.string() + ".sqlite"));
}

TEST(TraceCommand, ImportsStarPUsOwnTrace) {
  const TemporaryFolder folder;
  const std::string store = (folder.path() / "starpu.sqlite").string();
  const ProgramRun run = run_regatta(
      {"trace", "--import", (test_files() / "tests/trace/data/starpu-1.4-paje.trace").string(),
       "--out", store});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("37 tasks"));
  EXPECT_EQ(run_regatta({"doctor", store}).code, 0);
}

}  // namespace
}  // namespace regatta
