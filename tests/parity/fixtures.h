// What PyTorch computes on the formula's weights and images, and how far from it one may be.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "graph/graph.h"
#include "parity/formula.h"
#include "support/reference_run.h"

namespace regatta {

// How far from PyTorch's float64 a number may be: so many times as far as PyTorch's own float32 (or
// bf16, of a fixture in bf16), and at least `floor`, always relative. Single tensors may be
// `single` times as far as all together.
struct Yardstick {
  double times = 3;
  double floor = 1e-5;
  double single = 10;

  double allowed(double own_distance) const;
};

// The floor of bf16 is what rounding one value to its 8 digits costs.
inline constexpr Yardstick yardstick_of_bf16{.floor = 0x1p-9};

// One line for each number that is too far: what it is, its distance, what is allowed.
using Failures = std::vector<std::string>;

class Fixture {
 public:
  // From tests/parity/data, or from the folder REGATTA_PARITY names. Tensors are compared by their
  // projections, or whole where scripts/parity-fixtures --whole left them beside the fixture.
  static Fixture load(std::string_view model);
  // The same numbers, but distances are those of PyTorch's bf16, from bf16.json.
  static Fixture load_for_bf16(std::string_view model);
  static bool is_there(std::string_view model);  // large ones are made by make parity alone

  Graph graph() const;  // the model as the fixture has it, not fused
  std::int64_t images() const { return images_; }
  bool calm() const { return calm_; }                           // how weights are made
  const ReferenceSgd& optimizer() const { return optimizer_; }  // of every step
  std::size_t steps() const { return losses_.size(); }

  // Mean losses of the first steps, on the same images each, beginning with step 1.
  Failures compare_losses(std::span<const double> losses, const Yardstick& by) const;
  // Logits of the formula's weights in evaluation: images() x classes.
  template <class T>
  Failures compare_logits(std::span<const T> logits, const Yardstick& by) const;
  // Gradients of the mean loss in step 1, by ParameterId.
  template <class T>
  Failures compare_gradients(const Graph& graph, const Tensors<T>& gradients,
                             const Yardstick& by) const;
  // Running statistics after step 1, by StateId.
  template <class T>
  Failures compare_states(const Graph& graph, const Tensors<T>& states, const Yardstick& by) const;

  // What was compared so far, as a row of a table: distances of logits, losses and all gradients
  // (in brackets PyTorch's own), and how much of what is allowed the farthest used.
  std::string summary() const;

 private:
  void take_distances(const Json& distances);

  struct Measured {
    double distance = 0, own_distance = 0;
  };
  void judge(Failures& failures, const std::string& what, double distance, double allowed,
             double own_distance) const;

  struct Truth {
    double scale = 0;  // distances are relative to it: the norm, unless that vanishes
    double own_distance = 0;
    Projections projections{};
    std::optional<std::vector<double>> whole;
  };
  using Truths = std::map<std::string, Truth, std::less<>>;

  // Compares the tensors whose names end with `ending`, one by one and all together.
  template <class T>
  Failures compare_tensors(const Truths& truths, std::span<const Parameter> names,
                           const Tensors<T>& tensors, std::string_view ending, double own_distance,
                           const Yardstick& by) const;

  std::string model_, own_precision_ = "float32";
  Shape input_;
  std::int64_t classes_ = 0;
  std::int64_t images_ = 0;
  bool calm_ = false;
  ReferenceSgd optimizer_;
  std::vector<double> logits_, losses_;
  Truths gradients_, states_;
  // How far PyTorch's own numbers are, by what is compared.
  double logits_distance_ = 0;
  double gradients_distance_ = 0;
  double running_mean_distance_ = 0;
  double running_var_distance_ = 0;
  std::vector<double> losses_distance_;
  mutable std::map<std::string, Measured, std::less<>> measured_;
  mutable double used_ = 0;
};

}  // namespace regatta
