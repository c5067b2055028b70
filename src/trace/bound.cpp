#include "trace/bound.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "trace/loading.h"

namespace regatta::trace {
namespace {

// GPU kernels are recorded under the names that cuDNN, cuBLAS and CUTLASS give them.
bool multiplies(const OperatorKind& kind) {
  if (kind.op == "conv" || kind.op == "dense") return true;
  constexpr std::array words{"gemm", "conv", "xmma", "cutlass", "nvjet", "fprop", "dgrad", "wgrad"};
  return kind.op == "kernel" && std::ranges::any_of(words, [&](const char* word) {
           return kind.name.find(word) != std::string::npos;
         });
}

// False for loads, reductions and updates, which are recorded like operators, named by their phase.
bool computes(const OperatorKind& kind) { return kind.op != kind.work && kind.work != "pack"; }

}  // namespace

std::string_view bound_name(Bound bound) {
  constexpr std::array<std::string_view, 6> names{
      "compute-bound",  "memory-bound", "bound by computing",
      "starved by I/O", "launch-bound", "bound by waiting for each other"};
  return names[static_cast<std::size_t>(bound)];
}

std::optional<BoundShares> bound_of(const Record& record, const Analysis& found) {
  // Workers that only feed GPUs cost a step nothing while they keep up.
  const auto counts = [&](std::size_t w) {
    return record.workers[w].group != "host" && trace::computes(record.workers[w]);
  };
  double workers = 0, busy = 0, loading = 0, launching = 0, waiting = 0;
  for (std::size_t w = 0; w < record.workers.size(); ++w) {
    if (!counts(w)) continue;
    const WorkerUse& use = found.workers[w];
    ++workers;
    busy += seconds(use.busy);
    launching += seconds(use.overhead);
    for (std::size_t c = 0; c < cause_count; ++c) {
      const double slept = seconds(use.causes[c]);
      switch (static_cast<Cause>(c)) {
        case Cause::loader:
          loading += slept;
          break;
        case Cause::submission:
        case Cause::scheduling:
          launching += slept;
          break;
        default:
          waiting += slept;
      }
    }
  }
  const double all = workers * seconds(found.wall());
  if (all <= 0) return std::nullopt;
  // Seconds of loading: those of tasks that only load, or, where a chunk's first task loads too,
  // those that the training loop measured.
  double loads = 0;
  for (const KindUse& use : found.kinds)
    if (main_phase(record.kinds[static_cast<std::size_t>(use.kind)]) == "load" &&
        record.kinds[static_cast<std::size_t>(use.kind)].group != "host")
      loads += seconds(use.busy);
  const bool feeds_gpus = std::ranges::any_of(
      record.workers, [](const Worker& worker) { return worker.group == "host"; });
  if (const auto measured = loading_in(record, found.window); measured && !feeds_gpus)
    loads = std::max(loads, measured->times.seconds());
  loads = std::min(loads, busy);

  BoundShares shares;
  shares.computing = (busy - loads) / all;
  shares.loading = (loading + loads) / all;
  shares.launching = launching / all;
  shares.waiting = waiting / all;

  double multiplying = 0, streaming = 0;
  for (const Operator& each : record.operators) {
    const auto w = static_cast<std::size_t>(each.worker);
    if (each.worker < 0 || !counts(w)) continue;
    const OperatorKind& kind = record.operator_kinds[static_cast<std::size_t>(each.kind)];
    const double inside = seconds(std::max<Time>(
        0, std::min(each.end, found.window.end) - std::max(each.start, found.window.start)));
    if (computes(kind)) (multiplies(kind) ? multiplying : streaming) += inside;
  }
  if (multiplying + streaming > 0) {
    shares.arithmetic = shares.computing * multiplying / (multiplying + streaming);
    shares.streaming = shares.computing - *shares.arithmetic;
  }
  const double most =
      std::max({shares.computing, shares.loading, shares.launching, shares.waiting});
  shares.bound = most == shares.computing   ? !shares.arithmetic ? Bound::computing
                                              : *shares.arithmetic >= *shares.streaming
                                                  ? Bound::compute
                                                  : Bound::memory
                 : most == shares.loading   ? Bound::io
                 : most == shares.launching ? Bound::launch
                                            : Bound::waiting;
  return shares;
}

std::string shares_text(const BoundShares& shares) {
  char text[160];
  std::snprintf(text, sizeof text,
                "computing %.0f%%, loading %.0f%%, handing out tasks %.0f%%, waiting for each "
                "other %.0f%%",
                100 * shares.computing, 100 * shares.loading, 100 * shares.launching,
                100 * shares.waiting);
  return text;
}

std::string text_of(const BoundShares& shares) {
  std::string text = std::string(bound_name(shares.bound)) + ": of the workers' time " +
                     shares_text(shares) + "; of computing, ";
  if (!shares.arithmetic)
    return text + "how much streams memory is not available without --trace ops";
  char part[80];
  std::snprintf(part, sizeof part,
                "%.0f%% is convolutions and dense layers, the rest streams memory",
                100 * *shares.arithmetic / std::max(shares.computing, 1e-9));
  return text + part;
}

Json to_json(const BoundShares& shares) {
  const auto or_null = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  return {{"by", bound_name(shares.bound)},
          {"computing", shares.computing},
          {"loading", shares.loading},
          {"launching", shares.launching},
          {"waiting", shares.waiting},
          {"arithmetic", or_null(shares.arithmetic)},
          {"streaming", or_null(shares.streaming)}};
}

}  // namespace regatta::trace
