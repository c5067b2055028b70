#include "platform/disturbance.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using Clock = DisturbanceMeter::Clock;
using std::chrono::seconds;

// /proc as Linux shows it: thread 1 submits, all others compute.
class FakeProc {
 public:
  void thread(int number, double ran_s, double waited_s) const {
    const fs::path folder = folder_.path() / "self" / "task" / std::to_string(number);
    fs::create_directories(folder);
    std::ofstream(folder / "schedstat") << static_cast<std::int64_t>(1e9 * ran_s) << " "
                                        << static_cast<std::int64_t>(1e9 * waited_s) << " 7\n";
  }
  void stolen(int ticks) const {
    std::ofstream(folder_.path() / "stat")
        << "cpu  9 0 9 9 0 0 0 " << ticks << " 0 0\ncpu0 5 0 5 5 0 0 0 1 0 0\n"
        << "cpu1 4 0 4 4 0 0 0 1 0 0\nintr 12\n";
  }
  DisturbanceOptions options(int threads, int cpus) const {
    return {.threads = threads, .cpus = cpus, .proc = folder_.path(), .submitter = 1};
  }

 private:
  TemporaryFolder folder_;
};

TEST(Disturbance, IsWhatReadyThreadsWaitedWhileOthersRan) {
  const FakeProc proc;
  const auto begin = Clock::now();
  for (const int thread : {1, 2, 3}) proc.thread(thread, 5, 1);
  DisturbanceMeter meter(proc.options(2, 2), begin);
  // Ten seconds: the two workers lost one and two of them.
  proc.thread(1, 5, 9);
  proc.thread(2, 14, 2);
  proc.thread(3, 13, 3);
  EXPECT_NEAR(*meter.read(begin + seconds(10)), 0.15, 1e-9);
  // Since then nobody has waited.
  EXPECT_NEAR(*meter.read(begin + seconds(20)), 0, 1e-9);
}

TEST(Disturbance, IsNotWhatOurOwnThreadsTakeFromEachOther) {
  const FakeProc proc;
  const auto begin = Clock::now();
  for (const int thread : {1, 2, 3, 4, 5}) proc.thread(thread, 0, 0);
  DisturbanceMeter meter(proc.options(4, 2), begin);
  // Four workers and one that submits had both CPUs for themselves.
  proc.thread(1, 1, 0);
  for (const int thread : {2, 3, 4, 5}) proc.thread(thread, 4.75, 5.25);
  EXPECT_NEAR(*meter.read(begin + seconds(10)), 0, 1e-9);
}

TEST(Disturbance, IsAlsoWhatTheHostTakesFromAVirtualMachine) {
  const FakeProc proc;
  const auto begin = Clock::now();
  proc.thread(2, 0, 0);
  proc.stolen(100);
  DisturbanceMeter meter(proc.options(1, 2), begin);
  proc.thread(2, 10, 0);
  proc.stolen(100 + static_cast<int>(2 * ::sysconf(_SC_CLK_TCK)));
  EXPECT_NEAR(*meter.read(begin + seconds(10)), 0.1, 1e-9);
}

TEST(Disturbance, IsUnknownWhereTheSystemDoesNotTell) {
  const TemporaryFolder empty;
  DisturbanceMeter meter({.proc = empty.path()});
  EXPECT_FALSE(meter.read());
  EXPECT_EQ(disturbed_text(meter.read()), "");
}

TEST(Disturbance, IsToldFromATwentiethOn) {
  EXPECT_EQ(disturbed_text(0.12), "disturbed: others took 12% of the workers' CPU time");
  EXPECT_EQ(disturbed_text(0.04), "");
}

}  // namespace
}  // namespace regatta
