// Tickets for PyTorch.
#pragma once

#include "train/masking.h"

namespace regatta::tickets {

// The state of a network whose layers torch.nn.utils.prune has pruned: "conv1.weight_orig" and
// "conv1.weight_mask" for a masked tensor, all else as it is. PyTorch's load_state_dict takes it
// once the layers are pruned, by whatever mask: prune.identity(net.conv1, "weight") will do.
TensorFile for_pytorch(TensorFile weights, const Mask& mask);

}  // namespace regatta::tickets
