#include "backends/cuda/conv_plan.h"

#include <algorithm>
#include <array>
#include <vector>

namespace regatta::cuda {
namespace {

// Engines that want more than this are passed over.
constexpr std::size_t most_workspace = std::size_t{1} << 30;

// The names by which data pointers find their tensors.
constexpr std::array<std::int64_t, 3> tensor_ids{1, 2, 3};  // input, weights, output

cudnnDataType_t data_type(Dtype dtype) {
  return dtype == Dtype::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// Weights lie as images do: outputs x inputs x rows x columns, or inputs innermost.
Descriptor tensor(std::int64_t id, Dtype dtype, Layout layout,
                  const std::array<std::int64_t, 4>& extents) {
  const auto [n, c, h, w] = extents;
  const std::array<std::int64_t, 4> planes{c * h * w, h * w, w, 1};
  const std::array<std::int64_t, 4> channels_last{h * w * c, 1, w * c, c};
  const std::array<std::int64_t, 4>& strides = layout == Layout::nhwc ? channels_last : planes;
  constexpr std::int64_t alignment = 16;
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(dtype));
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, extents.data(), 4);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
  made.finalize();
  return made;
}

Descriptor window(const ConvProblem& p) {
  const std::array<std::int64_t, 2> before{p.pad_h, p.pad_w}, after{p.pad_after_h, p.pad_after_w},
      stride{p.stride_h, p.stride_w}, dilation{p.dilation_h, p.dilation_w};
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, before.data(), 2);
  made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, after.data(), 2);
  made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, stride.data(), 2);
  made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilation.data(), 2);
  made.finalize();
  return made;
}

// What one direction is called.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t input, weights, output, window, alpha, beta;
};

Names names_of(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvDirection::input_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvDirection::weight_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  throw Error("unknown direction of a convolution");
}

std::shared_ptr<const ConvGraph> conv_graph(cudnnHandle_t cudnn, const ConvProblem& p) {
  const Names names = names_of(p.direction);
  ConvGraph made{
      tensor(tensor_ids[0], p.values, p.layout, {p.n, p.inputs, p.height, p.width}),
      // How many groups there are, cuDNN sees from the channels that a filter has.
      tensor(tensor_ids[1], p.weights, p.layout,
             {p.outputs, p.inputs / p.groups, p.kernel_h, p.kernel_w}),
      tensor(tensor_ids[2], p.values, p.layout, {p.n, p.outputs, p.out_height, p.out_width}),
      window(p), Descriptor(names.operation), Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)};
  made.operation.set(names.window, made.window);
  made.operation.set(names.input, made.input);
  made.operation.set(names.weights, made.weights);
  made.operation.set(names.output, made.output);
  made.operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
  made.operation.set(names.beta, CUDNN_TYPE_FLOAT, p.accumulate ? 1.0f : 0.0f);
  made.operation.finalize();
  made.graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, made.operation);
  made.graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, cudnn);
  made.graph.finalize();
  return std::make_shared<const ConvGraph>(std::move(made));
}

// Engines in the order cuDNN prefers them; none where it knows none.
std::vector<Descriptor> engine_configs(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (heuristic.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(configs.back().get());
  }
  std::int64_t found = 0;
  check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &found, handles.data()));
  configs.erase(configs.begin() + std::min(found, count), configs.end());
  return configs;
}

// The same inputs must always give the same bits, and fp32 must stay fp32.
bool keeps_promises(const Descriptor& config, const ConvProblem& p) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &handle));
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  check(cudnnBackendGetAttribute(handle, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), &count, notes.data()));
  const auto says = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.begin() + count, note) != notes.begin() + count;
  };
  if (says(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (p.precision != Precision::fp32) return true;
  return !says(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) && !says(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

// Null where the engine turns out not to take the problem, as heuristics cannot always tell.
std::unique_ptr<ConvPlan> plan_with(cudnnHandle_t cudnn,
                                    const std::shared_ptr<const ConvGraph>& graph,
                                    Descriptor config) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, cudnn);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (plan.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
  std::int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes));
  if (static_cast<std::size_t>(bytes) > most_workspace) return nullptr;
  return std::make_unique<ConvPlan>(graph, std::move(config), std::move(plan),
                                    static_cast<std::size_t>(bytes));
}

// Null where cuDNN does not even let the problem be said.
std::shared_ptr<const ConvGraph> try_graph(cudnnHandle_t cudnn, const ConvProblem& problem) {
  try {
    return conv_graph(cudnn, problem);
  } catch (const LibraryError&) {
    return nullptr;
  }
}

std::unique_ptr<ConvPlan> choose(cudnnHandle_t cudnn, const ConvProblem& problem) {
  const auto graph = try_graph(cudnn, problem);
  if (!graph) return nullptr;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (Descriptor& config : engine_configs(graph->graph, mode)) {
      if (!keeps_promises(config, problem)) continue;
      if (auto plan = plan_with(cudnn, graph, std::move(config))) return plan;
    }
  return nullptr;
}

}  // namespace

void ConvPlan::run(cudnnHandle_t cudnn, const void* input, const void* weights, const void* output,
                   std::byte* workspace) const {
  const std::array<const void*, 3> pointers{input, weights, output};
  Descriptor arguments(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), 3);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensor_ids.data(), 3);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  arguments.finalize();
  check(cudnnBackendExecute(cudnn, plan_.get(), arguments.get()));
}

const ConvPlan* ConvPlans::find(const ConvProblem& problem) {
  const auto found = plans_.find(problem);
  if (found != plans_.end()) return found->second.get();
  return plans_.emplace(problem, choose(cudnn_, problem)).first->second.get();
}

}  // namespace regatta::cuda
