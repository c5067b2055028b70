// Plan files as regatta train --plan and regatta simulate take them. The model is always the same:
// models have a fuzzer of their own.
#include "fuzz.h"
#include "models/models.h"
#include "plan/plan_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  static const Graph graph = fuse(build_model("tiny"));
  const auto file = fuzz::as_file(data, size);
  return fuzz::may_refuse([&] {
    const PlanFile plan =
        read_plan_file(file, [](const Recipe&, const std::optional<Json>&) { return graph; });
    to_json(plan, graph);
  });
}
