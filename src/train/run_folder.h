// What a run leaves behind: run.json, metrics.jsonl, TensorBoard events, checkpoints.
#pragma once

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "train/events.h"
#include "train/job.h"
#include "train/loop.h"

namespace regatta {

class RunFolder : public TrainObserver {
 public:
  // A new folder; throws InputError if it already holds something.
  static std::filesystem::path create(const std::filesystem::path& folder);
  // "runs/lenet5-mnist-20260131-235959"
  static std::filesystem::path default_name(const Recipe& recipe);

  RunFolder(std::filesystem::path folder, const Executor& executor);

  void on_step(const StepRecord& record) override;
  void on_epoch(const EpochRecord& record) override;
  void on_rest(std::int64_t step) override;

  const std::filesystem::path& path() const { return folder_; }

 private:
  void line(const Json& json);

  std::filesystem::path folder_;
  const Executor& executor_;
  EventFile events_;
  std::ofstream metrics_;
  std::int64_t last_step_ = 0;
  std::chrono::steady_clock::time_point last_event_{};
};

// run.json: recipe, plan, machine, versions, and how far the run is meant to go.
void write_run_json(const std::filesystem::path& folder, const TrainJob& job,
                    const std::optional<std::string>& test, std::int64_t last_step);

}  // namespace regatta
