// Makes a network of an ONNX file, node by node: one function for each of ONNX's operators,
// gathered in files by what they do. Internal to the import.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "models/onnx_names.h"

namespace regatta {

class OnnxImporter : private OnnxNames {
 public:
  OnnxImporter(const onnx::ModelProto& model, const std::optional<Shape>& input,
               const std::filesystem::path& folder);

  OnnxModel model() &&;

 private:
  using Handler = void (OnnxImporter::*)(const OnnxNode&);

  void mark_needed();
  void add(const OnnxNode& node);

  // onnx_import_values.cpp
  const std::string* beside(const onnx::NodeProto& node, double wanted);
  void find_gelus();
  void add_relu(const OnnxNode& node);
  void add_sigmoid(const OnnxNode& node);
  void add_tanh(const OnnxNode& node);
  void add_leaky_relu(const OnnxNode& node);
  void add_gelu(const OnnxNode& node);
  void add_mul(const OnnxNode& node);
  void add_dropout(const OnnxNode& node);
  void add_clip(const OnnxNode& node);
  void add_constant(const OnnxNode& node);
  void add_same(const OnnxNode& node);
  void add_softmax(const OnnxNode& node);
  void add_add(const OnnxNode& node);
  void add_concat(const OnnxNode& node);

  // onnx_import_layers.cpp
  void dense(const OnnxNode& node, const OnnxTensor& weight, bool transposed,
             const std::string& weight_name, const OnnxTensor* bias, const std::string& output);
  void add_gemm(const OnnxNode& node);
  void add_matmul(const OnnxNode& node);
  void add_batch_norm(const OnnxNode& node);
  void add_layer_norm(const OnnxNode& node);
  void add_local_response_norm(const OnnxNode& node);

  // onnx_import_windows.cpp
  void add_conv(const OnnxNode& node);
  Attributes window(const OnnxNode& node, const Extents& zeros);
  void add_max_pool(const OnnxNode& node);
  void add_average_pool(const OnnxNode& node);
  void pool_all(const OnnxNode& node, bool keeps_image);
  void add_global_pool(const OnnxNode& node);
  void add_reduce_mean(const OnnxNode& node);
  void add_resize(const OnnxNode& node);
  void add_pad(const OnnxNode& node);

  // onnx_import_shapes.cpp
  void flatten(const OnnxNode& node);
  void add_flatten(const OnnxNode& node);
  void add_reshape(const OnnxNode& node);
  void add_squeeze(const OnnxNode& node);
  void add_unsqueeze(const OnnxNode& node);
  void reshape_number(const OnnxNode& node, bool to_list);
  void add_shape(const OnnxNode& node);
  void add_gather(const OnnxNode& node);
  void concat_numbers(const OnnxNode& node);

  std::set<const onnx::NodeProto*> needed_;
  std::set<const onnx::NodeProto*> absorbed_;            // into another node's operator
  std::map<const onnx::NodeProto*, std::string> gelus_;  // last product -> what gelu is of
};

}  // namespace regatta
