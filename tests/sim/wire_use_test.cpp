#include "sim/wire_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace regatta::sim {
namespace {

std::vector<std::tuple<int, double, double, double>> uses(
    const std::vector<World::Traffic>& traffic, const std::vector<std::vector<int>>& way) {
  std::vector<std::tuple<int, double, double, double>> found;
  for (const WireUse& each : use_of_wires(traffic, way))
    found.emplace_back(each.wire, each.start, each.end, each.bytes);
  return found;
}

TEST(WireUse, IsOfEveryWireOfARoute) {
  EXPECT_THAT(uses({{0, 1, 2, 10, 1}}, {{4, 7}}),
              testing::ElementsAre(std::tuple(4, 1, 2, 10), std::tuple(7, 1, 2, 10)));
}

TEST(WireUse, OfSeveralRoutesAtOneTimeIsOne) {
  const std::vector<std::vector<int>> way{{0, 1}, {1, 2}};
  EXPECT_THAT(
      uses({{0, 1, 4, 10, 1}, {1, 3, 6, 20, 2}, {1, 8, 9, 5, 1}}, way),
      testing::ElementsAre(std::tuple(0, 1, 4, 10), std::tuple(1, 1, 6, 30), std::tuple(1, 8, 9, 5),
                           std::tuple(2, 3, 6, 20), std::tuple(2, 8, 9, 5)));
}

}  // namespace
}  // namespace regatta::sim
