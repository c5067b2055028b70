#include "data/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "base/files.h"
#include "base/random.h"
#include "data/augment_sample.h"
#include "data/part_lock.h"
#include "support/error_text.h"
#include "support/images.h"
#include "support/program_process.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Names and bytes of all files.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

// 3 classes of 6 images in each split, two of them damaged, 4 samples a file.
struct Images {
  TemporaryFolder folder;
  PrepareOptions options;

  explicit Images(int classes = 3, int count = 6) {
    const fs::path images = folder.path() / "images";
    write_image_folder(images, classes, count, 16, 16);
    for (const char* damaged : {"train/class0/1001.jpg", "train/class1/1003.jpg"})
      write_file(images / damaged, "no image");
    options.spec = "folder:" + images.string();
    options.out = folder.path() / "out";
    options.file_bytes = std::int64_t{3} * 16 * 16 * 4;
  }

  void make_parts(int of) const {
    for (int part = of; part >= 1; --part) prepare_part(options, {part, of});
  }
};

TEST(PrepareParts, AnyNumberOfPartsGivesTheSameBytes) {
  for (const PreparedForm form : {PreparedForm::shards, PreparedForm::tfrecord}) {
    Images images;
    images.options.form = form;
    const Prepared whole = prepare_data(images.options);
    EXPECT_EQ(whole.samples, 36);
    EXPECT_EQ(whole.skipped.count, 2);
    const auto expected = contents(images.options.out);
    EXPECT_TRUE(expected.contains("index.json"));
    for (const int parts : {1, 3, 20}) {
      images.options.out = images.folder.path() / ("out" + std::to_string(parts));
      images.make_parts(parts);
      const Prepared joined = finish_preparation(images.options.out);
      EXPECT_EQ(joined.samples, whole.samples);
      EXPECT_EQ(joined.skipped.count, 2);
      EXPECT_EQ(joined.skipped.first, whole.skipped.first);
      EXPECT_TRUE(contents(images.options.out) == expected) << parts << " parts";
    }
  }
}

TEST(PrepareParts, ShardsMadeInPartsAreTheData) {
  const Images images;
  images.make_parts(3);
  const std::string spec = "shards:" + images.options.out.string();
  EXPECT_THAT(error_text([&] { open_dataset(spec, Split::train, 0); }),
              HasSubstr("regatta data finish " + images.options.out.string()));
  finish_preparation(images.options.out);
  const auto shards = open_dataset(spec, Split::train, 0);
  const auto folder = open_dataset(images.options.spec, Split::train, 0);
  std::vector<std::byte> sample(sample_bytes(shards->info())), other(sample);
  for (std::int64_t i = 0; i < 18; ++i) {
    std::int32_t label = 0, other_label = 0;
    shards->read(std::span(&i, 1), sample.data(), &label);
    folder->read(std::span(&i, 1), other.data(), &other_label);
    EXPECT_EQ(label, other_label);
    EXPECT_TRUE(sample == other);
  }
}

TEST(PrepareParts, FinishNamesPartsThatAreMissing) {
  const Images images;
  prepare_part(images.options, {1, 3});
  prepare_part(images.options, {3, 3});
  EXPECT_THAT(
      error_text([&] { finish_preparation(images.options.out); }),
      AllOf(HasSubstr("part 2/3 lacks 3 of 3 files: regatta data prepare " + images.options.spec +
                      " --shard-size 3072 --out " + images.options.out.string() + " --part 2/3"),
            ::testing::Not(HasSubstr("part 1/3"))));
  prepare_part(images.options, {2, 3});
  EXPECT_EQ(finish_preparation(images.options.out).files, 10);
  EXPECT_EQ(finish_preparation(images.options.out).files, 10);  // once more changes nothing
  EXPECT_THAT(error_text([&] { finish_preparation(images.folder.path()); }),
              HasSubstr("has no prepare.json"));
}

TEST(PrepareParts, APartBelongsToOneProcessAtATime) {
  const Images images;
  prepare_part(images.options, {1, 3});
  {
    const PartLock held(lock_file(images.options.out, 2, 3), "it");
    EXPECT_THAT(error_text([&] {
                  prepare_part(images.options, {2, 3});
                }),
                AllOf(HasSubstr("part 2/3 of"),
                      HasSubstr("is being made by process " + std::to_string(::getpid()))));
    EXPECT_THAT(error_text([&] { finish_preparation(images.options.out); }),
                AllOf(HasSubstr("part 2/3 is being made by process"), HasSubstr("part 3/3 lacks")));
    // Another number of parts is for later; other parts of three are not.
    EXPECT_THAT(error_text([&] {
                  prepare_part(images.options, {1, 4});
                }),
                HasSubstr("another number of parts"));
    prepare_part(images.options, {3, 3});
  }
  EXPECT_EQ(prepare_part(images.options, {2, 4}).kept, 2);  // made as those of three parts
}

TEST(PrepareParts, ThatAreBeingMadeAreNotJoinedThoughAllFilesAreThere) {
  const Images images;
  images.make_parts(2);
  {
    // A process that verifies the files of its part, and would replace a damaged one.
    const PartLock held(lock_file(images.options.out, 2, 2), "it");
    EXPECT_THAT(error_text([&] { finish_preparation(images.options.out); }),
                HasSubstr("is not complete: part 2/2 is being made by process " +
                          std::to_string(::getpid())));
    EXPECT_FALSE(fs::exists(images.options.out / "index.json"));
    EXPECT_TRUE(fs::exists(lock_file(images.options.out, 2, 2)));
  }
  finish_preparation(images.options.out);
  EXPECT_TRUE(fs::exists(images.options.out / "index.json"));
}

// Between two kinds of work in a folder: a part begins while nobody joins, and the other way round.
TEST(PrepareParts, BeginWhileNobodyJoinsThem) {
  const Images images;
  prepare_part(images.options, {1, 2});
  const fs::path said = images.folder.path() / "said";
  auto joining = std::make_unique<FolderLock>(images.options.out);
  ProgramProcess part({"data", "prepare", images.options.spec, "--out", images.options.out.string(),
                       "--shard-size", "3072", "--part", "2/2"},
                      said);
  const auto waits = [&] {
    const std::string holder = "waiting for process " + std::to_string(::getpid());
    return fs::exists(said) && read_file(said).find(holder) != std::string::npos;
  };
  for (int i = 0; i < 4000 && !waits() && !part.ended(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(waits());
  EXPECT_FALSE(part.ended()) << read_file(said);
  EXPECT_FALSE(fs::exists(lock_file(images.options.out, 2, 2)));
  joining.reset();
  EXPECT_EQ(part.wait(), 0) << read_file(said);
  EXPECT_FALSE(fs::exists(images.options.out / ".in-use"));
  finish_preparation(images.options.out);
}

TEST(PrepareParts, APartOfACompleteFolderChangesNothing) {
  const Images images;
  prepare_data(images.options);
  const auto expected = contents(images.options.out);
  const Prepared again = prepare_part(images.options, {2, 3});
  EXPECT_EQ(again.kept, again.files);
  EXPECT_TRUE(contents(images.options.out) == expected);
  // Lost files are made again, byte by byte.
  fs::remove(images.options.out / "train-00001.shard");
  prepare_part(images.options, {2, 3});
  EXPECT_TRUE(contents(images.options.out) == expected);
}

TEST(PrepareParts, OtherBeginningsAreLeftAlone) {
  Images images;
  prepare_part(images.options, {1, 3});
  images.options.seed = 2;
  EXPECT_THAT(error_text([&] {
                prepare_part(images.options, {1, 3});
              }),
              HasSubstr("another preparation: choose another --out"));
  images.options.form = PreparedForm::tfrecord;
  images.options.out = images.folder.path() / "records";
  fs::create_directories(images.options.out);
  write_file(images.options.out / "train-00000-of-00005.tfrecord", "someone's");
  EXPECT_THAT(error_text([&] {
                prepare_part(images.options, {1, 3});
              }),
              HasSubstr("did not make: choose another --out"));
}

TEST(PrepareParts, PartsAreWrittenKOfN) {
  EXPECT_EQ(parse_part("3/20").number, 3);
  EXPECT_EQ(parse_part("3/20").of, 20);
  for (const char* wrong : {"", "3", "3/", "/20", "0/20", "21/20", "3/20x", "-1/2", "a/b"})
    EXPECT_THAT(error_text([&] { parse_part(wrong); }), HasSubstr("use K/N")) << wrong;
}

// The inode of every finished file: one that is written again gets another.
std::map<std::string, ino_t> finished_files(const fs::path& folder) {
  std::map<std::string, ino_t> files;
  std::error_code none_yet;
  for (const auto& entry : fs::directory_iterator(folder, none_yet)) {
    struct stat about {};
    if (entry.path().extension() == ".shard" && ::stat(entry.path().c_str(), &about) == 0)
      files[entry.path().filename().string()] = about.st_ino;
  }
  return files;
}

TEST(PrepareParts, TwentyKillsLoseNothingAndRepeatNothing) {
  Images images(4, 60);
  images.options.out = images.folder.path() / "whole";
  prepare_data(images.options);
  const auto expected = contents(images.options.out);

  const fs::path out = images.folder.path() / "killed", said = images.folder.path() / "said";
  const auto process = [&](int part) {
    return std::make_unique<ProgramProcess>(
        std::vector<std::string>{"data", "prepare", images.options.spec, "--out", out.string(),
                                 "--shard-size", "3072", "--workers", "1", "--part",
                                 std::to_string(part) + "/3"},
        said);
  };
  std::map<std::string, ino_t> before;
  for (std::uint64_t kill = 0; kill < 20; ++kill) {
    const auto running = process(1 + static_cast<int>(random_bits(1, 0, kill) % 3));
    // After the first new file, at a moment of its own.
    while (!running->ended() && finished_files(out).size() == before.size())
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::this_thread::sleep_for(std::chrono::microseconds(random_bits(2, 0, kill) % 3000));
    running->signal(SIGKILL);
    running->wait();
    const auto after = finished_files(out);
    for (const auto& [name, inode] : before) EXPECT_EQ(after.at(name), inode) << name;
    before = after;
  }
  for (const int part : {3, 1, 2}) EXPECT_EQ(process(part)->wait(), 0) << read_file(said);
  const auto after = finished_files(out);
  for (const auto& [name, inode] : before) EXPECT_EQ(after.at(name), inode) << name;
  finish_preparation(out);
  EXPECT_TRUE(contents(out) == expected);
}

TEST(PrepareParts, TwoProcessesOfOnePartMakeItOnce) {
  const Images images(4, 60);
  const fs::path said = images.folder.path() / "said";
  const std::vector<std::string> arguments{"data",
                                           "prepare",
                                           images.options.spec,
                                           "--out",
                                           images.options.out.string(),
                                           "--shard-size",
                                           "3072",
                                           "--part",
                                           "1/2"};
  ProgramProcess first(arguments, said), second(arguments, said);
  const int codes[]{first.wait(), second.wait()};
  EXPECT_TRUE(codes[0] == 0 || codes[1] == 0) << read_file(said);
  for (const int code : codes) EXPECT_TRUE(code == 0 || code == 2) << read_file(said);
  prepare_part(images.options, {2, 2});
  finish_preparation(images.options.out);
  const auto made = contents(images.options.out);
  Images again(4, 60);
  again.options.spec = images.options.spec;
  prepare_data(again.options);
  EXPECT_TRUE(contents(again.options.out) == made);
}

}  // namespace
}  // namespace regatta
