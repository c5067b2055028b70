#include "app/tracing.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>
#include <set>

#include "app/rank_platform.h"
#include "app/rank_run.h"
#include "base/error.h"
#include "base/files.h"
#include "base/version.h"
#include "platform/machine.h"
#include "report/compare.h"
#include "trace/analysis.h"
#include "trace/loading.h"
#include "trace/merge.h"
#include "trace/store.h"
#include "transport/collectives.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t warm_up_steps = 10, window_steps = 20;
// Reading a counter costs some microseconds, more than a small network's step should pay.
constexpr auto energy_interval = std::chrono::milliseconds(20);

std::int64_t step_number(const std::string& flag, const std::string& whole, std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || stop != text.data() + text.size() || value < 1)
    throw InputError(flag + " " + whole + ": give steps counted from 1, such as 11:30");
  return value;
}

// Names of a plan's nodes; those of one name are counted.
std::vector<std::string> lane_nodes(const Plan& plan) {
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const PlanNode& node : plan.nodes) {
    const bool alone = std::ranges::count(plan.nodes, node.name, &PlanNode::name) == 1;
    names.push_back(alone ? node.name : node.name + "-" + std::to_string(seen[node.name]++));
  }
  return names;
}

}  // namespace

void add_trace_flags(CLI::App& app, TraceFlags& flags) {
  app.add_option("--trace", flags.trace,
                 "record tasks (20 steps after warm-up) in the run folder; ops: operators too")
      ->type_name("[ops]")
      ->expected(0, 1);
  app.add_option("--trace-steps", flags.steps, "record the steps A to B")->type_name("A:B");
}

StepRange parse_steps(const std::string& flag, const std::string& text) {
  const std::size_t colon = text.find(':');
  StepRange range;
  range.first = step_number(flag, text, std::string_view(text).substr(0, colon));
  range.last = colon == std::string::npos
                   ? range.first
                   : step_number(flag, text, std::string_view(text).substr(colon + 1));
  if (range.last < range.first)
    throw InputError(flag + " " + text + ": the last step comes before the first");
  return range;
}

StepRange default_steps(std::int64_t steps_done, std::int64_t last_step) {
  const std::int64_t steps = last_step - steps_done;
  const std::int64_t skipped = std::min(warm_up_steps, steps / 2);
  return {steps_done + skipped + 1, std::min(last_step, steps_done + skipped + window_steps)};
}

std::string text_of(const TraceFlags& flags) {
  if (!flags.trace && !flags.steps) return "none";
  return flags.trace.value_or("tasks") + (flags.steps ? " of steps " + *flags.steps : "");
}

Tracing::Tracing(const TraceFlags& flags, const fs::path& folder, Executor& executor,
                 const TrainJob& job, std::int64_t steps_done, std::int64_t last_step)
    : file_(folder / trace::store_name), executor_(executor) {
  if (!flags.trace && !flags.steps) return;
  const std::string depth = flags.trace.value_or("tasks");
  if (depth != "ops" && depth != "tasks" && !depth.empty())
    throw InputError("--trace " + depth + ": use --trace or --trace ops");
  const StepRange range = flags.steps ? parse_steps("--trace-steps", *flags.steps)
                                      : default_steps(steps_done, last_step);
  if (range.first > last_step || range.last <= steps_done)
    throw InputError("--trace-steps " + flags.steps.value_or("") + ": the run does the steps " +
                     std::to_string(steps_done + 1) + " to " + std::to_string(last_step));
  recorder_ = std::make_shared<trace::Recorder>(
      trace::RecorderOptions{.file = file_,
                             .first_step = std::max(range.first, steps_done + 1),
                             .last_step = range.last,
                             .steps_in_flight = job.plan.steps_in_flight,
                             .operators = depth == "ops"});
  recorder_->metadata("regatta", std::string(version));
  recorder_->metadata("host", host_name());
  recorder_->metadata("cpu", cpu_name());
  recorder_->metadata("recipe", job.recipe.to_json().dump(2));
  recorder_->metadata("plan", to_json(job.whole_plan(), job.graph).dump(2));
  recorder_->metadata(trace::clock_begin_key,
                      std::to_string(-recorder_->time(trace::Recorder::Clock::time_point{})));
  nodes_ = lane_nodes(job.whole_plan());
  EnergyOptions energy;
  energy.cpus = job.plan.loaders;
  for (const DeviceGroup* group : groups_of(job.plan)) {
    if (group->kind == DeviceKind::cpu) energy.cpus += group->workers * group->team;
    if (group->kind == DeviceKind::cuda) ++energy.gpus;
  }
  energy_.emplace(energy);
  others_.emplace(DisturbanceOptions{.threads = threads_of(job.plan), .cpus = available_cpus()});
  if (!energy_->remark().empty()) std::cerr << "energy: " << energy_->remark() << "\n";
  if (const std::string remark = executor.record(recorder_); !remark.empty())
    std::cerr << "trace: " << remark << "\n";
}

void Tracing::on_step(const StepRecord& record) {
  if (!recorder_) return;
  const trace::RecorderOptions& options = recorder_->options();
  if (record.step < options.first_step) {
    energy_->read();
    if (record.step + 1 == options.first_step) others_->read();
    return;
  }
  if (record.step > options.last_step) return;
  trace::add_counters(record.loading, record.data_wait * record.duration.count(), record.step,
                      recorder_->time(trace::Recorder::Clock::now()),
                      [&](const trace::Counter& counter) { recorder_->take(counter); });
  unpaid_.push_back(record.step);
  if (record.step == options.last_step ||
      EnergyMeter::Clock::now() - energy_read_ > energy_interval)
    note_counters();
}

// Steps that ended since the last reading share its joules alike.
void Tracing::note_counters() {
  energy_read_ = EnergyMeter::Clock::now();
  const std::vector<Energy> energies = energy_->read(energy_read_);
  const std::optional<double> taken = others_->read(energy_read_);
  for (const std::int64_t step : unpaid_) {
    if (taken)
      recorder_->take(trace::Counter{trace::taken_counter, "share", "measured", step,
                                     recorder_->time(energy_read_), *taken});
    for (const Energy& each : energies)
      recorder_->take(trace::Counter{
          "energy " + each.name, "J", each.measured ? "measured" : "estimate", step,
          recorder_->time(energy_read_), each.joules / static_cast<double>(unpaid_.size())});
  }
  unpaid_.clear();
}

void Tracing::on_epoch(const EpochRecord& record) {
  if (recorder_)
    recorder_->take(
        trace::Mark{"epoch", record.epoch, recorder_->time(trace::Recorder::Clock::now())});
}

void Tracing::match_clocks(Ranks& ranks) {
  if (!recorder_) return;
  (clocks_before_.empty() ? clocks_before_ : clocks_after_) = measure_clocks(
      *ranks.transport(), steady_nanoseconds, [&](int rank) { return ranks.lost(rank); });
}

void Tracing::measure_links(Ranks& ranks) {
  if (!recorder_) return;
  const std::string network = measure_network(ranks, file_.parent_path());
  if (ranks.first()) recorder_->metadata(network_key, network);
}

void Tracing::close_store() {
  if (!unpaid_.empty()) note_counters();
  executor_.end_record();
  recorder_->metadata(peak_bytes_key, std::to_string(executor_.buffer_bytes()));
  recorder_->finish();
}

void Tracing::gather_stores(Ranks& ranks) {
  match_clocks(ranks);
  std::string store;
  on_all_ranks(&ranks, [&] {
    if (!ranks.first()) store = read_file(file_);
  });
  const std::vector<std::string> stores =
      texts_on_first(*ranks.transport(), store, [&](int rank) { return ranks.lost(rank); });
  if (!ranks.first()) return;
  std::vector<trace::NodeRecord> records;
  std::set<int> machines;  // of the records so far
  for (std::size_t r = 0; r < stores.size(); ++r) {
    if (r > 0 && stores[r].empty()) {
      missing_ += (missing_.empty() ? "" : ", ") + ranks.names()[r];
      continue;
    }
    fs::path file = file_;
    if (r > 0) {
      file += ".rank-" + std::to_string(r);
      write_file(file, stores[r]);
    }
    trace::NodeRecord& node = records.emplace_back();
    node.record = trace::read_store(file);
    node.node = nodes_[r];
    const ClockOffset &before = clocks_before_[r], &after = clocks_after_[r];
    node.clock = {before.at, before.offset, after.at, after.offset,
                  std::max(before.error, after.error)};
    node.shares_machine = !machines.insert(ranks.machines()[r]).second;
    if (r > 0) fs::remove(file);
  }
  trace::write_store(file_, trace::merged(std::move(records)));
}

std::string Tracing::finish(Ranks* ranks) {
  if (!recorder_) return "";
  on_all_ranks(ranks, [&] { close_store(); });
  if (ranks) gather_stores(*ranks);
  recorder_.reset();
  if (ranks && !ranks->first()) return "";
  const trace::Record record = trace::read_store(file_);
  if (record.tasks.empty()) return "trace: the run ended before the steps that were to be recorded";
  trace::write_analysis(file_, record);
  const trace::Analysis found = trace::analyse(record, trace::whole_window(record));
  char text[160];
  std::snprintf(text, sizeof text,
                "trace: %lld tasks of %lld steps, %.0f%% of the best possible speed; regatta trace "
                "or regatta doctor tells more",
                static_cast<long long>(found.tasks), static_cast<long long>(found.steps),
                100 * found.efficiency());
  return text + (missing_.empty() ? "" : "; records are missing of " + missing_);
}

}  // namespace regatta::app
