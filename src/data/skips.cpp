#include "data/skips.h"

namespace regatta {

Json to_json(const SkippedSamples& skipped) {
  return {{"count", skipped.count}, {"first", skipped.first}};
}

std::vector<std::string> lines_of(const SkippedSamples& skipped, const std::string& what,
                                  const std::string& when) {
  if (skipped.count == 0) return {};
  const bool one = skipped.count == 1;
  std::vector<std::string> lines{std::to_string(skipped.count) + " " + what + (one ? "" : "s") +
                                 " could not be read and " + (one ? "was" : "were") + " replaced" +
                                 when + ":"};
  for (const std::string& each : skipped.first) lines.push_back("  " + each);
  return lines;
}

}  // namespace regatta
