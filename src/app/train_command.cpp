#include <algorithm>
#include <exception>
#include <iostream>
#include <optional>

#include "app/command.h"
#include "app/cpu_use.h"
#include "app/openmp_environment.h"
#include "app/rank_run.h"
#include "app/train_console.h"
#include "app/train_jobs.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/scratch_folder.h"
#include "base/shell_word.h"
#include "exec/cuda_runner.h"
#include "platform/disturbance.h"
#include "platform/probe.h"
#include "train/checkpoint.h"
#include "train/manifest.h"
#include "train/memory_check.h"
#include "train/rank_memory.h"
#include "train/share_anew.h"
#include "train/weights.h"
#include "tune/choose.h"
#include "tune/recomputation.h"
#include "tune/stored_profile.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

// On standard error, when all that can be wrong has been checked: how many CPUs the plan uses of
// how many, and why not all.
void tell_cpus(const TrainFlags& flags, const TrainJob& job) {
  const std::string asked = worker_source(flags.job.workers);
  std::cerr << cpu_line(threads_of(job.plan), cpu_limits(), asked.empty() ? "the plan" : asked,
                        removed_openmp_variables())
            << "\n";
}

// On standard error: what was asked for that concerns several ranks alone.
void tell_nothing_travels(const TrainFlags& flags, const Recipe& recipe) {
  for (const auto& [flag, given] :
       {std::pair{"--update", flags.ranks.update}, {"--replan", flags.ranks.replan}})
    if (given)
      std::cerr << flag << " " << *given
                << " concerns several ranks: this run is a single process, and does without\n";
  if (recipe.wire_precision != Precision::fp32)
    std::cerr << "--wire-precision " << precision_name(recipe.wire_precision)
              << " concerns gradients that travel between ranks: this run is a single process, and "
                 "rounds none\n";
}

// Where the new run starts: at its first step, or where --from says.
TrainState start_afresh(const TrainFlags& flags, const TensorFile& init, const TrainJob& job,
                        const TrainGoal& goal, Executor& executor) {
  initialise_weights(executor, job.recipe.seed);
  if (job.weights) set_weights(executor, *job.weights);
  if (flags.init) set_weights(executor, init, *flags.init);
  if (!flags.from) return {};
  if (const std::optional<std::string> fault = manifest_fault(*flags.from))
    throw InputError("--from " + *flags.from + ": this is no checkpoint: " + *fault);
  const TrainState state = load_checkpoint(*flags.from, executor);
  if (state.step >= goal.last_step)
    throw InputError("--from " + *flags.from + ": it has done " + std::to_string(state.step) +
                     " steps, and the run ends after " + std::to_string(goal.last_step) +
                     "; ask for more with --epochs or --steps");
  return state;
}

// Where the run stood when it was left. What the user should know of it is said if `speaks`.
TrainState go_on(const TrainFlags& flags, const TrainJob& job, const TrainGoal& goal,
                 Executor& executor, bool speaks = true) {
  const fs::path folder = *flags.resume;
  const auto say = [&](const std::string& text) {
    if (speaks) std::cerr << text << "\n";
  };
  if (!has_checkpoints(folder)) {
    say("'" + folder.string() + "' has no checkpoint yet: starting from its first step");
    return start_afresh(flags, {}, job, goal, executor);
  }
  std::vector<std::string> damaged;
  const fs::path checkpoint = latest_checkpoint(folder, &damaged);
  for (const std::string& text : damaged) say(text + "; going on from " + checkpoint.string());
  const TrainState state = load_checkpoint(checkpoint, executor);
  const bool epoch_unreported =
      state.step == goal.last_step && state.seen == job.data->info().count;
  if (state.step >= goal.last_step && !epoch_unreported)
    throw InputError("'" + folder.string() + "' has already done " + std::to_string(state.step) +
                     " of " + std::to_string(goal.last_step) +
                     " steps; ask for more with --epochs or --steps");
  return state;
}

// Less than an epoch is trained to try something: then a whole test is only made for those who ask
// for one, now or when the run began.
bool tests(const TrainFlags& flags, const TrainJob& job, const TrainGoal& goal) {
  if (!job.test) return false;
  const bool asked =
      flags.job.test || absolute_spec(job.test->info().spec) != absolute_spec(job.recipe.data);
  return asked || goal.last_step >= steps_per_epoch(job.recipe, *job.data);
}

// For ranks that neither print nor write; they record.
class QuietObserver : public TrainObserver {
 public:
  explicit QuietObserver(Tracing& tracing) : tracing_(tracing) {}
  void on_step(const StepRecord& record) override { tracing_.on_step(record); }
  bool stop() override { return caught_signal() != 0; }

 private:
  Tracing& tracing_;
};

// The record that --trace asks for, on this rank or alone.
void begin_trace(std::optional<Tracing>& tracing, Ranks* ranks, const TrainFlags& flags,
                 const fs::path& folder, Executor& executor, const TrainJob& job,
                 const TrainGoal& goal) {
  if (ranks) {
    ranks->require_same("--trace", text_of(flags.trace));
    ranks->require_same("--replan", replans(flags) ? "on" : "off");
  }
  on_all_ranks(ranks, [&] {
    tracing.emplace(flags.trace, folder, executor, job, goal.from.step, goal.last_step);
  });
  if (!ranks) return;
  tracing->measure_links(*ranks);
  tracing->match_clocks(*ranks);
}

// Throws InputError unless all ranks stand at the same step, with the same weights if these came
// from files of their own.
void require_same_start(Ranks& ranks, const TrainFlags& flags, const TrainJob& job,
                        const TrainGoal& goal, const Executor& executor) {
  ranks.require_same("gone on from step", std::to_string(goal.from.step));
  if (!flags.init && !flags.from && !flags.resume && !job.weights) return;
  std::string checksums;
  for (const TensorFile& file : {weights_of(executor), optimizer_state_of(executor)})
    for (const NamedTensor& tensor : file.tensors)
      checksums += tensor.name + " " + std::to_string(crc32c(tensor.bytes)) + "\n";
  ranks.require_same("started from weights with checksum", std::to_string(crc32c(checksums)));
}

// What the ranks after the first do: they train and record, and leave all else to that one.
int follow_first_rank(Ranks& ranks, const TrainFlags& flags, const TensorFile& init, TrainJob& job,
                      TrainGoal goal, std::optional<Executor>& made) {
  Executor& executor = *made;
  on_all_ranks(&ranks, [&] {
    goal.from = flags.resume ? go_on(flags, job, goal, executor, /*speaks=*/false)
                             : start_afresh(flags, init, job, goal, executor);
  });
  require_same_start(ranks, flags, job, goal, executor);
  if (flags.save_gradients) goal.after_first_step = [] {};  // all collect the first step alike
  std::optional<ScratchFolder> own;
  on_all_ranks(&ranks, [&] { own.emplace("rank"); });
  std::optional<Tracing> tracing;
  begin_trace(tracing, &ranks, flags, own->path(), executor, job, goal);
  QuietObserver observer(*tracing);
  NewShares new_shares(ranks, job, made, rank_request(flags), {});
  if (replans(flags)) goal.share_anew = [&](std::int64_t step) { new_shares.share_anew(step); };
  train_with_others(
      &ranks, made,
      [&] {
        const StopOnSignals watch;
        train(executor, job.recipe, job.data, tests(flags, job, goal) ? job.test : nullptr, goal,
              observer);
      },
      [&] {
        return flags.resume ? "; go on with: regatta train --resume " + shell_word(*flags.resume)
                            : std::string();
      });
  ranks.training_is_over();
  tracing->finish(&ranks);
  ranks.part(0);
  return 0;
}

// Unless shares were made anew, a run goes on with the devices of its plan.
void require_devices_of(const std::string& run, const TrainJob& job) {
  if (!gpu_of(job.plan) || why_not([] { require_cuda(); }).empty()) return;
  throw InputError(run +
                   " was planned for a GPU, and there is none to use here; to train on from its "
                   "weights without one: regatta train --from " +
                   latest_checkpoint(run).string() + " --devices cpu --model " + job.recipe.model +
                   " --data " + job.recipe.data);
}

}  // namespace

int run_train(std::span<const char* const> arguments) {
  CLI::App app("Trains a network as a task graph on StarPU.", "regatta train");
  TrainFlags flags;
  declare(app, flags);
  if (!parse(app, arguments)) return 0;

  const std::unique_ptr<Ranks> ranks = Ranks::join();
  TensorFile init;
  AskedRun asked;
  on_all_ranks(ranks.get(), [&] {
    if (flags.init && flags.from)
      throw InputError("--init and --from exclude each other; give one");
    if (flags.init && !flags.resume) init = read_safetensors(*flags.init);
    asked = asked_run(app, ranks ? flags_of_rank(flags) : flags, init, ranks != nullptr);
  });
  std::string exchange;  // what is predicted of it
  if (ranks && flags.placement.plan) {
    const std::string nodes = follow_plan(*ranks, asked.planned.job);
    on_all_ranks(ranks.get(), [&] { slow_down(asked.planned.job.plan, flags.placement.slow); });
    if (ranks->first()) std::cerr << nodes << "\n";
  } else if (ranks)
    exchange = share_among(*ranks, asked.planned.job, rank_request(flags));
  else if (flags.resume && asked.planned.job.plan.nodes.size() > 1)
    gather_on_one(asked.planned.job, flags.job.workers.value_or(default_workers()));
  const TrainJob& job = asked.planned.job;
  TrainGoal& goal = asked.goal;
  on_all_ranks(ranks.get(), [&] {
    if (flags.resume) require_devices_of(*flags.resume, job);
    require_runnable(job);
    if (ranks) replans(flags);
  });
  Json whole_run;
  on_all_ranks(ranks.get(), [&] {
    whole_run = {{"last step", goal.last_step},
                 {"test", tests(flags, job, goal) ? job.test->identity() : Json()},
                 {"checkpoint every so many steps", asked.policy.steps},
                 {"checkpoints kept", asked.policy.kept}};
  });
  if (ranks) ranks->require_same_values("the run", whole_run);
  if (flags.explain && ranks && !ranks->first()) return 0;
  if (flags.explain) {
    const std::optional<Choice>& choice = asked.planned.choice;
    std::cout << (choice ? explain(*choice)
                         : "nothing was chosen by predicted times: see --granularity\n");
    const Json predicted = job.predicted_step ? Json(job.predicted_step->count()) : Json();
    write_json_result(flags.json_file, {{"recipe", job.recipe.to_json()},
                                        {"plan", to_json(job.plan, job.graph)},
                                        {"predicted_step_s", predicted}});
    return 0;
  }
  const std::optional<PlanOptions>& options = asked.planned.options;
  const auto check = [&] { require_memory(job, job.plan); };
  if (ranks)
    ranks->agree(memory_shortage(*ranks, job, job.plan,
                                 ranks->first() ? Purpose::saved_training : Purpose::training));
  else if (!options)
    check();  // the plan of a file
  else
    suggest_recompute(
        job, *options, [&] { return memory_left(*options); }, check);
  std::optional<Executor> made;
  on_all_ranks(ranks.get(), [&] { made.emplace(job.graph, job.plan, job.exec_options(true)); });
  Executor& executor = *made;
  if (ranks)
    goal.all_rest_after = [&policy = asked.policy](std::int64_t step) {
      return (policy.steps > 0 && step % policy.steps == 0) || policy.keeps(step);
    };
  if (ranks && !ranks->first())
    return follow_first_rank(*ranks, flags, init, asked.planned.job, goal, made);
  std::optional<NewRunFolder> fresh;
  std::optional<RunLock> lock;
  fs::path folder;
  on_all_ranks(ranks.get(), [&] {
    if (flags.resume) {
      lock.emplace(*flags.resume);
      goal.from = go_on(flags, job, goal, executor);
    } else {
      goal.from = start_afresh(flags, init, job, goal, executor);
      fresh.emplace(flags.out ? fs::path(*flags.out) : NewRunFolder::default_name(job.recipe));
    }
    folder = fresh ? fresh->path() : fs::path(*flags.resume);
    // Only now: both files may be wanted inside the new folder.
    if (flags.json_file) require_writable(*flags.json_file);
    if (flags.save_gradients) {
      require_writable(*flags.save_gradients);
      goal.after_first_step = [&] {
        write_safetensors(*flags.save_gradients, gradients_of(executor));
      };
    }
    // No one but the first checkpoint knows weights that came from outside.
    const bool kept = fresh && asked.policy.keeps(goal.from.step);
    if (flags.init || flags.from || job.weights || kept)
      save_checkpoint(folder, executor, goal.from, asked.policy.keep, std::nullopt, false,
                      job.class_names, kept);
    write_run_json(folder, job, goal.last_step, asked.policy);
  });
  if (ranks) require_same_start(*ranks, flags, job, goal, executor);
  std::optional<RunFolder> run_folder;
  // Meanwhile the other ranks make folders for their records.
  on_all_ranks(ranks.get(), [&] {
    run_folder.emplace(folder, executor, goal.from, asked.policy, job.class_names);
  });
  RunFolder& run = *run_folder;
  std::optional<Tracing> tracing;
  begin_trace(tracing, ranks.get(), flags, folder, executor, job, goal);
  if (fresh) fresh->keep();

  if (ranks) {
    std::cerr << rank_line(job.whole_plan(), job.recipe) << exchange << "\n";
  } else {
    tell_cpus(flags, job);
    tell_nothing_travels(flags, job.recipe);
  }
  LoadMeter meter(executor);
  std::optional<Refinement> refinement;
  // A trace has times of its own, and says which steps and how deep. What takes long because it was
  // made to says nothing of the machine.
  const bool slowed = std::ranges::any_of(slowness_of(job.plan), [](double f) { return f > 1; });
  if (!flags.no_refine && !slowed && !flags.trace.trace && !flags.trace.steps && !ranks)
    refinement.emplace(executor, job.recipe);
  RunEnergy energy(executor, this_machine().nodes.front());
  Console console(run, *tracing, meter, energy, refinement ? &*refinement : nullptr, job, goal);
  std::optional<NewShares> new_shares;
  if (ranks && replans(flags)) {
    new_shares.emplace(*ranks, asked.planned.job, made, rank_request(flags),
                       [&](const std::string& line) { console.message(line); });
    goal.wants_new_shares = [&](const std::vector<double>& computed_s) {
      return new_shares->wanted(computed_s);
    };
    goal.share_anew = [&](std::int64_t step) {
      meter.on_rest();
      const WorkerLoad done = executor.load();
      if (new_shares->share_anew(step)) energy.executor_ended(done);
    };
  }
  Speed speed;
  train_with_others(
      ranks.get(), made,
      [&] {
        const StopOnSignals watch;
        speed = train(executor, job.recipe, job.data, tests(flags, job, goal) ? job.test : nullptr,
                      goal, console);
      },
      [&] { return run.way_back(); });
  console.leave_line();
  if (ranks) ranks->training_is_over();
  if (refinement && caught_signal() == 0)
    if (const std::string trouble = refinement->store(profile_store()); !trouble.empty())
      std::cerr << trouble << "\n";
  const std::vector<GroupJoules> drawn = energy.finish();
  Json result = train_result(job, executor, console, meter, speed, folder);
  result["energy"] = to_json(drawn, energy.seconds());
  // Before the trace, which is the largest file: on a full disk they still find room. An error of
  // this rank waits until the traces are done, because all ranks finish theirs together.
  std::exception_ptr unwritten;
  try {
    write_json_result(flags.json_file, result);
    write_end(folder, speed, result["energy"]);
  } catch (...) {
    unwritten = std::current_exception();
  }
  const std::string traced = tracing->finish(ranks.get());
  if (unwritten) std::rethrow_exception(unwritten);
  const std::size_t tasks = executor.tasks_per_step();
  std::printf(
      "%.0f images/s, %.1f%% of the workers' time for loading, %zu task%s a step, run folder %s\n",
      speed.images_per_s, 100 * result["loader_share"].get<double>(), tasks, tasks == 1 ? "" : "s",
      folder.string().c_str());
  if (!traced.empty()) std::printf("%s\n", traced.c_str());
  if (const std::string text = disturbed_text(speed.taken_by_others); !text.empty())
    std::printf("%s\n", text.c_str());
  const bool interrupted = caught_signal() != 0 && !console.finished();
  if (interrupted)
    std::cerr << "interrupted and saved; go on with: regatta train --resume "
              << shell_word(folder.string()) << "\n";
  leave_report(folder);
  const int code = interrupted ? 128 + caught_signal() : 0;
  if (ranks) ranks->part(code);
  return code;
}

}  // namespace regatta::app
