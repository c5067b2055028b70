#include "exec/workers.h"

#include <starpu.h>

#include <algorithm>

#include "exec/cpu_device.h"
#include "exec/interpreter.h"
#include "exec/null_device.h"

namespace regatta {
namespace {

// Without giving the core away: a slow core is not free for others either.
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
      backend_(options.null_kernels ? nullptr : make_backend()),
      masks_(bucket_masks(blueprint, options.masks)),
      workers_(STARPU_NMAXWORKERS) {
  const std::vector<double> slowness = slowness_of(blueprint.plan);
  for (std::size_t w = 0; w < slowness.size(); ++w)
    workers_[static_cast<std::size_t>(ids.workers[w])].slowness = slowness[w];
}

std::unique_ptr<cpu::Backend> Workers::make_backend() const {
  Layout layout = cpu::preferred_layout();
  // In a plan without a CPU group, CPU workers only load and update: the precision of values does
  // not concern them.
  Precision precision = Precision::fp32;
  for (const DeviceGroup* group : groups_of(blueprint_.plan)) {
    if (group->kind != DeviceKind::cpu) continue;
    layout = group->layout;
    precision = options_.numbers.precision;
  }
  // Sized for the largest chunk of any rank, so that other sizes follow its choice of formats.
  std::int64_t largest = std::ranges::max(blueprint_.chunks, {}, &Chunk::capacity).capacity;
  for (const std::int64_t capacity : blueprint_.ranks.chunks) largest = std::max(largest, capacity);
  return std::make_unique<cpu::Backend>(blueprint_.graph, layout, largest, options_.numbers.samples,
                                        options_.normalisation, precision);
}

std::unique_ptr<Device> Workers::make_cpu_device() {
  if (options_.null_kernels) return std::make_unique<NullDevice>(blueprint_.graph.loss());
  return std::make_unique<CpuDevice>(*backend_, runtime_.team());
}

std::vector<const std::uint8_t*> Workers::mask_pointers() const {
  std::vector<const std::uint8_t*> pointers;
  for (const auto& mask : masks_) pointers.push_back(mask.empty() ? nullptr : mask.data());
  return pointers;
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
  if (run.at_gates()) copies_.bring_to_gpu(run);
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
