#include "backends/cuda/each.cuh"
#include "backends/cuda/pack.h"

namespace regatta::cuda {
namespace {

// 32-bit indices throughout: divisions are most of the work here, and no weight has 2^32 elements.
struct Item {
  const float* from;
  void* to;
  std::uint32_t outputs, inputs, taps, padded_outputs, padded_inputs;
  bool narrow, channels_last;
};

struct Table {
  static constexpr std::size_t most = 64;  // a kernel's arguments hold 4 KiB
  Item items[most];
};

__global__ void __launch_bounds__(threads_per_block) pack_items(Table table) {
  const Item& item = table.items[blockIdx.y];
  const std::uint32_t count = item.padded_outputs * item.padded_inputs * item.taps;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t row = item.padded_inputs * item.taps;
    const std::uint32_t output = i / row, rest = i % row;
    const std::uint32_t input = item.channels_last ? rest % item.padded_inputs : rest / item.taps;
    const std::uint32_t tap = item.channels_last ? rest / item.padded_inputs : rest % item.taps;
    const bool real = output < item.outputs && input < item.inputs;
    const float value = real ? item.from[(output * item.inputs + input) * item.taps + tap] : 0.0f;
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
  std::uint32_t inputs, taps, padded_inputs;
  bool channels_last, add;
  __device__ void operator()(std::int64_t index) const {
    const auto i = static_cast<std::uint32_t>(index);
    const std::uint32_t tap = i % taps, input = i / taps % inputs, output = i / (taps * inputs);
    const std::uint32_t from = channels_last ? (output * taps + tap) * padded_inputs + input
                                             : (output * padded_inputs + input) * taps + tap;
    const float value = to_float(packed[from]);
    gradient[i] = add ? gradient[i] + value : value;
  }
};

// cuDNN's fast kernels want whole vectors of channels; four is enough for a network's images.
std::int64_t padded_image(std::int64_t channels) {
  return channels <= 4 ? 4 : (channels + 7) / 8 * 8;
}

}  // namespace

bool WeightForm::plain() const {
  const bool padded = outputs != padded_outputs || inputs != padded_inputs;
  return dtype == Dtype::f32 && !padded && (!channels_last || taps == 1);
}

std::size_t WeightForm::packed_bytes() const {
  if (plain()) return 0;
  return static_cast<std::size_t>(padded_outputs * padded_inputs * taps) * dtype_bytes(dtype);
}

WeightForm weight_form(const Graph& graph, const Node& node, Layout layout, Precision precision) {
  const bool conv = node.op->name == "conv";
  if (!conv && node.op->name != "dense") return {};
  const Shape& shape = graph.parameter(node.parameters[0]).shape;
  WeightForm form{.dtype = precision == Precision::bf16 ? Dtype::bf16 : Dtype::f32,
                  .channels_last = conv && layout == Layout::nhwc,
                  .outputs = shape[0],
                  .inputs = shape[1],
                  .taps = conv ? shape[2] * shape[3] : 1,
                  .padded_outputs = shape[0],
                  .padded_inputs = shape[1]};
  if (form.channels_last) {
    form.padded_outputs = (form.outputs + 7) / 8 * 8;
    form.padded_inputs = padded_image(form.inputs);
  }
  return form;
}

std::size_t packed_bytes(const Graph& graph, const Node& node, Layout layout, Precision precision) {
  return weight_form(graph, node, layout, precision).packed_bytes();
}

void unpack_gradient(const Tools& tools, const WeightForm& form, const std::byte* packed,
                     float* gradient, bool add) {
  with_type(form.dtype, [&]<class T>() {
    for_each_index(
        tools, form.outputs * form.inputs * form.taps,
        Unpack<T>{reinterpret_cast<const T*>(packed), gradient,
                  static_cast<std::uint32_t>(form.inputs), static_cast<std::uint32_t>(form.taps),
                  static_cast<std::uint32_t>(form.padded_inputs), form.channels_last, add});
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
    const auto narrow = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    table.items[filled++] = {items[i].weight,
                             items[i].packed,
                             narrow(form.outputs),
                             narrow(form.inputs),
                             narrow(form.taps),
                             narrow(form.padded_outputs),
                             narrow(form.padded_inputs),
                             form.dtype == Dtype::bf16,
                             form.channels_last};
    if (filled == Table::most) launch();
  }
  launch();
}

}  // namespace regatta::cuda
