#include "exec/cuda_runner.h"

#include "base/error.h"

#if REGATTA_HAVE_CUDA

#include <starpu.h>

#include <map>

#include "backends/cuda/batch_norm.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/graph.h"
#include "backends/cuda/memory.h"
#include "backends/cuda/optimizer.h"
#include "exec/device.h"
#include "exec/frame.h"
#include "exec/interpreter.h"

namespace regatta {
namespace {

class CudaDevice : public Device {
 public:
  CudaDevice(const cuda::Backend& backend, cuda::Stream stream)
      : stream_(stream), worker_(backend, stream), hyper_(3 * sizeof(float), "hyperparameters") {}

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
  void reduce_slots(float* sum, std::span<const float* const> others, std::size_t count) override {
    cuda::reduce_slots(stream_, sum, others, count);
  }
  void sum_squares(const float*, std::span<const BucketTensor>, double*) override {
    throw InputError("--clip-norm is for CPUs: use --devices cpu");
  }
  void clip_scale(std::span<const double* const>, const UpdateNumbers&, float*) override {
    throw InputError("--clip-norm is for CPUs: use --devices cpu");
  }
  // The settings lie on the device, so that a captured step follows them: see follow().
  void update(const UpdateStep& step) override {
    if (step.kind != OptimizerKind::sgd || step.numbers->clip_value > 0 || step.average)
      throw InputError("GPUs take plain SGD's steps alone: use --devices cpu");
    cuda::sgd_step(stream_, reinterpret_cast<const float*>(hyper_.data()), step.gradient,
                   step.moments[0], step.parameters, step.count);
  }
  bool on_host() const override { return false; }
  bool finite(const void* values, Dtype dtype, std::size_t count) override {
    return cuda::all_finite(stream_, values, dtype, count);
  }

  void follow_step(std::uint64_t step) { worker_.follow(step); }

  // Brings the numbers of a step to the device when they have changed.
  void follow(const UpdateNumbers& numbers) {
    const std::array<float, 3> wanted{numbers.learning_rate, numbers.momentum,
                                      numbers.weight_decay};
    if (there_ && *there_ == wanted) return;
    there_ = wanted;
    cuda::upload(stream_, hyper_.data(), there_->data(), sizeof wanted);
  }

 private:
  cuda::Stream stream_;
  cuda::Worker worker_;
  cuda::DeviceMemory hyper_;
  std::optional<std::array<float, 3>> there_;
};

class GraphRunner : public CudaRunner {
 public:
  GraphRunner(const Blueprint& blueprint, GroupId group, const ExecOptions& options)
      : blueprint_(blueprint),
        stream_(starpu_cuda_get_local_stream()),
        backend_(blueprint.graph, {blueprint.group(group).layout, options.numbers.precision,
                                   options.numbers.samples, options.normalisation}),
        device_(backend_, stream_),
        frame_(blueprint) {}

  void run(const TaskRun& run, const std::vector<std::byte*>& pointers) override {
    device_.follow_step(run.submission->input.step);
    if (takes_step(run.submission->job)) device_.follow(run.submission->numbers);
    const auto enqueue = [&] {
      const Frame::Scope bound(frame_);
      for (std::size_t i = 0; i < pointers.size(); ++i)
        frame_.bind(run.list->buffers[run.task->accesses[i].buffer], pointers[i]);
      carry_out(blueprint_, *run.task, *run.submission, frame_, device_);
    };
    if (run.submission->looks) {
      enqueue();
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

 private:
  using Key = std::tuple<const Task*, std::int64_t, std::int64_t, std::vector<std::byte*>>;

  const Blueprint& blueprint_;
  cuda::Stream stream_;
  cuda::Backend backend_;
  CudaDevice device_;
  Frame frame_;
  std::map<Key, cuda::CapturedGraph> graphs_;
  std::size_t captures_ = 0;
};

}  // namespace

void require_cuda() {
  if (!cuda::available())
    throw InputError("no usable NVIDIA GPU or driver here: use --devices cpu");
}

std::unique_ptr<CudaRunner> make_cuda_runner(const Blueprint& blueprint, GroupId group,
                                             const ExecOptions& options) {
  return std::make_unique<GraphRunner>(blueprint, group, options);
}

}  // namespace regatta

#else

namespace regatta {

void require_cuda() {
  throw InputError("this build of regatta has no CUDA: use --devices cpu, or build where nvcc is");
}

std::unique_ptr<CudaRunner> make_cuda_runner(const Blueprint&, GroupId, const ExecOptions&) {
  throw Error("this build has no CUDA");
}

}  // namespace regatta

#endif
