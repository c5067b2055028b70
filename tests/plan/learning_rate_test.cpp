#include "plan/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parity/recipes.h"
#include "support/error_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(Schedule, EveryRateIsPyTorchs) {
  const Json all = parity_file("schedules.json");
  ASSERT_GE(all.size(), 9u);
  for (const auto& [name, truth] : all.items()) {
    const Schedule schedule = schedule_from_json(truth.at("schedule"));
    const auto rates = truth.at("learning_rates").get<std::vector<double>>();
    const auto momenta = truth.at("momenta").get<std::vector<double>>();
    for (std::size_t step = 0; step < rates.size(); ++step) {
      const Rates found = rates_at(schedule, 0.1, static_cast<std::int64_t>(step));
      EXPECT_NEAR(found.learning_rate, rates[step], 1e-12) << name << ", step " << step;
      EXPECT_NEAR(found.momentum.value_or(0.9), momenta[step], 1e-12) << name << ", step " << step;
    }
  }
}

TEST(Schedule, StaysWhereItEnds) {
  const Schedule cosine{.kind = ScheduleKind::cosine, .steps = 10, .final_rate = 0.25};
  EXPECT_DOUBLE_EQ(rates_at(cosine, 1, 10).learning_rate, 0.25);
  EXPECT_DOUBLE_EQ(rates_at(cosine, 1, 1000).learning_rate, 0.25);
  const Schedule cycle{.kind = ScheduleKind::one_cycle, .steps = 10};
  EXPECT_EQ(rates_at(cycle, 1, 9).learning_rate, rates_at(cycle, 1, 1000).learning_rate);
}

TEST(Schedule, OneCycleMayEndWhereItIsTold) {
  const Schedule cycle{.kind = ScheduleKind::one_cycle, .steps = 10, .final_rate = 0.5};
  EXPECT_DOUBLE_EQ(rates_at(cycle, 2, 9).learning_rate, 0.5);
}

TEST(Schedule, SurvivesItsJson) {
  for (const Schedule& schedule :
       {Schedule{}, Schedule{.kind = ScheduleKind::step, .step_size = 7, .gamma = 0.3, .warmup = 3},
        Schedule{.kind = ScheduleKind::cosine,
        .steps = 9,
        .final_rate = 0.1,
        .warmup = 2,
        .warmup_start = 0.5},
        Schedule{.kind = ScheduleKind::one_cycle, .steps = 5, .cycle_momentum = true}})
    EXPECT_EQ(schedule_from_json(to_json(schedule)), schedule) << to_json(schedule);
}

TEST(Schedule, AnUnknownOneGetsTheNearestName) {
  EXPECT_THAT(error_text([] { schedule_named("cosin"); }), HasSubstr("did you mean 'cosine'?"));
}

}  // namespace
}  // namespace regatta
