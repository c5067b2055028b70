#include "models/network_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <variant>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "graph/op.h"
#include "models/layer_table.h"
#include "ops/ops.h"

namespace regatta {
namespace {

constexpr std::size_t most_bytes = 16 << 20;
constexpr std::size_t most_layers = 10'000;
constexpr std::size_t most_name = 200;
constexpr int most_depth = 6;  // the format itself goes three deep

std::string brief(const Json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

// --- values of attributes ------------------------------------------------------------------------

std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15
             ? std::to_string(static_cast<std::int64_t>(value))
             : Json(value).dump();
}

// What an attribute should look like, for errors.
std::string expected(const AttributeRow& row) {
  const std::string range = "from " + number_text(row.least) + " to " + number_text(row.most);
  switch (row.form) {
    case AttributeForm::whole:
      return "a whole number " + range;
    case AttributeForm::flag:
      return "true or false";
    case AttributeForm::real:
      return "a number " + range;
    case AttributeForm::pair:
      return "a whole number " + range + ", or two for height and width";
    case AttributeForm::padding:
      return "a whole number " + range +
             ", or two for height and width, or four for top, left, bottom and right";
    case AttributeForm::choice:
      break;
  }
  std::string words;
  for (const std::string_view word : row.choices)
    words += (words.empty() ? "one of " : ", ") + std::string(word);
  return words;
}

std::optional<std::int64_t> whole_in(const Json& value, double least, double most) {
  if (!value.is_number_integer()) return std::nullopt;
  const bool negative = !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
  const double number = negative ? static_cast<double>(value.get<std::int64_t>())
                                 : static_cast<double>(value.get<std::uint64_t>());
  if (number < least || number > most) return std::nullopt;
  return value.get<std::int64_t>();
}

// Null if the value does not have the row's form.
std::optional<Attributes::Value> attribute_value(const AttributeRow& row, const Json& value) {
  switch (row.form) {
    case AttributeForm::whole:
      if (const auto whole = whole_in(value, row.least, row.most)) return *whole;
      return std::nullopt;
    case AttributeForm::flag:
      if (value.is_boolean()) return std::int64_t{value.get<bool>()};
      return std::nullopt;
    case AttributeForm::real:
      if (value.is_number() && value.get<double>() >= row.least && value.get<double>() <= row.most)
        return value.get<double>();
      return std::nullopt;
    case AttributeForm::choice: {
      if (!value.is_string()) return std::nullopt;
      const auto found = std::ranges::find(row.choices, value.get_ref<const std::string&>());
      if (found == row.choices.end()) return std::nullopt;
      return std::int64_t{found - row.choices.begin()};
    }
    case AttributeForm::pair:
    case AttributeForm::padding:
      break;
  }
  if (const auto both = whole_in(value, row.least, row.most))
    return std::vector<std::int64_t>{*both, *both};
  const bool four = row.form == AttributeForm::padding && value.size() == 4;
  if (!value.is_array() || (value.size() != 2 && !four)) return std::nullopt;
  std::vector<std::int64_t> list;
  for (const Json& each : value) {
    const auto whole = whole_in(each, row.least, row.most);
    if (!whole) return std::nullopt;
    list.push_back(*whole);
  }
  return list;
}

Json attribute_json(const AttributeRow& row, const Attributes::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    if (row.form == AttributeForm::flag) return *whole != 0;
    if (row.form == AttributeForm::choice) return row.choices[static_cast<std::size_t>(*whole)];
    return *whole;
  }
  if (const auto* real = std::get_if<double>(&value)) return *real;
  const auto& list = std::get<std::vector<std::int64_t>>(value);
  const bool alike = std::ranges::all_of(list, [&](auto each) { return each == list.front(); });
  return list.size() == 2 && alike ? Json(list.front()) : Json(list);
}

// --- reading -------------------------------------------------------------------------------------

// Adds the layers of a file one by one, and notes every mistake. A layer with a mistake has no
// value; layers that read it are checked as far as they can be without it.
class Reader {
 public:
  Reader(const Json& network, const std::optional<Shape>& input)
      : network_(network), builder_(checked_name()) {
    add_input(input);
  }

  Graph graph() && {
    const Json& layers = checked_layers();
    for (const Json& layer : layers) {
      add_layer(layer);
      if (faults_.size() >= most_faults_told) break;
    }
    if (!faults_.empty())
      throw InputError(faults_text(faults_) +
                       (number_ < layers.size() ? "; layers behind that were not read" : ""));
    builder_.add(cross_entropy_op, "loss", {*last_}, {});
    return std::move(builder_).finish();
  }

 private:
  using Value = std::optional<NodeId>;  // null: of a layer with a mistake

  void fault(std::string text) { faults_.push_back(std::move(text)); }

  std::string checked_name() {
    if (!network_.is_object()) throw InputError("a network is an object with name, input, layers");
    static const std::vector<std::string> known{"$schema", "name", "input", "layers"};
    for (const auto& [key, value] : network_.items())
      if (std::ranges::find(known, key) == known.end())
        fault("a network has no '" + key + "'" + did_you_mean(key, known) +
              ": it has name, input and layers");
    const auto name = network_.find("name");
    const bool there = name != network_.end() && name->is_string();
    const std::string text = there ? name->get<std::string>() : "";
    // It becomes part of the run folder's name.
    const bool plain = std::ranges::none_of(
        text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '/' || c == '\\'; });
    if (text.empty() || text.size() > most_name || !plain || text.starts_with('.'))
      fault("a network needs a 'name' that a folder could have, found " +
            (name == network_.end() ? "none" : brief(*name)));
    return text;
  }

  void add_input(const std::optional<Shape>& instead) {
    const auto found = network_.find("input");
    std::vector<std::int64_t> extents;
    double elements = 1;
    if (found != network_.end() && found->is_array() && found->size() <= 3)
      for (const Json& each : *found)
        if (const auto extent = whole_in(each, 1, 1 << 24)) {
          extents.push_back(*extent);
          elements *= static_cast<double>(*extent);
        }
    made_["input"] = std::nullopt;
    if (extents.empty() || extents.size() != found->size() || elements > 1 << 30)
      return fault("a network needs an 'input' such as [3, 32, 32], found " +
                   (found == network_.end() ? "none" : brief(*found)));
    if (instead) extents.assign(instead->extents().begin(), instead->extents().end());
    last_ = builder_.add(input_op, "input", {}, {{"shape", extents}});
    made_["input"] = last_;
  }

  const Json& checked_layers() {
    static const Json none = Json::array();
    const auto layers = network_.find("layers");
    if (layers == network_.end() || !layers->is_array() || layers->empty()) {
      fault("a network needs 'layers', a list of them");
      return none;
    }
    if (layers->size() > most_layers) {
      fault("a network of " + std::to_string(layers->size()) + " layers is too large: at most " +
            std::to_string(most_layers));
      return none;
    }
    for (const Json& layer : *layers)
      if (const auto name = layer.find("name"); name != layer.end() && name->is_string())
        announced_.insert(name->get<std::string>());
    return *layers;
  }

  void add_layer(const Json& layer) {
    ++number_;
    const std::string name = word(layer, "name");
    last_ = read_layer(layer, name);
    if (last_)
      made_[builder_.node(*last_).name] = last_;
    else if (!name.empty())
      made_.try_emplace(name, std::nullopt);
  }

  Value read_layer(const Json& layer, const std::string& name) {
    const std::string number = "layer " + std::to_string(number_);
    const std::string place = name.empty() ? number : "layer '" + name + "'";
    const auto wrong = [&](std::string text) {
      fault(std::move(text));
      return Value();
    };
    if (!layer.is_object())
      return wrong(number + " must be an object such as {\"op\": \"relu\"}, found " + brief(layer));
    if (!layer.contains("op")) return wrong(place + ": it needs an 'op', such as conv or relu");
    const std::string op = word(layer, "op");
    if (op.empty()) return std::nullopt;
    const LayerRow* row = layer_row(op);
    if (!row) {
      std::vector<std::string> known;
      for (const LayerRow& each : layer_rows()) known.emplace_back(each.op);
      return wrong(place + ": operator '" + op + "' is unknown" + did_you_mean(op, known));
    }
    const std::string culprit = op + (name.empty() ? " (" + number + ")" : " '" + name + "'");
    const auto inputs = inputs_of(layer, culprit, name);
    auto attributes = attributes_of(*row, layer, culprit);
    if (!inputs || !attributes) return std::nullopt;
    NodeId node{};
    std::string reason =
        why_not([&] { node = builder_.add(op_named(op), name, *inputs, std::move(*attributes)); });
    if (!reason.empty()) return wrong(std::move(reason));
    return node;
  }

  // Empty if the layer does not say it, or says something else than a word.
  std::string word(const Json& layer, const char* key) {
    const auto found = layer.find(key);
    if (found == layer.end()) return "";
    if (found->is_string() && !found->get_ref<const std::string&>().empty() &&
        found->get_ref<const std::string&>().size() <= most_name)
      return found->get<std::string>();
    fault("layer " + std::to_string(number_) + ": '" + key + "' must be a word, found " +
          brief(*found));
    return "";
  }

  // By default a layer reads the one before it. Null if one of them has no value.
  std::optional<std::vector<NodeId>> inputs_of(const Json& layer, const std::string& culprit,
                                               const std::string& name) {
    const auto found = layer.find("inputs");
    if (found == layer.end()) return last_ ? std::optional(std::vector{*last_}) : std::nullopt;
    const Json list = found->is_string() ? Json::array({*found}) : *found;
    if (!list.is_array() || list.empty() || list.size() > 64) {
      fault(culprit + ": 'inputs' must be a name or a list of names, found " + brief(*found));
      return std::nullopt;
    }
    std::vector<NodeId> inputs;
    for (const Json& each : list) {
      if (!each.is_string())
        fault(culprit + ": 'inputs' must be names of layers, found " + brief(each));
      else if (const Value value = value_named(each.get_ref<const std::string&>(), culprit, name))
        inputs.push_back(*value);
    }
    return inputs.size() == list.size() ? std::optional(inputs) : std::nullopt;
  }

  Value value_named(const std::string& wanted, const std::string& culprit,
                    const std::string& name) {
    if (const auto made = made_.find(wanted); made != made_.end()) return made->second;
    if (wanted == name) {
      fault(culprit + ": it reads itself");
    } else if (announced_.contains(wanted)) {
      fault(culprit + ": its input '" + wanted +
            "' comes later; a layer stands after all it reads");
    } else if (faults_.empty() || !is_automatic(wanted)) {
      std::vector<std::string> known(announced_.begin(), announced_.end());
      known.emplace_back("input");
      fault(culprit + ": its input " + brief(wanted) + " does not exist" +
            did_you_mean(wanted.substr(0, most_name), known));
    }
    return std::nullopt;
  }

  // Whether the graph could have made the name up for a layer without one, such as relu3. Behind a
  // mistake nobody knows which names it would have.
  static bool is_automatic(const std::string& name) {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    return digits < name.size() && layer_row(name.substr(0, digits));
  }

  // Null if one of them is wrong.
  std::optional<Attributes> attributes_of(const LayerRow& row, const Json& layer,
                                          const std::string& culprit) {
    const std::size_t before = faults_.size();
    Attributes attributes;
    for (const auto& [key, value] : layer.items()) {
      if (key == "name" || key == "op" || key == "inputs") continue;
      const auto known = std::ranges::find(row.attributes, key, &AttributeRow::name);
      if (known == row.attributes.end()) {
        fault(unknown_attribute(row, key, culprit));
      } else if (const auto held = attribute_value(*known, value)) {
        attributes.set(key, *held);
      } else {
        fault(culprit + ": '" + key + "' must be " + expected(*known) + ", found " + brief(value));
      }
    }
    for (const AttributeRow& each : row.attributes) {
      const std::string name(each.name);
      if (each.required && !layer.contains(name))
        fault(culprit + ": it needs '" + name + "', " + expected(each));
      // As the builder has it: a network of one's own seldom wants a layer without.
      if (name == "bias" && !attributes.has(name)) attributes.set(name, std::int64_t{1});
    }
    return faults_.size() == before ? std::optional(std::move(attributes)) : std::nullopt;
  }

  static std::string unknown_attribute(const LayerRow& row, const std::string& key,
                                       const std::string& culprit) {
    std::vector<std::string> known{"name", "op", "inputs"};
    for (const AttributeRow& each : row.attributes) known.emplace_back(each.name);
    std::string list;
    for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
    const std::string shown = brief(key);
    return culprit + ": it has no attribute '" + shown.substr(1, shown.size() - 2) + "'" +
           did_you_mean(key.substr(0, most_name), known) + ": it takes " + list;
  }

  const Json& network_;
  std::vector<std::string> faults_;
  GraphBuilder builder_;
  std::set<std::string> announced_;  // every name the file gives, also of layers yet to come
  std::map<std::string, Value> made_;
  Value last_;              // of the layer read last
  std::size_t number_ = 0;  // of the layer at hand, from 1
};

// Refuses what a network never needs while it is being read: a key given twice, of which one would
// be lost without a word, and nesting without end.
class Watch {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > most_depth)
      throw InputError("it is nested more than " + std::to_string(most_depth) + " deep");
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(parsed).second)
      throw InputError("a layer or the network says " + brief(parsed) + " twice");
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects being read, outermost first
};

}  // namespace

Graph graph_of_json(const Json& network, const std::optional<Shape>& input) {
  return Reader(network, input).graph();
}

Graph graph_from_json(std::string_view text, const std::optional<Shape>& input) {
  if (text.size() > most_bytes)
    throw InputError("a network of " + std::to_string(text.size()) +
                     " bytes is too large: at most " + std::to_string(most_bytes));
  Json network;
  try {
    network = Json::parse(text, Watch());
  } catch (const nlohmann::json::parse_error& error) {
    throw InputError("it is not valid JSON: it breaks off at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::out_of_range& error) {
    throw InputError("it holds a number that is too large");
  }
  return graph_of_json(network, input);
}

// --- writing -------------------------------------------------------------------------------------

Json json_of(const Graph& graph) {
  Json layers = Json::array();
  for (const Node& node : graph.nodes()) {
    if (node.id == graph.input() || node.id == graph.loss()) continue;
    Json layer{{"name", node.name}, {"op", node.op->name}};
    const bool follows = node.inputs.size() == 1 && node.inputs[0].value + 1 == node.id.value;
    if (!follows) {
      Json inputs = Json::array();
      for (const NodeId input : node.inputs) inputs.push_back(graph.node(input).name);
      layer["inputs"] = inputs.size() == 1 ? inputs[0] : inputs;
    }
    const LayerRow* row = layer_row(node.op->name);
    for (const auto& [name, value] : node.attributes.values()) {
      const auto known = row ? std::ranges::find(row->attributes, name, &AttributeRow::name)
                             : std::span<const AttributeRow>::iterator{};
      if (!row || known == row->attributes.end())
        throw Error(std::string(node.op->name) + " '" + node.name + "': '" + name +
                    "' has no form in a network file");
      layer[name] = attribute_json(*known, value);
    }
    if (row && node.op->name == "conv" && !node.attributes.has("bias")) layer["bias"] = false;
    layers.push_back(std::move(layer));
  }
  const auto extents = graph.node(graph.input()).shape.extents();
  return {{"name", graph.name()},
          {"input", std::vector<std::int64_t>(extents.begin(), extents.end())},
          {"layers", std::move(layers)}};
}

std::string network_text(const Graph& graph) {
  const Json network = json_of(graph);
  std::string text = "{\n  \"name\": " + network["name"].dump() +
                     ",\n  \"input\": " + network["input"].dump() + ",\n  \"layers\": [";
  const char* before = "\n    ";
  for (const Json& layer : network["layers"]) {
    text += before + layer.dump();
    before = ",\n    ";
  }
  return text + "\n  ]\n}\n";
}

}  // namespace regatta
