// Which libraries this program runs with: what was measured with one says nothing of another.
#pragma once

#include <map>
#include <string>

namespace regatta {

std::map<std::string, std::string> library_versions();  // "starpu" -> "1.4.10"

}  // namespace regatta
