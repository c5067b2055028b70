#include "exec/perf_models.h"

#include <functional>

#include "exec/submission.h"

namespace regatta {
namespace {

const TaskRun& run_of(const starpu_task* task) { return *static_cast<TaskRun*>(task->cl_arg); }

// What tells tasks apart whose times differ; equal chunks of one segment share a history.
std::uint32_t footprint(starpu_task* task) {
  const TaskRun& run = run_of(task);
  std::uint64_t mark = run.task->actions.size();
  const auto mix = [&](std::uint64_t value) { mark = (mark ^ value) * 0x9e3779b97f4a7c15u; };
  for (const Action& action : run.task->actions) {
    mix(static_cast<std::uint64_t>(action.phase) + 1);
    mix(action.segment.value);
    mix(action.part);
    mix(action.bucket.value);
  }
  mix(std::hash<double>{}(run.task->flops));
  return static_cast<std::uint32_t>(mark ^ mark >> 32);
}

// Bookkeeping has no FLOPs, and a regression no use for zero.
std::size_t size_base(starpu_task* task, unsigned) {
  const TaskRun& run = run_of(task);
  if (run.task->flops >= 1) return static_cast<std::size_t>(run.task->flops);
  std::size_t bytes = 1;
  for (const Access& access : run.task->accesses) bytes += run.list->buffers[access.buffer].bytes;
  return bytes;
}

}  // namespace

PerfModels::PerfModels(PerfModel kind, const std::string& network) : kind_(kind) {
  for (std::size_t p = 0; p < phases; ++p)
    per_phase_[p].symbol = "regatta-" + network + "-" + std::string(perf_model_name(kind)) + "-" +
                           std::string(phase_name(static_cast<Phase>(p)));
}

void PerfModels::describe(const starpu_codelet& cpu, const starpu_codelet& cuda) {
  if (kind_ == PerfModel::fitted) return;
  for (PerPhase& phase : per_phase_) {
    starpu_perfmodel_init(&phase.model);
    phase.model.type = kind_ == PerfModel::history ? STARPU_HISTORY_BASED : STARPU_REGRESSION_BASED;
    phase.model.symbol = phase.symbol.c_str();
    if (kind_ == PerfModel::history) phase.model.footprint = footprint;
    if (kind_ == PerfModel::regression) phase.model.size_base = size_base;
    phase.cpu = cpu;
    phase.cuda = cuda;
    phase.cpu.model = phase.cuda.model = &phase.model;
    phase.cpu.name = phase.cuda.name = phase.symbol.c_str();
  }
}

starpu_codelet* PerfModels::of(const Task& task, bool on_gpu) {
  PerPhase& phase = per_phase_[static_cast<std::size_t>(task.actions.front().phase)];
  return on_gpu ? &phase.cuda : &phase.cpu;
}

}  // namespace regatta
