// The npm packages of the report page and of its browser test run on the Node.js that Debian 12
// has.
#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/places.h"

namespace {

constexpr int debian_12_node = 18;

// The first major version that ">=18", ">=18.0.0" or ">= 18" admits; -1: another form, to be looked
// at.
int least_major(const std::string& range) {
  if (!range.starts_with(">=")) return -1;
  const std::size_t digits = range.find_first_not_of(' ', 2);
  int major = -1;
  std::from_chars(range.data() + digits, range.data() + range.size(), major);
  return major;
}

TEST(PagePackages, RunOnTheNodeOfDebian12) {
  std::ifstream file(regatta::test_files() / "web/package-lock.json");
  if (!file) GTEST_SKIP() << "no sources here";
  const auto packages = nlohmann::json::parse(file).at("packages");
  int declared = 0;
  for (const auto& [name, package] : packages.items()) {
    if (!package.contains("engines") || !package["engines"].contains("node")) continue;
    ++declared;
    const auto range = package["engines"]["node"].get<std::string>();
    const int least = least_major(range);
    EXPECT_GE(least, 0) << name << " wants node " << range;
    EXPECT_LE(least, debian_12_node) << name << " wants node " << range;
  }
  EXPECT_GT(declared, 0);
}

}  // namespace
