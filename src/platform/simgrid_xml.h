// SimGrid's platform files, as far as they say what a platform here can say. Elements and values
// beyond that are refused by name.
#pragma once

#include <string>
#include <string_view>

#include "platform/platform.h"

namespace regatta {

// Throws InputError that names `who` and the element.
Platform platform_from_xml(std::string_view text, const std::string& who = "platform");

// Nodes and switches become hosts and routers of one zone. GPUs become hosts beside their node's.
// Parallel uplinks of a fat tree become one link of their joint bandwidth.
std::string platform_to_xml(const Platform& platform);

}  // namespace regatta
