// A first convolution of few channels, on planes. In blocks of channels most of its work would be
// on zeros; here a vector is sixteen neighbours of a row. The last vector of a row ends where the
// row ends and overlaps the one before it, so nothing is read or written beyond.
#include <algorithm>

#include "backends/cpu/kernel.h"
#include "backends/cpu/lanes.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"
#include "base/error.h"
#include "ops/window.h"

namespace regatta::cpu {
namespace {

constexpr std::int64_t lanes = 16;
using Floats = Lanes<16>::Floats;
using Words = Lanes<16>::Words;

// Input with its padding around it; a filter is inputs x kernel height x kernel width.
struct Form {
  std::int64_t inputs, in_height, in_width, outputs, height, width, kernel_height, kernel_width;
  bool relu;
  std::int64_t in_plane() const { return in_height * in_width; }
  std::int64_t plane() const { return height * width; }
  std::int64_t filter() const { return inputs * kernel_height * kernel_width; }
  // Where the vector that should begin at `x` begins.
  std::int64_t begin(std::int64_t x) const { return std::min(x, width - lanes); }
};

struct Filters {
  const float *weights, *bias;  // of the first output wanted; no bias: null
};

// OUTPUTS planes of one sample, two vectors of a row at a time.
template <int WIDTH, int OUTPUTS>
REGATTA_INLINE void planes_forward(const Form& f, const float* in, const Filters& by, float* out) {
  const std::int64_t filter = f.filter();
  for (std::int64_t y = 0; y < f.height; ++y)
    for (std::int64_t x = 0; x < f.width; x += 2 * lanes) {
      const std::int64_t left = f.begin(x), right = f.begin(x + lanes);
      Floats a[OUTPUTS], b[OUTPUTS], values, more;
      REGATTA_UNROLL for (int o = 0; o < OUTPUTS; ++o) {
        a[o] = Floats{} + (by.bias ? by.bias[o] : 0.0f);
        b[o] = a[o];
      }
      const float* weights = by.weights;
      for (std::int64_t c = 0; c < f.inputs; ++c)
        for (std::int64_t i = 0; i < f.kernel_height; ++i, weights += WIDTH) {
          const float* row = in + c * f.in_plane() + (y + i) * f.in_width;
          REGATTA_UNROLL for (int j = 0; j < WIDTH; ++j) {
            load(values, row + left + j);
            load(more, row + right + j);
            REGATTA_UNROLL for (int o = 0; o < OUTPUTS; ++o) {
              const float weight = weights[o * filter + j];
              a[o] += values * weight;
              b[o] += more * weight;
            }
          }
        }
      REGATTA_UNROLL for (int o = 0; o < OUTPUTS; ++o) {
        // A NaN is not below zero: it stays.
        if (f.relu) {
          a[o] = a[o] < 0.0f ? Floats{} : a[o];
          b[o] = b[o] < 0.0f ? Floats{} : b[o];
        }
        float* to = out + o * f.plane() + y * f.width;
        store(a[o], to + left);
        store(b[o], to + right);
      }
    }
}

// A vector of the gradient: zero where the relu was, and where the vector before has been.
REGATTA_INLINE void load_gradient(const Form& f, const float* output, const float* gradient,
                                  std::int64_t at, std::int64_t overlap, Floats& value) {
  load(value, gradient + at);
  if (f.relu) {
    Floats kept;
    load(kept, output + at);
    value = kept <= 0.0f ? Floats{} : value;
  }
  if (overlap > 0) {
    constexpr Words places{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    value = places < static_cast<std::int32_t>(overlap) ? Floats{} : value;
  }
}

// Adds one sample's share to sixteen sums of each weight and bias of OUTPUTS planes.
template <int WIDTH, int OUTPUTS>
REGATTA_INLINE void planes_backward(const Form& f, const float* in, const float* output,
                                    const float* gradient, float* weight_sums, float* bias_sums) {
  const std::int64_t filter = f.filter();
  for (std::int64_t c = 0; c < f.inputs; ++c)
    for (std::int64_t i = 0; i < f.kernel_height; ++i) {
      Floats sums[OUTPUTS][WIDTH] = {}, gradients[OUTPUTS], values;
      for (std::int64_t y = 0; y < f.height; ++y) {
        const float* row = in + c * f.in_plane() + (y + i) * f.in_width;
        for (std::int64_t x = 0; x < f.width; x += lanes) {
          const std::int64_t begin = f.begin(x);
          REGATTA_UNROLL for (int o = 0; o < OUTPUTS; ++o) load_gradient(
              f, output, gradient, o * f.plane() + y * f.width + begin, x - begin, gradients[o]);
          REGATTA_UNROLL for (int j = 0; j < WIDTH; ++j) {
            load(values, row + begin + j);
            REGATTA_UNROLL for (int o = 0; o < OUTPUTS; ++o) sums[o][j] += gradients[o] * values;
          }
        }
      }
      REGATTA_UNROLL for (int o = 0; o < OUTPUTS; ++o) {
        REGATTA_UNROLL for (int j = 0; j < WIDTH; ++j) {
          float* to = weight_sums + (o * filter + (c * f.kernel_height + i) * WIDTH + j) * lanes;
          load(values, to);
          store(values + sums[o][j], to);
        }
      }
    }
  for (int o = 0; o < OUTPUTS; ++o) {
    Floats sum, value;
    load(sum, bias_sums + o * lanes);
    for (std::int64_t y = 0; y < f.height; ++y)
      for (std::int64_t x = 0; x < f.width; x += lanes) {
        const std::int64_t begin = f.begin(x);
        load_gradient(f, output, gradient, o * f.plane() + y * f.width + begin, x - begin, value);
        sum += value;
      }
    store(sum, bias_sums + o * lanes);
  }
}

// Calls body.operator()<WIDTH, OUTPUTS>(first output) until all are done.
template <class Body>
REGATTA_INLINE void by_outputs(const Form& f, const Body& body) {
  const auto all = [&]<int WIDTH>() __attribute__((always_inline)) {
    std::int64_t o = 0;
    for (; o + 4 <= f.outputs; o += 4) body.template operator()<WIDTH, 4>(o);
    if (o + 2 <= f.outputs) {
      body.template operator()<WIDTH, 2>(o);
      o += 2;
    }
    if (o < f.outputs) body.template operator()<WIDTH, 1>(o);
  };
  if (f.kernel_width == 3)
    all.template operator()<3>();
  else
    all.template operator()<5>();
}

REGATTA_CLONES void forward_sample(const Form& f, const float* in, const Filters& by, float* out) {
  by_outputs(
      f, [&]<int WIDTH, int OUTPUTS>(std::int64_t o) __attribute__((always_inline)) {
        planes_forward<WIDTH, OUTPUTS>(
            f, in, {by.weights + o * f.filter(), by.bias ? by.bias + o : nullptr},
            out + o * f.plane());
      });
}

REGATTA_CLONES void backward_sample(const Form& f, const float* in, const float* output,
                                    const float* gradient, float* weight_sums, float* bias_sums) {
  by_outputs(
      f, [&]<int WIDTH, int OUTPUTS>(std::int64_t o) __attribute__((always_inline)) {
        planes_backward<WIDTH, OUTPUTS>(f, in, output + o * f.plane(), gradient + o * f.plane(),
                                        weight_sums + o * f.filter() * lanes,
                                        bias_sums + o * lanes);
      });
}

class ThinConv : public Kernel {
 public:
  explicit ThinConv(const Site& site)
      : n_(site.n),
        in_(site.input(0).shape),
        window_(window_of(site.node, 1)),
        bias_(site.node.parameters.size() > 1) {
    const Shape& out = site.node.shape;
    form_ = {.inputs = in_.channels(),
             .in_height = out.height() + window_.kernel.height - 1,
             .in_width = out.width() + window_.kernel.width - 1,
             .outputs = out.channels(),
             .height = out.height(),
             .width = out.width(),
             .kernel_height = window_.kernel.height,
             .kernel_width = window_.kernel.width,
             .relu = site.node.attributes.flag("relu")};
    pads_ = form_.in_height != in_.height() || form_.in_width != in_.width();
    parts_ = parts_of(n_, form_.plane() * form_.outputs);
  }

  // Each part's image with its padding, and its sums.
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(parts_ * (image() + sums())) * sizeof(float);
  }

  void run(Work work, const Operands& o, std::byte* scratch) override {
    if (o.gradient_modes[0] != GradientMode::none)
      throw Error("internal: a convolution of planes is the first of its network");
    auto* data = reinterpret_cast<float*>(scratch);
    parallel_parts(parts_, [&](int part) {
      float* image_room = data + part * (image() + sums());
      float* own_sums = image_room + image();
      if (pads_) std::fill_n(image_room, image(), 0.0f);
      if (work != Work::forward) std::fill_n(own_sums, sums(), 0.0f);
      for (std::int64_t i = n_ * part / parts_; i < n_ * (part + 1) / parts_; ++i) {
        const float* in = o.inputs[0] + i * in_.elements();
        if (pads_) in = padded(in, image_room);
        const std::int64_t at = i * form_.outputs * form_.plane();
        if (work == Work::forward)
          forward_sample(form_, in, {o.parameters[0], bias_ ? o.parameters[1] : nullptr},
                         o.output + at);
        else
          backward_sample(form_, in, form_.relu ? o.output + at : o.output_gradient + at,
                          o.output_gradient + at, own_sums,
                          own_sums + form_.outputs * form_.filter() * lanes);
      }
    });
    if (work == Work::forward) return;
    const auto sums_of = [&](int part) { return data + part * (image() + sums()) + image(); };
    give(sums_of, 0, form_.outputs * form_.filter(), o.parameter_gradients[0],
         o.add_parameter_gradients);
    if (bias_)
      give(sums_of, form_.outputs * form_.filter(), form_.outputs, o.parameter_gradients[1],
           o.add_parameter_gradients);
  }

 private:
  std::int64_t image() const { return pads_ ? form_.inputs * form_.in_plane() : 0; }
  std::int64_t sums() const { return form_.outputs * (form_.filter() + 1) * lanes; }

  // The sample with zeros around it; they are there already.
  const float* padded(const float* sample, float* room) const {
    // A window that leaves out the last rows or columns leaves them out here.
    const std::int64_t top = window_.padding.height, left = window_.padding.width;
    const std::int64_t rows = std::min(in_.height(), form_.in_height - top);
    const std::int64_t columns = std::min(in_.width(), form_.in_width - left);
    for (std::int64_t c = 0; c < form_.inputs; ++c)
      for (std::int64_t y = 0; y < rows; ++y)
        std::copy_n(sample + (c * in_.height() + y) * in_.width(), columns,
                    room + c * form_.in_plane() + (top + y) * form_.in_width + left);
    return room;
  }

  // Sums of sixteen lanes, of all parts in their order, to the plain gradient.
  template <class SumsOf>
  void give(const SumsOf& sums_of, std::int64_t first, std::int64_t count, float* target,
            bool add) const {
    for (std::int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int part = 0; part < parts_; ++part)
        for (std::int64_t l = 0; l < lanes; ++l) sum += sums_of(part)[(first + i) * lanes + l];
      target[i] = add ? target[i] + sum : sum;
    }
  }

  std::int64_t n_;
  Shape in_;
  Window window_;
  bool bias_;
  Form form_{};
  bool pads_ = false;
  int parts_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_thin_conv(const Site& site) {
  return std::make_unique<ThinConv>(site);
}

}  // namespace regatta::cpu
