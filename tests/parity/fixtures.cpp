#include "parity/fixtures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "graph/op.h"
#include "models/models.h"
#include "parity/operator_networks.h"
#include "support/places.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

fs::path fixture_folder() {
  if (const char* chosen = std::getenv("REGATTA_PARITY"); chosen && *chosen) return chosen;
  return test_files() / "tests/parity/data";
}

std::vector<double> read_doubles(const fs::path& path) {
  const std::string bytes = read_file(path);
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

std::string brief(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", number);
  return text;
}

// The square of the norm of (found - truth): known where the truth is whole, else estimated.
template <class T>
double squared_difference(std::string_view name, const std::vector<T>& found,
                          const Projections& projected, const std::vector<double>* whole) {
  double sum = 0;
  if (whole) {
    if (whole->size() != found.size()) return std::nan("");
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double difference = static_cast<double>(found[i]) - (*whole)[i];
      sum += difference * difference;
    }
    return sum;
  }
  const Projections ours = projections(name, std::span<const T>(found));
  for (std::size_t k = 0; k < ours.size(); ++k) {
    const double difference = ours[k] - projected[k];
    sum += difference * difference;
  }
  return sum / static_cast<double>(ours.size());
}

}  // namespace

// A line of Failures, unless the distance is allowed. Written so that NaN is never allowed.
void Fixture::judge(Failures& failures, const std::string& what, double distance, double allowed,
                    double own_distance) const {
  Measured& measured = measured_[what];
  measured.distance = std::max(measured.distance, distance);
  measured.own_distance = std::max(measured.own_distance, own_distance);
  used_ = std::max(used_, distance / allowed);
  if (distance <= allowed) return;
  failures.push_back(model_ + ": " + what + ": " + brief(distance) +
                     " from PyTorch's float64, allowed " + brief(allowed) + " (its own " +
                     own_precision_ + ": " + brief(own_distance) + ")");
}

std::string Fixture::summary() const {
  std::string text = "| " + model_ + " |";
  for (const char* what : {"logits", "loss", "all tensors '*' together"}) {
    Measured most;
    for (const auto& [name, each] : measured_) {
      if (!name.starts_with(what)) continue;
      most.distance = std::max(most.distance, each.distance);
      most.own_distance = std::max(most.own_distance, each.own_distance);
    }
    text += " " + brief(most.distance) + " (" + brief(most.own_distance) + ") |";
  }
  return text + " " + std::to_string(std::lround(100 * used_)) + "% |";
}

double Yardstick::allowed(double own_distance) const {
  return std::max(times * own_distance, floor);
}

bool Fixture::is_there(std::string_view model) {
  return fs::exists(fixture_folder() / (std::string(model) + ".json"));
}

Fixture Fixture::load(std::string_view model) {
  const fs::path folder = fixture_folder();
  const Json json = read_json(folder / (std::string(model) + ".json"));
  const auto truths_of = [&](const Json& tensors) {
    Truths truths;
    for (const auto& [name, entry] : tensors.items()) {
      Truth& truth = truths[name];
      truth.scale = entry.at("scale");
      truth.own_distance = entry.at("float32_distance");
      truth.projections = entry.at("projections").get<Projections>();
      const fs::path whole = folder / model / (name + ".f64");
      if (fs::exists(whole)) truth.whole = read_doubles(whole);
    }
    return truths;
  };
  Fixture fixture;
  fixture.model_ = model;
  fixture.input_ = Shape::parse(json.at("input").get<std::string>());
  fixture.classes_ = json.at("classes");
  fixture.images_ = json.at("images");
  fixture.calm_ = json.value("calm", false);
  fixture.optimizer_ = {.learning_rate = json.at("learning_rate"),
                        .momentum = json.at("momentum"),
                        .weight_decay = json.at("weight_decay")};
  fixture.logits_ = json.at("logits").get<std::vector<double>>();
  fixture.losses_ = json.at("losses").get<std::vector<double>>();
  fixture.gradients_ = truths_of(json.at("gradients"));
  fixture.states_ = truths_of(json.at("states"));
  fixture.take_distances(json.at("float32_distance"));
  return fixture;
}

void Fixture::take_distances(const Json& distances) {
  logits_distance_ = distances.at("logits");
  losses_distance_ = distances.at("losses").get<std::vector<double>>();
  gradients_distance_ = distances.at("gradients");
  running_mean_distance_ = distances.at("running_mean");
  running_var_distance_ = distances.at("running_var");
}

Fixture Fixture::load_for_bf16(std::string_view model) {
  Fixture fixture = load(model);
  // Whole tensors lie elsewhere, these distances always here.
  const Json distances =
      read_json(test_files() / "tests/parity/data/bf16.json").at(std::string(model));
  fixture.own_precision_ = "bf16";
  fixture.take_distances(distances);
  const Json& of_tensors = distances.at("tensors");
  for (Truths* truths : {&fixture.gradients_, &fixture.states_})
    for (auto& [name, truth] : *truths) truth.own_distance = of_tensors.at(name);
  return fixture;
}

// The zoo's masks are nobody else's, so its fixtures are without dropout.
static Graph without_dropout(const Graph& graph) {
  GraphBuilder builder(graph.name());
  for (const Node& node : graph.nodes()) {
    Attributes attributes = node.attributes;
    if (node.op->name == "dropout") attributes.set("probability", 0.0);
    builder.add(*node.op, node.name, node.inputs, std::move(attributes));
  }
  return std::move(builder).finish();
}

Graph Fixture::graph() const {
  if (auto own = operator_network(model_, input_, classes_)) return *std::move(own);
  return without_dropout(build_model(model_, {.input = input_, .classes = classes_}));
}

Failures Fixture::compare_losses(std::span<const double> losses, const Yardstick& by) const {
  Failures failures;
  if (losses.size() > losses_.size())
    failures.push_back(model_ + ": " + std::to_string(losses.size()) + " losses, but only " +
                       std::to_string(losses_.size()) + " are known");
  // Errors grow from step to step, and float32's loss is right by luck at some: what it was off by
  // so far is the measure.
  double own_distance = 0;
  for (std::size_t step = 0; step < std::min(losses.size(), losses_.size()); ++step) {
    own_distance = std::max(own_distance, losses_distance_[step]);
    const double distance = std::abs(losses[step] - losses_[step]) / std::abs(losses_[step]);
    judge(failures, "loss of step " + std::to_string(step + 1), distance, by.allowed(own_distance),
          own_distance);
  }
  return failures;
}

template <class T>
Failures Fixture::compare_logits(std::span<const T> logits, const Yardstick& by) const {
  if (logits.size() != logits_.size())
    return {model_ + ": " + std::to_string(logits.size()) + " logits, expected " +
            std::to_string(logits_.size())};
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    difference = std::hypot(difference, static_cast<double>(logits[i]) - logits_[i]);
    norm = std::hypot(norm, logits_[i]);
  }
  Failures failures;
  judge(failures, "logits", difference / norm, by.allowed(logits_distance_), logits_distance_);
  return failures;
}

template <class T>
Failures Fixture::compare_tensors(const Truths& truths, std::span<const Parameter> names,
                                  const Tensors<T>& tensors, std::string_view ending,
                                  double own_distance, const Yardstick& by) const {
  Failures failures;
  double difference = 0, norm = 0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i].name;
    if (!name.ends_with(ending)) continue;
    const auto found = truths.find(name);
    if (found == truths.end()) {
      failures.push_back(model_ + ": PyTorch has no '" + name + "'");
      continue;
    }
    ++compared;
    const Truth& truth = found->second;
    const double squared = squared_difference(name, tensors[i], truth.projections,
                                              truth.whole ? &*truth.whole : nullptr);
    difference += squared;
    norm += truth.scale * truth.scale;
    judge(failures, name, std::sqrt(squared) / truth.scale,
          by.single * by.allowed(truth.own_distance), truth.own_distance);
  }
  const auto expected = std::ranges::count_if(
      truths, [&](const auto& truth) { return truth.first.ends_with(ending); });
  if (compared != static_cast<std::size_t>(expected))
    failures.push_back(model_ + ": compared " + std::to_string(compared) + " tensors of " +
                       std::to_string(expected));
  if (compared == 0) return failures;
  judge(failures, "all tensors '*" + std::string(ending) + "' together",
        std::sqrt(difference / norm), by.allowed(own_distance), own_distance);
  return failures;
}

template <class T>
Failures Fixture::compare_gradients(const Graph& graph, const Tensors<T>& gradients,
                                    const Yardstick& by) const {
  return compare_tensors(gradients_, graph.parameters(), gradients, "", gradients_distance_, by);
}

template <class T>
Failures Fixture::compare_states(const Graph& graph, const Tensors<T>& states,
                                 const Yardstick& by) const {
  Failures failures =
      compare_tensors(states_, graph.states(), states, ".running_mean", running_mean_distance_, by);
  const Failures more =
      compare_tensors(states_, graph.states(), states, ".running_var", running_var_distance_, by);
  failures.insert(failures.end(), more.begin(), more.end());
  return failures;
}

template Failures Fixture::compare_logits(std::span<const float>, const Yardstick&) const;
template Failures Fixture::compare_logits(std::span<const double>, const Yardstick&) const;
template Failures Fixture::compare_gradients(const Graph&, const Tensors<float>&,
                                             const Yardstick&) const;
template Failures Fixture::compare_gradients(const Graph&, const Tensors<double>&,
                                             const Yardstick&) const;
template Failures Fixture::compare_states(const Graph&, const Tensors<float>&,
                                          const Yardstick&) const;
template Failures Fixture::compare_states(const Graph&, const Tensors<double>&,
                                          const Yardstick&) const;

}  // namespace regatta
