// How cuDNN carries out a convolution of given sizes, chosen once per shape. Through cuDNN's graph
// interface: the older one is deprecated, and only here does each engine say whether it is
// deterministic and what it does to fp32 inputs.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <utility>

#include "backends/cuda/check.h"
#include "base/dtype.h"
#include "base/precision.h"
#include "base/shape.h"

namespace regatta::cuda {

enum class ConvDirection { forward, input_gradient, weight_gradient };

// Everything a choice depends on; convolutions with equal ones share a plan.
struct ConvProblem {
  ConvDirection direction = ConvDirection::forward;
  Layout layout = Layout::nhwc;
  Precision precision = Precision::fp32;
  Dtype values = Dtype::f32, weights = Dtype::f32;
  bool accumulate = false;  // the result is added to what is there
  std::int64_t n = 0, inputs = 0, height = 0, width = 0;
  std::int64_t outputs = 0, out_height = 0, out_width = 0;
  std::int64_t kernel_h = 0, kernel_w = 0, stride_h = 1, stride_w = 1;
  std::int64_t pad_h = 0, pad_w = 0, pad_after_h = 0, pad_after_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1, groups = 1;

  auto operator<=>(const ConvProblem&) const = default;
};

// The one owner of a cuDNN backend descriptor.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &handle_));
  }
  ~Descriptor() {
    if (handle_) cudnnBackendDestroyDescriptor(handle_);
  }
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  cudnnBackendDescriptor_t get() const { return handle_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
           std::int64_t count) {
    check(cudnnBackendSetAttribute(handle_, name, type, count, values));
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, &value, 1);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& part) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, part.handle_);
  }
  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(handle_); }
  void finalize() { check(try_finalize()); }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

// A convolution as a graph of one operation.
struct ConvGraph {
  Descriptor input, weights, output, window, operation, graph;
};

class ConvPlan {
 public:
  // cuDNN does not say which descriptors must outlive those made of them, so a plan keeps them all.
  ConvPlan(std::shared_ptr<const ConvGraph> graph, Descriptor config, Descriptor plan,
           std::size_t workspace_bytes)
      : graph_(std::move(graph)),
        config_(std::move(config)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes) {}

  std::size_t workspace_bytes() const { return workspace_bytes_; }

  // The tensors by their place in the convolution; the direction says which of them is written.
  void run(cudnnHandle_t cudnn, const void* input, const void* weights, const void* output,
           std::byte* workspace) const;

 private:
  std::shared_ptr<const ConvGraph> graph_;
  Descriptor config_, plan_;
  std::size_t workspace_bytes_;
};

// The plans of one worker.
class ConvPlans {
 public:
  explicit ConvPlans(cudnnHandle_t cudnn) : cudnn_(cudnn) {}

  // The first deterministic engine in cuDNN's own order of preference; null where it has none.
  // Timing engines against each other would let one run differ from the next.
  const ConvPlan* find(const ConvProblem& problem);

 private:
  cudnnHandle_t cudnn_;
  std::map<ConvProblem, std::unique_ptr<ConvPlan>> plans_;
};

}  // namespace regatta::cuda
