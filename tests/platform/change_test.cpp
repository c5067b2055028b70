// Platforms with one thing changed.
#include "platform/change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/places.h"

namespace regatta {
namespace {

using testing::HasSubstr;

Platform gallery(const std::string& name) {
  return read_platform(test_files() / "platforms" / name);
}

TEST(ChangedPlatform, HasMoreOrFewerNodes) {
  const Platform sites = gallery("two-sites.json");
  EXPECT_EQ(changed_platform(sites, "+2 x north").nodes[0].count, 10);
  EXPECT_EQ(changed_platform(sites, "+north").nodes[0].count, 9);
  EXPECT_EQ(changed_platform(sites, "-3 x south").nodes[1].count, 5);
  EXPECT_EQ(changed_platform(sites, "-south-3").nodes[1].count, 7);
  EXPECT_EQ(changed_platform(sites, "-south").nodes.size(), 1u);
  EXPECT_EQ(changed_platform(gallery("lab.json"), "-elm").nodes.size(), 3u);
}

TEST(ChangedPlatform, HasFasterOrSlowerLinks) {
  const Platform sites = gallery("two-sites.json");
  EXPECT_EQ(changed_platform(sites, "hill-shore x10").network.sites[0].link.bandwidth, 1.25e8);
  EXPECT_EQ(changed_platform(sites, "shore-hill x0.5").network.sites[0].link.bandwidth, 6.25e6);
  EXPECT_EQ(changed_platform(sites, "network x2").network.link.bandwidth, 2.34e9);
  EXPECT_EQ(changed_platform(sites, "north x3").nodes[0].link->bandwidth, 3.51e9);
  EXPECT_EQ(
      changed_platform(gallery("thousand.json"), "rack x2").network.switches[1].link.bandwidth,
      2.5e10);
}

TEST(ChangedPlatform, RefusesWhatIsNotThere) {
  const Platform sites = gallery("two-sites.json");
  const auto refused = [&](const std::string& change) {
    return error_text([&] { changed_platform(sites, change); });
  };
  EXPECT_THAT(refused("+2 x east"), HasSubstr("has no node 'east'; it has north, south"));
  EXPECT_THAT(refused("-9 x south"), HasSubstr("there are 8 nodes 'south'"));
  EXPECT_THAT(refused("moon x10"), HasSubstr("it has network, hill-shore and its nodes' own"));
  EXPECT_THAT(refused("north x0"), HasSubstr("is not understood"));
  EXPECT_THAT(refused("faster"), HasSubstr("use \"+2 x NODE\""));
  EXPECT_THAT(refused(""), HasSubstr("is not understood"));
  EXPECT_THAT(refused("north x1e9"), HasSubstr("bandwidth"));
}

}  // namespace
}  // namespace regatta
