#ifdef REGATTA_HAVE_CUDA

#include "backends/cuda_run.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "backends/cuda/batch_norm.h"
#include "backends/cuda/check.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/memory.h"
#include "backends/cuda_memory.h"
#include "graph/op.h"
#include "tasks/memory.h"

namespace regatta {
namespace {

using cuda::check;
using cuda::DeviceMemory;

// Memory that starts out as NaNs, so that a value nobody wrote shows.
DeviceMemory poisoned(std::size_t bytes) {
  DeviceMemory memory(bytes, "a test");
  if (bytes > 0) check(cudaMemset(memory.data(), 0xff, bytes));
  return memory;
}

template <class T>
DeviceMemory uploaded(const T* values, std::size_t count) {
  DeviceMemory memory(count * sizeof(T), "a test");
  if (count > 0)
    check(cudaMemcpy(memory.data(), values, count * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

std::vector<float> downloaded(const DeviceMemory& memory, Dtype dtype) {
  std::vector<std::byte> bytes(memory.bytes());
  if (!bytes.empty())
    check(cudaMemcpy(bytes.data(), memory.data(), bytes.size(), cudaMemcpyDeviceToHost));
  std::vector<float> values(bytes.size() / dtype_bytes(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == Dtype::f32) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    } else {
      std::uint16_t half = 0;
      std::memcpy(&half, bytes.data() + 2 * i, 2);
      values[i] = std::bit_cast<float>(std::uint32_t{half} << 16);
    }
  }
  return values;
}

// From channels last, of which the first ones are real, to planes.
std::vector<float> planar(const std::vector<float>& values, const Shape& shape,
                          std::int64_t sample_elements) {
  const auto channels = static_cast<std::size_t>(shape.channels());
  const auto pixels = static_cast<std::size_t>(shape.height() * shape.width());
  const std::size_t padded = static_cast<std::size_t>(sample_elements) / pixels;
  std::vector<float> out(values.size() / padded * channels);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t sample = i / (pixels * channels), pixel = i % pixels;
    out[i] = values[(sample * pixels + pixel) * padded + i / pixels % channels];
  }
  return out;
}

float* floats(const DeviceMemory& memory) { return reinterpret_cast<float*>(memory.data()); }

// What one chunk keeps on the device.
struct ChunkMemory {
  std::int64_t first = 0, n = 0;
  DeviceMemory samples, targets;
  std::vector<DeviceMemory> values, gradients, stashes, partials;  // by node
};

class DeviceNetwork {
 public:
  DeviceNetwork(const Graph& graph, const ReferenceInput<float>& input,
                const CudaRunOptions& options)
      : graph_(graph),
        options_(options),
        flow_(graph),
        forms_(value_forms(graph, options.layout, options.precision)),
        backend_(graph, settings()),
        worker_(backend_, stream_.get()),
        samples_(std::reduce(options.chunks.begin(), options.chunks.end())),
        seed_(input.seed),
        step_(input.step) {
    for (const auto& values : input.parameters) {
      parameters_.push_back(uploaded(values.data(), values.size()));
      slots_.push_back(poisoned(values.size() * sizeof(float)));
    }
    for (const auto& values : input.states)
      states_.push_back(uploaded(values.data(), values.size()));
    for (const Node& node : graph.nodes()) {
      packed_.push_back(
          poisoned(cuda::packed_bytes(graph, node, options.layout, options.precision)));
      statistics_.push_back(poisoned(4 * row(node) * sizeof(float)));
    }
    std::int64_t first = 0;
    for (const std::int64_t n : options.chunks) {
      chunks_.push_back(chunk(input, first, n));
      first += n;
    }
    whole_ = chunk(input, 0, samples_);
    settle();
    pack();
  }

  std::vector<float> evaluate() {
    const Program program =
        program_of(graph_, graph_.input(), graph_.loss(), Pass::evaluate, false);
    for (const Instruction& step : program.forward.front())
      worker_.run(step, operands(step, whole_, Pass::evaluate, false));
    stream_.wait();
    return downloaded(whole_.values[graph_.logits().value], Dtype::f32);
  }

  // Eagerly, and then again from a captured graph where the options say so: it must follow the
  // number of the step, so the first run has another.
  void train() {
    prepare();
    worker_.follow(options_.captured ? step_ + 7 : step_);
    enqueue_step();
    stream_.wait();
    if (!options_.captured) return;
    for (ChunkMemory& chunk : chunks_)
      for (const DeviceMemory& memory : chunk.gradients) poison(memory);
    for (const DeviceMemory& memory : slots_) poison(memory);
    settle();
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal));
    enqueue_step();
    cudaGraph_t captured = nullptr;
    cudaGraphExec_t ready = nullptr;
    check(cudaStreamEndCapture(stream_.get(), &captured));
    check(cudaGraphInstantiate(&ready, captured, 0));
    worker_.follow(step_);
    check(cudaGraphLaunch(ready, stream_.get()));
    stream_.wait();
    check(cudaGraphExecDestroy(ready));
    check(cudaGraphDestroy(captured));
  }

  CudaRun results() const {
    CudaRun run;
    for (const Node& node : graph_.nodes()) {
      run.values.push_back(gathered(node, &ChunkMemory::values));
      run.value_gradients.push_back(flow_.wanted(node.id) && node.id != graph_.loss()
                                        ? gathered(node, &ChunkMemory::gradients)
                                        : std::vector<float>());
    }
    for (const DeviceMemory& slot : slots_)
      run.parameter_gradients.push_back(downloaded(slot, Dtype::f32));
    for (const DeviceMemory& state : states_) run.states.push_back(downloaded(state, Dtype::f32));
    return run;
  }

 private:
  cuda::Settings settings() const {
    const auto channels = static_cast<std::size_t>(graph_.node(graph_.input()).shape.channels());
    return {options_.layout,
            options_.precision,
            Dtype::f32,
            {1.0f, std::vector<float>(channels, 0.0f), std::vector<float>(channels, 1.0f)}};
  }

  static std::size_t row(const Node& node) {
    return static_cast<std::size_t>((node.shape.channels() + 15) / 16 * 16);
  }

  // Copies and fills go by the default stream, which ours does not wait for.
  static void settle() { check(cudaDeviceSynchronize()); }

  static void poison(const DeviceMemory& memory) {
    if (memory.bytes() > 0) check(cudaMemset(memory.data(), 0xff, memory.bytes()));
  }

  ChunkMemory chunk(const ReferenceInput<float>& input, std::int64_t first, std::int64_t n) const {
    const auto sample = static_cast<std::size_t>(graph_.node(graph_.input()).shape.elements());
    const auto from = static_cast<std::size_t>(first), count = static_cast<std::size_t>(n);
    ChunkMemory made;
    made.first = first;
    made.n = n;
    made.samples = uploaded(input.images.data() + from * sample, count * sample);
    std::vector<Target> targets;
    for (std::size_t i = 0; i < count; ++i) targets.push_back(Target::of(input.labels[from + i]));
    made.targets = uploaded(targets.data(), count);
    for (const Node& node : graph_.nodes()) {
      const std::int64_t elements = n * forms_[node.id.value].elements;
      const std::size_t bytes = forms_[node.id.value].bytes(n);
      made.values.push_back(poisoned(bytes));
      made.gradients.push_back(poisoned(bytes));
      made.stashes.push_back(poisoned(
          node.op->stash_bytes ? static_cast<std::size_t>(node.op->stash_bytes(node, elements))
                               : 0));
      made.partials.push_back(poisoned(2 * row(node) * sizeof(double)));
    }
    return made;
  }

  void pack() {
    std::vector<cuda::PackItem> items;
    for (const Node& node : graph_.nodes())
      if (!node.parameters.empty())
        items.push_back(
            {&node, floats(parameters_[node.parameters[0].value]), packed_[node.id.value].data()});
    worker_.pack(items);
  }

  void prepare() {
    for (const ChunkMemory& chunk : chunks_)
      for (const Node& node : graph_.nodes()) worker_.prepare(node, chunk.n);
  }

  void enqueue_step() {
    const bool cut = chunks_.size() > 1;
    const Program program = program_of(graph_, graph_.input(), graph_.loss(), Pass::train, cut);
    for (std::size_t part = 0; part < program.forward.size(); ++part) {
      run_part(program.forward[part]);
      if (part < program.meetings.size()) meet(program.meetings[part], false);
    }
    for (std::size_t part = 0; part < program.backward.size(); ++part) {
      run_part(program.backward[part]);
      if (part < program.meetings.size())
        meet(program.meetings[program.meetings.size() - 1 - part], true);
    }
  }

  void run_part(const Part& part) {
    for (std::size_t c = 0; c < chunks_.size(); ++c)
      for (const Instruction& step : part)
        worker_.run(step, operands(step, chunks_[c], Pass::train, c > 0));
  }

  void meet(NodeId id, bool back) {
    const Node& node = graph_.node(id);
    const auto pixels = static_cast<double>(node.shape.height() * node.shape.width());
    std::vector<PartialSums> sums;
    for (const ChunkMemory& chunk : chunks_)
      sums.push_back({reinterpret_cast<const double*>(chunk.partials[id.value].data()),
                      static_cast<double>(chunk.n) * pixels});
    float* statistics = floats(statistics_[id.value]);
    if (back) {
      cuda::combine_gradients(stream_.get(), node, sums, statistics);
    } else {
      std::vector<float*> states;
      for (const StateId state : node.states) states.push_back(floats(states_[state.value]));
      cuda::combine_statistics(stream_.get(), node, sums, statistics, states);
    }
  }

  Operands operands(const Instruction& step, const ChunkMemory& chunk, Pass pass, bool add) const {
    const Node& node = graph_.node(step.node);
    const std::size_t id = node.id.value;
    Operands o;
    o.n = chunk.n;
    o.pass = pass;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      o.inputs[i] = floats(chunk.values[node.inputs[i].value]);
      o.input_gradients[i] = floats(chunk.gradients[node.inputs[i].value]);
      o.gradient_modes[i] = flow_.mode(node.id, i);
    }
    o.output = floats(chunk.values[id]);
    o.output_gradient = floats(chunk.gradients[id]);
    for (std::size_t i = 0; i < node.parameters.size(); ++i) {
      o.parameters[i] = floats(parameters_[node.parameters[i].value]);
      o.parameter_gradients[i] = floats(slots_[node.parameters[i].value]);
    }
    o.add_parameter_gradients = add;
    o.packed = packed_[id].data();
    o.stash = pass == Pass::train ? chunk.stashes[id].data() : nullptr;
    for (std::size_t i = 0; i < node.states.size(); ++i)
      o.states[i] = floats(states_[node.states[i].value]);
    o.statistics = floats(statistics_[id]);
    o.partials = reinterpret_cast<double*>(chunk.partials[id].data());
    o.samples = chunk.samples.data();
    o.targets = reinterpret_cast<const Target*>(chunk.targets.data());
    o.loss_scale = 1.0f / static_cast<float>(samples_);
    o.seed = seed_;
    o.first_sample = chunk.first;
    return o;
  }

  std::vector<float> gathered(const Node& node,
                              std::vector<DeviceMemory> ChunkMemory::*memory) const {
    std::vector<float> all;
    for (const ChunkMemory& chunk : chunks_) {
      const std::size_t id = node.id.value;
      std::vector<float> values = downloaded((chunk.*memory)[id], forms_[id].dtype);
      if (forms_[id].layout == Layout::nhwc)
        values = planar(values, node.shape, forms_[id].elements);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  const Graph& graph_;
  const CudaRunOptions& options_;
  GradientFlow flow_;
  std::vector<ValueForm> forms_;
  TestStream stream_;
  cuda::Backend backend_;
  cuda::Worker worker_;
  std::int64_t samples_;
  std::uint64_t seed_, step_;
  std::vector<DeviceMemory> parameters_, slots_, states_, packed_, statistics_;
  std::vector<ChunkMemory> chunks_;
  ChunkMemory whole_;
};

}  // namespace

CudaRun run_on_gpu(const Graph& graph, const ReferenceInput<float>& input,
                   const CudaRunOptions& options) {
  DeviceNetwork network(graph, input, options);
  const std::vector<float> logits = network.evaluate();
  network.train();
  CudaRun run = network.results();
  run.logits = logits;
  return run;
}

}  // namespace regatta

#endif  // REGATTA_HAVE_CUDA
