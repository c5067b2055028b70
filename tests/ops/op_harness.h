// Runs one operator's reference kernels in double on made-up numbers, and checks its gradients
// against finite differences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/op.h"
#include "support/reference_run.h"

namespace regatta {

class OpHarness {
 public:
  // Inputs, parameters and states are drawn at random; a test may then write its own.
  OpHarness(const OpDef& op, Attributes attributes, std::vector<Shape> shapes, std::int64_t n);

  Tensors<double> inputs, parameters, states;
  std::vector<Target> targets;
  bool training = true;
  std::uint64_t seed = 3, step = 0;
  std::int64_t first_sample = 0;

  const Node& node() const { return node_; }

  std::vector<double> forward();  // updates `states` where the operator does

  struct Gradients {
    Tensors<double> inputs, parameters;
  };
  Gradients backward(const std::vector<double>& output_gradient);

  // For every number of every input and parameter: backward's gradient of a random weighting of the
  // output equals a central difference of forward; gradients are added to what is there; and each
  // is the same when asked for alone.
  void expect_gradients_match_differences();

 private:
  ReferenceCall<double> call();

  Node node_;
  std::vector<Shape> shapes_;
  std::int64_t n_;
  std::vector<double> output_;
};

// Expects that the operator named 'layer' is refused with exactly this message.
void expect_refused(const OpDef& op, const Attributes& attributes, const std::vector<Shape>& shapes,
                    const std::string& message);

}  // namespace regatta
