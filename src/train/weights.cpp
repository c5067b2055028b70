#include "train/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <thread>

#include "base/class_names.h"
#include "base/error.h"
#include "base/random.h"
#include "platform/machine.h"

namespace regatta {
namespace {

// Counts are floats in memory and integers on disk, as PyTorch has them.
bool is_count(const Parameter& state) { return state.name.ends_with(".num_batches_tracked"); }

NamedTensor float_tensor(const Parameter& what, const std::vector<float>& values) {
  const auto extents = what.shape.extents();
  NamedTensor tensor{what.name, Dtype::f32, {extents.begin(), extents.end()}, {}};
  tensor.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return tensor;
}

NamedTensor count_tensor(const Parameter& what, float value) {
  const auto count = static_cast<std::int64_t>(value);
  NamedTensor tensor{what.name, Dtype::i64, {}, std::string(sizeof count, '\0')};
  std::memcpy(tensor.bytes.data(), &count, sizeof count);
  return tensor;
}

std::vector<float> values_of(const NamedTensor& tensor, const Parameter& what,
                             const std::string& from) {
  const auto fail = [&](const std::string& fault) {
    throw InputError("'" + from + "': tensor '" + tensor.name + "' " + fault);
  };
  const std::size_t size = dtype_bytes(tensor.dtype);
  const auto count = static_cast<std::size_t>(what.shape.elements());
  const auto extents = what.shape.extents();
  const bool scalar = tensor.shape.empty() && count == 1;
  if (!scalar && !std::ranges::equal(tensor.shape, extents)) {
    std::string found;
    for (const std::int64_t extent : tensor.shape)
      found += (found.empty() ? "" : "x") + std::to_string(extent);
    fail("is " + found + ", the model has " + what.shape.text() +
         "; --input and --classes must be those of the file");
  }
  std::vector<float> values(count);
  const auto convert = [&]<class T>(T) {
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, tensor.bytes.data() + i * size, size);
      values[i] = static_cast<float>(value);
    }
  };
  switch (tensor.dtype) {
    case Dtype::f32:
      convert(float{});
      break;
    case Dtype::f64:
      convert(double{});
      break;
    case Dtype::i64:
      convert(std::int64_t{});
      break;
    case Dtype::i32:
      convert(std::int32_t{});
      break;
    default:
      fail("is neither of type F32 nor F64");
  }
  return values;
}

// Visits what the model wants among the file's tensors; all that does not fit is named at once.
template <class Take>
void match(const std::vector<const Parameter*>& wanted, const TensorFile& file,
           const std::string& from, bool counts_may_miss, const Take& take) {
  std::set<std::string> known;
  std::string missing;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    known.insert(wanted[i]->name);
    if (const NamedTensor* tensor = file.find(wanted[i]->name))
      take(i, values_of(*tensor, *wanted[i], from));
    else if (!(counts_may_miss && is_count(*wanted[i])))
      missing += (missing.empty() ? "" : ", ") + wanted[i]->name;
  }
  std::string surplus;
  for (const NamedTensor& tensor : file.tensors)
    if (!known.contains(tensor.name)) surplus += (surplus.empty() ? "" : ", ") + tensor.name;
  if (missing.empty() && surplus.empty()) return;
  throw InputError("'" + from +
                   "' does not fit the model:" + (missing.empty() ? "" : " it lacks " + missing) +
                   (missing.empty() || surplus.empty() ? "" : ";") +
                   (surplus.empty() ? "" : " the model has no " + surplus));
}

template <class Read>
TensorFile parameters_as(const Executor& executor, const Read& read) {
  TensorFile file;
  const auto& parameters = executor.graph().parameters();
  for (std::uint32_t i = 0; i < parameters.size(); ++i)
    file.tensors.push_back(float_tensor(parameters[i], read(ParameterId{i})));
  return file;
}

// Something kept by parameter from step to step.
struct Memory {
  std::string name;
  int moment = -1;  // -1: the averaged parameters

  std::vector<float> get(const Executor& executor, ParameterId id) const {
    return moment < 0 ? executor.average(id) : executor.moment(id, moment);
  }
  void set(Executor& executor, ParameterId id, std::span<const float> values) const {
    if (moment < 0)
      executor.set_average(id, values);
    else
      executor.set_moment(id, moment, values);
  }
};

std::vector<Memory> memories_of(const Executor& executor) {
  const OptimizerSettings& optimizer = executor.optimizer();
  const bool adam = optimizer.kind == OptimizerKind::adam || optimizer.kind == OptimizerKind::adamw;
  std::vector<Memory> memories;
  if (keeps_moment(optimizer, 0)) memories.push_back({adam ? "exp_avg" : "momentum_buffer", 0});
  if (keeps_moment(optimizer, 1)) memories.push_back({adam ? "exp_avg_sq" : "square_avg", 1});
  if (optimizer.ema > 0) memories.push_back({"average", -1});
  return memories;
}

void initialise(const Parameter& what, std::uint64_t seed, std::size_t first,
                std::span<float> values) {
  const std::uint64_t stream = stream_of(what.name);
  const auto scale = static_cast<float>(what.init.scale);
  for (float& value : values) {
    const std::size_t i = first++;
    switch (what.init.kind) {
      case Init::Kind::zeros:
        break;
      case Init::Kind::ones:
        value = 1;
        break;
      case Init::Kind::uniform:
        value = (2 * random_uniform(seed, stream, i) - 1) * scale;
        break;
      case Init::Kind::normal:
        value = random_normal(seed, stream, i) * scale;
        break;
    }
  }
}

// By several threads: tens of millions of numbers would take seconds.
std::vector<float> initial_values(const Parameter& what, std::uint64_t seed) {
  constexpr std::size_t worth_a_thread = 50'000;
  std::vector<float> values(static_cast<std::size_t>(what.shape.elements()));
  const std::size_t parts = std::clamp<std::size_t>(values.size() / worth_a_thread, 1,
                                                    static_cast<std::size_t>(available_cpus()));
  std::vector<std::jthread> threads;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t from = part * values.size() / parts, to = (part + 1) * values.size() / parts;
    const std::span<float> mine(values.data() + from, to - from);
    if (part + 1 == parts)
      initialise(what, seed, from, mine);
    else
      threads.emplace_back([&what, seed, from, mine] { initialise(what, seed, from, mine); });
  }
  threads.clear();  // and joined
  return values;
}

template <class Values>
void initialise_by(Executor& executor, const Values& values_of) {
  const Graph& graph = executor.graph();
  for (std::uint32_t i = 0; i < graph.parameters().size(); ++i) {
    const std::vector<float> values = values_of(graph.parameters()[i]);
    executor.set_parameter(ParameterId{i}, values);
    for (const Memory& memory : memories_of(executor))
      memory.set(executor, ParameterId{i}, std::vector<float>(values.size()));
  }
  for (std::uint32_t i = 0; i < graph.states().size(); ++i)
    executor.set_state(StateId{i}, values_of(graph.states()[i]));
  executor.wait(executor.submit(ListKind::prepare, {}));
}

}  // namespace

Weights initial_weights(const Graph& graph, std::uint64_t seed) {
  Weights weights;
  for (const Parameter& parameter : graph.parameters())
    weights[parameter.name] = initial_values(parameter, seed);
  for (const Parameter& state : graph.states()) weights[state.name] = initial_values(state, seed);
  return weights;
}

NamedTensor to_tensor(const Parameter& what, const std::vector<float>& values) {
  return is_count(what) ? count_tensor(what, values.front()) : float_tensor(what, values);
}

void initialise_weights(Executor& executor, std::uint64_t seed) {
  initialise_by(executor, [&](const Parameter& what) { return initial_values(what, seed); });
}

void initialise_roughly(Executor& executor, std::uint64_t seed) {
  initialise_by(executor, [&](const Parameter& what) {
    constexpr std::size_t few = 4096;
    std::vector<float> values(static_cast<std::size_t>(what.shape.elements()));
    const std::size_t drawn = std::min(few, values.size());
    initialise(what, seed, 0, std::span(values.data(), drawn));
    for (std::size_t i = drawn; i < values.size(); ++i) values[i] = values[i - drawn];
    return values;
  });
}

TensorFile weights_of(const Executor& executor) {
  TensorFile file = parameters_as(executor, [&](ParameterId id) { return executor.parameter(id); });
  const auto& states = executor.graph().states();
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    const std::vector<float> values = executor.state(StateId{i});
    file.tensors.push_back(to_tensor(states[i], values));
  }
  return file;
}

TensorFile optimizer_state_of(const Executor& executor) {
  TensorFile file;
  for (const Memory& memory : memories_of(executor))
    for (NamedTensor& tensor : parameters_as(executor, [&](ParameterId id) {
                                 return memory.get(executor, id);
                               }).tensors) {
      tensor.name += "." + memory.name;
      file.tensors.push_back(std::move(tensor));
    }
  return file;
}

TensorFile gradients_of(const Executor& executor) {
  return parameters_as(executor, [&](ParameterId id) { return executor.gradient(id); });
}

Weights weights_from(const Graph& graph, const TensorFile& file, const std::string& from) {
  std::vector<const Parameter*> wanted;
  for (const Parameter& parameter : graph.parameters()) wanted.push_back(&parameter);
  for (const Parameter& state : graph.states()) wanted.push_back(&state);
  Weights weights;
  match(wanted, file, from, true, [&](std::size_t i, std::vector<float> values) {
    weights[wanted[i]->name] = std::move(values);
  });
  return weights;
}

std::vector<std::string> class_names_of(const TensorFile& weights) {
  const auto found = weights.metadata.find(class_names_key);
  return found == weights.metadata.end() ? std::vector<std::string>()
                                         : class_names_from(found->second);
}

void set_weights(Executor& executor, const Weights& weights) {
  const Graph& graph = executor.graph();
  for (std::uint32_t i = 0; i < graph.parameters().size(); ++i)
    executor.set_parameter(ParameterId{i}, weights.at(graph.parameters()[i].name));
  for (std::uint32_t i = 0; i < graph.states().size(); ++i)
    if (const auto found = weights.find(graph.states()[i].name); found != weights.end())
      executor.set_state(StateId{i}, found->second);
  executor.wait(executor.submit(ListKind::prepare, {}));
}

void set_weights(Executor& executor, const TensorFile& file, const std::string& from) {
  set_weights(executor, weights_from(executor.graph(), file, from));
}

void set_optimizer_state(Executor& executor, const TensorFile& file, const std::string& from) {
  const std::vector<Memory> memories = memories_of(executor);
  const std::vector<Parameter>& parameters = executor.graph().parameters();
  std::vector<Parameter> tensors;
  for (const Memory& memory : memories)
    for (const Parameter& parameter : parameters) {
      tensors.push_back(parameter);
      tensors.back().name += "." + memory.name;
    }
  std::vector<const Parameter*> wanted;
  for (const Parameter& tensor : tensors) wanted.push_back(&tensor);
  match(wanted, file, from, false, [&](std::size_t i, const std::vector<float>& values) {
    memories[i / parameters.size()].set(
        executor, ParameterId{static_cast<std::uint32_t>(i % parameters.size())}, values);
  });
}

void swap_average(Executor& executor) {
  for (std::uint32_t i = 0; i < executor.graph().parameters().size(); ++i) {
    const std::vector<float> own = executor.parameter(ParameterId{i});
    const std::vector<float> average = executor.average(ParameterId{i});
    executor.set_parameter(ParameterId{i}, average);
    executor.set_average(ParameterId{i}, own);
  }
  executor.wait(executor.submit(ListKind::prepare, {}));
}

TensorFile averaged(TensorFile weights, const TensorFile& optimizer_state) {
  for (NamedTensor& tensor : weights.tensors)
    if (const NamedTensor* average = optimizer_state.find(tensor.name + ".average"))
      tensor.bytes = average->bytes;
  return weights;
}

}  // namespace regatta
