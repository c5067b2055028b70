// Loops that the threads of a worker's team share. Alone, a worker runs them as they stand.
#pragma once

#include <algorithm>
#include <cstdint>

namespace regatta::cpu {

// Threads that share this thread's loops: 1, unless it is a worker that has a team.
int team_size();
void set_team_size(int threads);

// Into how many parts to cut `count` items of `elements` values each: one per thread of the team,
// but one alone where waking the others would take longer than the work.
inline int parts_of(std::int64_t count, std::int64_t elements) {
  constexpr std::int64_t least = 4096;
  const int team = team_size();
  if (team == 1 || count * elements < least) return 1;
  return static_cast<int>(std::min<std::int64_t>(team, count));
}

// Calls body(context, part) for every part, on the threads of the team. Throws what the first part
// that threw has thrown.
void run_team(int parts, void (*body)(const void* context, int part), const void* context);

// body(part) for every part. What parts sum up is to be added in the order of parts.
template <class Body>
void parallel_parts(int parts, const Body& body) {
  if (parts == 1) {
    body(0);
    return;
  }
  run_team(
      parts, [](const void* context, int part) { (*static_cast<const Body*>(context))(part); },
      &body);
}

// body(begin, end) for ranges that together are 0 to `count`, of items of `elements` values each.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t elements, const Body& body) {
  const int parts = parts_of(count, elements);
  parallel_parts(parts, [&](int part) { body(count * part / parts, count * (part + 1) / parts); });
}

}  // namespace regatta::cpu
