#include "base/class_names.h"
#include "base/error.h"
#include "models/onnx_file.h"
#include "models/onnx_importer.h"

namespace regatta {

OnnxImporter::OnnxImporter(const onnx::ModelProto& model, const std::optional<Shape>& input,
                           const std::filesystem::path& folder)
    : OnnxNames(model, input, folder) {
  mark_needed();
  find_gelus();
}

OnnxModel OnnxImporter::model() && {
  for (const onnx::NodeProto& node : in_.node())
    if (needed_.contains(&node) && !absorbed_.contains(&node)) add(OnnxNode(node));
  const auto logits = values_.find(in_.output(0).name());
  if (logits == values_.end())
    throw InputError("nothing makes the output '" + in_.output(0).name() + "'");
  builder_.add(cross_entropy_op, "loss", {logits->second.id}, {});
  OnnxModel out{std::move(builder_).finish(), {}};
  for (const Parameter& parameter : out.graph.parameters()) take(parameter, out);
  for (const Parameter& state : out.graph.states()) take(state, out);
  return out;
}

// Only what leads to the output: exporters leave odds and ends behind.
void OnnxImporter::mark_needed() {
  std::vector<std::string> open{in_.output(0).name()};
  while (!open.empty()) {
    const auto maker = makers_.find(open.back());
    open.pop_back();
    if (maker == makers_.end() || !needed_.insert(maker->second).second) continue;
    for (const std::string& name : maker->second->input()) open.push_back(name);
  }
}

void OnnxImporter::add(const OnnxNode& node) {
  static const std::map<std::string, Handler> handlers{
      {"Add", &OnnxImporter::add_add},
      {"AveragePool", &OnnxImporter::add_average_pool},
      {"BatchNormalization", &OnnxImporter::add_batch_norm},
      {"Cast", &OnnxImporter::add_same},
      {"Clip", &OnnxImporter::add_clip},
      {"Concat", &OnnxImporter::add_concat},
      {"Constant", &OnnxImporter::add_constant},
      {"Conv", &OnnxImporter::add_conv},
      {"Dropout", &OnnxImporter::add_dropout},
      {"Flatten", &OnnxImporter::add_flatten},
      {"Gather", &OnnxImporter::add_gather},
      {"Gelu", &OnnxImporter::add_gelu},
      {"Gemm", &OnnxImporter::add_gemm},
      {"GlobalAveragePool", &OnnxImporter::add_global_pool},
      {"Identity", &OnnxImporter::add_same},
      {"LRN", &OnnxImporter::add_local_response_norm},
      {"LayerNormalization", &OnnxImporter::add_layer_norm},
      {"LeakyRelu", &OnnxImporter::add_leaky_relu},
      {"LogSoftmax", &OnnxImporter::add_softmax},
      {"MatMul", &OnnxImporter::add_matmul},
      {"MaxPool", &OnnxImporter::add_max_pool},
      {"Mul", &OnnxImporter::add_mul},
      {"Pad", &OnnxImporter::add_pad},
      {"ReduceMean", &OnnxImporter::add_reduce_mean},
      {"Relu", &OnnxImporter::add_relu},
      {"Reshape", &OnnxImporter::add_reshape},
      {"Resize", &OnnxImporter::add_resize},
      {"Shape", &OnnxImporter::add_shape},
      {"Sigmoid", &OnnxImporter::add_sigmoid},
      {"Softmax", &OnnxImporter::add_softmax},
      {"Squeeze", &OnnxImporter::add_squeeze},
      {"Sum", &OnnxImporter::add_add},
      {"Tanh", &OnnxImporter::add_tanh},
      {"Unsqueeze", &OnnxImporter::add_unsqueeze},
  };
  const auto found = handlers.find(node.type());
  const std::string& domain = node.proto().domain();
  if (found == handlers.end() || !(domain.empty() || domain == "ai.onnx"))
    node.fail("this operator is not supported; docs/models.md lists those that are");
  (this->*found->second)(node);
}

OnnxModel read_onnx(std::span<const std::byte> bytes, const std::optional<Shape>& input) {
  return read_onnx_file(bytes, {}, input);
}

OnnxModel read_onnx_file(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                         const std::optional<Shape>& input) {
  onnx::ModelProto model;
  constexpr std::size_t most = INT32_MAX;  // protobuf's limit
  if (bytes.size() > most || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw InputError("it is not an ONNX file");
  if (!model.has_graph()) throw InputError("it holds no network");
  OnnxModel read = OnnxImporter(model, input, folder).model();
  for (const onnx::StringStringEntryProto& entry : model.metadata_props())
    if (entry.key() == class_names_key) read.class_names = class_names_from(entry.value());
  if (std::ssize(read.class_names) > read.graph.classes()) read.class_names.clear();
  return read;
}

}  // namespace regatta
