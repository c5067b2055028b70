#include "profile/signature.h"

#include <array>
#include <variant>

#include "graph/op.h"

namespace regatta {
namespace {

constexpr std::string_view segment_mark = " | segment", shared_mark = " | segment shared";

constexpr std::array<std::string_view, 8> work_names{
    "forward",       "backward",       "statistics",     "normalise",
    "gradient_sums", "gradient_apply", "input_gradient", "weight_gradient"};

constexpr std::array<std::string_view, 3> gradient_mode_names{" none", " write", " add"};

std::string text_of(const KernelSetting& setting) {
  std::string text = setting.device + " " + std::string(layout_name(setting.layout)) + " " +
                     std::string(precision_name(setting.precision));
  if (setting.team > 1) text += " team" + std::to_string(setting.team);
  return text + " | ";
}

std::string text_of(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes.values()) {
    if (std::holds_alternative<double>(value)) continue;
    text += " " + name;
    for (char separator = '='; const std::int64_t number : attributes.list(name)) {
      text += separator + std::to_string(number);
      separator = ',';
    }
  }
  return text;
}

}  // namespace

std::string signature_of(const Graph& graph, const GradientFlow& flow, const Instruction& step,
                         Pass pass, const KernelSetting& setting,
                         const std::vector<Layout>& layouts) {
  const Node& node = graph.node(step.node);
  const auto value = [&](const Node& of) {
    std::string shape = " " + of.shape.text();
    if (of.shape.rank() == 3 && !layouts.empty() && layouts[of.id.value] != setting.layout)
      shape += ":" + std::string(layout_name(layouts[of.id.value]));
    return shape;
  };
  std::string text = text_of(setting) + std::string(node.op->name);
  for (const NodeId input : node.inputs) text += value(graph.node(input));
  text += " ->" + value(node) + text_of(node.attributes);
  if (!node.parameters.empty()) text += " p" + std::to_string(node.parameters.size());
  text += " | ";
  text += pass == Pass::evaluate ? "evaluate" : work_names[static_cast<std::size_t>(step.work)];
  // The first layer has no gradient to give; of a branch the second adds to the first's.
  if (goes_back(step.work))
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      text += gradient_mode_names[static_cast<std::size_t>(flow.mode(node.id, i))];
  return text;
}

std::string segment_signature(const std::string& whole, bool shared) {
  return whole + std::string(shared ? shared_mark : segment_mark);
}
bool of_segments(std::string_view signature) {
  return signature.ends_with(segment_mark) || signature.ends_with(shared_mark);
}

std::string load_signature(const std::string& data, const Shape& sample, Dtype dtype) {
  // What a folder or a list of files is called says nothing of its cost.
  return "load " + data.substr(0, data.find(':')) + " " + sample.text() +
         (dtype == Dtype::u8 ? " u8" : " f32");
}

std::string deliver_signature(Pass pass, std::int64_t classes) {
  return pass == Pass::train ? "deliver" : "deliver logits " + std::to_string(classes);
}

std::string bookkeeping_signature(const KernelSetting& setting, std::string_view what) {
  return text_of(setting) + std::string(what);
}
std::string spread_signature(const KernelSetting& setting) { return text_of(setting) + "spread"; }

std::string update_signature(const KernelSetting& setting, const OptimizerSettings& optimizer) {
  std::string text = text_of(setting) + "update " + std::string(optimizer_name(optimizer.kind));
  for (int i = 0; i < most_moments; ++i) text += keeps_moment(optimizer, i) ? " moment" : "";
  if (optimizer.ema > 0) text += " average";
  if (optimizer.clip_norm > 0 || optimizer.clip_value > 0) text += " clipped";
  return text;
}

std::string pack_signature(const Graph& graph, const Node& node, const KernelSetting& setting) {
  std::string text = text_of(setting) + std::string(node.op->name);
  for (const ParameterId id : node.parameters) text += " " + graph.parameter(id).shape.text();
  return text + text_of(node.attributes) + " | pack";
}

const std::vector<RuntimeCost>& runtime_costs() {
  static const std::vector<RuntimeCost> all{{"runtime task", &RuntimeCosts::task},
                                            {"runtime access", &RuntimeCosts::access},
                                            {"runtime submission", &RuntimeCosts::submission},
                                            {"runtime dependency", &RuntimeCosts::dependency},
                                            {"runtime step", &RuntimeCosts::step},
                                            {"runtime wake", &RuntimeCosts::wake},
                                            {"runtime release", &RuntimeCosts::release},
                                            {"runtime byte", &RuntimeCosts::byte}};
  return all;
}

}  // namespace regatta
