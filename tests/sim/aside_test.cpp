#include "sim/aside.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/descriptor.h"

namespace regatta::sim {
namespace {

// Orphans become children of this process, so that their end can be waited for.
TEST(Aside, EndsWithAParentThatIsKilled) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor in(ends[0]);
  Descriptor out(ends[1]);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    run_aside([&] {
      const pid_t self = ::getpid();
      ::alarm(10);  // without a signal from its parent's end, this one ends it
      if (::write(out.get(), &self, sizeof self) == sizeof self) ::pause();
      return std::string();
    });
    ::_exit(1);
  }
  out = Descriptor();
  pid_t aside = 0;
  ASSERT_EQ(::read(in.get(), &aside, sizeof aside), static_cast<ssize_t>(sizeof aside));
  ::kill(parent, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_EQ(::waitpid(aside, &status, 0), aside);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace regatta::sim
