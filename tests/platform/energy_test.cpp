#include "platform/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::HasSubstr;

// A powercap tree as the kernel shows it.
class FakePowercap {
 public:
  void zone(const std::string& number, const std::string& name, std::uint64_t microjoules,
            std::uint64_t range = 1'000'000'000) {
    const fs::path zone = folder_.path() / ("intel-rapl:" + number);
    fs::create_directories(zone);
    write(zone / "name", name);
    write(zone / "max_energy_range_uj", std::to_string(range));
    write(zone / "energy_uj", std::to_string(microjoules));
  }
  void set(const std::string& number, std::uint64_t microjoules) const {
    write(file(number), std::to_string(microjoules));
  }
  fs::path file(const std::string& number) const {
    return folder_.path() / ("intel-rapl:" + number) / "energy_uj";
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  static void write(const fs::path& file, const std::string& text) {
    std::ofstream(file) << text << "\n";
  }
  TemporaryFolder folder_;
};

double joules_of(const std::vector<Energy>& energies, const std::string& name) {
  for (const Energy& each : energies)
    if (each.name == name) return each.joules;
  return -1;
}

TEST(EnergyMeter, PackagesAndMemoryAreReadAndCoresNotCountedTwice) {
  FakePowercap tree;
  tree.zone("0", "package-0", 5'000'000);
  tree.zone("0:0", "core", 3'000'000);
  tree.zone("0:1", "dram", 1'000'000);
  tree.zone("1", "package-1", 7'000'000);
  tree.zone("2", "psys", 99'000'000);
  EnergyMeter meter({.powercap = tree.path()});
  tree.set("0", 8'500'000);
  tree.set("0:0", 4'000'000);
  tree.set("0:1", 1'250'000);
  const std::vector<Energy> energies = meter.read();
  EXPECT_EQ(energies.size(), 3u);
  EXPECT_DOUBLE_EQ(joules_of(energies, "cpu package-0"), 3.5);
  EXPECT_DOUBLE_EQ(joules_of(energies, "cpu package-1"), 0);
  EXPECT_DOUBLE_EQ(joules_of(energies, "dram 0"), 0.25);
  for (const Energy& each : energies) EXPECT_TRUE(each.measured);
  EXPECT_EQ(meter.remark(), "");
}

TEST(EnergyMeter, ACounterThatStartsOverLosesNothing) {
  FakePowercap tree;
  tree.zone("0", "package-0", 900'000'000, 1'000'000'000);
  EnergyMeter meter({.powercap = tree.path()});
  tree.set("0", 50'000'000);
  EXPECT_DOUBLE_EQ(joules_of(meter.read(), "cpu package-0"), 150);
  tree.set("0", 60'000'000);
  EXPECT_DOUBLE_EQ(joules_of(meter.read(), "cpu package-0"), 10);
}

TEST(EnergyMeter, WithoutCountersItEstimatesAndSaysSo) {
  const TemporaryFolder empty;
  const auto begin = EnergyMeter::Clock::now();
  EnergyMeter meter({.powercap = empty.path(), .cpus = 4}, begin);
  EXPECT_THAT(meter.remark(), HasSubstr("estimate from 32 W for 4 CPUs"));
  const std::vector<Energy> energies = meter.read(begin + seconds(2));
  ASSERT_EQ(energies.size(), 1u);
  EXPECT_FALSE(energies[0].measured);
  EXPECT_DOUBLE_EQ(energies[0].joules, 4 * assumed_watts_per_cpu * 2);
  EXPECT_DOUBLE_EQ(meter.read(begin + seconds(3))[0].joules, 4 * assumed_watts_per_cpu);
}

TEST(EnergyMeter, AForbiddenCounterIsNamed) {
  FakePowercap tree;
  tree.zone("0", "package-0", 1);
  if (::geteuid() == 0) {
    // Root may read anything; a folder in the counter's place cannot be read either.
    fs::remove(tree.file("0"));
    fs::create_directory(tree.file("0"));
  } else {
    fs::permissions(tree.file("0"), fs::perms::none);
  }
  EnergyMeter meter({.powercap = tree.path()});
  EXPECT_THAT(meter.remark(), HasSubstr("cannot read '" + tree.file("0").string()));
  EXPECT_FALSE(meter.read()[0].measured);
}

TEST(EnergyMeter, NonsenseInACounterIsNoEnergy) {
  FakePowercap tree;
  tree.zone("0", "package-0", 10);
  EnergyMeter meter({.powercap = tree.path()});
  std::ofstream(tree.file("0")) << "abc";
  EXPECT_DOUBLE_EQ(meter.read()[0].joules, 0);
}

TEST(EnergyMeter, AGpuWithoutADriverIsEstimated) {
  const TemporaryFolder empty;
  const auto begin = EnergyMeter::Clock::now();
  EnergyMeter meter({.powercap = empty.path(), .gpus = 64}, begin);
  const std::vector<Energy> energies = meter.read(begin + seconds(1));
  ASSERT_EQ(energies.size(), 65u);
  // No machine has so many: the last one is never counted.
  EXPECT_DOUBLE_EQ(joules_of(energies, "gpu 63"), assumed_watts_per_gpu);
  EXPECT_THAT(meter.remark(), HasSubstr("GPU 63 does not count its energy"));
}

}  // namespace
}  // namespace regatta
