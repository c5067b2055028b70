// SimGrid's platform files: read, and what was read is wired.
#include "fuzz.h"
#include "platform/simgrid_xml.h"
#include "platform/wiring.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::optional<Platform> platform;
  fuzz::may_refuse([&] { platform = platform_from_xml(text); });
  if (!platform || platform->node_count() > 1000) return 0;
  const Wiring wiring(*platform);
  wiring.route({0, -1}, {wiring.nodes() - 1, -1});
  return 0;
}
