// base/: what every room may use: errors, ids, units, shapes, layouts, JSON, files, hashing,
// reproducible random numbers and the terminal's progress line. It knows nothing of networks.
#pragma once

#include <string>  // messages are put together from pieces

#include "regatta/error.h"  // IWYU pragma: export
