// Logs of jobs and leases of workers, on files that misbehave.
#include "tickets/lease.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "tickets/faulty_files.h"
#include "tickets/job_log.h"

namespace regatta::tickets {
namespace {

const LogEntry claim_of_a{EntryKind::claim, "a", {}};
const LogEntry claim_of_b{EntryKind::claim, "b", {}};
const LogEntry result_of_a{EntryKind::result, "a", {{"claim", 1}}};

TEST(JobLog, OfTwoClaimsOneSucceeds) {
  Store store;
  FaultyFiles here(store), there(store);
  JobLog first(here, "job"), second(there, "job");
  EXPECT_TRUE(first.append(1, claim_of_a));
  EXPECT_FALSE(second.append(1, claim_of_b));
  EXPECT_EQ(second.state().last().worker, "a");  // the loser learns who has it
}

TEST(JobLog, WhoWasTakenOverCannotPublishAResult) {
  Store store;
  FaultyFiles here(store), there(store);
  JobLog old_owner(here, "job"), new_owner(there, "job");
  ASSERT_TRUE(old_owner.append(1, claim_of_a));
  new_owner.refresh();
  ASSERT_TRUE(new_owner.append(2, claim_of_b));
  EXPECT_FALSE(old_owner.append(2, result_of_a));
  EXPECT_FALSE(old_owner.state().done());
}

TEST(JobLog, AFinishedJobCannotBeTakenOverByOneWhoSeesOldFiles) {
  Store store;
  FaultyFiles here(store), there(store);
  JobLog owner(here, "job"), late(there, "job");
  ASSERT_TRUE(owner.append(1, claim_of_a));
  late.refresh();
  store.time += Seconds{10};
  ASSERT_TRUE(owner.append(2, result_of_a));
  there.stale = Seconds{3600};
  late.refresh();
  EXPECT_FALSE(late.state().done()) << "it sees an old listing";
  EXPECT_FALSE(late.append(2, claim_of_b));
  EXPECT_TRUE(late.state().done());
}

TEST(JobLog, AJobFailsForGoodAfterTwoFailuresUnlessItIsTriedAgain) {
  Store store;
  FaultyFiles files(store);
  JobLog log(files, "job");
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(log.state().failed());
    ASSERT_TRUE(log.append(log.state().next(), claim_of_a));
    ASSERT_TRUE(log.append(log.state().next(), {EntryKind::failed, "a", {{"why", "broke"}}}));
  }
  EXPECT_TRUE(log.state().failed());
  ASSERT_TRUE(log.append(log.state().next(), {EntryKind::released, "user", {{"again", true}}}));
  EXPECT_FALSE(log.state().failed());
}

TEST(DiskLayer, AFileIsCreatedOnceAndNothingElseIsLeft) {
  const TemporaryFolder folder;
  DiskLayer files;
  EXPECT_TRUE(files.create(folder.path() / "entry", "first"));
  EXPECT_FALSE(files.create(folder.path() / "entry", "second"));
  EXPECT_EQ(files.read(folder.path() / "entry"), "first");
  EXPECT_EQ(files.list(folder.path()), std::vector<std::string>{"entry"});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_THROW(files.create(folder.path() / "missing" / "entry", "x"), InputError);
}

class Lease : public testing::Test {
 protected:
  void beat(std::int64_t count) {
    Heartbeat heartbeat;
    heartbeat.beat = count;
    owner.replace(heartbeat_file("search", "a"), heartbeat.to_json().dump());
  }

  Store store;
  FaultyFiles owner{store}, observer{store, Seconds{3600}};  // clocks an hour apart
  LeaseWatch watch{observer, "search", Seconds{30}};
};

TEST_F(Lease, AWorkerThatCountsIsThereWhateverItsClockSays) {
  for (int i = 0; i < 100; ++i) {
    beat(i);
    EXPECT_FALSE(watch.gone("a"));
    store.time += Seconds{20};
  }
  EXPECT_TRUE(watch.seen_alive("a"));
}

TEST_F(Lease, AWorkerThatStopsCountingIsGoneAfterTheLease) {
  beat(1);
  int looks = 0;
  for (; !watch.gone("a"); ++looks) store.time += Seconds{1};
  EXPECT_GT(looks, 30);
  EXPECT_LE(looks, 32);
}

TEST_F(Lease, AWorkerThatLeftIsGoneAtOnce) {
  Heartbeat heartbeat;
  heartbeat.ended = true;
  owner.replace(heartbeat_file("search", "a"), heartbeat.to_json().dump());
  EXPECT_TRUE(watch.gone("a"));
}

TEST_F(Lease, AnObserverThatSleptLooksAgainBeforeItJudges) {
  beat(1);
  EXPECT_FALSE(watch.gone("a"));
  store.time += Seconds{100000};  // a laptop was closed
  EXPECT_FALSE(watch.gone("a"));
  beat(2);
  EXPECT_FALSE(watch.gone("a"));
}

TEST_F(Lease, AWorkerThatWasNeverHeardOfIsGoneAfterTheLease) {
  EXPECT_FALSE(watch.gone("a"));
  EXPECT_FALSE(watch.seen_alive("a"));
  for (int i = 0; i < 35; ++i) {
    store.time += Seconds{1};
    watch.gone("a");
  }
  EXPECT_TRUE(watch.gone("a"));
}

}  // namespace
}  // namespace regatta::tickets
