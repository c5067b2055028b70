// Ids and units are types, so that a segment is never passed where a chunk is meant.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>

namespace regatta {

template <class Tag>
struct Id {
  std::uint32_t value = 0;
  auto operator<=>(const Id&) const = default;
};

using NodeId = Id<struct NodeTag>;            // an operator of the graph, and the value it makes
using ParameterId = Id<struct ParameterTag>;  // a trained tensor
using StateId = Id<struct StateTag>;          // a tensor kept but not trained (running statistics)
using SegmentId = Id<struct SegmentTag>;
using ChunkId = Id<struct ChunkTag>;
using BucketId = Id<struct BucketTag>;  // parameters of one segment that are updated together
using GroupId = Id<struct GroupTag>;    // a device group of the plan

using Seconds = std::chrono::duration<double>;

}  // namespace regatta

template <class Tag>
struct std::hash<regatta::Id<Tag>> {
  std::size_t operator()(const regatta::Id<Tag>& id) const noexcept { return id.value; }
};
