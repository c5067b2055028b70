#include "trace/loading.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <utility>

#include "base/shell_word.h"

namespace regatta::trace {
namespace {

struct Stage {
  const char* name;
  double LoadingTimes::*seconds;
};
// In the order of LoadStage.
constexpr std::array stages{
    Stage{"reading", &LoadingTimes::reading}, Stage{"decoding", &LoadingTimes::decoding},
    Stage{"transforms", &LoadingTimes::transforms}, Stage{"wire", &LoadingTimes::wire},
    Stage{"other", &LoadingTimes::other}};
constexpr const char* disk_counter = "loading: bytes from disk";

std::string counter_of(const Stage& stage) { return std::string("loading: ") + stage.name; }

const Stage& stage_of(LoadStage stage) { return stages[static_cast<std::size_t>(stage)]; }

}  // namespace

LoadStage longest_stage(const LoadingTimes& times) {
  const auto longest =
      std::ranges::max_element(stages, {}, [&](const Stage& each) { return times.*each.seconds; });
  return static_cast<LoadStage>(longest - stages.begin());
}

LoadAdvice advice_on(const LoadingTimes& times, const std::string& data) {
  const LoadStage stage = longest_stage(times);
  const double seconds = times.*stage_of(stage).seconds;
  const bool encoded = data.starts_with("folder:") || data.starts_with("tfrecord:");
  const std::string prepare = "regatta data prepare " + shell_word(data.empty() ? "SPEC" : data);
  const auto takes = [&](const std::string& who) {
    char text[64];
    std::snprintf(text, sizeof text, "%.0f%% of loading", 100 * seconds / times.seconds());
    return who + text;
  };
  switch (stage) {
    case LoadStage::decoding:
      return {takes("decoding takes "), prepare + " decodes once", "--data shards:DIR"};
    case LoadStage::transforms:
      return {takes("transforms take "),
              encoded ? "a cheaper --augment helps, and " + prepare + " resizes once"
                      : std::string("a cheaper --augment or more --workers help"),
              encoded ? "--data shards:DIR" : ""};
    case LoadStage::wire:
      return {takes("the way to the GPU takes "),
              "samples of bytes are a quarter of floats: npy of uint8, and no --mixup", ""};
    case LoadStage::reading: {
      if (times.disk_bytes <= 0)
        return {takes("reading takes "), "all of it was in memory: more --workers help", ""};
      char rate[64];
      std::snprintf(rate, sizeof rate, ", with %.0f MB/s from the disk",
                    1e-6 * times.disk_bytes / std::max(seconds, 1e-9));
      return {takes("reading takes ") + rate,
              "a nearer or faster disk helps, or memory that holds the data", ""};
    }
    case LoadStage::other:
      break;
  }
  return {takes("making samples up takes "), "more --workers help", ""};
}

Json to_json(const LoadingTimes& times) {
  const double all = times.seconds();
  Json json{{"seconds", all}, {"disk_bytes", times.disk_bytes}};
  for (const Stage& stage : stages) json[stage.name] = all > 0 ? times.*stage.seconds / all : 0.0;
  return json;
}

LoadingTimes loading_times(const Json& json) {
  const auto number = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  LoadingTimes times;
  for (const Stage& stage : stages) times.*stage.seconds = number("seconds") * number(stage.name);
  times.disk_bytes = number("disk_bytes");
  return times;
}

void add_counters(const LoadingTimes& times, double waited_s, std::int64_t step, Time time,
                  const std::function<void(Counter)>& take) {
  take({waited_counter, "s", "measured", step, time, waited_s});
  for (const Stage& stage : stages)
    if (times.*stage.seconds > 0)
      take({counter_of(stage), "s", "measured", step, time, times.*stage.seconds});
  if (times.disk_bytes > 0) take({disk_counter, "bytes", "measured", step, time, times.disk_bytes});
}

std::optional<Loading> loading_in(const Record& record, const Window& window) {
  Loading found;
  std::set<std::int64_t> steps;
  double waits = 0;  // counters of them: one of each step and rank
  for (const Counter& counter : record.counters) {
    if (window.last_step > 0 &&
        (counter.step < window.first_step || counter.step > window.last_step))
      continue;
    if (counter.name == waited_counter) {
      steps.insert(counter.step);
      ++waits;
      found.waited_s += counter.value;
    } else if (counter.name == disk_counter) {
      found.times.disk_bytes += counter.value;
    } else if (counter.name.starts_with("loading: ")) {
      for (const Stage& stage : stages)
        if (counter.name == counter_of(stage)) found.times.*stage.seconds += counter.value;
    }
  }
  if (steps.empty()) return std::nullopt;
  found.waited_s *= static_cast<double>(steps.size()) / waits;
  return found;
}

std::string data_of(const Record& record) {
  const auto found = record.metadata.find("recipe");
  if (found == record.metadata.end()) return "";
  const Json recipe = Json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  return recipe.is_object() && recipe.contains("data") && recipe["data"].is_string()
             ? recipe["data"].get<std::string>()
             : "";
}

std::string loader_text(const std::optional<Loading>& loading, double wall_s,
                        const std::string& data) {
  if (!loading) return "loader: not available, the record does not tell";
  if (loading->times.seconds() <= 0 || wall_s <= 0) return "loader: nothing was loaded meanwhile";
  char text[96];
  std::snprintf(text, sizeof text, "loader: steps waited for data %.1f%% of the time; ",
                100 * loading->waited_s / wall_s);
  const LoadAdvice advice = advice_on(loading->times, data);
  return text + advice.what + ": " + advice.fix;
}

Json loader_json(const std::optional<Loading>& loading, double wall_s, const std::string& data) {
  if (!loading || loading->times.seconds() <= 0 || wall_s <= 0) return {};
  const LoadAdvice advice = advice_on(loading->times, data);
  return {{"data_wait", loading->waited_s / wall_s},
          {"loading", to_json(loading->times)},
          {"bottleneck", stage_of(longest_stage(loading->times)).name},
          {"fix", advice.fix}};
}

}  // namespace regatta::trace
