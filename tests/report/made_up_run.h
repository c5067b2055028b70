// A run folder that nobody ran: run.json, metrics.jsonl and a trace of any number of tasks.
#pragma once

#include <filesystem>

#include "trace/trace.h"

namespace regatta {

// `tasks` tasks of four phases on `workers` workers, in steps, with gaps, predictions and energy.
trace::Record made_up_record(std::int64_t tasks, int workers);

void write_made_up_run(const std::filesystem::path& folder, std::int64_t tasks, int workers);

}  // namespace regatta
