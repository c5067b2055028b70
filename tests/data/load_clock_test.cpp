#include "data/load_clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "data/dataset.h"
#include "support/images.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

void sleep_ms(int count) { std::this_thread::sleep_for(std::chrono::milliseconds(count)); }

TEST(LoadClock, CountsEachMomentForTheInnermostStage) {
  LoadClock::take();
  {
    const LoadClock reading(&LoadingTimes::reading);
    sleep_ms(4);
    {
      const LoadClock decoding(&LoadingTimes::decoding);
      sleep_ms(8);
    }
  }
  sleep_ms(2);  // belongs to no stage
  const LoadingTimes times = LoadClock::take();
  EXPECT_GE(times.reading, 0.004);
  EXPECT_GE(times.decoding, 0.008);
  EXPECT_EQ(times.seconds(), times.reading + times.decoding);
  EXPECT_EQ(LoadClock::take().seconds(), 0);
}

TEST(LoadClock, IsOfItsThread) {
  LoadClock::take();
  std::thread([] {
    const LoadClock reading(&LoadingTimes::reading);
    sleep_ms(1);
  }).join();
  EXPECT_EQ(LoadClock::take().seconds(), 0);
}

LoadingTimes times_of_reading(const std::string& spec, const DatasetOptions& options) {
  const auto data = open_dataset(spec, options);
  std::vector<std::byte> samples(8 * static_cast<std::size_t>(data->info().sample.elements()) *
                                 dtype_bytes(data->info().dtype));
  std::vector<std::int32_t> labels(8);
  std::vector<Visit> visits;
  for (std::int64_t i = 0; i < 8; ++i) visits.push_back({i, static_cast<std::uint64_t>(i)});
  LoadClock::take();
  data->read(std::span<const Visit>(visits), samples.data(), labels.data());
  return LoadClock::take();
}

TEST(LoadClock, ImagesAreReadDecodedAndTransformed) {
  const TemporaryFolder folder;
  write_image_folder(folder.path(), 2, 8, 32, 32);
  const LoadingTimes times =
      times_of_reading("folder:" + folder.path().string(),
                       {.input = Shape{3, 24, 24}, .augmentation = parse_augmentation("flip")});
  EXPECT_GT(times.reading, 0);
  EXPECT_GT(times.decoding, 0);
  EXPECT_GT(times.transforms, 0);
  EXPECT_EQ(times.wire, 0);
}

TEST(LoadClock, SamplesThatAreMadeUpAreNeitherReadNorDecoded) {
  const LoadingTimes times = times_of_reading("synth:3x8x8/10@64", {});
  EXPECT_EQ(times.seconds(), 0);
}

}  // namespace
}  // namespace regatta
