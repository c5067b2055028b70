#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <optional>

#include "backends/cuda/conv_plan.h"
#include "backends/cuda/device_numbers.h"
#include "backends/cuda/kernel.h"
#include "backends/cuda/pack.h"

namespace regatta::cuda {

bool available() noexcept {
  int devices = 0;
  const bool found = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  cudaGetLastError();  // a machine without a driver is no error
  return found;
}

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&device));
  check(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

MemoryInfo memory_info() {
  MemoryInfo memory;
  check(cudaMemGetInfo(&memory.free, &memory.total));
  return memory;
}

MakeKernel kernel_for(std::string_view op) {
  struct Row {
    std::string_view op;
    MakeKernel make;
  };
  static constexpr std::array<Row, 21> rows{{{"adaptive_average_pool", make_adaptive_average_pool},
                                             {"add", make_add},
                                             {"average_pool", make_average_pool},
                                             {"batch_norm", make_batch_norm},
                                             {"concat", make_concat},
                                             {"conv", make_conv},
                                             {"cross_entropy", make_cross_entropy},
                                             {"dense", make_dense},
                                             {"dropout", make_dropout},
                                             {"flatten", make_flatten},
                                             {"gelu", make_activation},
                                             {"global_average_pool", make_global_average_pool},
                                             {"input", make_input},
                                             {"layer_norm", make_layer_norm},
                                             {"leaky_relu", make_activation},
                                             {"local_response_norm", make_local_response_norm},
                                             {"max_pool", make_max_pool},
                                             {"relu", make_activation},
                                             {"relu6", make_activation},
                                             {"sigmoid", make_activation},
                                             {"tanh", make_activation}}};
  for (const Row& row : rows)
    if (row.op == op) return row.make;
  throw Error("the CUDA backend has no kernel for '" + std::string(op) + "'");
}

Backend::Backend(const Graph& graph, Settings settings)
    : graph_(graph),
      settings_(std::move(settings)),
      layouts_(value_layouts(graph, settings_.layout)),
      dtypes_(value_dtypes(graph, settings_.precision)),
      flow_(graph) {
  if (channel_block(settings_.layout) != 1)
    throw InputError("layout " + std::string(layout_name(settings_.layout)) +
                     " is not for GPUs: use nhwc or nchw");
}

namespace {

template <class Handle, auto Create, auto Destroy>
class LibraryHandle {
 public:
  LibraryHandle() { check(Create(&handle_)); }
  ~LibraryHandle() { Destroy(handle_); }
  LibraryHandle(const LibraryHandle&) = delete;
  LibraryHandle& operator=(const LibraryHandle&) = delete;
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};

int processors() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// Calls body, naming the operator in what a library may say.
template <class Body>
void on_behalf_of(const Node& node, const Body& body) {
  try {
    body();
  } catch (const LibraryError& error) {
    throw Error(std::string(node.op->name) + " '" + node.name + "': " + error.what());
  }
}

}  // namespace

struct Worker::Impl {
  Impl(const Backend& shared, Stream stream)
      : backend(shared), plans(cudnn.get()), kernels(shared.graph_.nodes().size()) {
    check(cudnnSetStream(cudnn.get(), stream));
    tools = {stream, cudnn.get(), cublas.get(), processors(),
             &plans, nullptr,     nullptr,      reinterpret_cast<int*>(mark.data())};
    check(cudaMemsetAsync(mark.data(), 0, mark.bytes(), stream));
    const auto draws = [](const Node& node) { return node.op->name == "dropout"; };
    if (!std::ranges::any_of(shared.graph_.nodes(), draws)) return;
    step.emplace(stream, sizeof(std::uint64_t), "a step's number");
    tools.step = reinterpret_cast<const std::uint64_t*>(step->data());
  }

  Kernel& kernel(const Node& node, std::int64_t n) {
    auto& made = kernels[node.id.value];
    for (const auto& [samples, found] : made)
      if (samples == n) return *found;
    const Site site{
        backend.graph_, node, backend.settings_, backend.layouts_, backend.dtypes_, backend.flow_,
        tools,          n};
    made.emplace_back(n, kernel_for(node.op->name)(site));
    return *made.back().second;
  }

  // A captured graph keeps the addresses it has seen, so memory that was used is kept to the end.
  void reserve(const Node& node, std::size_t bytes) {
    if (bytes <= workspace.bytes()) return;
    if (workspace_used) retired.push_back(std::move(workspace));
    workspace_used = false;
    workspace = DeviceMemory();  // freed before more is asked for
    workspace = DeviceMemory(aligned(bytes), std::string(node.op->name) + " '" + node.name + "'");
    tools.workspace = workspace.data();
  }

  const Backend& backend;
  LibraryHandle<cudnnHandle_t, cudnnCreate, cudnnDestroy> cudnn;
  LibraryHandle<cublasLtHandle_t, cublasLtCreate, cublasLtDestroy> cublas;
  ConvPlans plans;
  DeviceMemory workspace;
  std::vector<DeviceMemory> retired;
  bool workspace_used = false;
  std::optional<DeviceNumbers> step;  // where some operator reads it
  DeviceMemory mark{sizeof(int), "a mark"};
  Tools tools;
  std::vector<std::vector<std::pair<std::int64_t, std::unique_ptr<Kernel>>>> kernels;  // by node
};

Worker::Worker(const Backend& backend, Stream stream)
    : impl_(std::make_unique<Impl>(backend, stream)) {}

Worker::~Worker() = default;

void Worker::follow(std::uint64_t step) {
  if (impl_->step) impl_->step->set(&step);
}

int* Worker::mark() const { return impl_->tools.mark; }

void Worker::forget_mark() {
  check(cudaMemsetAsync(impl_->mark.data(), 0, impl_->mark.bytes(), impl_->tools.stream));
}

void Worker::prepare(const Node& node, std::int64_t n, Pass pass) {
  if (n == 0) return;
  on_behalf_of(node, [&] {
    Kernel& kernel = impl_->kernel(node, n);
    kernel.prepare(pass);
    impl_->reserve(node, kernel.workspace_bytes());
  });
}

namespace {

// A chunk that got no sample of a short batch still owes its sums and gradients: zeros.
void run_empty(const Graph& graph, const Instruction& step, const Operands& o, Stream stream) {
  const Node& node = graph.node(step.node);
  const bool gives_gradients = step.work == Work::backward || step.work == Work::gradient_sums;
  if (!gives_gradients || o.add_parameter_gradients) return;
  for (std::size_t i = 0; i < node.parameters.size(); ++i) {
    const std::int64_t count = graph.parameter(node.parameters[i]).shape.elements();
    check(cudaMemsetAsync(o.parameter_gradients[i], 0,
                          static_cast<std::size_t>(count) * sizeof(float), stream));
  }
}

}  // namespace

void Worker::run(const Instruction& step, const Operands& operands) {
  const Graph& graph = impl_->backend.graph_;
  const Node& node = graph.node(step.node);
  prepare(node, operands.n, operands.pass);
  on_behalf_of(node, [&] {
    if (operands.n == 0) {
      run_empty(graph, step, operands, impl_->tools.stream);
      return;
    }
    impl_->workspace_used = true;
    impl_->kernel(node, operands.n).run(step.work, operands);
    check(cudaGetLastError());
  });
}

void Worker::pack(std::span<const PackItem> items) {
  const Settings& settings = impl_->backend.settings_;
  std::vector<WeightForm> forms;
  for (const PackItem& item : items)
    forms.push_back(
        weight_form(impl_->backend.graph_, *item.node, settings.layout, settings.precision));
  pack_weights(impl_->tools, forms, items);
}

void Worker::pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
                  std::size_t room) {
  const Settings& settings = impl_->backend.settings_;
  if (packed_bytes(impl_->backend.graph_, node, settings.layout, settings.precision) > room)
    throw Error(std::string(node.op->name) + " '" + node.name +
                "': packed weights need more than the plan has room for");
  const PackItem item{&node, parameters[0], packed};
  pack({&item, 1});
}

std::size_t Worker::workspace_bytes() const { return impl_->workspace.bytes(); }

}  // namespace regatta::cuda
