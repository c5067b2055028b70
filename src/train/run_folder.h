// What a run leaves behind: run.json, metrics.jsonl, test.json, TensorBoard events, checkpoints.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "trace/step_curve.h"
#include "train/checkpoint_policy.h"
#include "train/events.h"
#include "train/job.h"
#include "train/loop.h"
#include "train/metrics_file.h"

namespace regatta {

// Two processes must not train one run. The lock goes with its process, however that ends.
class RunLock {
 public:
  // Throws InputError if another process holds it.
  explicit RunLock(const std::filesystem::path& folder);

 private:
  Descriptor folder_;
};

// The folder of a run that is about to start, and its lock. Unless it is kept, it goes away again,
// with whatever is in it and the parents that were made for it: a run that fails to start leaves
// nothing behind.
class NewRunFolder {
 public:
  // Throws InputError if `folder` already holds something, if another process has just made it for
  // a run of its own, or if it cannot be made.
  explicit NewRunFolder(std::filesystem::path folder);
  ~NewRunFolder();
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;

  // "runs/lenet5-mnist-20260131-235959"
  static std::filesystem::path default_name(const Recipe& recipe);

  const std::filesystem::path& path() const { return folder_; }
  void keep() { kept_ = true; }

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  // `folder_` and its parents, innermost first
  bool kept_ = false;
  std::optional<RunLock> lock_;
};

trace::StepStretch as_stretch(const StepRecord& record);  // of that one step

// How long after a point of TensorBoard's curves the next one is due. It grows with the time since
// the run started, so that there are 10,000 points after 33 minutes, 48,000 after a day and 107,000
// after a year.
Seconds event_interval(Seconds since_start);

// Writes down a run as it goes. Lines and points of later steps tell of several steps each, so that
// neither memory nor files grow with the number of steps.
class RunFolder : public TrainObserver {
 public:
  // What the folder holds of steps after `from` is dropped: they come again.
  // `class_names` are those of the network's outputs, if they are known.
  RunFolder(std::filesystem::path folder, const Executor& executor, const TrainState& from,
            const CheckpointPolicy& policy = {}, std::vector<std::string> class_names = {});

  void on_step(const StepRecord& record) override;
  void on_test(const Evaluation& tested) override;
  void on_epoch(const EpochRecord& record) override;
  void on_rest(const TrainState& state) override;  // saves a checkpoint, and test.json
  bool wants_rest(std::int64_t step) override;
  std::string way_back() override;

  const std::filesystem::path& path() const { return folder_; }

 private:
  using Clock = std::chrono::steady_clock;

  template <class Write>
  void event(const Write& write);
  void end_line();  // writes the line that is being gathered, if there is one
  void write_point(const trace::StepStretch& point);

  std::filesystem::path folder_;
  const Executor& executor_;
  CheckpointPolicy policy_;
  std::vector<std::string> class_names_;
  std::optional<EventFile> events_;  // none after one could not be written
  MetricsFile metrics_;
  // What is gathered for the next line of metrics.jsonl and the next point for TensorBoard.
  std::optional<trace::StepStretch> line_, point_;
  std::int64_t last_step_;
  std::optional<Score> score_, best_;  // of the weights as they stand, if tested; of the best
  std::optional<Json> tested_;         // the last test class by class, until it is written
  const Clock::time_point started_ = Clock::now();
  Clock::time_point last_event_{}, last_epoch_event_{}, last_save_ = started_;
};

// run.json: recipe, plan, machine, versions, how far the run is meant to go and when it saves. A
// mask goes beside it, as mask.safetensors.
void write_run_json(const std::filesystem::path& folder, const TrainJob& job,
                    std::int64_t last_step, const CheckpointPolicy& checkpoints = {});

// Adds to run.json how fast the run was and what it drew, under `speed` and `energy`, when it has
// ended, and the latter to metrics.jsonl: a run that is resumed has a line for each time. A null
// energy is left out.
void write_end(const std::filesystem::path& folder, const Speed& speed, const Json& energy = {});
// `images_per_s`, `measured_step_s` (the typical one) and `taken_by_others`.
Json to_json(const Speed& speed);

struct RunRecord {
  TrainJob job;  // its data is not opened
  std::optional<std::string> test;
  std::int64_t last_step = 0;
  CheckpointPolicy checkpoints;
};

// Throws InputError that names the file and what is wrong with it.
RunRecord read_run_json(const std::filesystem::path& folder);

}  // namespace regatta
