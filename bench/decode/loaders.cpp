// Images a second from a folder of JPEG files to augmented samples, by number of loaders: threads
// that load batch after batch as a run's loaders do. Beside it the decoding limit: as many threads
// that decode and crop the same images from memory, with nothing else to do.
// `scripts/bench-loaders` sets both beside PyTorch's DataLoader.
//
//   regatta_loaders_bench FOLDER SIDE SECONDS LOADERS...
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/load_clock.h"
#include "trace/loading.h"

namespace {

using namespace regatta;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t batch = 64;

// Measured after a second of warm-up. `work(first)` makes a batch of samples, from sample `first`
// on.
double images_per_second(int loaders, double seconds,
                         const std::function<void(std::int64_t first)>& work) {
  std::atomic<std::int64_t> next = 0, done = 0;
  std::atomic<bool> counts = false, stop = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < loaders; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        work(next.fetch_add(batch));
        if (counts) done += batch;
      }
    });
  std::this_thread::sleep_for(std::chrono::seconds(1));
  counts = true;
  const Clock::time_point begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double rate =
      static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - begin).count();
  stop = true;
  return rate;
}

int run(int count, char** arguments) {
  if (count < 5) throw InputError("usage: regatta_loaders_bench FOLDER SIDE SECONDS LOADERS...");
  const int side = std::atoi(arguments[2]);
  const double seconds = std::atof(arguments[3]);
  if (side < 1 || side > 4096) throw InputError("SIDE is a number of pixels");
  const Augmentation augmentation =
      parse_augmentation("resize-crop:" + std::to_string(side) + ",flip");
  const auto data = open_dataset(std::string("folder:") + arguments[1],
                                 DatasetOptions{.augmentation = augmentation});
  const std::int64_t images = data->info().count;
  const auto sample = static_cast<std::size_t>(data->info().sample.elements());

  struct Encoded {
    std::vector<std::byte> bytes;
    ImageHeader header;
  };
  std::vector<Encoded> encoded;
  const auto undecoded =
      open_dataset(std::string("folder:") + arguments[1], DatasetOptions{.undecoded = true});
  for (std::int64_t i = 0; i < images; ++i) {
    Encoded image;
    std::int32_t label = 0;
    undecoded->read_encoded(i, image.bytes, &label);
    image.header = image_header(image.bytes);
    encoded.push_back(std::move(image));
  }

  for (int i = 4; i < count; ++i) {
    const int loaders = std::atoi(arguments[i]);
    if (loaders < 1) throw InputError("LOADERS are numbers from 1 on");
    std::mutex mutex;
    LoadingTimes times;
    const double loaded = images_per_second(loaders, seconds, [&](std::int64_t first) {
      thread_local std::vector<std::byte> samples(batch * sample);
      thread_local std::vector<std::int32_t> labels(batch);
      std::vector<Visit> visits;
      for (std::int64_t v = first; v < first + batch; ++v)
        visits.push_back({v % images, static_cast<std::uint64_t>(v)});
      data->read(std::span<const Visit>(visits), samples.data(), labels.data());
      const std::lock_guard lock(mutex);
      times += LoadClock::take();
    });
    const double limit = images_per_second(loaders, seconds, [&](std::int64_t first) {
      thread_local std::vector<std::uint8_t> pixels(sample);
      for (std::int64_t v = first; v < first + batch; ++v) {
        const Encoded& image = encoded[static_cast<std::size_t>(v % images)];
        decode_sample(image.bytes, image.header, 3,
                      resized_crop_framing(image.header.size, *augmentation.resized_crop,
                                           static_cast<std::uint64_t>(v)),
                      pixels.data());
      }
    });
    std::printf(
        "{\"who\": \"Regatta\", \"loaders\": %d, \"images_per_s\": %.1f, \"loading\": %s}\n",
        loaders, loaded, trace::to_json(times).dump().c_str());
    std::printf("{\"who\": \"decoding limit\", \"loaders\": %d, \"images_per_s\": %.1f}\n", loaders,
                limit);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const regatta::Error& error) {
    std::fprintf(stderr, "regatta_loaders_bench: %s\n", error.what());
    return 2;
  }
}
