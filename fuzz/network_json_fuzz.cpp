// A network as a JSON file: read, fused, written and read again.
#include "fuzz.h"
#include "models/network_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::optional<Graph> graph;
  fuzz::may_refuse([&] { graph = graph_from_json(text); });
  if (!graph) return 0;
  fuse(*graph);
  graph_from_json(network_text(*graph));  // what was accepted and written must be accepted again
  return 0;
}
