// Where the time of one training step of ResNet-50 goes.
#pragma once

#include <cstdint>

namespace regatta::bench {

// Times every operator of the step by itself, bf16, channels last, and prints a row for each kind:
// FLOPs and bytes a second, each tensor counted once.
void step_account(std::int64_t samples);

}  // namespace regatta::bench
