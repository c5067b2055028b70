#include "trace/link_use.h"

#include <gtest/gtest.h>

namespace regatta::trace {
namespace {

TEST(LinkUse, CountsWhatLiesInTheWindow) {
  Record record;
  record.links = {{"a", "b", 100, 2}, {"b", "a", 0, 0}};
  record.transfers = {{0, 0, 10, 40}, {0, 20, 30, 60}};
  const std::vector<LinkUse> all = use_of_links(record, {0, 100});
  EXPECT_EQ(all[0].busy, 20);
  EXPECT_EQ(all[0].bytes, 100);
  EXPECT_EQ(all[1].busy, 0);
  const std::vector<LinkUse> part = use_of_links(record, {5, 22});
  EXPECT_EQ(part[0].busy, 7);
  EXPECT_EQ(part[0].bytes, 20 + 12);
}

}  // namespace
}  // namespace regatta::trace
