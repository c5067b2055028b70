// Recipe and plan as --resume takes them from a run.json. The model is always the same: a plan is
// checked against one, and models have a fuzzer of their own.
#include "base/json.h"
#include "fuzz.h"
#include "models/models.h"
#include "plan/plan.h"
#include "plan/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;
  static const Graph graph = fuse(build_model("tiny"));
  const auto file = fuzz::as_file(data, size);
  return fuzz::may_refuse([&] {
    const Json run = read_json(file);
    if (!run.is_object() || !run.contains("recipe") || !run.contains("plan")) return;
    fuzz::may_refuse([&] { recipe_from_json(run["recipe"]); });
    const Plan plan = plan_from_json(run["plan"], graph);
    require_valid(plan, graph, 64);
    to_json(plan, graph);
  });
}
