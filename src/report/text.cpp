#include "report/text.h"

#include <cmath>

namespace regatta {

std::string count_text(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string number_text(double value) {
  return std::abs(value) >= 1000 ? count_text(std::llround(value)) : formatted("%.3g", value);
}

std::string percent_text(double share) { return formatted("%.1f%%", 100 * share); }

std::string seconds_text(double value) {
  if (value >= 1) return formatted("%.3g s", value);
  if (value >= 1e-3) return formatted("%.3g ms", 1e3 * value);
  return formatted("%.3g µs", 1e6 * value);
}

Json tile(const std::string& label, const std::string& value, const std::string& unit,
          const std::string& note) {
  return {{"label", label}, {"value", value}, {"unit", unit}, {"note", note}};
}

}  // namespace regatta
