// Platform files as regatta simulate --platform takes them: read, wired, written and read again.
#include "base/json.h"
#include "fuzz.h"
#include "platform/change.h"
#include "platform/wiring.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  const auto file = fuzz::as_file(data, size);
  std::optional<Platform> platform;
  fuzz::may_refuse([&] { platform = platform_from_json(read_json(file)); });
  if (!platform) return 0;
  platform_from_json(platform->to_json());  // what was accepted and written must be accepted again
  // Its remark serves as the text of a change.
  fuzz::may_refuse([&] { changed_platform(*platform, platform->remark); });
  if (platform->node_count() > 1000) return 0;
  const Wiring wiring(*platform);
  wiring.route({0, -1}, {wiring.nodes() - 1, -1});
  return 0;
}
