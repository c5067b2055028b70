#include "tasks/priced_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/models.h"
#include "plan/make_plan.h"

namespace regatta {
namespace {

struct Tiny {
  Graph graph = fuse(build_model("tiny"));
  Recipe recipe = [] {
    Recipe made;
    made.model = "tiny";
    made.batch = 8;
    return made;
  }();
  Plan plan(std::int64_t chunks) const {
    PlanOptions options{.workers = 2};
    options.chunks = {chunks};
    return make_plan(graph, recipe, options);
  }
};

TEST(PricedStep, IsTheBlueprintTheListAndTheCostsOfOnePlan) {
  const Tiny tiny;
  const PricedStep step(tiny.graph, tiny.recipe, tiny.plan(4), std::make_shared<Profile>());
  const Blueprint blueprint =
      make_blueprint(tiny.graph, tiny.plan(4), numbers_of(tiny.recipe), true);
  EXPECT_EQ(step.list().tasks.size(), lower(blueprint, ListKind::train).tasks.size());
  EXPECT_EQ(step.play().step_seconds,
            play(step.blueprint(), step.list(), step.costs()).step_seconds);
  EXPECT_LE(step.least_seconds(), step.play().step_seconds);
  EXPECT_EQ(step.measured_shares(2).any_size, 0) << "an empty profile guesses everything";
}

TEST(PricedStep, MoreStepsInFlightHaveMoreBuffers) {
  const Tiny tiny;
  PricedStep step(tiny.graph, tiny.recipe, tiny.plan(2), std::make_shared<Profile>());
  const auto copies = [&] {
    int all = 0;
    for (const Buffer& buffer : step.list().buffers) all += buffer.copies;
    return all;
  };
  const int before = copies();
  step.set_steps_in_flight(8);
  EXPECT_EQ(step.plan().steps_in_flight, 8);
  EXPECT_GT(copies(), before);
}

TEST(PricedStep, ItsOrderHasEveryTaskOnce) {
  const Tiny tiny;
  const PricedStep step(tiny.graph, tiny.recipe, tiny.plan(4), std::make_shared<Profile>());
  std::vector<std::uint32_t> tasks, all;
  for (const std::vector<std::uint32_t>& worker : step.order())
    tasks.insert(tasks.end(), worker.begin(), worker.end());
  for (std::uint32_t t = 0; t < step.list().tasks.size(); ++t) all.push_back(t);
  EXPECT_THAT(tasks, testing::UnorderedElementsAreArray(all));
}

}  // namespace
}  // namespace regatta
