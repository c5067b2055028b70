// Measuring what the runtime costs beside kernels: on the thread that submits, on workers, and to
// copy a byte.
#pragma once

#include <vector>

#include "profile/profile.h"

namespace regatta {

// Takes a fraction of a second. No executor may be alive meanwhile.
std::vector<Observation> measure_runtime(int workers);

}  // namespace regatta
