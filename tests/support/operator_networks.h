// Small networks of the operators that a zoo of models needs besides: groups, dilation, uneven
// padding, activations, averages, concatenation, dropout, norms.
#pragma once

#include "support/small_networks.h"

namespace regatta {

std::vector<SmallNetwork> operator_networks();

}  // namespace regatta
