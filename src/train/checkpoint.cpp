#include "train/checkpoint.h"

#include <fcntl.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/class_names.h"
#include "base/error.h"
#include "base/files.h"
#include "base/shell_word.h"
#include "train/manifest.h"
#include "train/weights.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view prefix = "step-";
constexpr const char* model_name = "model.safetensors";

fs::path folder_of(const fs::path& run) { return run / "checkpoints"; }
fs::path aside_of(const fs::path& path) { return path.string() + ".part"; }

[[noreturn]] void fail(const std::string& what, const fs::path& path, const std::error_code& code) {
  throw InputError("cannot " + what + " '" + path.string() + "': " + code.message());
}

// Checkpoints by step. One that is being written or removed has a name of its own.
std::map<std::int64_t, fs::path> checkpoints_of(const fs::path& run) {
  std::map<std::int64_t, fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder_of(run), code)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    std::int64_t step = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, step);
    if (error == std::errc{} && stop == end) found[step] = entry.path();
  }
  return found;
}

// Renamed first: a crash while files go must not leave something that looks like a checkpoint.
void remove_checkpoint(const fs::path& checkpoint) {
  std::error_code ignored;
  const fs::path aside = aside_of(checkpoint);
  fs::remove_all(aside, ignored);
  fs::rename(checkpoint, aside, ignored);
  fs::remove_all(aside, ignored);
}

// Gives the finished folder its name. If the name is taken, both change places at once, where the
// file system can do that.
void publish(const fs::path& aside, const fs::path& folder) {
  std::error_code code;
  if (!fs::exists(folder)) {
    fs::rename(aside, folder, code);
    if (code) fail("create", folder, code);
  } else if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(aside, code);
  } else {
    fs::remove_all(folder, code);
    fs::rename(aside, folder, code);
    if (code) fail("replace", folder, code);
  }
  sync_folder(folder.parent_path());
}

// A folder to fill, which goes away again if it is not published.
class Aside {
 public:
  explicit Aside(const fs::path& folder) : folder_(folder), path_(aside_of(folder)) {
    std::error_code code;
    fs::remove_all(path_, code);
    fs::create_directory(path_, code);
    if (code) fail("create", path_, code);
  }
  ~Aside() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  const fs::path& path() const { return path_; }
  void publish() { regatta::publish(path_, folder_); }

 private:
  fs::path folder_, path_;
};

void require_finite(const TensorFile& file, std::int64_t step) {
  for (const NamedTensor& tensor : file.tensors) {
    if (tensor.dtype != Dtype::f32) continue;
    for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, tensor.bytes.data() + at, sizeof value);
      if (!std::isfinite(value))
        throw InputError("after step " + std::to_string(step) + ", '" + tensor.name +
                         "' holds a value that is no longer a number, and no checkpoint is "
                         "written; try a smaller --lr");
    }
  }
}

Json to_json(const Score& score) {
  Json json{{"loss", score.loss}};
  if (score.test_accuracy) json["test_accuracy"] = *score.test_accuracy;
  return json;
}

Json to_json(const TrainState& state, const std::optional<Score>& score) {
  Json json{
      {"step", state.step},
      {"epoch", {{"seen", state.seen}, {"correct", state.correct}, {"loss_sum", state.loss_sum}}}};
  if (score) json["score"] = to_json(*score);
  return json;
}

TrainState state_from(const Json& json) {
  const Json& epoch = json.at("epoch");
  const TrainState state{json.at("step"), epoch.at("loss_sum"), epoch.at("seen"),
                         epoch.at("correct")};
  if (state.step < 0 || state.seen < 0 || state.correct < 0) throw InputError("");
  return state;
}

}  // namespace

void save_checkpoint(const fs::path& run, const Executor& executor, const TrainState& state,
                     int keep, const std::optional<Score>& score, bool best,
                     const std::vector<std::string>& class_names, bool kept) {
  TensorFile weights = weights_of(executor);
  const TensorFile remembered = optimizer_state_of(executor);
  if (!class_names.empty()) weights.metadata[class_names_key] = class_names_text(class_names);
  require_finite(weights, state.step);
  require_finite(remembered, state.step);

  // Never the run's own folder: if that is gone, someone took it away.
  std::error_code code;
  fs::create_directory(folder_of(run), code);
  if (code) fail("create", folder_of(run), code);
  Aside aside(folder_of(run) / (std::string(prefix) + std::to_string(state.step)));
  write_safetensors(aside.path() / model_name, weights);
  write_safetensors(aside.path() / "optimizer.safetensors", remembered);
  write_file(aside.path() / "state.json", to_json(state, score).dump(2) + "\n");
  write_manifest(aside.path());
  // These go first: after a crash in between, the step comes again and finds its equal there.
  // The other way round, the best would never be compared, and the kept one never be made.
  if (best) share_checkpoint(aside.path(), folder_of(run) / "best");
  if (kept) share_checkpoint(aside.path(), kept_checkpoint(run, state.step));
  aside.publish();

  std::map<std::int64_t, fs::path> all = checkpoints_of(run);
  while (all.size() > static_cast<std::size_t>(keep)) {
    remove_checkpoint(all.begin()->second);
    all.erase(all.begin());
  }
}

fs::path kept_checkpoint(const fs::path& run, std::int64_t step) {
  return folder_of(run) / ("kept-" + std::to_string(step));
}

void share_checkpoint(const fs::path& checkpoint, const fs::path& copy) {
  Aside aside(copy);
  std::error_code code;
  for (fs::directory_iterator at(checkpoint, code), end; !code && at != end; at.increment(code)) {
    const fs::path file = aside.path() / at->path().filename();
    fs::create_hard_link(at->path(), file, code);
    if (code) fs::copy_file(at->path(), file, code);
    if (code) fail("create", file, code);
  }
  if (code) fail("read", checkpoint, code);
  sync_folder(aside.path());
  aside.publish();
}

fs::path latest_checkpoint(const fs::path& run, std::vector<std::string>* damaged) {
  const std::map<std::int64_t, fs::path> all = checkpoints_of(run);
  if (all.empty())
    throw InputError("'" + run.string() + "' has no checkpoint to go on from (expected " +
                     (folder_of(run) / "step-N").string() + ")");
  std::string newest_fault;
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    const std::optional<std::string> fault = manifest_fault(at->second);
    if (!fault) return at->second;
    const std::string text = "'" + at->second.string() + "' is damaged: " + *fault;
    if (newest_fault.empty()) newest_fault = text;
    if (damaged) damaged->push_back(text);
  }
  const fs::path& newest = all.rbegin()->second;
  const bool unchecked = !fs::exists(newest / "manifest.json") && fs::exists(newest / model_name);
  throw InputError("'" + run.string() + "' has no usable checkpoint: " + newest_fault +
                   (unchecked ? "; its weights can start a new run: --init " +
                                    shell_word((newest / model_name).string())
                              : ""));
}

fs::path best_checkpoint(const fs::path& run) {
  fs::path best = folder_of(run) / "best";
  if (!fs::exists(best))
    throw InputError("'" + run.string() +
                     "' has no best checkpoint yet: there is one after its first epoch");
  if (const std::optional<std::string> fault = manifest_fault(best))
    throw InputError("'" + best.string() + "' is damaged: " + *fault);
  return best;
}

bool has_checkpoints(const fs::path& run) { return !checkpoints_of(run).empty(); }

std::int64_t oldest_checkpoint_step(const fs::path& run) {
  const std::map<std::int64_t, fs::path> all = checkpoints_of(run);
  return all.empty() ? 0 : all.begin()->first;
}

std::optional<Score> best_score(const fs::path& run) {
  const fs::path best = folder_of(run) / "best";
  if (manifest_fault(best)) return std::nullopt;
  const Json state = read_json(best / "state.json");
  const auto score = state.find("score");
  if (score == state.end() || !score->contains("loss")) return std::nullopt;
  Score found;
  found.loss = score->at("loss");
  if (score->contains("test_accuracy")) found.test_accuracy = score->at("test_accuracy");
  return found;
}

TrainState load_checkpoint(const fs::path& checkpoint, Executor& executor) {
  const fs::path model = checkpoint / model_name;
  const fs::path optimizer = checkpoint / "optimizer.safetensors";
  set_weights(executor, read_safetensors(model), model.string());
  set_optimizer_state(executor, read_safetensors(optimizer), optimizer.string());
  return checkpoint_state(checkpoint);
}

TrainState checkpoint_state(const fs::path& checkpoint) {
  const fs::path state = checkpoint / "state.json";
  try {
    return state_from(read_json(state));
  } catch (const Json::exception&) {
  } catch (const InputError&) {
  }
  throw InputError("'" + state.string() + "' does not say where the run stood");
}

void clear_leftovers(const fs::path& run, std::int64_t step) {
  std::error_code ignored;
  std::vector<fs::path> leftovers;
  for (const fs::path& folder : {run, folder_of(run)})
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (is_unfinished(entry.path())) leftovers.push_back(entry.path());
  for (const fs::path& path : leftovers) fs::remove_all(path, ignored);
  for (const auto& [number, path] : checkpoints_of(run))
    if (number > step) {
      const fs::path aside = path.string() + ".damaged";
      fs::remove_all(aside, ignored);
      fs::rename(path, aside, ignored);
    }
}

}  // namespace regatta
