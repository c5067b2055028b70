// What a run leaves behind: run.json, metrics.jsonl, TensorBoard events, checkpoints.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "train/events.h"
#include "train/job.h"
#include "train/loop.h"

namespace regatta {

// The folder of a run that is about to start. Unless it is kept, it goes away again, with whatever
// is in it and the parents that were made for it: a run that fails to start leaves nothing behind.
class NewRunFolder {
 public:
  // Throws InputError if `folder` already holds something or cannot be made.
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
};

// Writes down a run as it goes.
class RunFolder : public TrainObserver {
 public:
  // After `first_step` steps. What metrics.jsonl says of later ones is dropped: they come again.
  RunFolder(std::filesystem::path folder, const Executor& executor, std::int64_t first_step);

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
  std::int64_t last_step_;
  std::chrono::steady_clock::time_point last_event_{};
};

// run.json: recipe, plan, machine, versions, and how far the run is meant to go.
void write_run_json(const std::filesystem::path& folder, const TrainJob& job,
                    std::int64_t last_step);

struct RunRecord {
  TrainJob job;  // its data is not opened
  std::optional<std::string> test;
  std::int64_t last_step = 0;
};

// Throws InputError that names the file and what is wrong with it.
RunRecord read_run_json(const std::filesystem::path& folder);

}  // namespace regatta
