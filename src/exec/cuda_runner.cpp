#include "exec/cuda_runner.h"

#include "base/error.h"

#if REGATTA_HAVE_CUDA

#include <starpu.h>

#include <atomic>
#include <map>
#include <optional>

#include "backends/cuda/batch_norm.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/graph.h"
#include "backends/cuda/grouped_batch_norm.h"
#include "backends/cuda/memory.h"
#include "backends/cuda/optimizer.h"
#include "backends/cuda/slow_down.h"
#include "exec/device.h"
#include "exec/frame.h"
#include "exec/interpreter.h"

namespace regatta {
namespace {

class CudaDevice : public Device {
 public:
  CudaDevice(const cuda::Backend& backend, cuda::Stream stream)
      : stream_(stream), worker_(backend, stream), optimizer_(stream, worker_.mark()) {}

  void run(const Instruction& step, const Operands& operands) override {
    worker_.run(step, operands);
  }
  void pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
            std::size_t room) override {
    worker_.pack(node, parameters, packed, room);
  }
  void combine_statistics(const Node& node, std::span<const PartialSums> chunks, float* statistics,
                          std::span<float* const> states) override {
    cuda::combine_statistics(stream_, node, chunks, statistics, states);
  }
  void combine_gradients(const Node& node, std::span<const PartialSums> chunks,
                         float* statistics) override {
    cuda::combine_gradients(stream_, node, chunks, statistics);
  }
  void track_statistics(const Node& node, std::span<const GroupSums> chunks,
                        std::span<float* const> states) override {
    cuda::track_statistics(stream_, node, chunks, states);
  }
  void reduce_slots(float* sum, std::span<const float* const> others, std::size_t count) override {
    cuda::reduce_slots(stream_, sum, others, count);
  }
  // The numbers of a step lie on the device, so that a captured step follows them: see follow().
  void sum_squares(const float* gradient, std::span<const BucketTensor> tensors,
                   const std::uint8_t* mask, double* sum) override {
    optimizer_.sum_squares(gradient, tensors, mask, sum);
  }
  void clip_scale(std::span<const double* const> sums, const UpdateNumbers&,
                  float* scale) override {
    optimizer_.clip_scale(sums, scale);
  }
  void update(const UpdateStep& step) override { optimizer_.update(step); }
  bool on_host() const override { return false; }
  bool finite(const void* values, Dtype dtype, std::size_t count) override {
    return cuda::all_finite(stream_, values, dtype, count);
  }

  // Brings what changes from step to step to the device; between captures.
  void follow(const Submission& submission) {
    worker_.follow(submission.input.step);
    if (takes_step(submission.job)) optimizer_.follow(submission.numbers);
  }
  bool saw_not_finite() const { return optimizer_.saw_not_finite(); }
  void forget_not_finite() {
    worker_.forget_mark();
    optimizer_.forget_not_finite();
  }

 private:
  cuda::Stream stream_;
  cuda::Worker worker_;
  cuda::Optimizer optimizer_;
};

class GraphRunner : public CudaRunner {
 public:
  GraphRunner(const Blueprint& blueprint, GroupId group, const ExecOptions& options)
      : blueprint_(blueprint),
        stream_(starpu_cuda_get_local_stream()),
        backend_(blueprint.graph, {blueprint.group(group).layout, options.numbers.precision,
                                   options.numbers.samples, options.normalisation}),
        device_(backend_, stream_),
        frame_(blueprint, bring_masks(bucket_masks(blueprint, options.masks))) {
    if (const std::vector<double>& slow = blueprint.group(group).slow; !slow.empty())
      slow_down_.emplace(stream_, slow.front());
  }

  void run(const TaskRun& run, const std::vector<std::byte*>& pointers,
           std::span<const cuda::Copy> copies) override {
    if (forgets_.exchange(false)) device_.forget_not_finite();
    device_.follow(*run.submission);
    const auto enqueue = [&] {
      const Frame::Scope bound(frame_);
      if (slow_down_) slow_down_->begin();
      for (std::size_t i = 0; i < pointers.size(); ++i)
        frame_.bind(run.list->buffers[run.task->accesses[i].buffer], pointers[i]);
      carry_out(blueprint_, *run.task, *run.submission, frame_, device_);
      if (slow_down_) slow_down_->end();
      for (const cuda::Copy& copy : copies)
        cuda::enqueue_copy(stream_, copy.to, copy.from, copy.bytes);
    };
    if (run.submission->checks_values) {
      enqueue();
      forgets_ = true;  // what was looked at has set the mark again
      return;
    }
    // Addresses and live samples are baked into a graph. The first run is eager: libraries choose
    // algorithms and load kernels then, which a capture forbids. The second is captured.
    const auto [found, fresh] =
        graphs_.try_emplace({run.task, run.submission->input.samples,
                             run.submission->input.samples_of_step(), pointers});
    if (fresh) {
      enqueue();
      return;
    }
    if (!found->second) {
      found->second = cuda::CapturedGraph(stream_, enqueue);
      ++captures_;
    }
    found->second.launch(stream_);
  }

  std::size_t captures() const override { return captures_; }

  bool saw_not_finite() const override { return device_.saw_not_finite(); }

  // Left to the worker's own thread, whose device it is.
  void forget_not_finite() override { forgets_ = true; }

 private:
  using Key = std::tuple<const Task*, std::int64_t, std::int64_t, std::vector<std::byte*>>;

  // Copies them to the device; null where there is none.
  std::vector<const std::uint8_t*> bring_masks(
      const std::vector<std::vector<std::uint8_t>>& masks) {
    std::vector<const std::uint8_t*> pointers;
    for (const std::vector<std::uint8_t>& mask : masks) {
      masks_.push_back(cuda::on_device(mask, "a mask of weights"));
      pointers.push_back(reinterpret_cast<const std::uint8_t*>(masks_.back().data()));
    }
    return pointers;
  }

  const Blueprint& blueprint_;
  cuda::Stream stream_;
  cuda::Backend backend_;
  CudaDevice device_;
  std::vector<cuda::DeviceMemory> masks_;  // by bucket
  Frame frame_;
  std::optional<cuda::SlowDown> slow_down_;
  std::map<Key, cuda::CapturedGraph> graphs_;
  std::size_t captures_ = 0;
  std::atomic<bool> forgets_ = false;
};

}  // namespace

void require_cuda() {
  if (!cuda::available())
    throw InputError("no usable NVIDIA GPU or driver here: use --devices cpu");
}

MemoryLimit gpu_memory_limit() {
  require_cuda();
  const cuda::MemoryInfo memory = cuda::memory_info();
  return {"the GPU", static_cast<std::int64_t>(memory.total),
          static_cast<std::int64_t>(memory.free)};
}

std::unique_ptr<CudaRunner> make_cuda_runner(const Blueprint& blueprint, GroupId group,
                                             const ExecOptions& options) {
  return std::make_unique<GraphRunner>(blueprint, group, options);
}

// A stream that is broken says so again at the next call, whose task may fail by it.
void enqueue_zero(float* values, std::size_t count) noexcept {
  cudaMemsetAsync(values, 0, count * sizeof(float), starpu_cuda_get_local_stream());
}

void enqueue_add(float* sum, const float* other, std::size_t count) noexcept {
  try {
    cuda::reduce_slots(starpu_cuda_get_local_stream(), sum, {&other, 1}, count);
  } catch (const Error&) {
    return;  // see above
  }
}

std::unique_ptr<cuda::KernelLog> open_kernel_log(std::string& why) {
  return cuda::open_kernel_log(why);
}

void copy_on_device(int device, std::span<const cuda::Copy> copies) { cuda::copy(device, copies); }
void zero_on_device(int device, void* data, std::size_t bytes) { cuda::zero(device, data, bytes); }

}  // namespace regatta

#else

namespace regatta {

void require_cuda() {
  throw InputError("this build of regatta has no CUDA: use --devices cpu, or build where nvcc is");
}

MemoryLimit gpu_memory_limit() {
  require_cuda();
  return {};
}

std::unique_ptr<CudaRunner> make_cuda_runner(const Blueprint&, GroupId, const ExecOptions&) {
  throw Error("this build has no CUDA");
}

void enqueue_zero(float*, std::size_t) noexcept {}
void enqueue_add(float*, const float*, std::size_t) noexcept {}
std::unique_ptr<cuda::KernelLog> open_kernel_log(std::string&) { return nullptr; }
void copy_on_device(int, std::span<const cuda::Copy>) {}
void zero_on_device(int, void*, std::size_t) {}

}  // namespace regatta

#endif
