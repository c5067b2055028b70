// In which group's memory a plan's buffers lie, and how many bytes of it they need: known before
// anything is made.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "tasks/task_list.h"

namespace regatta {

using BufferKey = std::tuple<BufferKind, std::uint32_t, std::uint32_t>;  // kind, first, second

// The memories whose tasks access a buffer. It has a copy in each of them; the task that writes one
// copy brings the others up to date before it ends.
struct BufferUsers {
  bool host = false;       // the node's own memory: CPU groups, loading, messages between ranks
  std::set<GroupId> gpus;  // memories of their own
  bool several() const { return gpus.size() + (host ? 1 : 0) > 1; }
};
std::map<BufferKey, BufferUsers> buffer_users(const Blueprint& blueprint,
                                              const std::vector<const TaskList*>& lists);
// In all lists that an executor may be asked for.
std::map<BufferKey, BufferUsers> buffer_users(const Blueprint& blueprint, bool training);

// The group in whose memory a buffer lies: where it is used most.
GroupId home_of(const Blueprint& blueprint, BufferKind kind, std::uint32_t first,
                std::uint32_t second);

// Buffers of one kind in one memory.
struct Footprint {
  GroupId group;      // in whose memory
  bool host = false;  // the copy in main memory of a buffer whose home is a GPU
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
