#include "train/checkpoint_policy.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace regatta {

bool Score::better_than(const Score& other) const {
  if (test_accuracy.has_value() != other.test_accuracy.has_value())
    return test_accuracy.has_value();
  if (test_accuracy != other.test_accuracy) return *test_accuracy > *other.test_accuracy;
  return loss < other.loss;
}

CheckpointPolicy CheckpointPolicy::parse(const std::string& every, int keep,
                                         std::vector<std::int64_t> kept) {
  std::int64_t number = 0;
  const char* end = every.data() + every.size();
  const auto [stop, code] = std::from_chars(every.data(), end, number);
  const std::string unit(stop, end);
  CheckpointPolicy policy;
  policy.keep = keep;
  policy.kept = std::move(kept);
  if (code != std::errc{} || number < 1 || number > 1'000'000'000)
    throw InputError("--checkpoint-every " + every +
                     ": use a number of steps, or a time such as 30s, 10m or 2h");
  if (unit.empty())
    policy.steps = number;
  else if (unit == "s" || unit == "m" || unit == "h")
    policy.time = Seconds(static_cast<double>(number * (unit == "s"   ? 1
                                                        : unit == "m" ? 60
                                                                      : 3600)));
  else
    throw InputError("--checkpoint-every " + every + ": '" + unit +
                     "' is no unit; use s, m or h, or a number of steps");
  return policy;
}

bool CheckpointPolicy::keeps(std::int64_t step) const {
  return std::ranges::find(kept, step) != kept.end();
}

Json CheckpointPolicy::to_json() const {
  Json json{{"every_steps", steps}, {"every_seconds", time.count()}, {"keep", keep}};
  if (!kept.empty()) json["kept"] = kept;
  return json;
}

CheckpointPolicy CheckpointPolicy::from_json(const Json& json) {
  CheckpointPolicy policy{json.at("every_steps"), Seconds(json.at("every_seconds").get<double>()),
                          json.at("keep")};
  if (json.contains("kept")) policy.kept = json["kept"].get<std::vector<std::int64_t>>();
  if (policy.keep < 1) throw InputError("its checkpoints keep " + std::to_string(policy.keep));
  return policy;
}

}  // namespace regatta
