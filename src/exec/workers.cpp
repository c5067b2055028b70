#include "exec/workers.h"

#include <starpu.h>

#include <algorithm>

#include "exec/cpu_device.h"
#include "exec/interpreter.h"
#include "exec/null_device.h"
#include "exec/workspace.h"

namespace regatta {
namespace {

// Spins until `end`, without sleeping: a slow core, which it stands for, is not free for other
// threads either.
void wait_until(auto end) {
  while (TraceClock::now() < end) __builtin_ia32_pause();
}

}  // namespace

std::byte* data_of(void* buffer) {
  return reinterpret_cast<std::byte*>(STARPU_VARIABLE_GET_PTR(buffer));
}

Workers::Workers(const Blueprint& blueprint, const ExecOptions& options, const Runtime& runtime,
                 const WorkerIds& ids, const Copies& copies)
    : blueprint_(blueprint),
      options_(options),
      runtime_(runtime),
      ids_(ids),
      copies_(copies),
      backend_(options.null_kernels ? nullptr : make_cpu_backend(blueprint, options.normalisation)),
      masks_(bucket_masks(blueprint, options.masks)),
      workers_(STARPU_NMAXWORKERS) {
  const std::vector<double> slowness = slowness_of(blueprint.plan);
  for (std::size_t w = 0; w < slowness.size(); ++w)
    workers_[static_cast<std::size_t>(ids.workers[w])].slowness = slowness[w];
}

std::size_t Workers::workspace_bytes() const { return backend_ ? backend_->workspace_bytes() : 0; }

std::unique_ptr<Device> Workers::make_cpu_device() {
  if (options_.null_kernels) return std::make_unique<NullDevice>(blueprint_.graph.loss());
  return std::make_unique<CpuDevice>(*backend_, runtime_.team());
}

std::vector<const std::uint8_t*> Workers::mask_pointers() const {
  std::vector<const std::uint8_t*> pointers;
  for (const auto& mask : masks_) pointers.push_back(mask.empty() ? nullptr : mask.data());
  return pointers;
}

bool Workers::loads_for_gpu(const TaskRun& run) const {
  return run.task->actions.front().phase == Phase::load && run.submission->input.sent &&
         blueprint_.group(run.task->group).kind == DeviceKind::cuda;
}

Workers::Worker& Workers::this_worker() {
  return workers_[static_cast<std::size_t>(starpu_worker_get_id_check())];
}

void Workers::run_on_cpu(const TaskRun& run, void* buffers[]) {
  Worker& worker = this_worker();
  if (!worker.frame) {
    worker.frame = std::make_unique<Frame>(blueprint_, mask_pointers());
    runtime_.settle_worker();
    worker.cpu = make_cpu_device();
  }
  const auto begin = TraceClock::now();
  const Frame::Scope bound(*worker.frame);
  for (std::size_t i = 0; i < run.task->accesses.size(); ++i)
    worker.frame->bind(run.list->buffers[run.task->accesses[i].buffer],
                       run.at_gates() ? run.data[i].host : data_of(buffers[i]));
  carry_out(blueprint_, *run.task, *run.submission, *worker.frame, *worker.cpu, run.times);
  if (run.at_gates()) {
    const auto wrote = TraceClock::now();
    copies_.bring_to_gpu(run);
    if (loads_for_gpu(run)) run.submission->input.sent(TraceClock::now() - wrote);
  }
  if (options_.null_kernels) wait_until(begin + options_.null_kernels(*run.task));
  if (worker.slowness > 1) wait_until(begin + (TraceClock::now() - begin) * worker.slowness);
}

CudaRunner& Workers::this_gpu() {
  Worker& worker = this_worker();
  if (!worker.cuda) {
    const int id = starpu_worker_get_id();
    const auto group = std::ranges::find(ids_.gpu, id) - ids_.gpu.begin();
    worker.cuda =
        make_cuda_runner(blueprint_, GroupId{static_cast<std::uint32_t>(group)}, options_);
  }
  return *worker.cuda;
}

void Workers::run_on_gpu(const TaskRun& run, void* buffers[]) {
  std::vector<std::byte*> pointers(run.task->accesses.size());
  for (std::size_t i = 0; i < pointers.size(); ++i)
    pointers[i] = run.at_gates() ? run.data[i].device : data_of(buffers[i]);
  std::vector<cuda::Copy> copies;
  if (run.at_gates()) copies = copies_.to_host(run);
  runtime_.settle_gpu_worker();
  const LaunchesOf marked(run);
  this_gpu().run(run, pointers, copies);
}

bool Workers::saw_not_finite(GroupId group) const {
  const Worker& worker = workers_[static_cast<std::size_t>(ids_.gpu[group.value])];
  return worker.cuda && worker.cuda->saw_not_finite();
}

void Workers::forget_not_finite() {
  for (Worker& worker : workers_)
    if (worker.cuda) worker.cuda->forget_not_finite();
}

std::size_t Workers::graph_captures() const {
  std::size_t total = 0;
  for (const Worker& worker : workers_) total += worker.cuda ? worker.cuda->captures() : 0;
  return total;
}

}  // namespace regatta
