#include "ops/ops.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace regatta {

const OpDef& op_named(std::string_view name) {
  static constexpr const OpDef* all[] = {
      &adaptive_average_pool_op,
      &add_op,
      &average_pool_op,
      &batch_norm_op,
      &concat_op,
      &conv_op,
      &cross_entropy_op,
      &dense_op,
      &dropout_op,
      &flatten_op,
      &gelu_op,
      &global_average_pool_op,
      &input_op,
      &layer_norm_op,
      &leaky_relu_op,
      &local_response_norm_op,
      &max_pool_op,
      &relu_op,
      &relu6_op,
      &sigmoid_op,
      &tanh_op,
  };
  std::vector<std::string> names;
  for (const OpDef* op : all) {
    if (op->name == name) return *op;
    names.emplace_back(op->name);
  }
  throw InputError("operator '" + std::string(name) + "' is unknown" + did_you_mean(name, names));
}

}  // namespace regatta
