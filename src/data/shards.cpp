#include "data/shards.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/random.h"
#include "base/shell_word.h"
#include "data/augment_sample.h"
#include "data/load_clock.h"
#include "data/shard_file.h"
#include "data/skips.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// A data set up to this size is shuffled as any other: it lies in memory after the first epoch, and
// its batches are those of the data it was made of.
constexpr std::int64_t window_bytes = std::int64_t{4} << 30;
constexpr std::int64_t block_bytes = std::int64_t{8} << 20;

class ShardsDataset final : public Dataset {
 public:
  ShardsDataset(const std::string& spec, const fs::path& folder, const DatasetOptions& options)
      : strict_(options.strict) {
    const fs::path file = folder / "index.json";
    if (!fs::exists(file))
      throw InputError(
          "data set '" + spec + "': '" + folder.string() +
          "' has no index.json; regatta data prepare makes it, or finishes it (in parts: " +
          "regatta data finish " + shell_word(folder.string()) + ")");
    const Json index = read_json(file);
    try {
      read_index(spec, folder, index, options.split);
    } catch (const Json::exception& error) {
      throw InputError("'" + file.string() + "' does not tell shards: " + error.what());
    }
  }

  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    const LoadClock reading(&LoadingTimes::reading);
    for (const std::int64_t wanted : indices) {
      require_index(wanted);
      const auto read_at = [&](std::int64_t index) {
        const auto [shard, position] = place_of(index);
        if (!shard->sound(position)) throw InputError("its checksum is wrong");
        const std::string_view bytes = shard->samples(position);
        std::memcpy(samples, bytes.data(), bytes.size());
        *labels = shard->entry(position).label;
      };
      read_or_next(
          wanted, info_.count, strict_, skips_, read_at,
          [&](std::int64_t index) { return sample_name(index); }, [] {});
      samples += sample_bytes(info_);
      ++labels;
    }
  }

  std::vector<std::int64_t> order(std::uint64_t seed, std::int64_t epoch,
                                  bool shuffle) const override {
    const auto sample = static_cast<std::int64_t>(sample_bytes(info_));
    if (!shuffle || info_.count * sample <= window_bytes)
      return epoch_order(info_.count, seed, epoch, shuffle);
    const std::int64_t block = std::max<std::int64_t>(1, block_bytes / sample);
    const std::int64_t blocks = std::max<std::int64_t>(1, window_bytes / (block * sample));
    std::vector<std::int64_t> order = block_order(info_.count, block, blocks, seed, epoch);
    for (std::int64_t& each : order) {
      const auto [shard, position] = stored_at(each);
      each = shard->entry(position).index;
    }
    return order;
  }

  SkippedSamples skipped() const override { return skips_.report(); }
  std::int64_t bytes() const override {
    return info_.count * static_cast<std::int64_t>(sample_bytes(info_));
  }

  // A shard's table holds the checksum of every sample.
  Json identity() const override {
    std::string tables;
    for (const auto& shard : shards_) tables += std::to_string(shard->header().table_crc) + ' ';
    return {{"samples", info_.count},
            {"sample size", info_.sample.text()},
            {"shards", sha256_hex(tables).substr(0, 16)}};
  }

 private:
  struct SampleInShard {
    const MappedShard* shard;
    std::int64_t position;  // within the shard
  };

  void read_index(const std::string& spec, const fs::path& folder, const Json& index, Split split) {
    if (index.at("form") != "regatta shards 1")
      throw InputError("'" + folder.string() + "' holds shards of another version of regatta");
    const Json& splits = index.at("splits");
    const bool alone = !splits.contains("test");
    const Json& chosen = splits.at(split == Split::test && !alone ? "test" : "train");
    info_.spec = spec;
    info_.splits_coincide = alone;
    info_.sample = Shape::parse(index.at("sample").get<std::string>());
    info_.count = chosen.at("samples");
    info_.classes = index.at("classes");
    info_.class_names = index.at("class_names").get<std::vector<std::string>>();
    info_.dtype = Dtype::u8;
    info_.scale = 1.0f / 255.0f;
    info_.mean = index.at("mean").get<std::vector<float>>();
    info_.deviation = index.at("deviation").get<std::vector<float>>();
    const std::string job = index.at("job");
    if (info_.mean.size() != static_cast<std::size_t>(info_.sample.channels()) ||
        info_.deviation.size() != info_.mean.size())
      throw InputError("'" + folder.string() + "': its index gives no mean for each channel");
    open_shards(folder, chosen.at("shards"), job);
  }

  void open_shards(const fs::path& folder, const Json& shards, const std::string& job) {
    position_.assign(static_cast<std::size_t>(info_.count), -1);
    std::int64_t position = 0;
    for (const Json& each : shards) {
      const fs::path file = folder / each.at("file").get<std::string>();
      shards_.push_back(std::make_unique<const MappedShard>(file));
      const MappedShard& shard = *shards_.back();
      const auto fail = [&](const std::string& why) {
        throw InputError("'" + file.string() + "' does not belong to its index: " + why);
      };
      if (shard.sample() != info_.sample) fail("its samples are " + shard.sample().text());
      if (std::string_view(shard.header().job, sizeof shard.header().job) !=
          std::string_view(job).substr(0, sizeof shard.header().job))
        fail("another preparation made it");
      starts_.push_back(position);
      for (std::int64_t i = 0; i < shard.count(); ++i, ++position) {
        const ShardEntry& entry = shard.entry(i);
        if (entry.index < 0 || entry.index >= info_.count ||
            position_[static_cast<std::size_t>(entry.index)] >= 0)
          fail("it has sample " + std::to_string(entry.index) + " of " +
               std::to_string(info_.count) + " again or in excess");
        if (entry.label < 0 || entry.label >= info_.classes)
          fail("it has label " + std::to_string(entry.label) + " of " +
               std::to_string(info_.classes) + " classes");
        position_[static_cast<std::size_t>(entry.index)] = position;
      }
    }
    if (position != info_.count || info_.count == 0)
      throw InputError("'" + folder.string() + "': its shards hold " + std::to_string(position) +
                       " of " + std::to_string(info_.count) + " samples");
  }

  SampleInShard stored_at(std::int64_t position) const {
    const auto after = std::ranges::upper_bound(starts_, position);
    const auto shard = static_cast<std::size_t>(after - starts_.begin()) - 1;
    return {shards_[shard].get(), position - starts_[shard]};
  }
  SampleInShard place_of(std::int64_t index) const {
    return stored_at(position_[static_cast<std::size_t>(index)]);
  }

  bool strict_;
  std::vector<std::unique_ptr<const MappedShard>> shards_;
  std::vector<std::int64_t> starts_;    // position of each shard's first sample
  std::vector<std::int64_t> position_;  // of each index
  mutable Skips skips_;
};

}  // namespace

std::vector<std::int64_t> block_order(std::int64_t count, std::int64_t block,
                                      std::int64_t blocks_per_window, std::uint64_t seed,
                                      std::int64_t epoch) {
  const std::vector<std::int64_t> blocks =
      epoch_order((count + block - 1) / block, seed, epoch, true);
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(count));
  const std::uint64_t stream = stream_of("shuffle in window") ^ static_cast<std::uint64_t>(epoch);
  for (std::size_t first = 0; first < blocks.size();) {
    const std::size_t begin = order.size();
    const std::size_t end =
        std::min(blocks.size(), first + static_cast<std::size_t>(blocks_per_window));
    for (; first < end; ++first)
      for (std::int64_t i = blocks[first] * block; i < std::min(count, (blocks[first] + 1) * block);
           ++i)
        order.push_back(i);
    for (std::size_t last = order.size(); last-- > begin + 1;)
      std::swap(order[last], order[begin + random_bits(seed, stream, last) % (last - begin + 1)]);
  }
  return order;
}

std::shared_ptr<const Dataset> shards_dataset(const std::string& spec, const fs::path& folder,
                                              const DatasetOptions& options) {
  return std::make_shared<ShardsDataset>(spec, folder, options);
}

}  // namespace regatta
