#include "platform/limits.h"

#include <gtest/gtest.h>

#include "platform/machine.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

// /proc and /sys/fs/cgroup as the test wants them.
class Limits : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((folder.path() / path).parent_path());
    folder.file(path, text);
  }
  // What `memory_limits` tells under this name; nothing: no such limit.
  std::optional<MemoryLimit> limit(const std::string& name) const {
    for (const MemoryLimit& each : memory_limits(roots))
      if (each.name == name) return each;
    return std::nullopt;
  }

  const TemporaryFolder folder;
  const SystemRoots roots{folder.path() / "proc", folder.path() / "cgroup"};
};

constexpr const char* meminfo =
    "MemTotal:        8000000 kB\nMemFree:          500000 kB\nMemAvailable:    3000000 kB\n";

TEST_F(Limits, OfTheMachineAreItsMemoryAndWhatIsAvailable) {
  write("proc/meminfo", meminfo);
  const auto limits = memory_limits(roots);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].bytes, std::int64_t{8000000} * 1024);
  EXPECT_EQ(limits[0].left, std::int64_t{3000000} * 1024);
}

TEST_F(Limits, OfControlGroupsCountThoseAroundTheOwnAndLeaveOutWhatTheKernelGivesUp) {
  write("proc/meminfo", meminfo);
  write("proc/self/cgroup", "0::/job/step\n");
  write("cgroup/job/step/memory.max", "max\n");
  write("cgroup/job/step/memory.current", "5\n");
  write("cgroup/job/memory.max", "1000000\n");
  write("cgroup/job/memory.current", "700000\n");
  write("cgroup/job/memory.stat",
        "anon 200000\nactive_file 100000\ninactive_file 250000\n"
        "slab_reclaimable 60000\nslab_unreclaimable 40000\n");
  const auto found = limit("the control group's memory.max");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 1000000);
  EXPECT_EQ(found->left, 1000000 - 290000);
}

TEST_F(Limits, OfControlGroupsOfVersionOneAreKnownToo) {
  write("proc/meminfo", meminfo);
  write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n");
  write("cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
  write("cgroup/memory/job/memory.usage_in_bytes", "500000\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("cgroup/memory/memory.usage_in_bytes", "900000000\n");
  const auto found = limit("the control group's memory.limit_in_bytes");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->left, 1500000);
  EXPECT_EQ(memory_limits(roots).size(), 2u);  // no limit is none
}

// Containers may see one control group in different places, or different groups in one place.
TEST_F(Limits, AreSharedByThoseWithOneKernelAndOneControlGroup) {
  write("proc/meminfo", meminfo);
  write("proc/sys/kernel/random/boot_id", "11-22\n");
  write("proc/self/cgroup", "0::/job\n");
  write("cgroup/job/memory.max", "1000000\n");
  write("cgroup/job/memory.current", "700000\n");
  const auto shared = [](const SystemRoots& seen) {
    std::vector<std::string> texts;
    for (const MemoryLimit& each : memory_limits(seen)) texts.push_back(each.shared_as);
    return texts;
  };
  const std::vector<std::string> outside = shared(roots);
  ASSERT_EQ(outside.size(), 2u);
  EXPECT_EQ(outside[0], "11-22");
  // Inside the group, whose folder is the root there.
  write("inside/meminfo", meminfo);
  write("inside/sys/kernel/random/boot_id", "11-22\n");
  write("inside/self/cgroup", "0::/\n");
  EXPECT_EQ(shared({folder.path() / "inside", folder.path() / "cgroup/job"}), outside);
  // Another group at the same place, then another kernel.
  write("other/memory.max", "1000000\n");
  write("other/memory.current", "700000\n");
  EXPECT_NE(shared({folder.path() / "inside", folder.path() / "other"})[1], outside[1]);
  write("inside/sys/kernel/random/boot_id", "33-44\n");
  const auto elsewhere = shared({folder.path() / "inside", folder.path() / "cgroup/job"});
  EXPECT_NE(elsewhere[0], outside[0]);
  EXPECT_NE(elsewhere[1], outside[1]);
}

TEST_F(Limits, WithoutABootIdTheHostNameTellsMachinesApart) {
  EXPECT_EQ(kernel_mark(roots.proc), host_name());
}

TEST_F(Limits, OfUlimitLeaveOutWhatIsUsed) {
  write("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             5000000              unlimited            bytes     \n"
        "Max address space         9000000              unlimited            bytes     \n");
  write("proc/self/status", "VmSize:\t    1000 kB\nVmData:\t     100 kB\n");
  EXPECT_EQ(limit("ulimit -v")->left, 9000000 - 1000 * 1024);
  EXPECT_EQ(limit("ulimit -d")->left, 5000000 - 100 * 1024);
  write("proc/self/limits",
        "Max address space         unlimited            unlimited      bytes\n");
  EXPECT_FALSE(limit("ulimit -v"));
}

TEST_F(Limits, OfCpusAreTheSmallestQuotaRoundedUp) {
  EXPECT_EQ(cgroup_cpus(roots), 0);
  write("proc/self/cgroup", "0::/job/step\n");
  write("cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpus(roots), 0);
  write("cgroup/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroup_cpus(roots), 3);
  write("proc/self/cgroup", "1:cpu,cpuacct:/../outside\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpus(roots), 2);
}

TEST_F(Limits, OfThisMachineAreThere) {
  EXPECT_EQ(cpu_limits().usable(), available_cpus());
  const auto limits = memory_limits();
  ASSERT_FALSE(limits.empty());
  EXPECT_GT(limits.front().left, 0);
}

}  // namespace
}  // namespace regatta
