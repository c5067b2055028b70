// oneDNN behind one small door. All differences between versions 2 and 3 are here: how primitive
// descriptors are made, and what some members are called. Executing through the C interface spares
// a map per call.
#pragma once

#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace regatta::cpu {

dnnl::engine& engine();
dnnl::stream& stream();  // one per thread

// Caps the instruction set where the processor announces AMX but hides its tiles, and widens the
// primitive cache. Safe to call again.
void prepare_onednn();

dnnl::memory::format_tag data_tag(Layout layout);
dnnl::memory::data_type data_type(Dtype dtype);

inline dnnl::memory::dims dims_of(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_dims();
#else
  return desc.dims();
#endif
}

template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const dnnl::primitive_attr& attr, Args&&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), std::forward<Args>(args)..., attr);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(std::forward<Args>(args)...),
                                            attr, engine());
#endif
}

template <class Primitive, class Hint, class... Args>
typename Primitive::primitive_desc describe_backward(const dnnl::primitive_attr& attr,
                                                     const Hint& hint, Args&&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), std::forward<Args>(args)..., hint, attr);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(std::forward<Args>(args)...),
                                            attr, engine(), hint);
#endif
}

// A slope of zero would make oneDNN take a maximum, which turns a NaN into 0: a network that has
// diverged would go on with a loss that looks fine. The least slope is compared instead, and lets
// NaNs through.
inline void append_relu(dnnl::post_ops& ops) {
  constexpr float slope = std::numeric_limits<float>::min();
#if DNNL_VERSION_MAJOR >= 3
  ops.append_eltwise(dnnl::algorithm::eltwise_relu, slope, 0.0f);
#else
  ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, slope, 0.0f);
#endif
}

#if DNNL_VERSION_MAJOR >= 3
using PoolForward = dnnl::pooling_forward;
using PoolBackward = dnnl::pooling_backward;
#else
using PoolForward = dnnl::pooling_v2_forward;
using PoolBackward = dnnl::pooling_v2_backward;
#endif

dnnl::primitive_attr user_scratchpad();

// A primitive and its arguments, bound anew at each call. The first call makes the primitive, which
// generates code: until then it costs no more than its descriptor.
class Launch {
 public:
  Launch() = default;
  explicit Launch(const dnnl::primitive_desc_base& described) : described_(described) {}
  explicit operator bool() const { return described_.get(true) != nullptr; }

  void argument(int index, const dnnl::memory::desc& desc);  // declares, in the order of pointers
  void operator()(std::initializer_list<const void*> pointers);

 private:
  dnnl::primitive_desc_base described_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace regatta::cpu
