#include "report/scaling.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "platform/disturbance.h"
#include "report/text.h"

namespace regatta {
namespace {

double images_per_second(const ScalingSample& sample, std::size_t first_step) {
  const auto begin = sample.step_seconds.begin() + static_cast<std::ptrdiff_t>(first_step);
  const double seconds = std::accumulate(begin, sample.step_seconds.end(), 0.0);
  const auto steps = static_cast<double>(sample.step_seconds.end() - begin);
  return seconds > 0 ? steps * sample.images_per_step / seconds : 0;
}

ScalingRow row_of(ScalingCell cell, std::uint64_t seed) {
  ScalingRow row;
  std::vector<double> seconds, rates;                       // of an image, of a step
  std::vector<double> warmup_steps, warmup_seconds, taken;  // of each run
  for (const ScalingSample& sample : cell.samples) {
    const WarmUp warm_up = find_warm_up(sample.step_seconds);
    row.repeats.push_back(images_per_second(sample, warm_up.steps));
    for (std::size_t i = warm_up.steps; i < sample.step_seconds.size(); ++i) {
      seconds.push_back(sample.step_seconds[i] / sample.images_per_step);
      rates.push_back(1 / seconds.back());
    }
    warmup_steps.push_back(static_cast<double>(warm_up.steps));
    warmup_seconds.push_back(warm_up.seconds);
    if (sample.taken_by_others) taken.push_back(*sample.taken_by_others);
    row.course = std::max(row.course, warm_up.course);
  }
  row.images_per_s = median_of(row.repeats);
  row.median_images_per_s = median_of(rates);
  // Runs differ more from each other than their steps do, so steps speak only where runs are few.
  if (row.repeats.size() >= 3) {
    row.interval = median_interval(row.repeats);
  } else {
    const Interval image = series_interval(seconds, seed);
    row.interval = {1 / image.high, 1 / image.low};
  }
  row.taken_by_others = mean_if_any(taken);
  row.warmup_steps = median_of(warmup_steps);
  row.warmup_seconds = median_of(warmup_seconds);
  if (!cell.groups_alone.empty()) {
    row.ideal = std::accumulate(cell.groups_alone.begin(), cell.groups_alone.end(), 0.0);
    if (*row.ideal > 0) row.ideal_efficiency = 100 * row.images_per_s / *row.ideal;
  }
  row.cell = std::move(cell);
  return row;
}

void compare(ScalingSeries& series) {
  std::ranges::stable_sort(series.rows, {}, [](const ScalingRow& row) { return row.cell.workers; });
  const ScalingRow& base = series.rows.front();
  const double base_rate = base.images_per_s, least = base.cell.workers;
  for (ScalingRow& row : series.rows) {
    // Without a run on one worker, the fewest workers are taken to scale perfectly.
    row.speedup = base_rate > 0 ? least * row.images_per_s / base_rate : 0;
    row.efficiency = 100 * row.speedup / row.cell.workers;
  }
  std::vector<AmdahlRuns> runs;
  for (const ScalingRow& row : series.rows) runs.push_back({row.cell.workers / least, row.repeats});
  series.amdahl = fit_amdahl(runs);
}

std::string heading(const ScalingResult& result, const ScalingSeries& series) {
  return result.model + ", " + series.input + ", batch " + std::to_string(series.batch) + ", " +
         series.scheduler;
}

std::string sentence(const AmdahlFit& fit) {
  return formatted("Amdahl: %.1f%% serial (%.1f%% to %.1f%%)", 100 * fit.serial_fraction,
                   100 * fit.interval.low, 100 * fit.interval.high);
}

// What one run says of the serial fraction, and how sure that is: errors of 1 / speedup are shares
// of it, so many workers tell more than few.
struct Vote {
  double serial = 0, weight = 0;
};

// 1 / speedup - 1 / N = serial * (1 - 1 / N), for each run with more workers than the first row's;
// speedup is against `base`.
std::vector<Vote> votes_of(const std::vector<AmdahlRuns>& rows, double base) {
  std::vector<Vote> votes;
  for (const AmdahlRuns& row : rows)
    for (const double rate : row.rates) {
      if (row.workers <= 1 || base <= 0 || rate <= 0) continue;
      const double x = 1 - 1 / row.workers, speedup = rate / base;
      votes.push_back({(1 / speedup - 1 / row.workers) / x, x * speedup});
    }
  return votes;
}

Interval interval_of(const std::vector<Vote>& votes) {
  std::vector<double> fractions;
  for (const Vote& vote : votes) fractions.push_back(vote.serial);
  return median_interval(std::move(fractions));
}

double weighted_median(std::vector<Vote> votes) {
  std::ranges::sort(votes, {}, &Vote::serial);
  double left = 0;
  for (const Vote& vote : votes) left += vote.weight / 2;
  for (const Vote& vote : votes)
    if ((left -= vote.weight) <= 0) return vote.serial;
  return votes.back().serial;
}

// "too few tasks 31%, tail 8%"
std::string causes_text(const Json& causes) {
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, share] : causes.items()) sorted.emplace_back(share.get<double>(), name);
  std::ranges::sort(sorted, std::greater{});
  std::string text;
  for (const auto& [share, name] : sorted)
    if (share >= 0.01)
      text += (text.empty() ? "" : ", ") + name + formatted(" %.0f%%", 100 * share);
  return text;
}

Json row_json(const ScalingRow& row) {
  Json json{{"workers", row.cell.workers},
            {"batch", row.cell.batch},
            {"input", row.cell.input},
            {"scheduler", row.cell.scheduler},
            {"images_per_s", row.images_per_s},
            {"median_images_per_s", row.median_images_per_s},
            {"interval", {row.interval.low, row.interval.high}},
            {"repeats", row.repeats},
            {"speedup", row.speedup},
            {"efficiency", row.efficiency},
            {"warmup_steps", row.warmup_steps},
            {"warmup_s", row.warmup_seconds},
            {"course", course_name(row.course)},
            {"taken_by_others", row.taken_by_others ? Json(*row.taken_by_others) : Json()}};
  if (row.ideal) {
    json["groups_alone"] = row.cell.groups_alone;
    json["ideal_images_per_s"] = *row.ideal;
    json["ideal_efficiency"] = row.ideal_efficiency ? Json(*row.ideal_efficiency) : Json();
  }
  if (!row.cell.idle_causes.is_null()) json["idle_causes"] = row.cell.idle_causes;
  return json;
}

Json amdahl_json(const std::optional<AmdahlFit>& fit) {
  return fit ? Json(fit->serial_fraction) : Json();
}
Json amdahl_interval_json(const std::optional<AmdahlFit>& fit) {
  return fit ? Json{fit->interval.low, fit->interval.high} : Json();
}

}  // namespace

double throughput_of(const ScalingSample& sample) {
  return images_per_second(sample, find_warm_up(sample.step_seconds).steps);
}

std::optional<AmdahlFit> fit_amdahl(const std::vector<AmdahlRuns>& rows) {
  if (rows.empty()) return std::nullopt;
  const std::vector<double>& base = rows.front().rates;
  std::vector<Vote> votes = votes_of(rows, median_of(base));
  if (votes.empty()) return std::nullopt;
  // Speed-ups depend on the first row's median, so the interval also covers the fractions found
  // when that median lies at either end of its own interval.
  const double serial = weighted_median(std::move(votes));
  const Interval bases = median_interval(base);
  const double low = interval_of(votes_of(rows, bases.low)).low;
  const double high = interval_of(votes_of(rows, bases.high)).high;
  const auto share = [](double value) { return std::clamp(value, 0.0, 1.0); };
  return AmdahlFit{share(serial), {share(std::min(low, serial)), share(std::max(high, serial))}};
}

ScalingResult analyse_scaling(std::string model, std::vector<ScalingCell> cells) {
  ScalingResult result{std::move(model), {}};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const ScalingCell& cell = cells[i];
    auto found = std::ranges::find_if(result.series, [&](const ScalingSeries& series) {
      return series.scheduler == cell.scheduler && series.input == cell.input &&
             series.batch == cell.batch;
    });
    if (found == result.series.end())
      found = result.series.insert(found, {cell.scheduler, cell.input, cell.batch, {}, {}});
    found->rows.push_back(row_of(std::move(cells[i]), i));
  }
  for (ScalingSeries& series : result.series) compare(series);
  return result;
}

std::string scaling_table(const ScalingResult& result) {
  std::string text;
  for (const ScalingSeries& series : result.series) {
    text += heading(result, series) + "\n";
    text += "workers   images/s       interval   median  speedup  efficiency  warm-up\n";
    for (const ScalingRow& row : series.rows) {
      text += formatted("%7d %10.1f %6.0f - %6.0f %8.1f %8.2f %10.1f%%  %.0f steps, %.2f s",
                        row.cell.workers, row.images_per_s, row.interval.low, row.interval.high,
                        row.median_images_per_s, row.speedup, row.efficiency, row.warmup_steps,
                        row.warmup_seconds);
      if (row.course == Course::unsteady) text += ", unsteady";
      if (row.ideal_efficiency)
        text += formatted("; %.1f%% of the groups' own %.1f", *row.ideal_efficiency, *row.ideal);
      text += "\n";
      if (const std::string disturbed = disturbed_text(row.taken_by_others); !disturbed.empty())
        text += "          " + disturbed + "\n";
      if (!row.cell.idle_causes.is_null())
        text += "          idle: " + causes_text(row.cell.idle_causes) + "\n";
    }
    if (series.amdahl) text += sentence(*series.amdahl) + "\n";
    text += "\n";
  }
  return text;
}

std::string scaling_csv(const ScalingResult& result) {
  std::string text =
      "model,input,batch,scheduler,workers,images_per_s,interval_low,interval_high,"
      "median_images_per_s,speedup,efficiency,warmup_steps,warmup_s,course,ideal_images_per_s,"
      "ideal_efficiency,taken_by_others\n";
  for (const ScalingSeries& series : result.series)
    for (const ScalingRow& row : series.rows) {
      text += result.model + "," + series.input + "," + std::to_string(series.batch) + "," +
              series.scheduler;
      text +=
          formatted(",%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,", row.cell.workers,
                    row.images_per_s, row.interval.low, row.interval.high, row.median_images_per_s,
                    row.speedup, row.efficiency, row.warmup_steps, row.warmup_seconds);
      text += std::string(course_name(row.course)) + ",";
      if (row.ideal) text += formatted("%.6g", *row.ideal);
      text += ",";
      if (row.ideal_efficiency) text += formatted("%.6g", *row.ideal_efficiency);
      text += ",";
      if (row.taken_by_others) text += formatted("%.6g", *row.taken_by_others);
      text += "\n";
    }
  return text;
}

Json scaling_json(const ScalingResult& result) {
  Json rows = Json::array(), fits = Json::array();
  for (const ScalingSeries& series : result.series) {
    for (const ScalingRow& row : series.rows) rows.push_back(row_json(row));
    fits.push_back({{"input", series.input},
                    {"batch", series.batch},
                    {"scheduler", series.scheduler},
                    {"amdahl_serial_fraction", amdahl_json(series.amdahl)},
                    {"amdahl_interval", amdahl_interval_json(series.amdahl)}});
  }
  Json json{{"model", result.model}, {"rows", rows}, {"fits", fits}};
  // What most readers want: the fit of the only series, or of the first.
  const auto& first = result.series.empty() ? std::nullopt : result.series.front().amdahl;
  json["amdahl_serial_fraction"] = amdahl_json(first);
  json["amdahl_interval"] = amdahl_interval_json(first);
  return json;
}

PageData scaling_page(const ScalingResult& result, const Json& machine) {
  Json all = Json::array(), facts = Json::array();
  for (const ScalingSeries& series : result.series) {
    Json rows = Json::array();
    for (const ScalingRow& row : series.rows) rows.push_back(row_json(row));
    all.push_back({{"name", series.input + ", batch " + std::to_string(series.batch) + ", " +
                                series.scheduler},
                   {"rows", rows},
                   {"amdahl_serial_fraction", amdahl_json(series.amdahl)},
                   {"amdahl_interval", amdahl_interval_json(series.amdahl)}});
  }
  for (const auto& [key, value] : machine.items())
    facts.push_back({key, value.is_string() ? value.get<std::string>() : value.dump()});
  return PageData({{"kind", "scaling"},
                   {"title", "How " + result.model + " scales"},
                   {"subtitle", "images a second of training steps, after warm-up"},
                   {"series", all},
                   {"facts", Json::array({Json{{"name", "Machine"}, {"rows", facts}}})}});
}

std::vector<Turn> interleaved(std::size_t cells, std::size_t repeats, std::uint64_t seed) {
  std::vector<Turn> turns;
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    std::vector<std::size_t> order(cells);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = cells; i > 1; --i)
      std::swap(order[i - 1], order[random_bits(seed, repeat, i) % i]);
    for (const std::size_t cell : order) turns.push_back({cell, repeat});
  }
  return turns;
}

}  // namespace regatta
