#include "backends/cuda/each.cuh"
#include "backends/cuda/pack.h"

namespace regatta::cuda {
namespace {

// 32-bit indices throughout: divisions are most of the work here, and no weight has 2^32 elements.
struct Item {
  const float* from;
  void* to;
  std::uint32_t count, inputs, packed_inputs, taps;
  bool narrow, channels_last;
};

struct Table {
  static constexpr std::size_t most = 64;  // a kernel's arguments hold 4 KiB
  Item items[most];
};

__global__ void __launch_bounds__(threads_per_block) pack_items(Table table) {
  const Item& item = table.items[blockIdx.y];
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < item.count;
       i += gridDim.x * blockDim.x) {
    std::uint32_t from = i;
    bool real = true;
    if (item.channels_last) {
      const std::uint32_t stored = item.packed_inputs;
      const std::uint32_t input = i % stored, tap = i / stored % item.taps;
      from = (i / (stored * item.taps) * item.inputs + input) * item.taps + tap;
      real = input < item.inputs;
    }
    const float value = real ? item.from[from] : 0.0f;
    if (item.narrow)
      static_cast<bf16*>(item.to)[i] = from_float<bf16>(value);
    else
      static_cast<float*>(item.to)[i] = value;
  }
}

template <class T>
struct Unpack {
  const T* packed;
  float* gradient;
  std::uint32_t inputs, packed_inputs, taps;
  bool channels_last, add;
  __device__ void operator()(std::int64_t index) const {
    const auto i = static_cast<std::uint32_t>(index);
    std::uint32_t from = i;
    if (channels_last) {
      const std::uint32_t tap = i % taps, input = i / taps % inputs;
      from = (i / (taps * inputs) * taps + tap) * packed_inputs + input;
    }
    const float value = to_float(packed[from]);
    gradient[i] = add ? gradient[i] + value : value;
  }
};

}  // namespace

bool WeightForm::plain() const {
  return dtype == Dtype::f32 && (!channels_last || (taps == 1 && packed_inputs == inputs));
}

std::size_t WeightForm::packed_bytes() const {
  return plain() ? 0 : static_cast<std::size_t>(packed_elements()) * dtype_bytes(dtype);
}

WeightForm weight_form(const Graph& graph, const Node& node, Layout layout, Precision precision) {
  const bool conv = node.op->name == "conv";
  if (!conv && node.op->name != "dense") return {};
  const Shape& shape = graph.parameter(node.parameters[0]).shape;
  const std::int64_t groups = conv ? node.attributes.integer("groups", 1) : 1;
  const bool of_images =
      conv && groups == 1 && layout == Layout::nhwc && node.inputs[0] == graph.input();
  // A depthwise weight has one filter per channel: seen as one output of all channels, its channels
  // too come last.
  const bool depthwise = groups > 1 && groups == shape[0] && shape[1] == 1;
  const std::int64_t inputs = depthwise ? shape[0] : shape[1];
  return {.dtype = precision == Precision::bf16 ? Dtype::bf16 : Dtype::f32,
          .channels_last = conv && layout == Layout::nhwc,
          .outputs = depthwise ? 1 : shape[0],
          .inputs = inputs,
          .taps = conv ? shape[2] * shape[3] : 1,
          .packed_inputs = of_images ? input_channels(graph, layout, precision) : inputs};
}

std::size_t packed_bytes(const Graph& graph, const Node& node, Layout layout, Precision precision) {
  return weight_form(graph, node, layout, precision).packed_bytes();
}

void unpack_gradient(const Tools& tools, const WeightForm& form, const std::byte* packed,
                     float* gradient, bool add) {
  with_type(form.dtype, [&]<class T>() {
    for_each_index(tools, form.elements(),
                   Unpack<T>{reinterpret_cast<const T*>(packed), gradient,
                             static_cast<std::uint32_t>(form.inputs),
                             static_cast<std::uint32_t>(form.packed_inputs),
                             static_cast<std::uint32_t>(form.taps), form.channels_last, add});
  });
}

void pack_weights(const Tools& tools, std::span<const WeightForm> forms,
                  std::span<const PackItem> items) {
  Table table;
  unsigned filled = 0;
  const auto launch = [&] {
    if (filled == 0) return;
    const dim3 grid(static_cast<unsigned>(tools.processors), filled);
    pack_items<<<grid, threads_per_block, 0, tools.stream>>>(table);
    check(cudaGetLastError());
    filled = 0;
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    const WeightForm& form = forms[i];
    if (form.packed_bytes() == 0) continue;
    table.items[filled++] = {items[i].weight,
                             items[i].packed,
                             static_cast<std::uint32_t>(form.packed_elements()),
                             static_cast<std::uint32_t>(form.inputs),
                             static_cast<std::uint32_t>(form.packed_inputs),
                             static_cast<std::uint32_t>(form.taps),
                             form.dtype == Dtype::bf16,
                             form.channels_last};
    if (filled == Table::most) launch();
  }
  launch();
}

}  // namespace regatta::cuda
