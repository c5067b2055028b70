#include "trace/doctor.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "base/json.h"
#include "trace/loading.h"

namespace regatta::trace {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.095 ? "%.1f%%" : "%.0f%%", 100 * share);
  return text;
}

std::string milliseconds(double time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", 1e3 * time);
  return text;
}

class Doctor {
 public:
  Doctor(const Record& record, const Analysis& found)
      : record_(record), found_(found), facts_(plan_facts(record)) {}

  std::vector<Finding> run(std::size_t most) {
    if (found_.tasks == 0 || found_.wall() == 0) return {};
    balance();
    meetings();
    reductions();
    loading();
    queues();
    transfers();
    stragglers();
    submissions();
    runtime();
    kernels();
    std::ranges::stable_sort(findings_, std::greater{}, &Finding::gain_s);
    if (findings_.size() > most) findings_.resize(most);
    return std::move(findings_);
  }

 private:
  // Workers that only feed GPUs are there to wait: their sleep costs nobody anything.
  bool computes(std::size_t worker) const {
    return record_.workers[worker].group != "host" && trace::computes(record_.workers[worker]);
  }
  double workers() const {
    double count = 0;
    for (std::size_t w = 0; w < record_.workers.size(); ++w) count += computes(w);
    return std::max(1.0, count);
  }
  // Wall time that goes away when this much of all workers' time does.
  double wall_of(Time time) const { return seconds(time) / workers(); }
  Time slept(Cause cause) const {
    Time total = 0;
    for (std::size_t w = 0; w < record_.workers.size(); ++w)
      if (computes(w)) total += found_.workers[w].causes[static_cast<std::size_t>(cause)];
    return total;
  }
  double wall() const { return seconds(found_.wall()); }

  void find(Time time, const std::string& what, const std::string& fix, const std::string& flag) {
    if (time <= 0) return;
    const double gain = wall_of(time);
    findings_.push_back({"Workers " + what + ": " + percent(gain / wall()) + " of their time.", fix,
                         flag, gain, gain / wall()});
  }

  // The task that most of the idle time of these causes is blamed on.
  std::string culprit(std::initializer_list<Cause> causes) const {
    std::vector<Time> blamed(record_.kinds.size());
    for (const IdleInterval& each : found_.idle) {
      if (each.task < 0 || std::ranges::find(causes, each.cause) == causes.end()) continue;
      const auto task = std::ranges::lower_bound(record_.tasks, each.task, {}, &Task::id);
      if (task != record_.tasks.end() && task->id == each.task)
        blamed[static_cast<std::size_t>(task->kind)] += each.end - each.start;
    }
    const auto worst = std::ranges::max_element(blamed);
    if (worst == blamed.end() || *worst == 0) return "";
    return ", most often for '" +
           label(record_.kinds[static_cast<std::size_t>(worst - blamed.begin())]) + "'";
  }

  std::string more_chunks(std::int64_t per_worker) const {
    std::int64_t count = static_cast<std::int64_t>(workers()) * per_worker;
    if (count <= facts_.chunks) count = 2 * facts_.chunks;
    return "--chunks " + std::to_string(facts_.batch > 0 ? std::min(count, facts_.batch) : count);
  }

  void balance() {
    find(slept(Cause::too_few_tasks), "had no task because a step has too few for so many",
         facts_.batch > 0 && facts_.batch <= facts_.chunks
             ? "The batch cannot be cut further; use a larger batch, or fewer workers."
             : "Cut the batch into at least one chunk per worker.",
         facts_.batch > 0 && facts_.batch <= facts_.chunks
             ? "--batch " + std::to_string(2 * facts_.batch)
             : more_chunks(1));
    find(slept(Cause::tail) + slept(Cause::dependency),
         "waited for others to finish" + culprit({Cause::tail, Cause::dependency}),
         "Smaller chunks even out: whoever is done early takes another.", more_chunks(2));
  }

  void meetings() {
    const bool even = facts_.chunks == static_cast<std::int64_t>(workers());
    find(slept(Cause::meeting), "waited where chunks meet (batch norm)" + culprit({Cause::meeting}),
         even ? "Two chunks per worker: while one waits, the other runs."
              : "As many chunks as workers, of equal size, arrive together.",
         "--chunks " + std::to_string(static_cast<std::int64_t>(workers()) * (even ? 2 : 1)));
  }

  void reductions() {
    const bool slots = facts_.reduction.empty() || facts_.reduction == "slots";
    find(slept(Cause::reduction),
         "waited for gradients to be summed and parameters to be updated" +
             culprit({Cause::reduction}),
         slots ? "Let chunks add into one gradient, if they are few; or give each step more work."
               : "Sum in slots, one per lane, which nobody waits for in turn.",
         slots ? "--reduction loop" : "--reduction slots");
  }

  // Finds time lost to loading: waiting for samples, and on workers that also compute, loading.
  void loading() {
    const std::optional<Loading> measured = loading_in(record_, found_.window);
    if (!measured || measured->times.seconds() <= 0) {
      find(slept(Cause::loader), "waited for samples" + culprit({Cause::loader}),
           "Loading is the bottleneck: store samples as arrays that need no decoding.",
           "--data npy:X.npy,Y.npy");
      return;
    }
    const bool feed_gpus = std::ranges::any_of(
        record_.workers, [](const Worker& worker) { return worker.group == "host"; });
    const Time own = feed_gpus ? 0 : static_cast<Time>(1e9 * measured->times.seconds());
    const LoadAdvice advice = advice_on(measured->times, data_of(record_));
    find(slept(Cause::loader) + own,
         std::string(feed_gpus ? "waited for samples" : "loaded samples or waited for them") +
             culprit({Cause::loader}) + "; " + advice.what,
         "To load faster: " + advice.fix + ".", advice.flag.empty() ? "--workers" : advice.flag);
  }

  void queues() {
    std::int64_t late = 0;
    for (const IdleInterval& each : found_.idle)
      late += each.cause == Cause::queued && each.overran;
    find(slept(Cause::queued),
         "slept while ready tasks sat in another worker's queue" + culprit({Cause::queued}) +
             (late > 0 ? ", which ran longer than predicted" : ""),
         "One queue for all does not guess durations.",
         facts_.scheduler == "regatta" ? "--scheduler lws" : "--scheduler regatta");
  }

  // Between nodes it is gradients that travel, whoever has which share.
  void transfers() {
    if (nodes() > 1)
      find(slept(Cause::transfer) + slept(Cause::exchange),
           "waited for gradients on their way between nodes" + culprit({Cause::exchange}),
           "Sum them inside each site first, or exchange less often with a larger batch.",
           "--update hierarchical");
    else
      find(slept(Cause::transfer), "waited for data on its way between memories",
           "Give the group that waits a share that pays for its copies.", "--shares");
  }
  void stragglers() {
    std::map<std::string, Time> waited;  // by the node that came last
    for (const IdleInterval& each : found_.idle) {
      if (each.cause != Cause::straggler || !computes(static_cast<std::size_t>(each.worker)))
        continue;
      const auto task = std::ranges::lower_bound(record_.tasks, each.task, {}, &Task::id);
      if (task != record_.tasks.end() && task->id == each.task)
        waited[record_.workers[static_cast<std::size_t>(task->worker)].node] +=
            each.end - each.start;
    }
    const auto worst =
        std::ranges::max_element(waited, {}, &std::pair<const std::string, Time>::second);
    if (worst == waited.end()) return;
    find(slept(Cause::straggler),
         "waited for the node that came last to an exchange, most often '" + worst->first + "'",
         "Give that node a smaller share: shares by speed let all arrive together.",
         "--shares speed");
  }
  std::size_t nodes() const {
    std::set<std::string> names;
    for (const Worker& worker : record_.workers) names.insert(worker.node);
    return names.size();
  }

  void submissions() {
    const auto count = static_cast<std::int64_t>(workers());
    find(slept(Cause::submission), "waited for tasks to be submitted",
         count > 1 ? "The thread that submits needs time too: leave a CPU to it."
                   : "Steps with more work need fewer submissions.",
         count > 1 ? "--workers " + std::to_string(count - 1)
                   : "--batch " + std::to_string(std::max<std::int64_t>(2, 2 * facts_.batch)));
  }

  void runtime() {
    Time overhead = slept(Cause::scheduling);
    for (std::size_t w = 0; w < found_.workers.size(); ++w)
      if (computes(w)) overhead += found_.workers[w].overhead;
    const double mean =
        found_.tasks > 0 ? seconds(found_.work) / static_cast<double>(found_.tasks) : 0;
    find(overhead,
         "waited for the runtime to hand out tasks (a task lasts " + milliseconds(mean) +
             " on average)",
         "Fewer, larger tasks: gather more operators in a segment, or cut less.",
         facts_.segments > 1
             ? "--segments step"
             : "--chunks " + std::to_string(std::max<std::int64_t>(
                                 1, std::min<std::int64_t>(facts_.chunks / 2,
                                                           static_cast<std::int64_t>(workers())))));
  }

  // Computing itself: what a faster kernel would bring.
  void kernels() {
    const auto costliest = std::ranges::max_element(found_.kinds, {}, &KindUse::busy);
    if (costliest == found_.kinds.end()) return;
    std::map<std::string, Time> by_phase;
    for (const KindUse& use : found_.kinds)
      by_phase[main_phase(record_.kinds[static_cast<std::size_t>(use.kind)])] += use.busy;
    const auto heaviest =
        std::ranges::max_element(by_phase, {}, &std::pair<const std::string, Time>::second);
    const double share = wall_of(heaviest->second) / wall();
    findings_.push_back(
        {"Tasks of phase " + heaviest->first + " keep workers busy for " + percent(share) +
             " of the time; '" + label(record_.kinds[static_cast<std::size_t>(costliest->kind)]) +
             "' is the costliest.",
         "Kernels a tenth faster would gain a tenth of that; operators inside tasks show where.",
         "--trace ops", wall_of(heaviest->second) / 10, share / 10});
  }

  const Record& record_;
  const Analysis& found_;
  PlanFacts facts_;
  std::vector<Finding> findings_;
};

}  // namespace

PlanFacts plan_facts(const Record& record) {
  PlanFacts facts;
  const auto json = [&](const char* key) {
    const auto found = record.metadata.find(key);
    return found == record.metadata.end()
               ? Json()
               : Json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  };
  facts.workers = static_cast<std::int64_t>(worker_count(record));
  for (const TaskKind& kind : record.kinds) {
    if (kind.job != "train") continue;
    facts.chunks = std::max<std::int64_t>(facts.chunks, kind.chunk + 1);
    facts.segments = std::max<std::int64_t>(facts.segments, kind.segment + 1);
  }
  const Json plan = json("plan"), recipe = json("recipe");
  const auto text = [](const Json& from, const char* key) -> std::string {
    return from.is_object() && from.contains(key) && from[key].is_string()
               ? from[key].get<std::string>()
               : "";
  };
  facts.scheduler = text(plan, "scheduler");
  facts.reduction = text(plan, "reduction");
  if (recipe.is_object() && recipe.contains("batch") && recipe["batch"].is_number_integer())
    facts.batch = recipe["batch"].get<std::int64_t>();
  return facts;
}

std::vector<Finding> diagnose(const Record& record, const Analysis& found, std::size_t most) {
  return Doctor(record, found).run(most);
}

}  // namespace regatta::trace
