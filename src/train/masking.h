// Masks and networks: which weights may be masked, whether a mask fits, and masked weights.
#pragma once

#include <string>
#include <vector>

#include "data/mask.h"
#include "data/safetensors.h"
#include "exec/bucket_masks.h"
#include "graph/graph.h"
#include "models/onnx.h"

namespace regatta {

// The weights that may be masked, in the graph's order: those of convolutions and dense layers,
// neither biases nor what norms scale and shift by.
std::vector<ParameterId> maskable(const Graph& graph);

// Tells networks apart whose parameters differ in name or shape; the size of images has no say.
std::string model_mark(const Graph& graph);

// A mask for `graph` that keeps every weight.
Mask whole_mask(const Graph& graph);

// Throws InputError that names `from` and what does not fit: a mask of another network, a tensor
// that the graph does not have or that may not be masked, another shape.
void require_fit(const Mask& mask, const Graph& graph, const std::string& from);

// The same mask for a network that differs in some layers, such as one with other classes: tensors
// of the same name and shape are taken, layers that have none keep all their weights.
Mask mask_for(const Graph& graph, const Mask& mask);

// As an executor of the graph takes it.
ParameterMasks parameter_masks(const Mask& mask, const Graph& graph);

// Masked weights become zero. In optimizer states ("conv1.weight.momentum_buffer") too.
void zero_masked(const Mask& mask, Weights& weights);
void zero_masked(const Mask& mask, TensorFile& file);

}  // namespace regatta
