// The graph of a search.
#include "tickets/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"

namespace regatta::tickets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Search small_search() {
  Search search;
  search.train = {"--model", "tiny", "--data", "digits-synth"};
  search.last_step = 100;
  search.samples_per_step = 8;
  search.steps_per_epoch = 10;
  search.seeds = {1, 2};
  search.resets = {0, 20};
  search.levels = 3;
  search.rate = 0.5;
  search.jobs = make_jobs(search);
  return search;
}

std::map<std::string, Job> by_id(const Search& search) {
  std::map<std::string, Job> jobs;
  for (const Job& job : search.jobs) jobs[job.id] = job;
  return jobs;
}

TEST(SearchJobs, TheDenseRunIsSharedByAllBranchesOfItsSeed) {
  const Search search = small_search();
  int dense = 0;
  for (const Job& job : search.jobs) {
    dense += job.kind == JobKind::dense;
    if (!job.start.empty()) {
      EXPECT_EQ(job.start, "seed" + std::to_string(job.seed) + "-dense");
    }
  }
  EXPECT_EQ(dense, 2);
  // dense + 2 resets x 3 levels x (ticket, fresh, random), for each seed; but the first level's
  // mask is the same at both reset points, and is trained with new weights once.
  EXPECT_EQ(search.jobs.size(), 2u * (1 + 2 * 3 * 3 - 1));
}

TEST(SearchJobs, EachLevelIsPrunedFromTheTrainedOneBefore) {
  const auto jobs = by_id(small_search());
  const Job& second = jobs.at("seed1-reset20-level02-ticket");
  EXPECT_EQ(second.pruned, "seed1-reset20-level01-ticket");
  EXPECT_DOUBLE_EQ(second.keep, 0.25);
  EXPECT_EQ(second.steps, 80);  // the first 20 are the dense run's
  EXPECT_THAT(second.after(), ElementsAre("seed1-reset20-level01-ticket", "seed1-dense"));
  EXPECT_EQ(jobs.at("seed1-reset20-level01-ticket").pruned, "seed1-dense");
}

TEST(SearchJobs, ControlsHaveTheTicketsMaskOrItsWeights) {
  const auto jobs = by_id(small_search());
  const Job& fresh = jobs.at("seed2-reset20-level03-fresh");
  EXPECT_EQ(fresh.pruned, "seed2-reset20-level02-ticket");
  EXPECT_EQ(fresh.start, "");
  EXPECT_EQ(fresh.steps, 100);
  const Job& random = jobs.at("seed2-reset20-level03-random");
  EXPECT_EQ(random.pruned, fresh.pruned);
  EXPECT_EQ(random.start, "seed2-dense");
  EXPECT_EQ(random.reset, 20);
}

TEST(SearchJobs, OneShotMasksAllWaitForTheDenseRunAlone) {
  Search search = small_search();
  search.iterative = false;
  std::set<std::string> ids;
  for (const Job& job : make_jobs(search)) {
    EXPECT_TRUE(ids.insert(job.id).second) << job.id;
    if (job.kind != JobKind::dense) {
      EXPECT_EQ(job.pruned, "seed" + std::to_string(job.seed) + "-dense");
    }
  }
  // A mask with new weights does not depend on the reset point, and is trained once.
  EXPECT_EQ(ids.size(), 2u * (1 + 2 * 3 * 2 + 3));
  EXPECT_TRUE(ids.contains("seed1-mask01-fresh"));
}

TEST(SearchJobs, NothingIsTrainedTwice) {
  const Search search = small_search();
  std::set<std::vector<std::string>> seen;
  for (const Job& job : search.jobs)
    EXPECT_TRUE(
        seen.insert({std::string(kind_name(job.kind)), std::to_string(job.seed),
                     std::to_string(job.reset), std::to_string(job.level), job.pruned, job.start})
            .second)
        << job.id;
}

TEST(SearchJobs, WorkIsCountedInImages) {
  const Search search = small_search();
  const std::vector<JobWork> works = works_of(search);
  ASSERT_EQ(works.size(), search.jobs.size());
  EXPECT_DOUBLE_EQ(works.front().work, 800);
  EXPECT_TRUE(works.front().after.empty());
  EXPECT_EQ(works[1].after, (std::vector<std::size_t>{0}));
}

TEST(SearchJobs, ASearchSurvivesItsFile) {
  const Search search = small_search();
  EXPECT_EQ(search_from_json(to_json(search), "search.json"), search);
}

TEST(SearchJobs, AWrongFileIsRefusedWithAllFaults) {
  Json json = to_json(small_search());
  json["rate"] = "much";
  json["jobs"][1]["pruned"] = "nobody";
  json["jobs"][2]["kind"] = "tickte";
  try {
    search_from_json(json, "search.json");
    FAIL() << "it was taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rate"));
    EXPECT_THAT(error.what(), HasSubstr("nobody"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'ticket'"));
  }
}

TEST(SearchJobs, ResetPointsBeyondTheEndAreRefused) {
  Search search = small_search();
  search.resets = {0, 100};
  EXPECT_THROW(make_jobs(search), InputError);
}

}  // namespace
}  // namespace regatta::tickets
