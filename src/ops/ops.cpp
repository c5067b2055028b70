#include "ops/ops.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace regatta {

const OpDef& op_named(std::string_view name) {
  static constexpr const OpDef* all[] = {
      &add_op,     &batch_norm_op,          &conv_op,  &cross_entropy_op, &dense_op,
      &flatten_op, &global_average_pool_op, &input_op, &max_pool_op,      &relu_op,
  };
  std::vector<std::string> names;
  for (const OpDef* op : all) {
    if (op->name == name) return *op;
    names.emplace_back(op->name);
  }
  throw InputError("operator '" + std::string(name) + "' is unknown" + did_you_mean(name, names));
}

}  // namespace regatta
