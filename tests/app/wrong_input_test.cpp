// Whatever a user gets wrong: exit code 2, one line that names the culprit, and nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "data/npy.h"
#include "support/program_run.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Mistake {
  std::string arguments;             // parted by blanks; @ is the folder with the files below
  std::vector<const char*> culprit;  // what the line must say
  const char* variable = nullptr;    // NAME=VALUE
};

const std::string train = "train --model tiny --data synth:1x8x8/3@20 --steps 1 --batch 8 ";
const std::string train_npy = "train --model tiny --steps 1 --batch 2 --out @/new --data ";
const std::string into = train + "--out @/new ";
const std::string eval = "eval --model tiny --data synth:1x8x8/3@20 --weights ";

std::string with_folder(std::string text, const fs::path& folder) {
  for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at + 1))
    // synth:1x8x8/3@20 has one of its own.
    if (at + 1 == text.size() || !std::isdigit(static_cast<unsigned char>(text[at + 1])))
      text.replace(at, 1, folder.string());
  return text;
}

std::set<std::string> everything_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    names.insert(entry.path().lexically_relative(folder).string());
  return names;
}

class WrongInput : public testing::Test {
 protected:
  // Files and runs to go wrong with, made once.
  static void SetUpTestSuite() {
    files_ = std::make_unique<TemporaryFolder>();
    const fs::path& at = files_->path();
    write_npy(at / "images.npy", {Dtype::u8, {4, 1, 8, 8}, std::string(256, '\x01')});
    write_npy(at / "labels.npy", {Dtype::u8, {4}, std::string("\0\1\2\0", 4)});
    write_npy(at / "three.npy", {Dtype::u8, {3}, std::string("\0\1\2", 3)});
    files_->file("short.npy", read_file(at / "images.npy").substr(0, 200));
    for (const char* name : {"corrupt.npy", "corrupt.idx", "corrupt.safetensors"})
      files_->file(name, "this is no tensor");
    ASSERT_EQ(::mkfifo((at / "fifo").c_str(), 0600), 0);
    const std::string header = R"({"head":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    files_->file("other.safetensors", std::string{static_cast<char>(header.size())} +
                                          std::string(7, '\0') + header + std::string(4, '\0'));

    const std::string run = (at / "run").string();
    ASSERT_EQ(run_regatta({"train", "--model", "tiny", "--data", "synth:1x8x8/3@20", "--batch", "8",
                           "--steps", "1", "--out", run})
                  .code,
              0);
    for (const char* name : {"damaged", "gutted", "strange", "torn"})
      fs::copy(run, at / name, fs::copy_options::recursive);
    files_->file("damaged/run.json", R"({"recipe": {"model")");
    files_->file("gutted/run.json", R"({"plan": []})");
    files_->file("strange/run.json", R"({"recipe": {"model": 3}})");
    ASSERT_EQ(::symlink("nowhere", (at / "dangling").c_str()), 0);
    files_->file("torn/checkpoints/step-1/model.safetensors", "half");
  }
  static void TearDownTestSuite() { files_.reset(); }

  static void expect_refused(const std::vector<Mistake>& mistakes) {
    for (const Mistake& mistake : mistakes) {
      SCOPED_TRACE(mistake.arguments);
      expect_refused(mistake);
    }
  }

 private:
  static void expect_refused(const Mistake& mistake) {
    std::optional<ScopedVariable> variable;
    if (mistake.variable) {
      const std::string text = mistake.variable;
      variable.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
    }
    std::vector<std::string> arguments;
    std::istringstream words(with_folder(mistake.arguments, files_->path()));
    for (std::string word; words >> word;) arguments.push_back(word);

    // Runs without --out would go here.
    const TemporaryFolder here;
    const fs::path before = fs::current_path();
    fs::current_path(here.path());
    const std::set<std::string> files_before = everything_in(files_->path());
    const ProgramRun run = run_regatta(arguments);
    fs::current_path(before);

    EXPECT_EQ(run.code, 2);
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    EXPECT_THAT(run.err, StartsWith("regatta: "));
    EXPECT_LT(run.err.size(), 800u);
    for (const char* word : mistake.culprit)
      EXPECT_THAT(run.err, HasSubstr(with_folder(word, files_->path())));
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(everything_in(files_->path()), files_before);
    EXPECT_TRUE(fs::is_empty(here.path()));
  }

  static inline std::unique_ptr<TemporaryFolder> files_;
};

TEST_F(WrongInput, AWrongWordIsRefused) {
  expect_refused({
      {"trian", {"'trian'", "did you mean 'train'?"}},
      {into + "--bathc 8", {"'--bathc'", "did you mean '--batch'?"}},
      {"data info mnist --jsn x", {"'--jsn'", "did you mean '--json'?"}},
      {"data gte mnist", {"'gte'", "did you mean 'get'?"}},
      {"data", {"subcommand", "regatta data --help"}},
      {into + "now", {"'now'"}},
      {"train --model lenet --data mnist", {"'lenet'", "did you mean 'lenet5'?"}},
      {"models resnet19", {"'resnet19'", "did you mean 'resnet18'?"}},
      {"train --model tiny --data minst", {"'minst'", "did you mean 'mnist'?"}},
      {"data get minst", {"'minst'", "did you mean 'mnist'?"}},
      {into + "--test digits-sinth", {"'digits-sinth'", "'digits-synth'"}},
      {into + "--reduction slot", {"'slot'", "did you mean 'slots'?"}},
      {into + "--scheduler egaer", {"'egaer'", "did you mean 'eager'?"}},
      {into + "--segments blok", {"--segments blok"}},
      {into + "--shuffle maybe", {"--shuffle", "maybe"}},
      {into + "--devices gpu", {"--devices gpu"}},
      {into + "--precision fp16", {"'fp16'", "bf16"}},
      {into + "--precision tf32", {"--precision tf32", "--devices cuda"}},
      {into + "--layout nchv", {"--layout", "nchv"}},
      {"train --data mnist", {"--model"}},
      {"train --model tiny", {"--data"}},
      {"eval --model tiny", {"--weights"}},
      {"train --model", {"--model"}},
      {into + "--steps 2", {"--steps"}},
      {into + "--epochs 1", {"--epochs", "--steps"}},
      {"eval --run @/run --model tiny", {"--run", "--model"}},
  });
}

TEST_F(WrongInput, TheWayOutNamesTheSubcommand) {
  expect_refused({
      {"tickets search --levels 0", {"--levels", "regatta tickets search --help"}},
      {"bench ceiling --model tiny --steps 1", {"--steps", "regatta bench ceiling --help"}},
      {"bench ceiling --modle tiny", {"'--modle'", "regatta bench ceiling --help"}},
      {"launch --hosts a --restarts -1 -- train", {"--restarts", "'-1'"}},
  });
}

TEST_F(WrongInput, AWrongHostIsRefused) {
  expect_refused({
      {"launch --hosts a/b,c -- train", {"--hosts a/b,c"}},
      {"launch --hosts a:0 -- train", {"--hosts a:0"}},
      {"launch --hosts a,-b -- train", {"--hosts a,-b"}},
  });
}

TEST_F(WrongInput, AWrongNumberIsRefused) {
  expect_refused({
      {into + "--lr nan", {"--lr nan"}},
      {into + "--lr inf", {"--lr inf"}},
      {into + "--lr -0.1", {"--lr -0.1"}},
      {into + "--lr 1e300", {"--lr 1e+300"}},
      {into + "--lr fast", {"--lr", "fast"}},
      {into + "--momentum nan", {"--momentum nan"}},
      {into + "--weight-decay -1", {"--weight-decay -1"}},
      {into + "--momentum 1.5", {"--momentum 1.5", "from 0 to below 1"}},
      {into + "--momentum 1 --optimizer rmsprop", {"--momentum 1", "from 0 to below 1"}},
      {into + "--lr 2 --weight-decay 0.5", {"--weight-decay 0.5", "learning rate"}},
      {into + "--optimizer adam --epsilon 0", {"--epsilon 0", "above 0"}},
      {into + "--optimizer lars --trust 0", {"--trust 0", "above 0"}},
      {into + "--warmup 1 --warmup-start 2", {"--warmup-start 2", "from 0 to 1"}},
      {"train --model tiny --data synth:1x8x8/3@20 --batch 0", {"--batch", "'0'"}},
      {"train --model tiny --data synth:1x8x8/3@20 --batch 21", {"--batch 21"}},
      {"train --model tiny --data mnist --batch 1.5", {"--batch", "'1.5'"}},
      {"train --model tiny --data mnist --steps 0", {"--steps", "'0'"}},
      {"simulate --model tiny --batch 99999999999999", {"--batch", "'99999999999999'"}},
      {"train --model tiny --data mnist --steps 99999999999999999999",
       {"--steps", "'99999999999999999999'"}},
      {"train --model tiny --data synth:1x8x8/3@20 --batch 8 --epochs 9223372036854775807",
       {"--epochs 9223372036854775807"}},
      {into + "--seed -1", {"--seed", "'-1'"}},
      {into + "--workers 0", {"--workers", "'0'"}},
      {into + "--workers 1000", {"--workers", "'1000'"}},
      {into + "--classes 1", {"--classes", "'1'"}},
      {into + "--classes 2", {"labels up to 2", "--classes 3"}},
      {into + "--chunks 3,4", {"--chunks 3,4 are 7 samples, and there are 8 to cut"}},
      {into + "--chunks 0,8", {"--chunks: each of its sizes is a sample at least"}},
      {"train --model resnet20 --data synth:3x16x16/3@20 --batch 8 --chunks 3,5 --batch-norm "
       "group:4",
       {"--chunks 3,5: 3 samples break up batch norm's groups", "multiples of 4"}},
      {"plan --model tiny --batch 8 --shares 3,4 --devices cpu", {"--shares 3,4 are 7 samples"}},
      {into + "--shares 8", {"--shares"}},
      {into + "--devices cpu,cuda --shares 3,4", {"--shares 3,4 are 7 samples"}},
      {into + "--devices cpu,cuda --shares 8,x", {"--shares 8,x"}},
      {into + "--chunks 0", {"--chunks 0"}},
      {into + "--chunks 9", {"--chunks 9"}},
      {into + "--chunks 1,,7", {"--chunks 1,,7"}},
      {into + "--segments 99", {"--segments 99"}},
      {into + "--reduction redux --deterministic", {"--reduction redux"}},
  });
}

TEST_F(WrongInput, AnEvaluationThatDoesNotFitIntoMemoryIsRefused) {
  const std::string data = " --data synth:1x8x8/3@1000000000 --split train --batch 1000000000";
  expect_refused({
      {"eval --run @/run" + data, {"--batch 1000000000 needs ", " or less fits"}},
      {"predict --run @/run --out @/new.npy" + data,
       {"--batch 1000000000 needs ", " or less fits"}},
  });
}

TEST_F(WrongInput, AWrongShapeIsRefused) {
  expect_refused({
      {into + "--input 8x8x", {"'8x8x'"}},
      {into + "--input 1x9x9", {"1x8x8", "1x9x9"}},
      {"models lenet5 --input 1x4x4", {"conv 'conv2'"}},
      {"data info synth:1x8x8/3", {"synth"}},
      {into + "--test synth:1x9x9/3@20", {"1x9x9"}},
  });
}

TEST_F(WrongInput, AWrongFileIsRefused) {
  expect_refused({
      {train_npy + "npy:@/no.npy,@/labels.npy", {"no.npy"}},
      {train_npy + "npy:@/corrupt.npy,@/labels.npy", {"corrupt.npy"}},
      {train_npy + "npy:@/short.npy,@/labels.npy", {"short.npy"}},
      {train_npy + "npy:@/images.npy", {"npy:IMAGES,LABELS"}},
      {train_npy + "npy:@/images.npy,@/three.npy", {"images.npy", "three.npy"}},
      {train_npy + "idx:@/corrupt.idx,@/corrupt.idx", {"corrupt.idx"}},
      {train_npy + "idx:@,@", {"'@'"}},
      {into + "--init @/no.safetensors", {"no.safetensors"}},
      {into + "--init @/corrupt.safetensors", {"corrupt.safetensors"}},
      {into + "--init @/other.safetensors", {"other.safetensors", "conv.weight", "head"}},
      {eval + "@/corrupt.safetensors", {"corrupt.safetensors"}},
      {eval + "@/no.safetensors", {"no.safetensors"}},
      {eval + "@/fifo", {"fifo': it is not a regular file"}},
      {eval + "@", {"'@': it is a folder"}},
      {into + "--init @/fifo", {"fifo': it is not a regular file"}},
      {into + "--init /dev/zero", {"/dev/zero': it is not a regular file"}},
      {train_npy + "npy:@/fifo,@/labels.npy", {"fifo': it is not a regular file"}},
      {train_npy + "idx:@/fifo,@/fifo", {"fifo': it is a pipe to which nobody writes"}},
      {train_npy + "tfrecord:@/fifo", {"fifo': it is not a regular file"}},
      {"train --out @/new --plan @/fifo", {"fifo': it is a pipe to which nobody writes"}},
      {"train --out @/new --plan /dev/zero", {"/dev/zero': it is not a regular file"}},
      {"plan --model tiny --platform @/fifo", {"fifo': it is a pipe to which nobody writes"}},
      {"trace @/fifo", {"fifo': it is not a regular file"}},
      {"trace --import @/fifo --out @/t.sqlite", {"fifo': it is not a regular file"}},
      {"train --model tiny --data mnist", {"regatta data get mnist"}, "REGATTA_CACHE=/nonexistent"},
  });
}

TEST_F(WrongInput, APlaceThatCannotBeWrittenToIsRefused) {
  expect_refused({
      {train + "--out /proc/run", {"/proc/run"}},
      {train + "--out @", {"already holds something"}},
      {train + "--out @/labels.npy", {"labels.npy"}},
      {train + "--out @/dangling", {"dangling': it is a link to nothing"}},
      {"simulate --model tiny --out @/run", {"already holds something"}},
      {"report @/run --out @/page.html --json @/no/result.json", {"no/result.json"}},
      {train + "--out @/labels.npy/run", {"labels.npy/run"}},
      {into + "--json @/no/result.json", {"no/result.json"}},
      {into + "--json @", {"cannot create '@'"}},
      {into + "--save-gradients @/no/g.safetensors", {"no/g.safetensors"}},
      {"predict --run @/run --out @/no/x.npy", {"no/x.npy"}},
      {"predict --run @/run", {"--out"}},
      {"models --json @/no/m.json", {"no/m.json"}},
      {"data info digits-synth --json @/no/d.json", {"no/d.json"}},
  });
}

TEST_F(WrongInput, ANameThatIsTooLongIsRefused) {
  const std::string name(300, 'x');
  std::vector<Mistake> mistakes;
  for (const std::string& arguments :
       {"eval " + name, "models " + name, "report " + name, "compare " + name, "simulate " + name,
        "train --resume " + name, into + "--from " + name, train + "--out " + name,
        "simulate --model tiny --out " + name, train_npy + "folder:" + name,
        train_npy + "cifar10:" + name, train_npy + "shards:" + name,
        "data prepare synth:1x8x8/3@20 --out " + name})
    mistakes.push_back({arguments, {"xxx", "File name too long"}});
  expect_refused(mistakes);
}

TEST_F(WrongInput, AWrongRunIsRefused) {
  expect_refused({
      {"train --resume @/no", {"@/no'"}},
      {"train --resume @/run", {"already done 1 of 1 steps", "--epochs"}},
      {"train --resume @/run --steps 3 --batch 4", {"--batch"}},
      {"train --resume @/damaged --steps 3", {"damaged/run.json", "byte"}},
      {"train --resume @/gutted --steps 3", {"gutted/run.json", "recipe"}},
      {"report @/strange", {"strange", "run.json", "does not tell a run"}},
      {"train --resume @/torn --steps 3", {"model.safetensors"}},
      {"eval --run @/damaged", {"damaged/run.json"}},
      {"eval --run @/gutted", {"gutted/run.json"}},
      {"eval --run @/no", {"@/no'"}},
  });
}

TEST_F(WrongInput, AWrongEnvironmentIsRefused) {
  expect_refused({
      {into, {"STARPU_NCPU=abc"}, "STARPU_NCPU=abc"},
      {into, {"STARPU_NCPU=5000"}, "STARPU_NCPU=5000"},
      {into, {"'nonsense'"}, "STARPU_SCHED=nonsense"},
      {into, {"STARPU_PERF_MODEL_DIR"}, "STARPU_PERF_MODEL_DIR=/proc/nowhere"},
  });
}

}  // namespace
}  // namespace regatta
