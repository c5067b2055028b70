#include "tasks/footprint.h"

#include <algorithm>
#include <map>

namespace regatta {

GroupId home_of(const Blueprint& blueprint, BufferKind kind, std::uint32_t first,
                std::uint32_t second) {
  switch (kind) {
    case BufferKind::samples:
    case BufferKind::border:
    case BufferKind::border_gradient:
    case BufferKind::delivered:
      return blueprint.chunks[first].group;
    case BufferKind::arena:
    case BufferKind::partials:
      return blueprint.chunks[second].group;
    case BufferKind::gradient:
      return blueprint.group_of_slot(second);
    case BufferKind::statistics:
      return blueprint.group_samples > 0 ? blueprint.chunks[second].group : blueprint.owner;
    case BufferKind::packed:
    case BufferKind::group_sum:
      return GroupId{second};
    case BufferKind::state:
    case BufferKind::parameters:
    case BufferKind::moment:
    case BufferKind::average:
    case BufferKind::squares:
    case BufferKind::clip:
    case BufferKind::gathered_sums:
    case BufferKind::running_sum:
      break;
  }
  return blueprint.owner;
}

std::string_view buffer_kind_name(BufferKind kind) {
  switch (kind) {
    case BufferKind::samples:
      return "samples";
    case BufferKind::border:
      return "values between segments";
    case BufferKind::border_gradient:
      return "gradients between segments";
    case BufferKind::arena:
      return "values inside segments";
    case BufferKind::partials:
    case BufferKind::statistics:
    case BufferKind::state:
    case BufferKind::gathered_sums:
      return "batch statistics";
    case BufferKind::parameters:
      return "parameters";
    case BufferKind::moment:
      return "the optimizer's moments";
    case BufferKind::average:
      return "averaged parameters";
    case BufferKind::gradient:
    case BufferKind::group_sum:
    case BufferKind::running_sum:
      return "gradients";
    case BufferKind::delivered:
      return "results";
    case BufferKind::squares:
    case BufferKind::clip:
      return "clipping";
    case BufferKind::packed:
      return "packed parameters";
  }
  return "";
}

std::vector<Footprint> sorted_footprints(const FootprintSums& sums) {
  std::vector<Footprint> found;
  for (const auto& [key, bytes] : sums)
    found.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), bytes});
  std::ranges::stable_sort(found, [](const Footprint& a, const Footprint& b) {
    return a.group != b.group ? a.group < b.group : a.bytes > b.bytes;
  });
  return found;
}

std::map<BufferKey, BufferUsers> buffer_users(const Blueprint& blueprint,
                                              const std::vector<const TaskList*>& lists) {
  std::map<BufferKey, BufferUsers> users;
  for (const TaskList* list : lists)
    for (const Task& task : list->tasks) {
      const bool gpu = !task.on_host && blueprint.group(task.group).kind == DeviceKind::cuda;
      for (const Access& access : task.accesses) {
        const Buffer& buffer = list->buffers[access.buffer];
        BufferUsers& found = users[{buffer.kind, buffer.first, buffer.second}];
        if (gpu)
          found.gpus.insert(task.group);
        else
          found.host = true;
      }
    }
  return users;
}

std::map<BufferKey, BufferUsers> buffer_users(const Blueprint& blueprint, bool training) {
  std::vector<ListKind> kinds{ListKind::prepare, ListKind::evaluate};
  if (training)
    kinds.insert(kinds.end(), {ListKind::train, ListKind::first, ListKind::middle, ListKind::last});
  std::vector<TaskList> lists;
  std::vector<const TaskList*> pointers;
  for (const ListKind kind : kinds) lists.push_back(lower(blueprint, kind));
  for (const TaskList& list : lists) pointers.push_back(&list);
  return buffer_users(blueprint, pointers);
}

std::vector<Footprint> footprints(const Blueprint& blueprint,
                                  const std::vector<const TaskList*>& lists) {
  const std::map<BufferKey, BufferUsers> users = buffer_users(blueprint, lists);
  std::map<BufferKey, std::size_t> largest;
  FootprintSums sums;
  for (const TaskList* list : lists)
    for (const Buffer& buffer : list->buffers) {
      const BufferKey key{buffer.kind, buffer.first, buffer.second};
      std::size_t& known = largest[key];
      const std::size_t bytes = buffer.bytes * static_cast<std::size_t>(buffer.copies);
      if (bytes <= known) continue;
      const GroupId home = home_of(blueprint, buffer.kind, buffer.first, buffer.second);
      const bool home_is_gpu = blueprint.group(home).kind == DeviceKind::cuda;
      const auto found = users.find(key);
      const BufferUsers of_buffer = found == users.end() ? BufferUsers{} : found->second;
      std::set<GroupId> gpus = of_buffer.gpus;
      if (home_is_gpu) gpus.insert(home);
      for (const GroupId gpu : gpus) sums[{gpu, false, buffer.kind}] += bytes - known;
      if (!home_is_gpu || of_buffer.host) sums[{home, home_is_gpu, buffer.kind}] += bytes - known;
      known = bytes;
    }
  return sorted_footprints(sums);
}

std::size_t peak_bytes(const Blueprint& blueprint, const std::vector<Footprint>& footprints,
                       GroupId group) {
  const bool cpu = blueprint.group(group).kind == DeviceKind::cpu;
  std::size_t bytes = 0;
  for (const Footprint& each : footprints) {
    const bool on_node = each.host || blueprint.group(each.group).kind == DeviceKind::cpu;
    if (cpu ? on_node : each.group == group && !each.host) bytes += each.bytes;
  }
  return bytes;
}

}  // namespace regatta
