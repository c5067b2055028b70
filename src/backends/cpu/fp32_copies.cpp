#include "backends/cpu/fp32_copies.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/bfloat16.h"

namespace regatta::cpu {
namespace {

// One value of the operator, and where its copies lie in the scratch memory.
struct Value {
  bool bf16 = false;
  std::size_t count = 0;                    // elements of the chunk
  std::size_t copy = 0, gradient_copy = 0;  // offsets in bytes
};

bool gives_output(Work work) { return work == Work::forward || work == Work::normalise; }

class OnFp32Copies : public Kernel {
 public:
  OnFp32Copies(const Site& site, MakeKernel make) {
    for (std::size_t i = 0; i < site.node.inputs.size(); ++i)
      inputs_.push_back(
          placed(site.input_dtype(i),
                 padded_elements(site.input(i).shape, site.input_layout(i)) * site.n));
    output_ = placed(site.dtype(), site.elements() * site.n);
    Site exact = site;
    exact.dtypes = nullptr;
    kernel_ = make(exact);
  }

  void prepare(Work work) override { kernel_->prepare(work); }
  std::size_t scratch_bytes() const override { return copies_bytes_ + kernel_->scratch_bytes(); }

  void run(Work work, const Operands& operands, std::byte* scratch) override {
    Operands exact = operands;
    const auto floats = [&](std::size_t offset) {
      return reinterpret_cast<float*>(scratch + offset);
    };
    const auto widened = [&](const Value& value, const float* from, std::size_t offset) {
      if (!value.bf16 || !from) return from;
      widen(values_of<Bfloat16>(from), floats(offset), value.count);
      return static_cast<const float*>(floats(offset));
    };
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      exact.inputs[i] = widened(inputs_[i], operands.inputs[i], inputs_[i].copy);
    if (output_.bf16 && operands.output) {
      exact.output = floats(output_.copy);
      if (goes_back(work)) widened(output_, operands.output, output_.copy);
    }
    if (goes_back(work))
      exact.output_gradient = widened(output_, operands.output_gradient, output_.gradient_copy);
    if (gives_input_gradients(work))
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (!written(operands, i)) continue;
        const std::size_t first = first_with(operands, i);
        exact.input_gradients[i] = floats(inputs_[first].gradient_copy);
        if (first == i && operands.gradient_modes[i] == GradientMode::add)
          widened(inputs_[i], operands.input_gradients[i], inputs_[i].gradient_copy);
      }

    kernel_->run(work, exact, scratch + copies_bytes_);

    const auto rounded = [](const Value& value, const float* from, float* to) {
      narrow(from, values_of<Bfloat16>(to), value.count);
    };
    if (gives_output(work) && output_.bf16) rounded(output_, exact.output, operands.output);
    if (gives_input_gradients(work))
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (written(operands, i) && first_with(operands, i) == i)
          rounded(inputs_[i], exact.input_gradients[i], operands.input_gradients[i]);
  }

 private:
  bool written(const Operands& o, std::size_t i) const {
    return inputs_[i].bf16 && o.input_gradients[i] && o.gradient_modes[i] != GradientMode::none;
  }
  // Inputs that are one value share one gradient, to which the later of them add.
  std::size_t first_with(const Operands& o, std::size_t i) const {
    return static_cast<std::size_t>(std::ranges::find(o.input_gradients, o.input_gradients[i]) -
                                    o.input_gradients.begin());
  }

  Value placed(Dtype dtype, std::int64_t count) {
    Value value{dtype == Dtype::bf16, static_cast<std::size_t>(count)};
    if (!value.bf16) return value;
    const std::size_t bytes = (value.count * sizeof(float) + 63) / 64 * 64;
    value.copy = copies_bytes_;
    value.gradient_copy = copies_bytes_ + bytes;
    copies_bytes_ += 2 * bytes;
    return value;
  }

  std::vector<Value> inputs_;
  Value output_;
  std::size_t copies_bytes_ = 0;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

std::unique_ptr<Kernel> make_on_fp32_copies(const Site& site, MakeKernel make) {
  return std::make_unique<OnFp32Copies>(site, make);
}

}  // namespace regatta::cpu
