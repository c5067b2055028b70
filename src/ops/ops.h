// ops/: the operators networks are made of. One file per operator holds its row (shape, parameters,
// cost, what backward needs) and its reference kernels: plain loops over NCHW that state what the
// operator means, in float and in double. Backends are held to them; they know no backend.
// To add an operator: one file, one line below, one line in ops.cpp, one test.
#pragma once

#include <string_view>

#include "graph/op.h"

namespace regatta {

extern const OpDef adaptive_average_pool_op;
extern const OpDef add_op;
extern const OpDef average_pool_op;
extern const OpDef batch_norm_op;
extern const OpDef concat_op;
extern const OpDef conv_op;
extern const OpDef cross_entropy_op;
extern const OpDef dense_op;
extern const OpDef dropout_op;
extern const OpDef flatten_op;
extern const OpDef gelu_op;
extern const OpDef global_average_pool_op;
extern const OpDef input_op;
extern const OpDef layer_norm_op;
extern const OpDef leaky_relu_op;
extern const OpDef local_response_norm_op;
extern const OpDef max_pool_op;
extern const OpDef relu_op;
extern const OpDef relu6_op;
extern const OpDef sigmoid_op;
extern const OpDef tanh_op;

// "conv" -> conv_op; throws InputError that offers the nearest name.
const OpDef& op_named(std::string_view name);

}  // namespace regatta
