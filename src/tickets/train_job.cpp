#include "tickets/train_job.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "platform/machine.h"
#include "tickets/child_process.h"
#include "train/checkpoint.h"
#include "train/job.h"
#include "train/manifest.h"
#include "train/weights.h"
#include "transport/launcher.h"

namespace regatta::tickets {
namespace fs = std::filesystem;
namespace {

constexpr const char* run_name = "run";
constexpr const char* mask_name = "mask.safetensors";
constexpr const char* init_name = "init.safetensors";
constexpr const char* said_name = "said.txt";
constexpr const char* unbound_workers = "STARPU_WORKERS_NOBIND";

fs::path last_checkpoint(const fs::path& run, std::int64_t step) {
  return run / "checkpoints" / ("step-" + std::to_string(step));
}

Graph network_of(const fs::path& run) { return network_of_run(read_json(run / "run.json")); }

// The seed of a job's random mask, random pruning or new weights: from a stream of random numbers
// that no training run draws from.
std::uint64_t seed_for(const char* what, const Job& job) {
  const auto level = static_cast<std::uint64_t>(job.level);
  return random_bits(job.seed, stream_of(what), level) >> 1;  // fits the flags' signed numbers
}

// Copies the files of a run folder without its subfolders.
void copy_files(const fs::path& from, const fs::path& to) {
  std::error_code code;
  for (fs::directory_iterator at(from, code), end; !code && at != end; at.increment(code)) {
    const fs::path name = at->path().filename();
    // run.json tells that the copy is complete, so it comes last.
    if (!at->is_regular_file() || is_unfinished(name) || name == "run.json") continue;
    fs::copy_file(at->path(), to / name, fs::copy_options::overwrite_existing, code);
    if (code) break;
  }
  if (!code) fs::copy_file(from / "run.json", to / "run.json", code);
  if (code) throw InputError("cannot copy '" + from.string() + "': " + code.message());
}

// False if the checkpoint is damaged, or goes while it is copied.
bool share_if_whole(const fs::path& checkpoint, const fs::path& copy) {
  if (manifest_fault(checkpoint)) return false;
  try {
    share_checkpoint(checkpoint, copy);
  } catch (const InputError& error) {
    if (says_no_room(error.what())) throw;
    return false;  // its owner, who was taken for gone, removed it meanwhile
  }
  if (!manifest_fault(copy)) return true;
  std::error_code ignored;
  fs::remove_all(copy, ignored);
  return false;
}

// Makes `to` a run folder that `train --resume` continues where the run in `from` was last saved.
// False if that has no whole checkpoint.
bool adopt(const fs::path& from, const fs::path& to) {
  if (!fs::exists(from / "run.json") || !has_checkpoints(from)) return false;
  std::error_code ignored;
  fs::remove_all(to, ignored);
  std::error_code code;
  fs::create_directories(to / "checkpoints", code);
  if (code) throw InputError("cannot create '" + to.string() + "': " + code.message());
  bool found = false;
  try {
    const fs::path latest = latest_checkpoint(from);
    found = share_if_whole(latest, to / "checkpoints" / latest.filename());
  } catch (const InputError& error) {
    if (says_no_room(error.what())) throw;
    return false;
  }
  if (!found) return false;
  for (fs::directory_iterator at(from / "checkpoints", ignored), end; at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (name == "best" || (name.starts_with("kept-") && !is_unfinished(name)))
      share_if_whole(at->path(), to / "checkpoints" / name);
  }
  copy_files(from, to);
  return true;
}

Json layers_of(const Mask& mask) {
  Json layers = Json::array();
  for (const MaskTensor& tensor : mask.tensors)
    layers.push_back({{"name", tensor.name}, {"weights", tensor.count()}, {"kept", tensor.kept()}});
  return layers;
}

class ProgramJob : public RunningJob {
 public:
  ProgramJob(const std::vector<std::string>& arguments, fs::path claim, std::int64_t last_step,
             Json about, SharedEnergy& energy, int cpus, const std::vector<std::string>& variables)
      : claim_(std::move(claim)),
        last_step_(last_step),
        about_(std::move(about)),
        energy_(energy, cpus),
        child_(arguments, claim_ / said_name, variables) {}

  std::optional<Outcome> poll() override {
    const std::optional<int> code = child_.poll();
    if (!code) return std::nullopt;
    if (*code == 0) return finished();
    if (stopped_) return Outcome{.kind = Outcome::Kind::stopped, .why = "asked to stop"};
    const std::string said = last_line();
    const std::string why = said.empty() ? "ended with status " + std::to_string(*code) : said;
    return Outcome{.kind = says_no_room(why) ? Outcome::Kind::no_room : Outcome::Kind::failed,
                   .why = why};
  }

  void stop() override {
    stopped_ = true;
    child_.signal(SIGTERM);
  }

 private:
  Outcome finished() {
    std::optional<Json> found = outcome_of(claim_ / run_name, last_step_);
    if (!found) return {.kind = Outcome::Kind::failed, .why = "the run ended before its last step"};
    Outcome outcome;
    const Json run = read_json(claim_ / run_name / "run.json");
    if (const auto speed = run.find("speed"); speed != run.end())
      outcome.images_per_s = speed->value("images_per_s", 0.0);
    if (found->contains("test_accuracy")) {
      char text[40];
      std::snprintf(text, sizeof text, "test accuracy %.2f%%",
                    100 * found->at("test_accuracy").get<double>());
      outcome.why = text;
    }
    const Energy energy = energy_.read();
    outcome.result = {{"joules", energy.joules}, {"joules_measured", energy.measured}};
    about_.update(*found);
    outcome.result["outcome"] = about_;
    return outcome;
  }

  std::string last_line() const {
    std::istringstream text(read_file(claim_ / said_name));
    std::string last;
    for (std::string line; std::getline(text, line);)
      if (!line.empty()) last = line;
    const std::string name = "regatta: ";
    return last.starts_with(name) ? last.substr(name.size()) : last;
  }

  fs::path claim_;
  std::int64_t last_step_;
  Json about_;  // the part of the outcome that was known before training: density and layers
  SharedEnergy::Share energy_;
  ChildProcess child_;
  bool stopped_ = false;
};

// A job that an earlier claim had finished but not published.
class FinishedJob : public RunningJob {
 public:
  explicit FinishedJob(Outcome outcome) : outcome_(std::move(outcome)) {}
  std::optional<Outcome> poll() override { return outcome_; }
  void stop() override {}

 private:
  Outcome outcome_;
};

}  // namespace

ProgramTrainer::ProgramTrainer(TrainerOptions options)
    : options_(std::move(options)),
      energy_([meter = std::make_shared<EnergyMeter>(
                   EnergyOptions{.cpus = 1, .gpus = options_.gpus})] { return meter->read(); }) {}

std::unique_ptr<RunningJob> ProgramTrainer::start(const SearchFolder& folder, std::size_t number,
                                                  int claim, int slots) {
  const Job& job = folder.jobs()[number];
  const Search& search = folder.search();
  const fs::path place = claim_folder(folder.path(), job.id, claim), run = place / run_name;
  std::error_code code;
  fs::create_directories(place, code);
  if (code) throw InputError("cannot create '" + place.string() + "': " + code.message());
  const std::optional<Mask> mask = mask_of(folder, job);
  if (mask) write_mask(place / mask_name, *mask);
  Json about = Json::object();
  if (mask) about = {{"density", mask->density()}, {"layers", layers_of(*mask)}};

  std::vector<std::string> arguments{options_.program.string(), "train"};
  const auto add = [&](const std::string& flag, const std::string& value) {
    arguments.push_back(flag);
    arguments.push_back(value);
  };
  if (adopt_run(folder.path(), job.id, claim)) {
    if (std::optional<Json> found = outcome_of(run, search.last_step)) {
      about.update(*found);
      return std::make_unique<FinishedJob>(
          Outcome{.result = {{"outcome", about}, {"adopted", true}}});
    }
    add("--resume", run.string());
    if (options_.data) add("--data", *options_.data);
  } else {
    fs::remove_all(run, code);
    arguments.insert(arguments.end(), search.train.begin(), search.train.end());
    if (options_.data)
      if (const auto flag = std::ranges::find(arguments, "--data"); flag != arguments.end())
        *(flag + 1) = *options_.data;
    add("--seed", std::to_string(job.seed));
    add("--steps", std::to_string(search.last_step));
    add("--out", run.string());
    if (mask) add("--mask", (place / mask_name).string());
    if (job.kind == JobKind::dense) {
      std::string steps;
      for (const std::int64_t reset : search.resets)
        steps += (steps.empty() ? "" : ",") + std::to_string(reset);
      add("--checkpoint-at", steps);
    } else if (job.kind == JobKind::fresh && job.init.empty()) {
      const Graph network = network_of(folder.run_of(job.pruned));
      write_safetensors(place / init_name, new_weights(network, seed_for("fresh", job)));
      add("--init", (place / init_name).string());
    }
    if (!job.start.empty())
      add("--from", kept_checkpoint(folder.run_of(job.start), job.reset).string());
    if (!job.init.empty()) {
      add("--init", (folder.path() / job.init).string());
      arguments.emplace_back("--new-classes");  // other data has classes of other names
    }
  }
  const int cpus = std::max(1, options_.cpus / slots);
  add("--workers", std::to_string(cpus));
  arguments.insert(arguments.end(), options_.flags.begin(), options_.flags.end());
  arguments.insert(arguments.end(), {"--no-refine", "--quiet"});
  // Jobs are independent of each other, also if a launcher of MPI started their workers.
  std::vector<std::string> variables{no_rank};
  // StarPU would bind the workers of every job to the same first CPUs.
  if (cpus < available_cpus() && !std::getenv(unbound_workers))
    variables.push_back(std::string(unbound_workers) + "=1");
  return std::make_unique<ProgramJob>(arguments, place, search.last_step, std::move(about), energy_,
                                      cpus, variables);
}

void ProgramTrainer::tidy(const SearchFolder& folder, std::size_t job, int claim) {
  std::error_code ignored;
  for (int earlier = 1; earlier < claim; ++earlier)
    fs::remove_all(claim_folder(folder.path(), folder.jobs()[job].id, earlier), ignored);
}

TensorFile new_weights(const Graph& network, std::uint64_t seed) {
  const Weights weights = initial_weights(network, seed);
  TensorFile file;
  for (const Parameter& parameter : network.parameters())
    file.tensors.push_back(to_tensor(parameter, weights.at(parameter.name)));
  for (const Parameter& state : network.states())
    file.tensors.push_back(to_tensor(state, weights.at(state.name)));
  return file;
}

std::optional<Mask> mask_of(const SearchFolder& folder, const Job& job) {
  std::optional<Mask> mask;
  if (!job.mask.empty()) {
    mask = read_mask(folder.path() / job.mask);
  } else if (!job.pruned.empty()) {
    const fs::path run = folder.run_of(job.pruned);
    const Graph network = network_of(run);
    const fs::path file = last_checkpoint(run, folder.search().last_step) / "model.safetensors";
    const Weights weights = weights_from(network, read_safetensors(file), file.string());
    PruneOptions options{
        .keep = job.keep, .scope = folder.search().scope, .by = folder.search().by};
    // The trained run knows which weights were gone before.
    const fs::path before = run.parent_path() / mask_name;
    const std::optional<Mask> previous =
        fs::exists(before) ? std::optional(read_mask(before)) : std::nullopt;
    if (previous) options.previous = &*previous;
    Weights initial;
    if (options.by == Criterion::magnitude_increase) {
      initial = initial_weights(network, job.seed);
      options.initial = &initial;
    }
    if (options.by == Criterion::random) options.seed = seed_for("prune", job);
    mask = prune(network, weights, options);
  }
  if (mask && job.kind == JobKind::random) mask = shuffled(*mask, seed_for("shuffle", job));
  return mask;
}

bool adopt_run(const fs::path& search, const std::string& id, int claim) {
  const fs::path own = claim_folder(search, id, claim);
  for (int earlier = claim - 1; earlier >= 1; --earlier) {
    const fs::path other = claim_folder(search, id, earlier);
    if (!adopt(other / run_name, own / run_name)) continue;
    return true;
  }
  return false;
}

std::optional<Json> outcome_of(const fs::path& run, std::int64_t last_step) {
  const fs::path checkpoint = last_checkpoint(run, last_step);
  if (!fs::exists(run / "metrics.jsonl") || manifest_fault(checkpoint)) return std::nullopt;
  Json last;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  std::int64_t step = 0, epoch_step = -1;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    if (json.contains("step")) step = json["step"];
    if (!json.contains("epoch") || json.contains("step")) continue;
    last = json;
    epoch_step = step;
  }
  // The last epoch's test may still be due when its last step is saved.
  if (epoch_step != last_step) return std::nullopt;
  Json outcome = Json::object();
  for (const char* key : {"train_loss", "train_accuracy", "test_loss", "test_accuracy"})
    if (last.contains(key)) outcome[key] = last[key];
  outcome["weights"] = sha256_of_file(checkpoint / "model.safetensors");
  return outcome;
}

}  // namespace regatta::tickets
