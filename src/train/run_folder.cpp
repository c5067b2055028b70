#include "train/run_folder.h"

#include <ctime>

#include "base/error.h"
#include "base/files.h"
#include "base/version.h"
#include "platform/machine.h"
#include "train/checkpoint.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

constexpr const char* metrics_name = "metrics.jsonl";

// Steps after the checkpoint come again, and a crash may have cut the last line.
void forget_after(const fs::path& metrics, std::int64_t step) {
  std::ifstream file(metrics);
  if (!file) return;
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) break;
    if (const auto found = json.find("step"); found != json.end() && *found > step) break;
    kept += line + '\n';
  }
  write_file(metrics, kept);
}

}  // namespace

NewRunFolder::NewRunFolder(fs::path folder) : folder_(std::move(folder)) {
  if (folder_.empty()) throw InputError("--out '': give the run folder a name");
  std::error_code code;
  const fs::file_status found = fs::status(folder_, code);
  if (fs::exists(found) && !fs::is_directory(found))
    throw InputError("cannot create '" + folder_.string() + "': a file has that name");
  if (fs::exists(found) && !fs::is_empty(folder_, code))
    throw InputError("'" + folder_.string() +
                     "' already holds something: choose another --out, or --resume it");
  for (fs::path each = fs::absolute(folder_).lexically_normal(); !fs::exists(each, code);
       each = each.parent_path())
    if (each.has_filename()) made_.push_back(each);
  fs::create_directories(folder_, code);
  if (!code) return;
  const std::string cause = code.message();
  for (const fs::path& each : made_) fs::remove(each, code);
  throw InputError("cannot create '" + folder_.string() + "': " + cause);
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

RunFolder::RunFolder(fs::path folder, const Executor& executor, std::int64_t first_step)
    : folder_(std::move(folder)), executor_(executor), events_(folder_), last_step_(first_step) {
  const fs::path metrics = folder_ / metrics_name;
  forget_after(metrics, first_step);
  metrics_.open(metrics, std::ios::app);
  if (!metrics_) throw InputError("cannot write '" + metrics.string() + "'");
}

void RunFolder::line(const Json& json) {
  metrics_ << json.dump() << '\n';
  if (!metrics_)
    throw InputError("cannot write '" + (folder_ / metrics_name).string() + "': is the disk full?");
}

void RunFolder::on_step(const StepRecord& record) {
  const double rate = static_cast<double>(record.samples) / record.duration.count();
  line({{"step", record.step}, {"loss", record.loss}, {"images_per_s", rate}});
  // Small networks make thousands of steps a second; a curve needs no more than some.
  if (const auto now = std::chrono::steady_clock::now();
      now - last_event_ > std::chrono::milliseconds(200)) {
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
}

// The metrics go first, so that they never lack a step that a checkpoint holds.
void RunFolder::on_rest(std::int64_t step) {
  metrics_.flush();
  save_checkpoint(folder_, executor_, step);
}

void write_run_json(const fs::path& folder, const TrainJob& job, std::int64_t last_step) {
  const Json json{
      {"regatta", version},
      {"recipe", job.recipe.to_json()},
      {"test", job.test ? Json(job.test->info().spec) : Json()},
      {"last_step", last_step},
      {"plan", to_json(job.plan, job.graph)},
      {"machine", {{"host", host_name()}, {"cpu", cpu_name()}, {"cpus", available_cpus()}}}};
  write_file(folder / "run.json", json.dump(2) + "\n");
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
    RunRecord run{job_of_run(json), std::nullopt, json.at("last_step")};
    if (const Json& test = json.at("test"); !test.is_null()) run.test = test;
    return run;
  } catch (const nlohmann::json::exception& error) {
    return fail(error.what());
  } catch (const InputError& error) {
    return fail(error.what());
  }
}

}  // namespace regatta
