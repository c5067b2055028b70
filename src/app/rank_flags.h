// Flags of runs over several ranks.
#pragma once

#include <optional>
#include <string>

#include "app/command.h"

namespace regatta::app {

struct RankFlags {
  std::optional<std::string> update, replan;
};
void add_rank_flags(CLI::App& app, RankFlags& flags);

}  // namespace regatta::app
