// Which stage limits loading, and what would help.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "regatta/epoch.h"
#include "trace/analysis.h"

namespace regatta::trace {

enum class LoadStage { reading, decoding, transforms, wire, other };
LoadStage longest_stage(const LoadingTimes& times);

struct LoadAdvice {
  std::string what;  // "decoding takes 71% of loading"
  std::string fix;   // "regatta data prepare folder:x decodes once"
  std::string flag;  // of regatta train, to try it; may be empty
};
// `data` as the recipe writes it; "" if it is not known.
LoadAdvice advice_on(const LoadingTimes& times, const std::string& data);

// `seconds` of all workers together (a team is one), of which the shares `reading`, `decoding`,
// `transforms`, `wire` and `other`, and `disk_bytes`.
Json to_json(const LoadingTimes& times);
LoadingTimes loading_times(const Json& json);  // reads what to_json() wrote

// Counters of a record, in seconds of a step unless said otherwise. A record without the counter
// `waited_counter` has none of the others either.
inline constexpr const char* waited_counter = "waited for data";
void add_counters(const LoadingTimes& times, double waited_s, std::int64_t step, Time time,
                  const std::function<void(Counter)>& take);

struct Loading {
  double waited_s = 0;  // seconds that steps waited for their first samples, mean over ranks
  LoadingTimes times;   // of all ranks together
};
// Loading in the steps of a window; none if the record has no such counters.
std::optional<Loading> loading_in(const Record& record, const Window& window);

// How the recipe of a record names the data; "" where it has none.
std::string data_of(const Record& record);

// How much loading delayed a window of `wall_s` seconds: as one line and as numbers. Without
// counters the line says so, and the numbers are null.
std::string loader_text(const std::optional<Loading>& loading, double wall_s,
                        const std::string& data);
Json loader_json(const std::optional<Loading>& loading, double wall_s, const std::string& data);

}  // namespace regatta::trace
