// report.html of a run folder: timeline, idle causes, curves and facts of one run.
#pragma once

#include <filesystem>
#include <vector>

#include "report/page.h"
#include "report/trace_page.h"
#include "trace/step_curve.h"

namespace regatta {

inline constexpr const char* report_name = "report.html";
// The last test class by class, as training leaves it.
inline constexpr const char* test_name = "test.json";

// metrics.jsonl, read again.
struct RunCurves {
  trace::StepCurve steps;
  Json epochs = Json::array();
};
// Lines that are cut or strange are passed over: the run may still be going on.
RunCurves read_curves(const std::filesystem::path& folder);

// Accuracy and answers by class; nothing for more classes than a page shows.
void add_classes(PageData& page, const Json& tested);

// `run` is run.json; `record` and `analysis` may be missing (a run without --trace).
PageData run_page(const std::string& name, const Json& run, const RunCurves& curves,
                  const trace::Record* record, const trace::Analysis* analysis,
                  std::size_t most_tasks = most_page_tasks);

// Reads a run folder, with its trace if there is one, and writes the page. Throws InputError.
// Returns what the traced steps used; nothing without a trace.
std::vector<StepUse> write_report(const std::filesystem::path& folder,
                                  const std::filesystem::path& file);
// The same for the steps `first` to `last` of the trace. Throws InputError if it has none.
void write_report(const std::filesystem::path& folder, const std::filesystem::path& file,
                  std::int64_t first, std::int64_t last);

}  // namespace regatta
