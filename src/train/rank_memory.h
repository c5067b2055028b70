// Whether every rank's part of a plan fits into memory, some of which ranks of one machine share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "train/memory_check.h"
#include "train/ranks.h"

namespace regatta {

// What one rank tells the others of its memory.
struct RankMemory {
  std::int64_t needed = 0;          // bytes
  std::int64_t freed = 0;           // bytes in use that are given back before the plan runs
  std::vector<std::string> shared;  // MemoryLimit::shared_as of its limits
};

// The limits of this rank. Of one that other ranks share it gets a part in proportion to what each
// of them needs: if one rank's need fits into its part, so does that of all.
std::vector<MemoryLimit> limits_of_rank(std::vector<MemoryLimit> limits,
                                        const std::vector<RankMemory>& all, std::size_t rank);

// Called by all ranks. What require_memory() would say of this rank's plan; empty if it fits.
// `freed`: bytes that this process will have given back before the plan runs.
std::string memory_shortage(Ranks& ranks, const TrainJob& job, const Plan& plan, Purpose purpose,
                            std::size_t freed = 0);

}  // namespace regatta
