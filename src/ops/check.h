// The checks operators share when they infer shapes.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "graph/op.h"

namespace regatta {

// Throws InputError "<op> '<node name>': <what>".
[[noreturn]] inline void fail(const Node& node, const std::string& what) {
  throw InputError(std::string(node.op->name) + " '" + node.name + "': " + what);
}

inline void require_inputs(const Node& node, Shapes inputs, std::size_t count) {
  if (inputs.size() != count)
    fail(node, "it takes " + std::to_string(count) + (count == 1 ? " input" : " inputs") +
                   ", found " + std::to_string(inputs.size()));
}

// The only input, which must be an image.
inline const Shape& require_image(const Node& node, Shapes inputs) {
  require_inputs(node, inputs, 1);
  if (inputs[0].rank() != 3)
    fail(node, "its input must be channels x height x width, found " + inputs[0].text());
  return inputs[0];
}

// The attribute `name`, which must be a positive whole number.
inline std::int64_t require_positive(const Node& node, const std::string& name) {
  const std::int64_t value = node.attributes.integer(name, 0);
  if (value <= 0)
    fail(node, "it needs '" + name + "' of at least 1, found " + std::to_string(value));
  return value;
}

}  // namespace regatta
