#include "train/rank_memory.h"

#include <algorithm>

namespace regatta {
namespace {

std::string text_of(const RankMemory& memory) {
  return Json{{"needed", memory.needed}, {"freed", memory.freed}, {"shared", memory.shared}}.dump();
}

RankMemory memory_from(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at("needed").get<std::int64_t>(), json.at("freed").get<std::int64_t>(),
          json.at("shared").get<std::vector<std::string>>()};
}

}  // namespace

std::vector<MemoryLimit> limits_of_rank(std::vector<MemoryLimit> limits,
                                        const std::vector<RankMemory>& all, std::size_t rank) {
  const RankMemory& own = all[rank];
  for (MemoryLimit& limit : limits) {
    double needed = 0;
    std::int64_t sharing = 0, left = limit.left;
    for (const RankMemory& each : all) {
      const bool shares =
          &each == &own || (!limit.shared_as.empty() &&
                            std::ranges::find(each.shared, limit.shared_as) != each.shared.end());
      if (!shares) continue;
      needed += static_cast<double>(each.needed);
      left += each.freed;
      ++sharing;
    }
    limit.left = left;
    if (sharing < 2 || needed <= 0) continue;
    limit.left = static_cast<std::int64_t>(static_cast<double>(left) *
                                           (static_cast<double>(own.needed) / needed));
    limit.name = "this rank's part of " + limit.name + ", which " + std::to_string(sharing) +
                 " ranks share,";
  }
  return limits;
}

std::string memory_shortage(Ranks& ranks, const TrainJob& job, const Plan& plan, Purpose purpose,
                            std::size_t freed) {
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const std::vector<MemoryLimit> limits = memory_limits();
  std::string failure;
  RankMemory own{0, static_cast<std::int64_t>(freed), {}};
  for (const MemoryLimit& limit : limits)
    if (!limit.shared_as.empty()) own.shared.push_back(limit.shared_as);
  try {
    own.needed = static_cast<std::int64_t>(memory_needed(job, plan, purpose));
  } catch (const std::exception& error) {  // the others wait for this rank's word
    failure = error.what();
  }
  const std::vector<std::string> told = ranks.gather(text_of(own));
  if (!failure.empty()) return failure;
  std::vector<RankMemory> all;
  for (const std::string& each : told) all.push_back(memory_from(each));
  try {
    require_memory(job, plan, limits_of_rank(limits, all, rank), purpose);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  return failure;
}

}  // namespace regatta
