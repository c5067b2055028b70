#include "train/run_folder.h"

#include <ctime>

#include "base/error.h"
#include "base/files.h"
#include "base/version.h"
#include "platform/machine.h"
#include "train/checkpoint.h"

namespace regatta {
namespace fs = std::filesystem;

fs::path RunFolder::default_name(const Recipe& recipe) {
  std::string data = recipe.data.substr(0, recipe.data.find(':'));
  std::time_t now = std::time(nullptr);
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

fs::path RunFolder::create(const fs::path& folder) {
  std::error_code code;
  if (fs::exists(folder, code) && !fs::is_empty(folder, code))
    throw InputError("'" + folder.string() +
                     "' already holds something: choose another --out, or --resume it");
  fs::create_directories(folder, code);
  if (code) throw InputError("cannot create '" + folder.string() + "': " + code.message());
  return folder;
}

RunFolder::RunFolder(fs::path folder, const Executor& executor)
    : folder_(std::move(folder)),
      executor_(executor),
      events_(folder_),
      metrics_(folder_ / "metrics.jsonl", std::ios::app) {
  if (!metrics_) throw InputError("cannot write '" + (folder_ / "metrics.jsonl").string() + "'");
}

void RunFolder::line(const Json& json) {
  metrics_ << json.dump() << '\n';
  if (!metrics_)
    throw InputError("cannot write '" + (folder_ / "metrics.jsonl").string() +
                     "': is the disk full?");
}

void RunFolder::on_step(const StepRecord& record) {
  const double rate = static_cast<double>(record.samples) / record.duration.count();
  line({{"step", record.step}, {"loss", record.loss}, {"images_per_s", rate}});
  // Small networks make thousands of steps a second; a curve needs no more than some.
  if (const auto now = std::chrono::steady_clock::now(); now - last_event_ > std::chrono::milliseconds(200)) {
    events_.scalar("train/loss", record.step, static_cast<float>(record.loss));
    events_.scalar("train/images_per_s", record.step, static_cast<float>(rate));
    last_event_ = now;
  }
  last_step_ = record.step;
}

void RunFolder::on_epoch(const EpochRecord& record) {
  Json json{{"epoch", record.epoch},
            {"train_loss", record.train_loss},
            {"train_accuracy", record.train_accuracy}};
  events_.scalar("epoch/train_loss", last_step_, static_cast<float>(record.train_loss));
  events_.scalar("epoch/train_accuracy", last_step_, static_cast<float>(record.train_accuracy));
  if (record.test_accuracy) {
    json["test_loss"] = *record.test_loss;
    json["test_accuracy"] = *record.test_accuracy;
    events_.scalar("epoch/test_loss", last_step_, static_cast<float>(*record.test_loss));
    events_.scalar("epoch/test_accuracy", last_step_, static_cast<float>(*record.test_accuracy));
  }
  line(json);
  metrics_.flush();
}

void RunFolder::on_rest(std::int64_t step) { save_checkpoint(folder_, executor_, step); }

void write_run_json(const fs::path& folder, const TrainJob& job,
                    const std::optional<std::string>& test, std::int64_t last_step) {
  const Json json{
      {"regatta", version},
      {"recipe", job.recipe.to_json()},
      {"test", test ? Json(*test) : Json()},
      {"last_step", last_step},
      {"plan", to_json(job.plan, job.graph)},
      {"machine", {{"host", host_name()}, {"cpu", cpu_name()}, {"cpus", available_cpus()}}}};
  write_file(folder / "run.json", json.dump(2) + "\n");
}

}  // namespace regatta
