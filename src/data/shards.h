// shards:DIR: a data set prepared for training once and for all: samples of one size as bytes, in
// files that are mapped into memory, mixed so that reading them front to back is already random.
// `regatta data prepare` makes them.
//
// DIR/index.json names the splits, their shards and their checksums; it is written last, so that a
// folder with one is complete. A shard is a header, a table with each sample's index, label and
// checksum, and the samples, C x H x W.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace regatta {

std::shared_ptr<const Dataset> shards_dataset(const std::string& spec,
                                              const std::filesystem::path& folder,
                                              const DatasetOptions& options);

// A shuffle that reads blocks of neighbours: blocks come in random order, and the samples of
// `blocks_per_window` blocks at a time are mixed. A permutation of [0, count).
std::vector<std::int64_t> block_order(std::int64_t count, std::int64_t block,
                                      std::int64_t blocks_per_window, std::uint64_t seed,
                                      std::int64_t epoch);

struct PrepareOptions {
  std::string spec;
  std::filesystem::path out;
  std::optional<Shape> input;  // as DatasetOptions has them
  int resize_to = 0;
  bool strict = false;
  std::optional<std::string> normalise;  // as parse_normalisation reads it; default: the data's
  std::uint64_t seed = 1;                // of the mixing, and of synthetic data
  std::int64_t shard_bytes = std::int64_t{64} << 20;
  int workers = 1;
};

struct Prepared {
  std::int64_t shards = 0, kept = 0;  // of all, those that an earlier run had finished
  std::int64_t samples = 0, bytes = 0;
  SkippedSamples skipped;
};

// Makes or completes the shards in options.out: what an earlier run of the same options finished is
// checked and kept. The shards' content depends on the options but for the number of workers alone.
// `on_shard(done, all)` is told of progress by whichever thread made it. Throws InputError.
Prepared prepare_shards(const PrepareOptions& options,
                        const std::function<void(std::int64_t, std::int64_t)>& on_shard = {});

}  // namespace regatta
