// Numbers and tiles of a page, as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "base/formatted.h"
#include "base/json.h"

namespace regatta {

std::string count_text(std::int64_t count);  // "12,345"
std::string number_text(double value);       // three digits, or a whole number from 1000 on
std::string percent_text(double share);      // "12.3%"
std::string seconds_text(double value);      // "1.23 ms"

// One of the large numbers at the top of a page.
Json tile(const std::string& label, const std::string& value, const std::string& unit,
          const std::string& note);

}  // namespace regatta
