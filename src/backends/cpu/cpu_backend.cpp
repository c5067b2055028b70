#include "backends/cpu/cpu_backend.h"

#include <omp.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "backends/cpu/conv.h"
#include "backends/cpu/dense.h"
#include "backends/cpu/fp32_copies.h"
#include "backends/cpu/parallel.h"
#include "base/error.h"

namespace regatta::cpu {

const KernelRow& kernel_for(std::string_view op) {
  using enum Bf16Values;
  static constexpr KernelRow rows[] = {
      {"adaptive_average_pool", make_adaptive_average_pool},
      {"add", make_add, kept},
      {"average_pool", make_average_pool},
      {"batch_norm", make_batch_norm, kept},
      {"concat", make_concat, kept},
      {"conv", make_conv, kept_in_blocks},
      {"cross_entropy", make_cross_entropy},
      {"dense", make_dense, kept},
      {"dropout", make_dropout},
      {"flatten", make_flatten, kept},
      {"gelu", make_gelu},
      {"global_average_pool", make_global_average_pool},
      {"input", make_input, kept},
      {"layer_norm", make_layer_norm},
      {"leaky_relu", make_leaky_relu},
      {"local_response_norm", make_local_response_norm},
      {"max_pool", make_max_pool, kept_in_blocks},
      {"relu", make_relu, kept},
      {"relu6", make_relu6},
      {"sigmoid", make_sigmoid},
      {"tanh", make_tanh},
  };
  for (const KernelRow& row : rows)
    if (row.op == op) return row;
  throw Error("the CPU backend has no kernel for '" + std::string(op) + "'");
}

Layout preferred_layout() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? Layout::blocked16 : Layout::blocked8;
#else
  return Layout::blocked8;
#endif
}

std::string hindrance(Precision precision, bool bf16) {
  if (precision == Precision::fp32) return "";
  const std::string name(precision_name(precision));
  if (precision != Precision::bf16)
    return "--precision " + name + " is for GPUs: use --devices cuda, or --precision fp32";
  if (bf16) return "";
  return "--precision " + name +
         " needs a processor that multiplies bf16 (avx512_bf16 or AMX), and this one does not: use "
         "--precision fp32, or --devices cuda";
}

Backend::Backend(const Graph& graph, Layout layout, std::int64_t samples, Dtype sample_dtype,
                 Normalisation normalisation, Precision precision)
    : graph_(graph),
      layouts_(value_layouts(graph, layout)),
      dtypes_(value_dtypes(graph, precision)),
      samples_(samples),
      sample_dtype_(sample_dtype),
      normalisation_(std::move(normalisation)),
      conv_formats_(graph.nodes().size()) {
  if (channel_block(layout) == 1)
    throw InputError("layout " + std::string(layout_name(layout)) +
                     " is not for CPU groups: use blocked8 or blocked16");
  if (const std::string why = hindrance(precision); !why.empty()) throw InputError(why);
  prepare_onednn();
}

Backend::~Backend() = default;

bool Backend::touches_bf16(const Node& node) const {
  const auto is_bf16 = [&](NodeId id) { return dtypes_[id.value] == Dtype::bf16; };
  return is_bf16(node.id) || std::ranges::any_of(node.inputs, is_bf16);
}

bool Backend::keeps_bf16(const Node& node) const {
  // Where bf16 ends in fp32 logits there are two types, and a kernel knows one.
  if (dtypes_[node.id.value] != Dtype::bf16) return false;
  const Bf16Values how = kernel_for(node.op->name).bf16;
  const bool planes = node.shape.rank() == 3 && channel_block(layouts_[node.id.value]) == 1;
  return how == Bf16Values::kept || (how == Bf16Values::kept_in_blocks && !planes);
}

Site Backend::site(const Node& node, std::int64_t n) const {
  return {graph_,         node,          layouts_, n,
          normalisation_, sample_dtype_, nullptr,  keeps_bf16(node) ? &dtypes_ : nullptr};
}

const ConvFormats* Backend::conv_formats(const Node& node) {
  // Planar ones read the parameters as they are.
  if (node.op->name != "conv" || site(node, samples_).planar()) return nullptr;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ConvFormats>& formats = conv_formats_[node.id.value];
  if (!formats) formats = std::make_unique<ConvFormats>(site(node, samples_));
  return formats.get();
}

struct Worker::Packers {
  std::vector<std::unique_ptr<ConvPacker>> by_node;
};

Worker::Worker(Backend& backend)
    : backend_(backend),
      kernels_(backend.graph_.nodes().size()),
      packers_(std::make_unique<Packers>()),
      scratch_(nullptr, std::free) {
  packers_->by_node.resize(backend.graph_.nodes().size());
}

Worker::~Worker() = default;

Kernel& Worker::kernel(const Node& node, std::int64_t n) {
  auto& made = kernels_[node.id.value];
  for (const auto& [samples, kernel] : made)
    if (samples == n) return *kernel;
  Site site = backend_.site(node, n);
  site.conv_formats = backend_.conv_formats(node);
  const MakeKernel make = kernel_for(node.op->name).make;
  if (backend_.touches_bf16(node) && !site.dtypes) {
    site.dtypes = &backend_.dtypes_;
    made.emplace_back(n, make_on_fp32_copies(site, make));
  } else {
    made.emplace_back(n, make(site));
  }
  return *made.back().second;
}

namespace {

constexpr std::size_t page = 4096;
std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

std::size_t Worker::scratch_bytes(const Instruction& step, std::int64_t n) {
  Kernel& made = kernel(backend_.graph_.node(step.node), n);
  made.prepare(step.work);
  return whole_pages(made.scratch_bytes());
}

std::byte* Worker::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reset();
    const std::size_t before = std::exchange(scratch_bytes_, whole_pages(bytes));
    scratch_.reset(static_cast<std::byte*>(std::aligned_alloc(page, scratch_bytes_)));
    if (!scratch_) throw std::bad_alloc();
    backend_.workspace_bytes_ += scratch_bytes_ - before;
  }
  return scratch_.get();
}

namespace {

// A chunk that got no sample of a short batch still owes its sums and gradients: zeros.
void run_empty(const Graph& graph, const Instruction& step, const Operands& o) {
  const Node& node = graph.node(step.node);
  if (!gives_parameter_gradients(step.work) || o.add_parameter_gradients) return;
  for (std::size_t i = 0; i < node.parameters.size(); ++i)
    std::fill_n(o.parameter_gradients[i], graph.parameter(node.parameters[i]).shape.elements(),
                0.0f);
}

}  // namespace

void Worker::run(const Instruction& step, const Operands& operands) {
  if (operands.n == 0) {
    run_empty(backend_.graph_, step, operands);
    return;
  }
  Kernel& made = kernel(backend_.graph_.node(step.node), operands.n);
  made.prepare(step.work);
  made.run(step.work, operands, scratch(made.scratch_bytes()));
}

void Worker::pack(const Node& node, std::span<const float* const> parameters, std::byte* packed,
                  std::size_t room) {
  if (node.op->name == "dense" && backend_.keeps_bf16(node)) {
    const Shape& weights = backend_.graph_.parameter(node.parameters[0]).shape;
    if (rounded_bytes(weights) > room)
      throw Error("dense '" + node.name + "': the plan has no room for its rounded weights");
    round_dense_weights(weights, parameters[0], packed);
    return;
  }
  const ConvFormats* formats = backend_.conv_formats(node);
  if (!formats) return;
  std::unique_ptr<ConvPacker>& packer = packers_->by_node[node.id.value];
  if (!packer) {
    if (formats->packed_bytes > room)
      throw Error("conv '" + node.name +
                  "': oneDNN's weights need more than the plan has room for");
    packer = std::make_unique<ConvPacker>(*formats);
  }
  (*packer)(parameters[0], formats->bias ? parameters[1] : nullptr, packed);
}

void prepare_worker_thread(int team) {
  omp_set_num_threads(team);
  set_team_size(team);
  const auto flush = [](int) {
    _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
  };
  parallel_parts(team, flush);
}

AsWorker::AsWorker(int team) : threads_(omp_get_max_threads()), team_(team_size()) {
  omp_set_num_threads(team);
  set_team_size(team);
}

AsWorker::~AsWorker() {
  omp_set_num_threads(threads_);
  set_team_size(team_);
}

}  // namespace regatta::cpu
