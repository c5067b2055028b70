// What arithmetic a network is trained in: part of the recipe, since it changes the numbers.
#pragma once

#include <string_view>

namespace regatta {

enum class Precision {
  fp32,
  tf32,  // fp32 in memory; products of matrices and convolutions round their factors to 10 bits
  bf16,  // values in bf16 but for logits and loss; parameters, statistics and all sums in fp32
};

std::string_view precision_name(Precision precision);
Precision precision_named(std::string_view name);  // throws InputError

}  // namespace regatta
