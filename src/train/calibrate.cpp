#include "train/calibrate.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/random.h"
#include "exec/executor.h"
#include "exec/observe.h"
#include "exec/versions.h"
#include "graph/op.h"
#include "models/models.h"
#include "profile/robust.h"
#include "train/batches.h"
#include "train/job.h"
#include "train/weights.h"

namespace regatta {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int fewest_rounds = 2, rounds_before_judging = 6, most_rounds = 60;

// Steps of one plan, cut into equal chunks, on fewer live samples or more.
class Cell {
 public:
  Cell(const Graph& graph, const Recipe& recipe, std::shared_ptr<const Dataset> data,
       const CalibrationOptions& options, PlanOptions plan)
      : recipe_(recipe),
        data_(std::move(data)),
        options_(options),
        executor_(graph, make_plan(graph, recipe_, plan),
                  {{recipe_.loaded_dtype(), recipe_.precision, recipe_.optimizer},
                   recipe_.normalisation,
                   true,
                   recipe_.seed}) {
    initialise_weights(executor_, recipe_.seed);
    if (data_)
      visits_ = {data_, std::make_shared<const std::vector<std::int64_t>>(
                            data_->order(recipe_.seed, 0, recipe_.shuffle))};
    for (const DeviceGroup* group : groups_of(executor_.plan())) {
      gpu_ |= group->kind == DeviceKind::cuda;
      chunks_ += static_cast<std::int64_t>(group->chunks.size());
      largest_ = std::max(largest_, std::ranges::max(group->chunks));
    }
  }

  // Until all sizes are known well enough or time is up.
  std::vector<Observation> measure(Clock::time_point until) {
    const Clock::time_point begin = Clock::now();
    // What a first run costs, and whether a larger size can be afforded, shows as sizes grow: of a
    // large network small chunks tell enough.
    const Clock::time_point enough = begin + (until - begin) / 3;
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : sizes_to_try()) {
      if (!sizes.empty() && Clock::now() > enough) break;
      // A GPU captures its graph in the second run.
      for (int i = 0; i < (gpu_ ? 3 : 1); ++i) step(size);
      sizes.push_back(size);
    }
    std::vector<Observation> all;
    std::map<std::int64_t, std::vector<Observation>> by_size;
    std::set<std::int64_t> settled;
    for (int round = 0; round < most_rounds && settled.size() < sizes.size(); ++round) {
      // Round after round, so that whatever disturbs the machine for a while hits all sizes alike.
      for (const std::int64_t size : sizes) {
        if (settled.contains(size)) continue;
        if (round >= fewest_rounds && Clock::now() > until) return all;
        std::vector<Observation> seen = observe(size);
        all.insert(all.end(), seen.begin(), seen.end());
        std::vector<Observation>& so_far = by_size[size];
        so_far.insert(so_far.end(), seen.begin(), seen.end());
        if (round >= rounds_before_judging && round % 2 == 0 && error_of(so_far) < options_.enough)
          settled.insert(size);
      }
    }
    return all;
  }

  // Of the runtime, from a plan of many tasks.
  std::vector<Observation> measure_runtime(int steps) {
    step(largest_);
    std::vector<Observation> all;
    executor_.watch(
        [&](const ListTimes& done) {
          const std::vector<Observation> seen = runtime_observations_of(done);
          all.insert(all.end(), seen.begin(), seen.end());
        },
        false);
    for (int i = 0; i < steps; ++i) step(largest_);
    executor_.watch({}, false);
    return all;
  }

 private:
  // Powers of two, and what the batch is usually cut into.
  std::vector<std::int64_t> sizes_to_try() const {
    std::set<std::int64_t> sizes{largest_};
    for (std::int64_t size = 1; size < largest_; size *= 2) sizes.insert(size);
    sizes.insert(std::max<std::int64_t>(1, largest_ / 2));
    return {sizes.begin(), sizes.end()};
  }

  // One step with so many live samples in each chunk.
  void step(std::int64_t size) {
    StepInput input;
    const std::int64_t samples = std::min(size * chunks_, recipe_.batch);
    if (data_) {
      input = train_batch(visits_, 0, samples, recipe_, 0);
    } else {
      input.samples = samples;
      input.load = [this](std::int64_t first, std::int64_t count, std::byte* to, Target* targets) {
        fill(first, count, to, targets);
      };
    }
    input.learning_rate = 0;  // however long it is measured, nothing runs away
    executor_.wait(executor_.submit(Job::train, std::move(input)));
  }

  void fill(std::int64_t first, std::int64_t count, std::byte* to, Target* targets) const {
    const std::int64_t elements = recipe_.input.elements();
    const std::uint64_t key = random_key(recipe_.seed, stream_of("calibrate"));
    for (std::int64_t i = 0; i < count * elements; ++i) {
      const std::uint64_t bits = keyed_bits(key, static_cast<std::uint64_t>(first * elements + i));
      if (recipe_.loaded_dtype() == Dtype::u8) {
        to[i] = static_cast<std::byte>(bits & 0xff);
      } else {
        const float value = static_cast<float>(bits % 1000) / 1000.0f;
        std::memcpy(to + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
      }
    }
    for (std::int64_t i = 0; i < count; ++i)
      targets[i] = Target::of(static_cast<std::int32_t>((first + i) % recipe_.classes));
  }

  std::vector<Observation> observe(std::int64_t size) {
    std::vector<Observation> seen;
    executor_.watch(
        [&](const ListTimes& done) {
          if (!names_) names_.emplace(done.blueprint, recipe_.data, Pass::train);
          seen = observations_of(done, *names_);
        },
        true);
    step(size);
    executor_.watch({}, false);
    if (!data_)
      std::erase_if(seen, [](const auto& each) { return each.signature.starts_with("load "); });
    return seen;
  }

  // Of the sum of all that was observed of a size, as a share.
  static double error_of(const std::vector<Observation>& seen) {
    std::map<std::tuple<std::string_view, double, int>, std::vector<double>> timings;
    for (const Observation& each : seen)
      timings[{each.signature, each.size, each.busy}].push_back(each.seconds);
    double errors = 0, total = 0;
    for (const auto& [what, seconds] : timings) {
      const Typical found = typical(seconds);
      errors += found.value * found.error();
      total += found.value;
    }
    return total > 0 ? errors / total : 1;
  }

  Recipe recipe_;
  std::shared_ptr<const Dataset> data_;
  Visits visits_;
  const CalibrationOptions& options_;
  Executor executor_;
  std::optional<CostNames> names_;
  bool gpu_ = false;
  std::int64_t chunks_ = 0, largest_ = 0;
};

bool meets(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.op->meets; });
}

// Of a network so small that it is all runtime.
std::vector<Observation> measure_runtime(const CalibrationOptions& options) {
  const Graph graph = fuse(build_model("tiny"));
  Recipe recipe;
  recipe.model = "tiny";
  recipe.input = graph.node(graph.input()).shape;
  recipe.classes = graph.classes();
  recipe.normalisation = {1.0f / 255, std::vector(1, 0.0f), std::vector(1, 1.0f)};
  recipe.batch = options.workers;
  PlanOptions plan{.workers = options.workers, .layout = options.layout};
  plan.chunks = {options.workers};
  plan.segments = "op";
  Cell cell(graph, recipe, nullptr, options, plan);
  return cell.measure_runtime(60);
}

}  // namespace

ProfileStore profile_store() { return ProfileStore(machine_mark(library_versions())); }

std::vector<Observation> calibrate(const Graph& graph, const Recipe& recipe,
                                   const std::shared_ptr<const Dataset>& data,
                                   const CalibrationOptions& options) {
  std::vector<Observation> all;
  const auto take = [&](const std::vector<Observation>& seen) {
    all.insert(all.end(), seen.begin(), seen.end());
  };
  const Clock::time_point begin = Clock::now();
  if (options.runtime) take(measure_runtime(options));

  struct Kind {
    int workers, team;
    std::int64_t chunks;
  };
  std::vector<Kind> kinds;
  const auto most_chunks = [&](int workers) {
    return std::min<std::int64_t>(workers, recipe.batch);
  };
  const auto uses = [&](DeviceKind kind) {
    return std::ranges::find(options.devices, kind) != options.devices.end();
  };
  if (uses(DeviceKind::cpu)) {
    if (most_chunks(options.workers) > 1)
      kinds.push_back({options.workers, 1, most_chunks(options.workers)});
    kinds.push_back({1, 1, 1});
    for (const int team : options.teams) {
      const int workers = options.workers / team;
      if (team < 2 || workers < 1) continue;
      kinds.push_back({options.workers, team, most_chunks(workers)});
    }
    // Work at meeting points is another when it is cut.
    if (meets(graph) && recipe.batch > 1) kinds.push_back({1, 1, 2});
  }
  const bool gpu = uses(DeviceKind::cuda);
  std::size_t left = kinds.size() + (gpu ? 1 : 0);
  const auto deadline = [&] {
    const auto spent = Clock::now() - begin;
    const auto rest = std::max(std::chrono::duration_cast<Clock::duration>(options.budget) - spent,
                               Clock::duration{0});
    return Clock::now() + rest / static_cast<std::int64_t>(left--);
  };
  Recipe on_cpu = recipe;
  on_cpu.precision = Precision::fp32;
  for (const Kind& kind : kinds) {
    PlanOptions plan{.workers = kind.workers, .team = kind.team, .layout = options.layout};
    plan.chunks = {kind.chunks};
    const Clock::time_point until = deadline();
    take(Cell(graph, on_cpu, data, options, plan).measure(until));
  }
  if (gpu) {
    PlanOptions plan{.workers = options.workers, .layout = options.layout};
    plan.devices = {DeviceKind::cuda};
    plan.gpu_layout = options.gpu_layout;
    const Clock::time_point until = deadline();
    take(Cell(graph, recipe, data, options, plan).measure(until));
  }
  return all;
}

std::vector<Observation> calibrate_quickly(const Graph& graph, const Recipe& recipe,
                                           const std::shared_ptr<const Dataset>& data, int workers,
                                           Seconds budget) {
  CalibrationOptions options;
  options.workers = workers;
  options.layout = default_cpu_layout();
  options.budget = budget;
  // Fewer samples than workers: only teams can keep them all busy.
  if (recipe.batch < workers)
    for (int team = 2; team <= workers; team *= 2) options.teams.push_back(team);
  return calibrate(graph, recipe, data, options);
}

}  // namespace regatta
