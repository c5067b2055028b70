#include "data/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/random.h"
#include "data/augment_sample.h"
#include "data/image.h"
#include "support/error_text.h"
#include "support/images.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Batch {
  std::vector<std::byte> samples;
  std::vector<std::int32_t> labels;
  bool operator==(const Batch&) const = default;
};

Batch read_all(const Dataset& data) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(data.info().count));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  Batch batch{std::vector<std::byte>(indices.size() * sample_bytes(data.info())),
              std::vector<std::int32_t>(indices.size())};
  data.read(indices, batch.samples.data(), batch.labels.data());
  return batch;
}

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Folder, ClassesAndSplitsAreFolders) {
  const TemporaryFolder folder;
  write_image_folder(folder.path(), 3, 2, 16, 24);
  write(folder.path() / "train" / "class1" / "deep" / "x.PNG", encode_png(picture(16, 24, 3, 50)));
  write(folder.path() / "train" / "class1" / "notes.txt", "no image");
  const std::string spec = "folder:" + folder.path().string();
  const auto train = open_dataset(spec, Split::train, 0);
  EXPECT_EQ(train->info().count, 7);
  EXPECT_EQ(train->info().sample, (Shape{3, 16, 24}));
  EXPECT_THAT(train->info().class_names, ElementsAre("class0", "class1", "class2"));
  EXPECT_FALSE(train->info().splits_coincide);
  EXPECT_FLOAT_EQ(train->info().mean[0], 0.485f);
  EXPECT_THAT(read_all(*train).labels, ElementsAre(0, 0, 1, 1, 1, 2, 2));
  EXPECT_THAT(train->sample_name(4), HasSubstr("class1/deep/x.PNG"));
  EXPECT_GT(train->bytes(), 1000);
  EXPECT_EQ(open_dataset(spec, Split::test, 0)->info().count, 6);
  // The split's own folder has classes too, and no other split.
  EXPECT_TRUE(open_dataset(spec + "/train", Split::test, 0)->info().splits_coincide);
}

TEST(Folder, LinksAreFollowedButNotInCircles) {
  const TemporaryFolder folder, elsewhere;
  const fs::path cats = folder.path() / "cats";
  const std::string image = encode_png(picture(8, 8, 3, 1));
  write(cats / "1.png", image);
  write(cats / "deep" / "2.png", image);
  write(folder.path() / "dogs" / "3.png", image);
  write(elsewhere.path() / "more" / "4.png", image);
  fs::create_directory_symlink(elsewhere.path(), cats / "linked");
  fs::create_directory_symlink(elsewhere.path() / "more", cats / "again");
  fs::create_directory_symlink("..", cats / "up");
  fs::create_directory_symlink("../..", cats / "deep" / "up");
  fs::create_directory_symlink("deep", cats / "a-link-inside");
  fs::create_directory_symlink(".", folder.path() / "self");
  fs::create_symlink("itself", cats / "itself");
  fs::create_directory_symlink(cats, elsewhere.path() / "back");
  const auto data = open_dataset("folder:" + folder.path().string(), Split::train, 0);
  EXPECT_THAT(data->info().class_names, ElementsAre("cats", "dogs"));
  EXPECT_EQ(data->info().count, 4);
  EXPECT_THAT(read_all(*data).labels, ElementsAre(0, 0, 0, 1));
}

TEST(Folder, PixelsAreTheImages) {
  const TemporaryFolder folder;
  const Picture original = picture(8, 9, 3, 1);
  write(folder.path() / "a" / "x.png", encode_png(original));
  const auto data = open_dataset("folder:" + folder.path().string(), Split::train, 0);
  const Batch batch = read_all(*data);
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < 72; ++i)
      ASSERT_EQ(std::to_integer<int>(batch.samples[static_cast<std::size_t>(c * 72 + i)]),
                original.at(i / 9, i % 9, c));
}

TEST(Folder, ImagesOfManySizesNeedAnInput) {
  const TemporaryFolder folder;
  write(folder.path() / "a" / "1.jpg", encode_jpeg(picture(40, 60, 3, 1)));
  write(folder.path() / "a" / "2.jpg", encode_jpeg(picture(90, 50, 1, 2)));
  const std::string spec = "folder:" + folder.path().string();
  EXPECT_THAT(error_text([&] { open_dataset(spec, Split::train, 0); }),
              AllOf(HasSubstr("images of many sizes"), HasSubstr("40x60"), HasSubstr("--input")));
  const auto fitted = open_dataset(spec, DatasetOptions{.input = Shape{3, 28, 28}});
  EXPECT_EQ(fitted->info().sample, (Shape{3, 28, 28}));
  read_all(*fitted);
  const auto grey = open_dataset(spec, DatasetOptions{.input = Shape{1, 28, 28}});
  EXPECT_EQ(grey->info().mean.size(), 1u);
  read_all(*grey);
  EXPECT_THAT(error_text([&] {
                open_dataset(spec, DatasetOptions{.input = Shape{4, 28, 28}});
              }),
              HasSubstr("3xHxW or 1xHxW"));
}

TEST(Folder, ManyThreadsReadTheSame) {
  const TemporaryFolder folder;
  write_image_folder(folder.path(), 2, 4, 50, 70);
  const auto data = open_dataset(
      "folder:" + folder.path().string(),
      DatasetOptions{.augmentation = parse_augmentation("resize-crop:32,flip,jitter:0.4")});
  std::vector<Visit> visits;
  for (int i = 0; i < 8; ++i) visits.push_back({i, random_bits(1, 2, std::uint64_t(i))});
  const auto read = [&](std::size_t chunk) {
    Batch batch{std::vector<std::byte>(8 * sample_bytes(data->info())),
                std::vector<std::int32_t>(8)};
    std::vector<std::jthread> threads;
    for (std::size_t first = 0; first < 8; first += chunk)
      threads.emplace_back([&, first] {
        data->read(std::span(visits).subspan(first, chunk),
                   batch.samples.data() + first * sample_bytes(data->info()),
                   batch.labels.data() + first);
      });
    threads.clear();
    return batch;
  };
  const Batch whole = read(8);
  EXPECT_EQ(read(1), whole);
  EXPECT_EQ(read(4), whole);
  EXPECT_NE(read_all(*data), whole);
}

TEST(Folder, ACorruptImageIsSkippedCountedAndNamed) {
  const TemporaryFolder folder;
  write_image_folder(folder.path(), 2, 3, 32, 32);
  const fs::path bad = folder.path() / "train" / "class0" / "1001.jpg";
  const std::string spec = "folder:" + folder.path().string();
  const Batch good = read_all(*open_dataset(spec, Split::train, 0));
  write(bad, encode_jpeg(picture(32, 32, 3, 2)).substr(0, 400));
  const auto data = open_dataset(spec, Split::train, 0);
  const Batch batch = read_all(*data);
  // The next sample takes its place; all others are as they were.
  const std::size_t bytes = 3 * 32 * 32;
  for (std::size_t i = 0; i < 6; ++i) {
    const std::size_t expected = i == 1 ? 2 : i;
    EXPECT_TRUE(std::equal(good.samples.begin() + std::ptrdiff_t(expected * bytes),
                           good.samples.begin() + std::ptrdiff_t((expected + 1) * bytes),
                           batch.samples.begin() + std::ptrdiff_t(i * bytes)))
        << i;
  }
  read_all(*data);  // once more is not one more
  EXPECT_EQ(data->skipped().count, 1);
  EXPECT_THAT(data->skipped().first,
              ElementsAre(AllOf(HasSubstr(bad.string()), HasSubstr("cut off"))));

  const auto strict = open_dataset(spec, DatasetOptions{.strict = true});
  EXPECT_THAT(error_text([&] { read_all(*strict); }),
              AllOf(HasSubstr(bad.string()), HasSubstr("cut off"), HasSubstr("--strict")));
}

TEST(Folder, NothingButCorruptImagesIsAnError) {
  const TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) write(folder.path() / "a" / (std::to_string(i) + ".jpg"), "no image");
  const std::string spec = "folder:" + folder.path().string();
  EXPECT_THAT(error_text([&] { open_dataset(spec, Split::train, 0); }),
              HasSubstr("no image can be read"));
  const auto data = open_dataset(spec, DatasetOptions{.input = Shape{3, 8, 8}});
  EXPECT_THAT(error_text([&] { read_all(*data); }), HasSubstr("3 samples in a row"));
}

TEST(Folder, AFolderThatVanishesIsSaid) {
  const TemporaryFolder folder;
  write_image_folder(folder.path() / "set", 1, 3, 8, 8);
  const auto data = open_dataset("folder:" + (folder.path() / "set").string(), Split::train, 0);
  fs::remove_all(folder.path() / "set");
  EXPECT_THAT(error_text([&] { read_all(*data); }), HasSubstr("the data has gone"));
}

TEST(Folder, IsTheSameDataWhereverItLies) {
  const TemporaryFolder folder;
  write_image_folder(folder.path() / "here", 2, 3, 4, 4);
  const auto identity = [&](const char* name) {
    return open_dataset("folder:" + (folder.path() / name).string(), Split::train, 0)->identity();
  };
  const Json before = identity("here");
  fs::rename(folder.path() / "here", folder.path() / "there");
  EXPECT_EQ(identity("there"), before);
  // One byte more behind the image.
  std::ofstream(folder.path() / "there" / "train" / "class1" / "1001.jpg", std::ios::app) << "x";
  const Json after = identity("there");
  EXPECT_EQ(after.at("file names"), before.at("file names"));
  EXPECT_NE(after.at("file sizes"), before.at("file sizes"));
}

TEST(Folder, FilesThatCannotBeReadAreBlackAndAllAreNamed) {
  const TemporaryFolder folder;
  write(folder.path() / "a" / "good.png", encode_png(picture(4, 4, 3, 1)));
  write(folder.path() / "a" / "b" / "deep.PNG", encode_png(picture(4, 4, 3, 2)));
  std::vector<std::string> files = images_under(folder.path());
  EXPECT_THAT(files, ElementsAre((folder.path() / "a" / "b" / "deep.PNG").string(),
                                 (folder.path() / "a" / "good.png").string()));
  for (int i = 0; i < 7; ++i) files.insert(files.begin(), "none" + std::to_string(i) + ".png");
  DatasetOptions options{.input = Shape{3, 4, 4}};
  options.blank_unreadable = true;
  const auto data = files_dataset(files, options);
  const Batch all = read_all(*data);
  EXPECT_EQ(std::vector(48, std::byte{0}),
            std::vector(all.samples.begin(), all.samples.begin() + 48));
  EXPECT_EQ(data->skipped().indices, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(data->skipped().first.size(), 7u);
  EXPECT_THAT(data->skipped().first[6], HasSubstr("none0.png': No such file"));
}

TEST(Folder, MistakesAreNamed) {
  const TemporaryFolder folder;
  const auto complaint = [](const fs::path& path, Split split) {
    return error_text([&] { open_dataset("folder:" + path.string(), split, 0); });
  };
  EXPECT_THAT(complaint(folder.path() / "none", Split::train), HasSubstr("there is no folder"));
  EXPECT_THAT(complaint(folder.path(), Split::train), HasSubstr("has no CLASS/*.jpg"));
  write(folder.path() / "train" / "a" / "1.png", encode_png(picture(4, 4, 3, 1)));
  write(folder.path() / "val" / "b" / "1.png", encode_png(picture(4, 4, 3, 1)));
  EXPECT_THAT(complaint(folder.path(), Split::test),
              HasSubstr("val/b' is a class that the training split does not have"));
}

}  // namespace
}  // namespace regatta
