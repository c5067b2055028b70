#include "trace/link_use.h"

#include <algorithm>
#include <cmath>

namespace regatta::trace {

std::vector<LinkUse> use_of_links(const Record& record, const Window& window) {
  std::vector<LinkUse> uses(record.links.size());
  for (const Transfer& each : record.transfers) {
    const Time inside = std::min(each.end, window.end) - std::max(each.start, window.start);
    if (inside <= 0) continue;
    LinkUse& use = uses[static_cast<std::size_t>(each.link)];
    use.busy += inside;
    use.bytes += std::llround(static_cast<double>(each.bytes) * static_cast<double>(inside) /
                              static_cast<double>(each.end - each.start));
  }
  return uses;
}

}  // namespace regatta::trace
