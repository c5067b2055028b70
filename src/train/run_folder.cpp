#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/class_names.h"
#include "base/error.h"
#include "base/files.h"
#include "base/shell_word.h"
#include "base/version.h"
#include "exec/versions.h"
#include "platform/machine.h"
#include "trace/loading.h"
#include "train/checkpoint.h"
#include "train/class_results.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

constexpr const char* test_name = "test.json";
constexpr const char* mask_name = "mask.safetensors";
// So many first epochs are points of TensorBoard's curves each: as many as a chart has pixels.
constexpr std::int64_t epochs_shown = 1000;

// Only what a crash left half-written.
bool holds_nothing(const fs::path& folder) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (!is_unfinished(entry.path())) return false;
  return true;
}

// For TensorBoard's text page: the plan in short, then whole.
std::string plan_text(const Plan& plan, const Graph& graph) {
  std::string text = "| | |\n|---|---|\n";
  const auto row = [&](const std::string& name, const std::string& value) {
    text += "| " + name + " | " + value + " |\n";
  };
  for (const DeviceGroup* group : groups_of(plan)) {
    std::string sizes;
    for (const std::int64_t size : group->chunks)
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    row("group " + group->name,
        std::to_string(group->workers) + " workers" +
            (group->team > 1 ? " of " + std::to_string(group->team) + " threads" : "") +
            "; chunks of " + sizes + " samples");
  }
  row("segments", std::to_string(plan.segments.size()));
  row("reduction", std::string(reduction_name(plan.reduction)));
  row("backward", std::string(backward_name(plan.backward)));
  row("scheduler", plan.scheduler);
  row("steps in flight", std::to_string(plan.steps_in_flight));
  return text + "\n```\n" + to_json(plan, graph).dump(2) + "\n```\n";
}

void extend(std::optional<trace::StepStretch>& stretch, const trace::StepStretch& next) {
  if (stretch)
    stretch->add(next);
  else
    stretch = next;
}

void read_mask_of(const fs::path& folder, TrainJob& job) {
  if (job.recipe.mask.empty()) return;
  const fs::path file = folder / mask_name;
  set_mask(job, read_mask(file), file.string());
}

}  // namespace

trace::StepStretch as_stretch(const StepRecord& record) {
  return {.step = record.step,
          .steps = 1,
          .loss = record.loss,
          .loss_min = record.loss,
          .loss_max = record.loss,
          .learning_rate = record.learning_rate,
          .images_per_s = static_cast<double>(record.samples) / record.duration.count(),
          .loader_share = record.loader_share,
          .data_wait = record.data_wait};
}

Seconds event_interval(Seconds since_start) {
  // Small networks make thousands of steps a second; a curve needs no more than some.
  return std::max(Seconds(0.2), since_start / 10000);
}

NewRunFolder::NewRunFolder(fs::path folder) : folder_(std::move(folder)) {
  if (folder_.empty()) throw InputError("--out '': give the run folder a name");
  std::error_code code;
  const fs::file_status found = fs::status(folder_, code);
  if (!fs::exists(found) && fs::is_symlink(fs::symlink_status(folder_, code)))
    throw InputError("cannot create '" + folder_.string() + "': it is a link to nothing");
  if (fs::exists(found) && !fs::is_directory(found))
    throw InputError("cannot create '" + folder_.string() + "': a file has that name");
  const auto require_empty = [this] {
    if (!holds_nothing(folder_))
      throw InputError("'" + folder_.string() +
                       "' already holds something: choose another --out, or --resume it");
  };
  if (fs::exists(found)) require_empty();
  for (fs::path each = fs::absolute(folder_).lexically_normal(); !fs::exists(each, code);
       each = each.parent_path())
    if (each.has_filename()) made_.push_back(each);
  fs::create_directories(folder_, code);
  if (code) {
    const std::string cause = code.message();
    for (const fs::path& each : made_) fs::remove(each, code);
    throw InputError("cannot create '" + folder_.string() + "': " + cause);
  }
  // Two processes may have seen the same empty folder. It belongs to the one that locks it, and the
  // other must not remove what that one writes.
  lock_.emplace(folder_);
  require_empty();
}

NewRunFolder::~NewRunFolder() {
  if (kept_) return;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored))
    fs::remove_all(entry.path(), ignored);
  for (const fs::path& each : made_) fs::remove(each, ignored);
}

fs::path NewRunFolder::default_name(const Recipe& recipe) {
  const std::string data = recipe.data.substr(0, recipe.data.find(':'));
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  const fs::path wanted = fs::path("runs") / (recipe.model + "-" + data + "-" + stamp);
  // Two runs may start within a second.
  fs::path name = wanted;
  for (int i = 2; fs::exists(name); ++i) name = wanted.string() + "-" + std::to_string(i);
  return name;
}

RunLock::RunLock(const fs::path& folder)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  // A file system without locks is no reason not to train.
  if (folder_ && ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw InputError("'" + folder.string() + "' is being trained by another process");
}

template <class Write>
void RunFolder::event(const Write& write) {
  try {
    if (events_) write(*events_);
  } catch (const InputError&) {
    events_.reset();  // curves are a convenience; half a record is the end of what can be read
  }
}

RunFolder::RunFolder(fs::path folder, const Executor& executor, const TrainState& from,
                     const CheckpointPolicy& policy, std::vector<std::string> class_names)
    : folder_(std::move(folder)),
      executor_(executor),
      policy_(policy),
      class_names_(std::move(class_names)),
      events_(folder_),
      metrics_(folder_, from),
      last_step_(from.step),
      best_(best_score(folder_)) {
  clear_leftovers(folder_, from.step);
  if (from.step > 0) events_->restart(from.step + 1);
  event([&](EventFile& events) {
    events.text("plan", plan_text(executor.plan(), executor.graph()));
  });
}

void RunFolder::on_step(const StepRecord& record) {
  const trace::StepStretch step = as_stretch(record);
  extend(line_, step);
  if (record.step % trace::steps_a_line(record.step) == 0) end_line();
  extend(point_, step);
  if (const auto now = Clock::now(); now - last_event_ > event_interval(now - started_)) {
    write_point(*std::exchange(point_, std::nullopt));
    last_event_ = now;
  }
  last_step_ = record.step;
  score_.reset();
}

void RunFolder::end_line() {
  if (line_) metrics_.add(to_json(*std::exchange(line_, std::nullopt)).dump());
}

void RunFolder::write_point(const trace::StepStretch& point) {
  event([&](EventFile& events) {
    const auto scalar = [&](const char* name, double value) {
      events.scalar(std::string("train/") + name, point.step, static_cast<float>(value));
    };
    scalar("loss", point.loss);
    if (point.steps > 1) {
      scalar("loss_min", point.loss_min);
      scalar("loss_max", point.loss_max);
    }
    scalar("learning_rate", point.learning_rate);
    scalar("images_per_s", point.images_per_s);
    scalar("loader_share", point.loader_share);
    scalar("data_wait", point.data_wait);
  });
}

void RunFolder::on_epoch(const EpochRecord& record) {
  end_line();
  Json json{{"epoch", record.epoch},
            {"train_loss", record.train_loss},
            {"train_accuracy", record.train_accuracy},
            {"loader_share", record.loader_share},
            {"data_wait", record.data_wait},
            {"loading", trace::to_json(record.loading)},
            {"skipped", record.skipped}};
  if (record.test_accuracy) {
    json["test_loss"] = *record.test_loss;
    json["test_accuracy"] = *record.test_accuracy;
  }
  metrics_.add(json.dump());
  const auto now = Clock::now();
  if (record.epoch <= epochs_shown || now - last_epoch_event_ > event_interval(now - started_)) {
    last_epoch_event_ = now;
    event([&](EventFile& events) {
      const auto scalar = [&](const std::string& name, const Json& value) {
        if (value.is_number()) events.scalar("epoch/" + name, last_step_, value.get<float>());
      };
      for (const auto& [name, value] : json.items())
        if (name != "epoch") scalar(name, value);
      for (const auto& [name, value] : json["loading"].items()) scalar("loading_" + name, value);
    });
  }
  score_ = Score{record.test_accuracy, record.test_loss.value_or(record.train_loss)};
}

void RunFolder::on_test(const Evaluation& tested) {
  tested_ = Json{{"step", last_step_}, {"loss", tested.loss}, {"accuracy", tested.accuracy}};
  tested_->update(to_json(class_results(tested, executor_.graph().classes(), class_names_)));
}

void RunFolder::on_rest(const TrainState& state) {
  // No line tells of steps on both sides of a checkpoint: a run that goes on from it drops whole
  // lines.
  end_line();
  // The metrics go first, so that they never lack a step that a checkpoint holds. If they cannot,
  // the checkpoint is the more precious, and where there is room for it there may be for them.
  std::optional<InputError> failure;
  try {
    metrics_.sync();
  } catch (const InputError& error) {
    failure = error;
  }
  const bool best = score_ && (!best_ || score_->better_than(*best_));
  try {
    save_checkpoint(folder_, executor_, state, policy_.keep, score_, best, class_names_,
                    policy_.keeps(state.step));
    if (failure) metrics_.sync();
    if (tested_) write_file(folder_ / test_name, tested_->dump() + "\n");
    tested_.reset();
  } catch (const InputError& error) {
    throw InputError(error.what() + way_back());
  }
  metrics_.condense(oldest_checkpoint_step(folder_));
  if (best) best_ = score_;
  last_save_ = Clock::now();
}

bool RunFolder::wants_rest(std::int64_t step) {
  return policy_.keeps(step) || (policy_.steps > 0 && step % policy_.steps == 0) ||
         (policy_.time > Seconds::zero() && Clock::now() - last_save_ >= policy_.time);
}

std::string RunFolder::way_back() {
  try {
    return "; the last good checkpoint is " + latest_checkpoint(folder_).string() +
           ", go on from it with: regatta train --resume " + shell_word(folder_.string());
  } catch (const InputError&) {
    return "; there is no checkpoint yet";
  }
}

void write_run_json(const fs::path& folder, const TrainJob& job, std::int64_t last_step,
                    const CheckpointPolicy& checkpoints) {
  Json json{{"regatta", version},
            {"recipe", job.recipe.to_json()},
            {"test", job.test ? Json(absolute_spec(job.test->info().spec)) : Json()},
            {"last_step", last_step},
            {"checkpoints", checkpoints.to_json()},
            {"plan", to_json(job.whole_plan(), job.graph)},
            {"machine",
             {{"host", host_name()},
              {"cpu", cpu_name()},
              {"cpus", available_cpus()},
              {"libraries", library_versions()}}}};
  // So that the run goes on, and can be evaluated, without the file or program it came from.
  if (job.network) json["network"] = *job.network;
  if (!job.class_names.empty()) json[class_names_key] = job.class_names;
  if (job.started_from) json["started_from"] = *job.started_from;
  if (job.mask) {
    json["mask"] = {{"file", mask_name}, {"density", job.mask->density()}};
    write_mask(folder / mask_name, *job.mask);
  }
  if (job.predicted_step) json["predicted_step_s"] = job.predicted_step->count();
  write_file(folder / "run.json", json.dump(2) + "\n");
}

Json to_json(const Speed& speed) {
  return {{"images_per_s", speed.images_per_s},
          {"measured_step_s", speed.typical_step_s},
          {"taken_by_others", speed.taken_by_others ? Json(*speed.taken_by_others) : Json()}};
}

void write_end(const fs::path& folder, const Speed& speed, const Json& energy) {
  Json run = read_json(folder / "run.json");
  run["speed"] = to_json(speed);
  if (!energy.is_null()) run["energy"] = energy;
  write_file(folder / "run.json", run.dump(2) + "\n");
  if (energy.is_null()) return;
  LineFile metrics(folder / metrics_name);
  metrics.add(Json{{"energy", energy}}.dump());
  metrics.sync();
}

RunRecord read_run_json(const fs::path& folder) {
  const fs::path file = folder / "run.json";
  if (!fs::exists(file))
    throw InputError("'" + folder.string() + "' is not the folder of a run: it has no run.json");
  const Json json = read_json(file);
  const auto fail = [&](const char* fault) -> RunRecord {
    throw InputError("'" + file.string() + "' does not tell a run: " + fault);
  };
  try {
    RunRecord run{job_of_run(json), std::nullopt, json.at("last_step"),
                  CheckpointPolicy::from_json(json.at("checkpoints"))};
    if (const Json& test = json.at("test"); !test.is_null()) run.test = test;
    if (const auto found = json.find("started_from"); found != json.end())
      run.job.started_from = found->get<std::string>();
    read_mask_of(folder, run.job);
    return run;
  } catch (const nlohmann::json::exception& error) {
    return fail(error.what());
  } catch (const InputError& error) {
    return fail(error.what());
  }
}

}  // namespace regatta
