// scripts/torture-ranks where its nodes cannot be made: the rest of `make torture` must not fail
// for want of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/program.h"
#include "support/mpirun.h"
#include "support/places.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::StartsWith;

TEST(TortureScript, IsSkippedInOneLineWhereNamespacesAreNotAllowed) {
  const fs::path script = test_files() / "scripts/torture-ranks";
  if (!fs::exists(script)) GTEST_SKIP() << "no sources here";
  if (const std::string why = mpi_missing(); !why.empty()) GTEST_SKIP() << why;
  if (run_program({"sh", "-c", "command -v python3"}).status != 0) GTEST_SKIP() << "no python3";
  const TemporaryFolder folder;
  const fs::path unshare = folder.file(
      "unshare",
      "#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n");
  fs::permissions(unshare, fs::perms::owner_all);
  const ScopedVariable path("PATH", folder.path().string() + ":" + std::getenv("PATH"));
  const ProgramResult done = run_program({"python3", script.string(), "--events", "1"});
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.output, StartsWith("torture-ranks: skipped, no run was disturbed: cluster: "));
  EXPECT_EQ(std::ranges::count(done.output, '\n'), 1) << done.output;
}

}  // namespace
}  // namespace regatta
