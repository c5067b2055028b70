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
#include <memory>
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

}  // namespace regatta
