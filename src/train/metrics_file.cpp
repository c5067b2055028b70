#include "train/metrics_file.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "trace/step_curve.h"
#include "trace/thin.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// Calls `take` with every line and what it holds; it returns false to stop. Lines that hold nothing
// are left out: a crash may have cut the last one, a disk may have damaged others.
template <class Take>
void read_lines(const fs::path& path, const Take& take) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && !take(line, json)) return;
  }
}

bool tells_epoch(const Json& json) {
  const auto found = json.find("epoch");
  return found != json.end() && found->is_number_integer();
}

double loss_in(const Json& epoch) {
  for (const char* key : {"test_loss", "train_loss"})
    if (const auto found = epoch.find(key); found != epoch.end() && found->is_number())
      return *found;
  return 0;
}

// Drops what comes again: later steps, and the epoch if it is still to be reported. Returns how
// many lines are left.
std::size_t drop_after(const fs::path& path, const TrainState& from) {
  if (!fs::exists(path)) return 0;
  std::size_t lines = 0;
  write_file(path, [&](std::ostream& kept) {
    std::int64_t step = 0;
    read_lines(path, [&](const std::string& line, const Json& json) {
      if (const auto found = json.find("step"); found != json.end() && found->is_number_integer())
        step = *found;
      const bool reports_again = tells_epoch(json) && step == from.step && from.seen > 0;
      if (step > from.step || reports_again) return false;
      kept << line << '\n';
      ++lines;
      return true;
    });
  });
  return lines;
}

// Where condensing ends: at the first line about steps after `step`, and before the newest lines,
// whose order tells at which step an epoch ended.
std::size_t lines_up_to(const fs::path& path, std::int64_t step, std::size_t lines) {
  constexpr std::size_t newest = 1000;
  const std::size_t most = lines > newest ? lines - newest : 0;
  std::size_t found = 0;
  read_lines(path, [&](const std::string&, const Json& json) {
    const auto stretch = trace::stretch_of(json);
    if (found == most || (stretch && stretch->step > step)) return false;
    ++found;
    return true;
  });
  return found;
}

}  // namespace

MetricsFile::MetricsFile(const fs::path& folder, const TrainState& from, std::size_t most_lines)
    : path_(folder / metrics_name),
      most_lines_(most_lines),
      lines_(drop_after(path_, from)),
      file_(path_) {}

void MetricsFile::add(const std::string& line) {
  file_.add(line);
  ++lines_;
}

void MetricsFile::sync() { file_.sync(); }

void MetricsFile::condense(std::int64_t step) {
  if (lines_ < condense_at_) return;
  condense_at_ = 2 * lines_;  // where little can be joined, the file is not read at every rest
  const std::size_t end = lines_up_to(path_, step, lines_);
  // Numbers and losses of the epochs, and the last step, in the lines before `end`.
  std::vector<std::int64_t> epochs;
  std::vector<double> losses;
  std::int64_t last_step = 0;
  std::size_t number = 0;
  read_lines(path_, [&](const std::string&, const Json& json) {
    if (number++ == end) return false;
    if (tells_epoch(json)) {
      epochs.push_back(json["epoch"]);
      losses.push_back(loss_in(json));
    } else if (const auto stretch = trace::stretch_of(json)) {
      last_step = stretch->step;
    }
    return true;
  });
  const std::vector<bool> stays = trace::extremes_of_stretches(epochs, losses, most_lines_ / 8);
  // Two neighbours are longer than one line may be, so at most a quarter of the lines are of steps.
  const auto lengths = static_cast<std::int64_t>(most_lines_ / 8);
  const std::int64_t steps_a_line = (last_step + lengths - 1) / lengths;
  std::size_t left = 0;
  try {
    write_file(path_, [&](std::ostream& out) {
      std::optional<trace::StepStretch> first;  // waits for its neighbours
      const auto put = [&](const std::string& line) {
        out << line << '\n';
        ++left;
      };
      const auto put_first = [&] {
        if (first) put(to_json(*first).dump());
        first.reset();
      };
      std::size_t at = 0, epoch = 0;
      read_lines(path_, [&](const std::string& line, const Json& json) {
        if (at++ >= end) {
          put_first();
          put(line);
        } else if (tells_epoch(json)) {
          if (stays[epoch++]) put(line);
        } else if (const auto stretch = trace::stretch_of(json); !stretch) {
          put(line);
        } else if (first && first->steps + stretch->steps <= steps_a_line) {
          first->add(*stretch);
        } else {
          put_first();
          first = stretch;
        }
        return true;
      });
      put_first();
    });
  } catch (const InputError&) {
    return;
  }
  file_ = LineFile(path_);  // the name leads to another file now
  lines_ = left;
  condense_at_ = std::max(most_lines_, 2 * left);
}

}  // namespace regatta
