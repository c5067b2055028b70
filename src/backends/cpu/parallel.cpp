#include "backends/cpu/parallel.h"

#include <exception>
#include <vector>

namespace regatta::cpu {
namespace {

thread_local int threads_of_team = 1;

}  // namespace

int team_size() { return threads_of_team; }
void set_team_size(int threads) { threads_of_team = threads; }

void run_team(int parts, void (*body)(const void* context, int part), const void* context) {
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(parts));
  // A loop inside a part is that part's alone.
  const int team = threads_of_team;
  threads_of_team = 1;
  // Always the whole team: OpenMP ends and starts threads whenever their number changes.
#pragma omp parallel for num_threads(team) schedule(static)
  for (int part = 0; part < parts; ++part) {
    try {
      body(context, part);
    } catch (...) {
      thrown[static_cast<std::size_t>(part)] = std::current_exception();
    }
  }
  threads_of_team = team;
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

}  // namespace regatta::cpu
