// In which group's memory a plan's buffers lie, and how many bytes of it they need: known before
// anything is made.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "tasks/task_list.h"

namespace regatta {

// The group in whose memory a buffer lies: where it is used most. Samples are loaded in the node's
// memory, and copied to their group if that has another.
GroupId home_of(const Blueprint& blueprint, BufferKind kind, std::uint32_t first,
                std::uint32_t second);

// Buffers of one kind in one memory.
struct Footprint {
  GroupId group;      // in whose memory
  bool host = false;  // in the node's memory, though the group is a GPU: loaded samples
  BufferKind kind = BufferKind::samples;
  std::size_t bytes = 0;  // all copies
};

// Bytes by group, whether on its host, and kind; told by group, the largest first.
using FootprintSums = std::map<std::tuple<GroupId, bool, BufferKind>, std::size_t>;
std::vector<Footprint> sorted_footprints(const FootprintSums& sums);

// The footprints of all buffers that these lists name; a buffer that several name counts once. By
// group, the largest first.
std::vector<Footprint> footprints(const Blueprint& blueprint,
                                  const std::vector<const TaskList*>& lists);

// Bytes that a group's own memory holds; a CPU group's is the node's, with the samples of GPUs.
std::size_t peak_bytes(const Blueprint& blueprint, const std::vector<Footprint>& footprints,
                       GroupId group);

std::string_view buffer_kind_name(BufferKind kind);

}  // namespace regatta
