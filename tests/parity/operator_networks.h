// Networks that exist for their operators alone, as scripts/parity-fixtures has them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace regatta {

std::vector<const char*> operator_network_names();
std::optional<Graph> operator_network(std::string_view name, const Shape& input,
                                      std::int64_t classes);

}  // namespace regatta
