// Searches through the program: estimated, made, worked on, reported; and runs that start where
// another stood.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include "base/files.h"
#include "base/json.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "support/places.h"
#include "support/program_process.h"
#include "support/program_run.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"
#include "tickets/folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TicketSearch : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder.path() / name).string(); }

  std::vector<std::string> words(const std::string& text) const {
    std::vector<std::string> found;
    std::istringstream stream(text);
    for (std::string word; stream >> word;)
      found.push_back(word.starts_with("@") ? at(word.substr(1)) : word);
    return found;
  }
  // In this process.
  std::string printed(const std::string& text) const {
    const ProgramRun done = run_regatta(words(text));
    EXPECT_EQ(done.code, 0) << text << ": " << done.err;
    return done.out;
  }
  std::string refused(const std::string& text) const {
    const ProgramRun done = run_regatta(words(text));
    EXPECT_EQ(done.code, 2) << text;
    EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
    return done.err;
  }
  // In a process of its own: searches start the program again.
  int code_of(const std::string& text) {
    fs::remove(said);
    return ProgramProcess(words(text), said).wait();
  }
  std::string what_was_said() const { return read_file(said); }

  const TemporaryFolder folder;
  const fs::path said = folder.path() / "said";
};

const std::string tiny =
    "--model tiny --data synth:1x12x12/3@40 --test synth:1x12x12/3@16 --batch 8 --lr 0.05 ";

TEST_F(TicketSearch, AnEstimateCountsWholeJobs) {
  const std::string weekend =
      "tickets estimate --masks 20 --resets 5 --epochs 350 --epoch-time 4.5m ";
  const std::string equal = printed(weekend + "--workers 20");
  for (const char* part :
       {"100 jobs of 26 h 15 min", "alone       2625 h", "together    131 h 15 min on 20 workers",
        "speed-up    20\n", "efficiency  1 of"})
    EXPECT_THAT(equal, HasSubstr(part));
  const std::string unequal = printed(weekend + "--workers 19x1,0.5 --json @estimate.json");
  EXPECT_THAT(unequal, HasSubstr("together    157 h 30 min"));
  EXPECT_THAT(unequal, HasSubstr("ideal       134 h 37 min"));
  EXPECT_DOUBLE_EQ(read_json(at("estimate.json"))["alone_s"], 2625 * 3600.0);
}

TEST_F(TicketSearch, AnEstimateForAPlatformHasJoulesByMachine) {
  const fs::path lab = test_files() / "platforms/lab.json";
  printed("tickets estimate --levels 3 --epochs 10 --epoch-time 1m --platform " + lab.string() +
          " --json @estimate.json");
  const Json json = read_json(at("estimate.json"));
  ASSERT_EQ(json["machines"].size(), 4u);
  EXPECT_DOUBLE_EQ(json["machines"][0]["speed"], 1);
  EXPECT_LT(json["machines"][1]["speed"], 1);
  double joules = 0;
  for (const Json& machine : json["machines"]) joules += machine["joules"].get<double>();
  EXPECT_NEAR(json["joules"], joules, 1e-6 * joules);
}

TEST_F(TicketSearch, WrongEstimatesAndFoldersAreRefusedInALine) {
  EXPECT_THAT(refused("tickets estimate --masks 2"), HasSubstr("--epoch-time"));
  EXPECT_THAT(refused("tickets estimate --masks 2 --levels 2 --epoch-time 1s"),
              HasSubstr("--masks"));
  EXPECT_THAT(refused("tickets estimate --masks 2 --epoch-time 1 --workers 2"), HasSubstr("4.5m"));
  for (const char* command : {"work", "status", "report", "estimate"})
    EXPECT_THAT(refused(std::string("tickets ") + command + " @nowhere"),
                HasSubstr("is not the folder of a search"));
}

TEST_F(TicketSearch, OneCommandDoesAllAndGoesOnWhereItStopped) {
  const std::string search = "tickets search " + tiny +
                             "--masks 2 --rate 0.5 --resets 0,3 --epochs 1 --deterministic --out "
                             "@search --workers 1";
  ASSERT_EQ(code_of(search), 0) << what_was_said();
  EXPECT_THAT(what_was_said(), HasSubstr("all jobs are done"));
  EXPECT_THAT(printed("tickets status @search"), HasSubstr("11 jobs: 11 done (100%)"));
  EXPECT_THAT(printed("tickets estimate @search"), HasSubstr("0 of 11 jobs are left"));
  ASSERT_EQ(code_of(search), 0) << "nothing is left to do";
  EXPECT_THAT(what_was_said(), HasSubstr("11 of them done"));
  EXPECT_EQ(code_of("tickets search " + tiny + "--masks 3 --out @search"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("holds another search"));

  EXPECT_THAT(printed("tickets report @search --json @results.json"), HasSubstr("reset to 3"));
  const Json results = read_json(at("results.json"));
  ASSERT_EQ(results["rows"].size(), 11u);
  for (const Json& row : results["rows"]) {
    if (row["kind"] == "dense") continue;
    EXPECT_NEAR(row["density"].get<double>(), row["level"] == 1 ? 0.5 : 0.25, 0.01);
  }
  const std::string csv = read_file(at("search/results.csv"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 12);

  ASSERT_EQ(code_of("tickets transfer @search --data synth:1x12x12/3@48 --levels 2 --out @other "
                    "--workers 1"),
            0)
      << what_was_said();
  EXPECT_THAT(printed("tickets status @other"), HasSubstr("7 jobs: 7 done"));

  // A search that differs in its data alone has other masks of the same names.
  const auto masks = [&] {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : fs::directory_iterator(at("other/masks")))
      bytes[entry.path().filename()] = read_file(entry.path());
    return bytes;
  };
  const auto before = masks();
  ASSERT_EQ(code_of("tickets search --model tiny --data synth:1x12x12/3@32 --test "
                    "synth:1x12x12/3@16 --batch 8 --lr 0.05 --masks 2 --rate 0.5 --resets 0,3 "
                    "--epochs 1 --deterministic --out @search2 --workers 1"),
            0)
      << what_was_said();
  for (const char* levels : {"2", "1,2"}) {
    EXPECT_EQ(code_of(std::string("tickets transfer @search2 --data synth:1x12x12/3@48 --epochs 1 "
                                  "--no-work --out @other --levels ") +
                      levels),
              2);
    EXPECT_THAT(what_was_said(), HasSubstr("another"));
    EXPECT_EQ(masks(), before) << "nothing may change before it is refused";
  }
}

// "mpirun -n 20 regatta tickets work DIR": the workers share a folder, but train no network
// together.
TEST_F(TicketSearch, AWorkerThatALauncherStartedTrainsItsJobsAlone) {
  const ScopedVariable rank("OMPI_COMM_WORLD_RANK", "1"), size("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_EQ(code_of("tickets search " + tiny +
                    "--masks 1 --resets 0 --controls none --epochs 1 --out @search --workers 1"),
            0)
      << what_was_said();
}

TEST_F(TicketSearch, JobsSideBySideHaveTheBitsOfJobsOneAfterTheOther) {
  std::vector<std::map<std::string, std::string>> weights;  // by job, a hash
  for (const std::string jobs : {"1", "2"}) {
    const std::string search = "@search" + jobs;
    ASSERT_EQ(
        code_of("tickets search " + tiny + "--masks 2 --rate 0.5 --resets 3 --controls none " +
                "--epochs 1 --deterministic --workers 2 --jobs " + jobs + " --out " + search),
        0)
        << what_was_said();
    tickets::DiskLayer files;
    tickets::SearchFolder done(files, at("search" + jobs));
    done.refresh();
    weights.emplace_back();
    for (std::size_t job = 0; job < done.jobs().size(); ++job)
      weights.back()[done.jobs()[job].id] = done.state(job).last().body.at("outcome").at("weights");
  }
  EXPECT_EQ(weights[0].size(), 3u);
  EXPECT_EQ(weights[0], weights[1]);
}

// Twins that start at the last but one step have hardly parted; the line between twins that start
// at step 0 is longer.
TEST_F(TicketSearch, StabilityTestsAlongTheLineBetweenRunsThatDifferInTheOrderOfDataAlone) {
  NpyArray images{Dtype::f32, {40, 1, 12, 12}, {}}, labels{Dtype::i32, {40}, {}};
  for (std::int32_t i = 0; i < 40; ++i) {
    const std::int32_t label = i % 3;
    labels.bytes.append(reinterpret_cast<const char*>(&label), sizeof label);
    for (int pixel = 0; pixel < 144; ++pixel) {
      const float value = static_cast<float>((pixel * (label + 1) + i) % 17) / 17;
      images.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  write_npy(at("x.npy"), images);
  write_npy(at("y.npy"), labels);
  const std::string spec = "npy:" + at("x.npy") + "," + at("y.npy");
  const std::string stability =
      "tickets stability --model tiny --batch 8 --lr 0.05 --resets 0,9 --epochs 2 --points 3 "
      "--workers 1 --deterministic ";
  ASSERT_EQ(code_of(stability + "--data " + spec + " --test " + spec +
                    " --json @barriers.json --out @twins"),
            0)
      << what_was_said();
  EXPECT_THAT(what_was_said(), HasSubstr("barrier"));
  const Json rows = read_json(at("barriers.json"))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  for (const Json& row : rows) {
    ASSERT_EQ(row["errors"].size(), 3u);
    const double ends = (row["errors"][0].get<double>() + row["errors"][2].get<double>()) / 2;
    double highest = 0;
    for (const Json& error : row["errors"]) highest = std::max(highest, error.get<double>());
    EXPECT_NEAR(row["barrier"].get<double>(), highest - ends, 1e-12);
  }
  const auto distance = [&](const std::string& reset) {
    double sum = 0;
    const std::string twin = "twins/jobs/seed1-reset" + reset + "-twin-";
    const std::string weights = "/claim-1/run/checkpoints/step-10/model.safetensors";
    const TensorFile a = read_safetensors(at(twin + "a" + weights)),
                     b = read_safetensors(at(twin + "b" + weights));
    for (std::size_t t = 0; t < a.tensors.size(); ++t) {
      if (a.tensors[t].dtype != Dtype::f32) continue;
      for (std::size_t i = 0; i < a.tensors[t].bytes.size(); i += sizeof(float)) {
        float x = 0, y = 0;
        std::memcpy(&x, a.tensors[t].bytes.data() + i, sizeof x);
        std::memcpy(&y, b.tensors[t].bytes.data() + i, sizeof y);
        sum += (x - y) * (x - y);
      }
    }
    return sum;
  };
  EXPECT_GT(distance("9"), 0) << "the order of the data differs";
  EXPECT_GT(distance("0"), distance("9"));
  EXPECT_EQ(code_of(stability + "--data synth:1x12x12/3@40 --out @other"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("synthetic images change with the seed"));
}

TEST_F(TicketSearch, WrongSearchesAreRefusedBeforeAnythingIsMade) {
  EXPECT_EQ(code_of("tickets search " + tiny + "--levels 2 --masks 2 --out @search"), 2);
  EXPECT_EQ(code_of("tickets search " + tiny + "--levels 2 --resets 9e --out @search"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("reset point"));
  EXPECT_EQ(code_of("tickets search " + tiny + "--levels 2 --seed 3 --resume x --out @search"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("--resume"));
  EXPECT_EQ(code_of("tickets search " + tiny + "--levels 2 --optimiser sgd --out @search"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("did you mean '--optimizer'"));
  EXPECT_FALSE(fs::exists(at("search")));
}

TEST_F(TicketSearch, WrongNamesAreRefusedWithThoseThatThereAre) {
  const std::string search = "tickets search " + tiny + "--levels 2 --out @search ";
  EXPECT_EQ(code_of(search + "--scope rows"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("'rows' is unknown: use global, layer or channel"));
  EXPECT_EQ(code_of(search + "--by luck"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("use magnitude, magnitude-increase or random"));
  EXPECT_EQ(code_of(search + "--controls all"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("use fresh, random, fresh,random or none"));
  EXPECT_FALSE(fs::exists(at("search")));
  EXPECT_EQ(code_of(search + "--controls fresh,fresh --no-work"), 0) << what_was_said();
  EXPECT_THAT(printed("tickets status @search"), HasSubstr("5 jobs"));
}

TEST_F(TicketSearch, AFolderOfARunIsNoFolderForASearch) {
  ASSERT_EQ(code_of("train " + tiny + "--steps 1 --out @run"), 0) << what_was_said();
  EXPECT_EQ(code_of("tickets search " + tiny + "--masks 1 --no-work --out @run"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("is the folder of a run"));
  EXPECT_FALSE(fs::exists(at("run/search.json")));
}

TEST_F(TicketSearch, AWorkerWithOtherDataDoesNothing) {
  ASSERT_EQ(code_of("tickets search --model tiny --data synth:1x12x12/3@40 --test none --batch 8 "
                    "--masks 1 --controls none --no-work --out @search"),
            0)
      << what_was_said();
  const std::string work = "tickets work @search --workers 1 ";
  EXPECT_EQ(code_of(work + "--data nowhere"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("data set 'nowhere' is unknown"));
  EXPECT_EQ(code_of(work + "--data synth:1x12x12/3@80"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("has 10 steps an epoch, the data of the search 5"));
  EXPECT_THAT(printed("tickets status @search"), HasSubstr("2 jobs: 0 done")) << "nothing failed";
  ASSERT_EQ(code_of(work + "--data synth:1x12x12/3@40"), 0) << what_was_said();
  // As many images, and yet others.
  EXPECT_EQ(code_of(work + "--data synth:1x12x12/2@40"), 2);
  EXPECT_THAT(what_was_said(), HasSubstr("is not what the recipe was made for"));
}

TEST_F(TicketSearch, AJobThatFailsTwiceIsGivenUpAndTold) {
  // Such steps end in numbers that are none.
  EXPECT_EQ(code_of("tickets search --model tiny --data synth:1x12x12/3@40 --batch 8 --lr 1e30 "
                    "--masks 1 --epochs 2 --workers 1 --out @search"),
            2);
  EXPECT_THAT(what_was_said(), HasSubstr("1 job failed"));
  EXPECT_THAT(printed("tickets status @search"), HasSubstr("4 cannot be done"));
}

TEST_F(TicketSearch, ARunFromAKeptCheckpointEndsAsTheRunItCameFrom) {
  const std::string train =
      "train --model tiny --data synth:1x12x12/3@40 --batch 4 --optimizer adamw --schedule cosine "
      "--deterministic --test none --epochs 2 ";
  printed(train + "--checkpoint-at 0,7 --keep 1 --out @whole");
  EXPECT_TRUE(fs::exists(at("whole/checkpoints/kept-0")));
  for (const std::string step : {"0", "7"}) {
    printed(train + "--from @whole/checkpoints/kept-" + step + " --out @from" + step);
    for (const char* file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_EQ(read_file(at("from" + step) + "/checkpoints/step-20/" + file),
                read_file(at("whole") + "/checkpoints/step-20/" + file));
  }
  EXPECT_THAT(refused(train + "--from @whole/checkpoints --out @x"), HasSubstr("no checkpoint"));
  EXPECT_THAT(refused(train + "--from @whole/checkpoints/step-20 --out @x"),
              HasSubstr("it has done 20 steps"));
}

}  // namespace
}  // namespace regatta
