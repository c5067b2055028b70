// One node of an ONNX file, with its attributes by name. Internal to the import.
#pragma once

#include <onnx/onnx_pb.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace regatta {

// A float as the decimal number it was written from: 1e-05, not 9.99999974e-06.
inline double decimal(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double out = value;
  std::from_chars(text, end, out);
  return out;
}

class OnnxNode {
 public:
  explicit OnnxNode(const onnx::NodeProto& node) : node_(node) {}

  const onnx::NodeProto& proto() const { return node_; }
  const std::string& type() const { return node_.op_type(); }
  std::string culprit() const {
    const std::string& name =
        node_.name().empty() && node_.output_size() > 0 ? node_.output(0) : node_.name();
    return type() + " '" + name.substr(0, 200) + "'";
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(culprit() + ": " + what);
  }

  std::int64_t integer(const char* name, std::int64_t otherwise) const {
    const onnx::AttributeProto* found = find(name);
    return found ? found->i() : otherwise;
  }
  double real(const char* name, double otherwise) const {
    const onnx::AttributeProto* found = find(name);
    return found ? decimal(found->f()) : otherwise;
  }
  std::string text(const char* name, const std::string& otherwise) const {
    const onnx::AttributeProto* found = find(name);
    return found ? found->s() : otherwise;
  }
  // Exactly `count` numbers, `otherwise` if they are missing.
  std::vector<std::int64_t> list(const char* name,
                                 const std::vector<std::int64_t>& otherwise) const {
    const onnx::AttributeProto* found = find(name);
    if (!found) return otherwise;
    if (static_cast<std::size_t>(found->ints_size()) != otherwise.size())
      fail(std::string("'") + name + "' has " + std::to_string(found->ints_size()) +
           " numbers, expected " + std::to_string(otherwise.size()) + ": images are flat here");
    return {found->ints().begin(), found->ints().end()};
  }
  const onnx::AttributeProto* find(const char* name) const {
    for (const onnx::AttributeProto& each : node_.attribute())
      if (each.name() == name) return &each;
    return nullptr;
  }
  bool has_input(int index) const {
    return index < node_.input_size() && !node_.input(index).empty();
  }

 private:
  const onnx::NodeProto& node_;
};

}  // namespace regatta
