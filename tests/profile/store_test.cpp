#include "profile/store.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/files.h"
#include "profile/synthetic_costs.h"
#include "support/error_text.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

MachineMark here() {
  return {.cpu = "A Processor (R) 9000",
          .cores = 4,
          .gpus = {},
          .libraries = {{"onednn", "2.6.3"}, {"starpu", "1.4.10"}}};
}

std::vector<Observation> session(std::uint64_t seed = 1, const std::string& signature = "work") {
  return measured({}, {1, 2, 4, 8}, {1, 4}, 6, {}, seed, signature);
}

TEST(ProfileStore, GivesBackWhatItWasTold) {
  const TemporaryFolder folder;
  const ProfileStore store(here(), folder.path() / "deep" / "down");
  EXPECT_TRUE(store.load().empty());
  const Profile told = store.learn(session());
  std::string remark;
  const Profile read = store.load(&remark);
  EXPECT_EQ(remark, "");
  for (const double size : {1.0, 3.0, 8.0, 20.0})
    for (const int busy : {1, 2, 4}) {
      const Estimate a = told.find("work")->at(size, busy), b = read.find("work")->at(size, busy);
      EXPECT_NEAR(a.seconds, b.seconds, 1e-3 * a.seconds);
      EXPECT_NEAR(a.high, b.high, 1e-3 * a.high);
    }
  EXPECT_TRUE(store.file().filename().string().starts_with("a-processor-r-9000-4cpus-"))
      << store.file();
}

TEST(ProfileStore, OtherLibrariesOrKernelsInvalidateItWithAWord) {
  const TemporaryFolder folder;
  ProfileStore(here(), folder.path()).learn(session());
  MachineMark newer = here();
  newer.libraries["onednn"] = "3.7.2";
  std::string remark;
  EXPECT_TRUE(ProfileStore(newer, folder.path()).load(&remark).empty());
  EXPECT_NE(remark.find("onednn 2.6.3, not 3.7.2"), std::string::npos) << remark;
  MachineMark faster = here();
  ++faster.kernels;
  EXPECT_TRUE(ProfileStore(faster, folder.path()).load(&remark).empty());
  EXPECT_NE(remark.find("older kernels"), std::string::npos) << remark;
  // What is learned next replaces it.
  const ProfileStore store(newer, folder.path());
  store.learn(session(1, "other"));
  EXPECT_EQ(store.load().find("work"), nullptr);
  EXPECT_NE(store.load().find("other"), nullptr);
}

TEST(ProfileStore, OtherHardwareHasAFileOfItsOwn) {
  const TemporaryFolder folder;
  MachineMark with_gpu = here(), with_more = here();
  with_gpu.gpus = {"A GPU"};
  with_more.cores = 8;
  const fs::path file = ProfileStore(here(), folder.path()).file();
  EXPECT_NE(file, ProfileStore(with_gpu, folder.path()).file());
  EXPECT_NE(file, ProfileStore(with_more, folder.path()).file());
}

TEST(ProfileStore, ADamagedFileIsIgnoredWithOneLineThatNamesIt) {
  const TemporaryFolder folder;
  const ProfileStore store(here(), folder.path());
  store.learn(session());
  const std::string whole = read_file(store.file());
  Json other_format = Json::parse(whole), negative = Json::parse(whole);
  other_format["format"] = 0;
  negative["costs"]["work"][0]["sessions"][0][0] = -1.0;
  for (const std::string& text :
       {whole.substr(0, whole.size() / 2), std::string("{}"), std::string("[1,2]"), std::string(),
        other_format.dump(), negative.dump()}) {
    write_file(store.file(), text);
    std::string remark;
    EXPECT_TRUE(store.load(&remark).empty()) << text.substr(0, 40);
    EXPECT_NE(remark.find(store.file().string()), std::string::npos) << remark;
    EXPECT_EQ(remark.find('\n'), std::string::npos);
  }
  store.learn(session());
  EXPECT_FALSE(store.load().empty());
}

TEST(ProfileStore, RunsSideBySideLoseNothing) {
  const TemporaryFolder folder;
  constexpr int runs = 4, sessions = 5;
  std::vector<std::thread> threads;
  for (int run = 0; run < runs; ++run)
    threads.emplace_back([&, run] {
      for (int i = 0; i < sessions; ++i)
        ProfileStore(here(), folder.path())
            .learn(session(1, "work " + std::to_string(run) + " " + std::to_string(i)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ProfileStore(here(), folder.path()).load().entries().size(),
            std::size_t{runs * sessions});
}

TEST(ProfileStore, AFolderThatCannotBeWrittenIsNamedWithAWayOut) {
  const TemporaryFolder folder;
  const fs::path file = folder.file("file", "");
  const ProfileStore store(here(), file / "below");
  const std::string text = error_text([&] { store.learn(session()); });
  EXPECT_NE(text.find("REGATTA_PROFILES"), std::string::npos) << text;
}

TEST(ProfileStore, LivesWhereTheEnvironmentSays) {
  const ScopedVariable cache("REGATTA_CACHE", "/some/cache");
  const ScopedVariable none("REGATTA_PROFILES", "");
  EXPECT_EQ(profile_folder(), "/some/cache/profiles");
  const ScopedVariable own("REGATTA_PROFILES", "/my/profiles");
  EXPECT_EQ(profile_folder(), "/my/profiles");
}

}  // namespace
}  // namespace regatta
