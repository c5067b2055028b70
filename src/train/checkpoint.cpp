#include "train/checkpoint.h"

#include <charconv>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "train/weights.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view prefix = "step-";

// Complete checkpoints by step. A folder still being written has a name of its own.
std::map<std::int64_t, fs::path> checkpoints_of(const fs::path& run) {
  std::map<std::int64_t, fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", code)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    std::int64_t step = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, step);
    if (error == std::errc{} && stop == end) found[step] = entry.path();
  }
  return found;
}

}  // namespace

void save_checkpoint(const fs::path& run, const Executor& executor, std::int64_t step, int keep) {
  const fs::path folder = run / "checkpoints" / (std::string(prefix) + std::to_string(step));
  const fs::path aside = folder.string() + ".part";
  std::error_code code;
  fs::remove_all(aside, code);
  fs::create_directories(aside, code);
  if (code) throw InputError("cannot create '" + aside.string() + "': " + code.message());
  write_safetensors(aside / "model.safetensors", weights_of(executor));
  write_safetensors(aside / "optimizer.safetensors", momenta_of(executor));
  write_file(aside / "state.json", Json{{"step", step}}.dump(2) + "\n");
  fs::remove_all(folder, code);
  fs::rename(aside, folder, code);
  if (code) throw InputError("cannot create '" + folder.string() + "': " + code.message());
  std::map<std::int64_t, fs::path> all = checkpoints_of(run);
  while (all.size() > static_cast<std::size_t>(keep)) {
    fs::remove_all(all.begin()->second, code);
    all.erase(all.begin());
  }
}

fs::path latest_checkpoint(const fs::path& run) {
  const std::map<std::int64_t, fs::path> all = checkpoints_of(run);
  if (all.empty())
    throw InputError("'" + run.string() + "' has no checkpoint to go on from (expected " +
                     (run / "checkpoints" / "step-N").string() + ")");
  return all.rbegin()->second;
}

std::int64_t load_checkpoint(const fs::path& checkpoint, Executor& executor) {
  const fs::path model = checkpoint / "model.safetensors";
  const fs::path optimizer = checkpoint / "optimizer.safetensors";
  set_weights(executor, read_safetensors(model), model.string());
  set_momenta(executor, read_safetensors(optimizer), optimizer.string());
  const Json state = read_json(checkpoint / "state.json");
  const Json step = state.is_object() ? state.value("step", Json()) : Json();
  if (!step.is_number_integer() || step < 0)
    throw InputError("'" + (checkpoint / "state.json").string() + "' does not say its step");
  return step;
}

}  // namespace regatta
