#include "ops/op_harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "support/error_text.h"

namespace regatta {
namespace {

// Uniform in [-1, 1): far enough from kinks, since no draw comes within the difference's step.
std::vector<double> draw(const std::string& stream, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(2.0 * random_uniform(3, stream_of(stream), static_cast<std::uint64_t>(i)) - 1);
  return values;
}

Node node_of(const OpDef& op, Attributes attributes, const std::vector<Shape>& shapes) {
  Node node;
  node.op = &op;
  node.name = "layer";
  node.attributes = std::move(attributes);
  node.shape = op.infer(node, shapes);
  return node;
}

double dot(const std::vector<double>& left, const std::vector<double>& right) {
  return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

}  // namespace

OpHarness::OpHarness(const OpDef& op, Attributes attributes, std::vector<Shape> shapes,
                     std::int64_t n)
    : node_(node_of(op, std::move(attributes), shapes)), shapes_(std::move(shapes)), n_(n) {
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    inputs.push_back(draw("input" + std::to_string(i), n * shapes_[i].elements()));
  if (op.parameters)
    for (const TensorSpec& spec : op.parameters(node_, shapes_))
      parameters.push_back(draw(spec.suffix, spec.shape.elements()));
  if (op.states)
    for (const TensorSpec& spec : op.states(node_, shapes_)) {
      states.push_back(draw(spec.suffix, spec.shape.elements()));
      for (double& value : states.back()) value += 2;  // variances are positive
    }
  for (std::int64_t i = 0; i < n && !shapes_.empty(); ++i)
    targets.push_back(Target::of(static_cast<std::int32_t>(i * 2 % shapes_[0].elements())));
}

ReferenceCall<double> OpHarness::call() {
  ReferenceCall<double> call;
  call.node = &node_;
  call.n = n_;
  call.training = training;
  call.shapes = shapes_;
  output_.resize(static_cast<std::size_t>(n_ * node_.shape.elements()));
  call.output = output_.data();
  for (const auto& input : inputs) call.inputs.push_back(input.data());
  for (const auto& parameter : parameters) call.parameters.push_back(parameter.data());
  for (auto& state : states) call.states.push_back(state.data());
  call.targets = targets.data();
  call.seed = seed;
  call.step = step;
  call.first_sample = first_sample;
  return call;
}

std::vector<double> OpHarness::forward() {
  node_.op->forward_double(call());
  return output_;
}

OpHarness::Gradients OpHarness::backward(const std::vector<double>& output_gradient) {
  const Tensors<double> states_before = states;
  forward();
  states = states_before;
  Gradients gradients;
  ReferenceCall<double> backward = call();
  backward.output_gradient = output_gradient.data();
  for (const auto& input : inputs) gradients.inputs.emplace_back(input.size());
  for (const auto& parameter : parameters) gradients.parameters.emplace_back(parameter.size());
  for (auto& gradient : gradients.inputs) backward.input_gradients.push_back(gradient.data());
  for (auto& gradient : gradients.parameters)
    backward.parameter_gradients.push_back(gradient.data());
  node_.op->backward_double(backward);
  return gradients;
}

void OpHarness::expect_gradients_match_differences() {
  const auto weighting = draw("weighting", n_ * node_.shape.elements());
  const Tensors<double> states_before = states;
  const Gradients gradients = backward(weighting);

  const auto expect_match = [&](std::vector<double>& tensor, const std::vector<double>& found,
                                const std::string& what) {
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      constexpr double distance = 1e-5;
      const double here = tensor[i];
      const auto weighted_output_at = [&](double value) {
        tensor[i] = value;
        const double sum = dot(forward(), weighting);
        states = states_before;
        return sum;
      };
      const double above = weighted_output_at(here + distance);
      const double below = weighted_output_at(here - distance);
      tensor[i] = here;
      const double expected = (above - below) / (2 * distance);
      ASSERT_NEAR(found[i], expected, 1e-7 * (1 + std::abs(expected))) << what << "[" << i << "]";
    }
  };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    expect_match(inputs[i], gradients.inputs[i], "input " + std::to_string(i));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    expect_match(parameters[i], gradients.parameters[i], "parameter " + std::to_string(i));

  forward();
  states = states_before;
  const auto expect_alone = [&](bool of_inputs, std::size_t which,
                                const std::vector<double>& found) {
    ReferenceCall<double> alone = call();
    alone.output_gradient = weighting.data();
    alone.input_gradients.resize(inputs.size());
    alone.parameter_gradients.resize(parameters.size());
    std::vector<double> gradient(found.size(), 100.0);
    (of_inputs ? alone.input_gradients : alone.parameter_gradients)[which] = gradient.data();
    node_.op->backward_double(alone);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(gradient[i] - 100.0, found[i], 1e-12 * 100) << "asked for alone";
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) expect_alone(true, i, gradients.inputs[i]);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    expect_alone(false, i, gradients.parameters[i]);
}

void expect_refused(const OpDef& op, const Attributes& attributes, const std::vector<Shape>& shapes,
                    const std::string& message) {
  EXPECT_EQ(error_text([&] { node_of(op, attributes, shapes); }), message);
}

}  // namespace regatta
