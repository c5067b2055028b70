#include "tune/recomputation.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/formatted.h"
#include "exec/cuda_runner.h"
#include "plan/segments.h"
#include "train/memory_check.h"
#include "tune/choose_devices.h"

namespace regatta {
namespace {

// A way to cut the network, and how many of its segments are computed again.
struct Cut {
  std::string segments;
  std::size_t many = 0;      // number of segments
  std::size_t computed = 0;  // how many are computed again, from the first on
};

class Recomputations {
 public:
  Recomputations(const TrainJob& job, const PlanOptions& options, const MemoryLeft& left)
      : job_(job), options_(options), left_(left) {}

  // The first cut that fits, or the one that needs least; none where no segment can be computed
  // again.
  std::optional<Cut> choose() const {
    std::vector<std::string> cuts{"block", "2", "3", "4", "6", "8", "12", "16", "24", "32"};
    if (options_.segments) cuts = {*options_.segments};
    std::optional<Cut> least;
    for (const std::string& segments : cuts) {
      if (segments != "block" && !options_.segments &&
          std::stoul(segments) > job_.graph.nodes().size())
        break;
      const std::size_t many = segments_named(job_.graph, segments).size();
      if (many == 1) continue;
      const Cut cut{segments, many, many - 1};
      if (fits(with(cut))) return fewest(cut);
      if (!least || bytes(with(cut)) < bytes(with(*least))) least = cut;
    }
    return least;
  }

  PlanOptions with(const Cut& cut) const {
    PlanOptions options = options_;
    options.segments = cut.segments;
    options.backward = Backward::whole;
    options.recompute = "0-" + std::to_string(cut.computed - 1);
    return options;
  }

  bool fits(const PlanOptions& options) const {
    const Plan plan = plan_of(options);
    return regatta::fits(job_, plan, left_.node) &&
           (!left_.gpu || fits_gpu(job_, plan, *left_.gpu));
  }
  std::size_t bytes(const PlanOptions& options) const {
    const Plan plan = plan_of(options);
    return left_.gpu ? gpu_memory_needed(job_, plan) : memory_needed(job_, plan);
  }

 private:
  // Halves the range: the more segments are computed again, the less memory is needed.
  Cut fewest(Cut cut) const {
    std::size_t too_few = 0;
    while (cut.computed - too_few > 1) {
      Cut middle = cut;
      middle.computed = (too_few + cut.computed) / 2;
      if (fits(with(middle)))
        cut = middle;
      else
        too_few = middle.computed;
    }
    return cut;
  }

  // The plan that is made if nothing is measured. Measured costs may choose another, of those that
  // fit. Where the GPU's share of the batch is still open, the GPU computes the whole batch.
  Plan plan_of(PlanOptions options) const {
    if (options.devices.size() > 1 && !options.shares) {
      options.devices = {DeviceKind::cuda};
      options.chunks.reset();
    }
    return make_plan(job_.graph, job_.recipe, options);
  }

  const TrainJob& job_;
  const PlanOptions& options_;
  const MemoryLeft& left_;
};

}  // namespace

MemoryLeft memory_left(const PlanOptions& options) {
  MemoryLeft left{memory_limits()};
  if (computes(options, DeviceKind::cuda)) left.gpu = gpu_memory_limit();
  return left;
}

std::string settle_recomputation(const TrainJob& job, PlanOptions& options,
                                 const MemoryLeft& left) {
  if (!options.recompute) return "";
  if (*options.recompute != "auto") {
    if (!options.segments) options.segments = "block";
    if (!options.backward) options.backward = Backward::whole;
    return "";
  }
  if (options.backward == Backward::split)
    throw InputError(
        "--recompute auto: a split backward needs all values kept: drop --backward split");
  options.recompute.reset();
  const PlanOptions keeping = options;
  const Recomputations recomputations(job, keeping, left);
  if (recomputations.fits(keeping)) return "";
  const std::optional<Cut> cut = recomputations.choose();
  if (!cut) return "";
  options = recomputations.with(*cut);
  return formatted(
      "segments %s of %zu (--segments %s) are computed again in backward: at least %.0f MB instead "
      "of %.0f",
      options.recompute->c_str(), cut->many, cut->segments.c_str(),
      1e-6 * static_cast<double>(recomputations.bytes(options)),
      1e-6 * static_cast<double>(recomputations.bytes(keeping)));
}

void suggest_recompute(const TrainJob& job, const PlanOptions& options,
                       const std::function<MemoryLeft()>& left,
                       const std::function<void()>& check) try {
  check();
} catch (const InputError& refusal) {
  if (options.recompute || options.backward == Backward::split) throw;
  const MemoryLeft room = left();
  const Recomputations recomputations(job, options, room);
  if (recomputations.fits(options)) throw;  // and so would auto
  const std::optional<Cut> cut = recomputations.choose();
  if (!cut || !recomputations.fits(recomputations.with(*cut))) throw;
  throw InputError(std::string(refusal.what()) + ", and --recompute auto fits this one");
}

}  // namespace regatta
