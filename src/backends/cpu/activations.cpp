// The operators that treat each element alone, but for relu. Values are at least 0 or odd at 0,
// so channels that only pad stay zero; sigmoid's are cleared.
#include "backends/cpu/functions.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/placement.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

// y of x, and the slope there; `a` is the operator's one setting, if it has any.
struct Relu6 {
  static REGATTA_INLINE float value(float x, float) { return clamped(x, 0.0f, 6.0f); }
  static REGATTA_INLINE float slope(float, float y, float) {
    return y <= 0.0f || y >= 6.0f ? 0.0f : 1.0f;
  }
};

struct LeakyRelu {
  static REGATTA_INLINE float value(float x, float a) { return x > 0.0f ? x : a * x; }
  static REGATTA_INLINE float slope(float, float y, float a) { return y > 0.0f ? 1.0f : a; }
};

struct Sigmoid {
  static REGATTA_INLINE float value(float x, float) { return sigmoid_of(x); }
  static REGATTA_INLINE float slope(float, float y, float) { return y * (1.0f - y); }
};

struct Tanh {
  static REGATTA_INLINE float value(float x, float) { return tanh_of(x); }
  static REGATTA_INLINE float slope(float, float y, float) { return 1.0f - y * y; }
};

struct Gelu {
  static REGATTA_INLINE float value(float x, float) {
    return 0.5f * x * (1.0f + erf_of(x * 0.70710678118654752f));
  }
  static REGATTA_INLINE float slope(float x, float, float) {
    const float density = 0.39894228040143268f * exp_of(-0.5f * x * x);
    return 0.5f * (1.0f + erf_of(x * 0.70710678118654752f)) + x * density;
  }
};

struct TanhGelu {
  static REGATTA_INLINE float share(float x) {
    return tanh_of(0.79788456080286536f * (x + 0.044715f * x * x * x));
  }
  static REGATTA_INLINE float value(float x, float) { return 0.5f * x * (1.0f + share(x)); }
  static REGATTA_INLINE float slope(float x, float, float) {
    const float t = share(x);
    const float inner = 0.79788456080286536f * (1.0f + 0.134145f * x * x);
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner;
  }
};

struct Tensors {
  const float* x;
  const float* y;
  const float* gradient;
  float* out;
  std::int64_t count;
  float a;
};

template <class F>
REGATTA_INLINE void values(const Tensors& t) {
  for (std::int64_t i = 0; i < t.count; ++i) t.out[i] = F::value(t.x[i], t.a);
}

// Only one of x and y is read: what the operator keeps for its backward.
template <class F, bool FROM_INPUT>
REGATTA_INLINE void gradients(const Tensors& t, bool add) {
  const float* kept = FROM_INPUT ? t.x : t.y;
  if (add)
    for (std::int64_t i = 0; i < t.count; ++i)
      t.out[i] += F::slope(kept[i], kept[i], t.a) * t.gradient[i];
  else
    for (std::int64_t i = 0; i < t.count; ++i)
      t.out[i] = F::slope(kept[i], kept[i], t.a) * t.gradient[i];
}

// Clones cannot be templates, so each operator has its two loops by name.
REGATTA_CLONES void relu6_values(const Tensors& t) { values<Relu6>(t); }
REGATTA_CLONES void relu6_gradients(const Tensors& t, bool add) { gradients<Relu6, false>(t, add); }
REGATTA_CLONES void leaky_values(const Tensors& t) { values<LeakyRelu>(t); }
REGATTA_CLONES void leaky_gradients(const Tensors& t, bool add) {
  gradients<LeakyRelu, false>(t, add);
}
REGATTA_CLONES void sigmoid_values(const Tensors& t) { values<Sigmoid>(t); }
REGATTA_CLONES void sigmoid_gradients(const Tensors& t, bool add) {
  gradients<Sigmoid, false>(t, add);
}
REGATTA_CLONES void tanh_values(const Tensors& t) { values<Tanh>(t); }
REGATTA_CLONES void tanh_gradients(const Tensors& t, bool add) { gradients<Tanh, false>(t, add); }
REGATTA_CLONES void gelu_values(const Tensors& t) { values<Gelu>(t); }
REGATTA_CLONES void gelu_gradients(const Tensors& t, bool add) { gradients<Gelu, true>(t, add); }
REGATTA_CLONES void tanh_gelu_values(const Tensors& t) { values<TanhGelu>(t); }
REGATTA_CLONES void tanh_gelu_gradients(const Tensors& t, bool add) {
  gradients<TanhGelu, true>(t, add);
}

struct Loops {
  void (*values)(const Tensors&);
  void (*gradients)(const Tensors&, bool add);
  float setting = 0;
  bool zero_at_zero = true;
};

class Activation : public Kernel {
 public:
  Activation(const Site& site, const Loops& loops)
      : n_(site.n), place_(site.node.shape, site.layout()), loops_(loops) {}

  void run(Work work, const Operands& o, std::byte*) override {
    const std::int64_t count = n_ * place_.size();
    if (work == Work::forward) {
      parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
        loops_.values(
            {o.inputs[0] + begin, nullptr, nullptr, o.output + begin, end - begin, loops_.setting});
      });
      if (!loops_.zero_at_zero) clear_padding(place_, n_, o.output);
    } else if (o.gradient_modes[0] != GradientMode::none) {
      parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
        const auto from = [&](const float* all) { return all ? all + begin : nullptr; };
        loops_.gradients({from(o.inputs[0]), from(o.output), o.output_gradient + begin,
                          o.input_gradients[0] + begin, end - begin, loops_.setting},
                         o.gradient_modes[0] == GradientMode::add);
      });
    }
  }

 private:
  std::int64_t n_;
  Placement place_;
  Loops loops_;
};

}  // namespace

std::unique_ptr<Kernel> make_relu6(const Site& site) {
  return std::make_unique<Activation>(site, Loops{relu6_values, relu6_gradients});
}
std::unique_ptr<Kernel> make_leaky_relu(const Site& site) {
  const auto slope = static_cast<float>(site.node.attributes.real("slope", 0.01));
  return std::make_unique<Activation>(site, Loops{leaky_values, leaky_gradients, slope});
}
std::unique_ptr<Kernel> make_sigmoid(const Site& site) {
  return std::make_unique<Activation>(site, Loops{sigmoid_values, sigmoid_gradients, 0, false});
}
std::unique_ptr<Kernel> make_tanh(const Site& site) {
  return std::make_unique<Activation>(site, Loops{tanh_values, tanh_gradients});
}
std::unique_ptr<Kernel> make_gelu(const Site& site) {
  return std::make_unique<Activation>(site, site.node.attributes.flag("tanh")
                                                ? Loops{tanh_gelu_values, tanh_gelu_gradients}
                                                : Loops{gelu_values, gelu_gradients});
}

}  // namespace regatta::cpu
