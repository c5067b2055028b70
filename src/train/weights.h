// train/: the training loop and what it leaves behind: weights, checkpoints, metrics, the run
// folder. It joins the executor with the data.
#pragma once

#include <string>
#include <vector>

#include "data/safetensors.h"
#include "exec/executor.h"
#include "models/onnx.h"

namespace regatta {

// Every parameter and state as its model says, drawn from `seed` by name.
Weights initial_weights(const Graph& graph, std::uint64_t seed);

// What the file holds of the graph's tensors; `from` names the file in errors: a missing, surplus
// or misshapen tensor is named. Counts may be missing.
Weights weights_from(const Graph& graph, const TensorFile& file, const std::string& from);

// A parameter or state as files hold it: counts are integers there.
NamedTensor to_tensor(const Parameter& what, const std::vector<float>& values);

// Sets every parameter as its model says, drawn from `seed` by name; clears the optimizer's state.
void initialise_weights(Executor& executor, std::uint64_t seed);
// For runs that are only measured: a few numbers are drawn and repeated, which takes no time.
void initialise_roughly(Executor& executor, std::uint64_t seed);

// Parameters and running statistics under torchvision's names; PyTorch loads the file as it is.
TensorFile weights_of(const Executor& executor);
// What the optimizer remembers, under PyTorch's names of it ("conv1.weight.exp_avg"), and the
// averaged parameters ("conv1.weight.average").
TensorFile optimizer_state_of(const Executor& executor);
TensorFile gradients_of(const Executor& executor);

// Names of the outputs of the network that the weights belong to; none if the file does not tell.
std::vector<std::string> class_names_of(const TensorFile& weights);

void set_weights(Executor& executor, const Weights& weights);
void set_weights(Executor& executor, const TensorFile& file, const std::string& from);
// Puts the averaged parameters in the place of the parameters, and these in theirs.
void swap_average(Executor& executor);
// A checkpoint's weights with the averages of its optimizer state in the parameters' place.
TensorFile averaged(TensorFile weights, const TensorFile& optimizer_state);
void set_optimizer_state(Executor& executor, const TensorFile& file, const std::string& from);

}  // namespace regatta
