// `tickets work` and `tickets status`: workers of a search, and what they have done.
#include "app/tickets_work.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "app/command.h"
#include "app/lists.h"
#include "app/tickets_command.h"
#include "base/error.h"
#include "base/files.h"
#include "base/program.h"
#include "base/scratch_folder.h"
#include "base/shell_word.h"
#include "platform/machine.h"
#include "tickets/status.h"
#include "tickets/train_job.h"
#include "tickets/worker.h"
#include "train/job.h"
#include "train/loop.h"
#include "transport/launcher.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;
using namespace tickets;

std::atomic<int> caught = 0;

// The first signal lets jobs save and gives them back; the second ends the worker at once.
class StopAsked {
 public:
  StopAsked() {
    caught = 0;
    for (const int signal : signals)
      if (std::signal(signal, note) == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup
  }
  ~StopAsked() {
    for (const int signal : signals) std::signal(signal, SIG_DFL);
  }
  StopAsked(const StopAsked&) = delete;
  StopAsked& operator=(const StopAsked&) = delete;

 private:
  static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};
  static void note(int signal) {
    caught = signal;
    std::signal(signal, SIG_DFL);
  }
};

// Process numbers come again, on this machine and on others of the same name.
std::string worker_name() {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    throw Error("the system gives no random numbers");
  char text[160];
  std::snprintf(text, sizeof text, "%.100s-%d-%08x", host_name().c_str(), ::getpid(), random);
  return text;
}

void forgive_failures(SearchFolder& folder) {
  folder.refresh();
  for (std::size_t job = 0; job < folder.jobs().size(); ++job)
    if (folder.state(job).failed())
      folder.log(job).append(folder.state(job).next(),
                             {EntryKind::released, "user", {{"again", true}}});
}

void require_all_done(const SearchFolder& folder) {
  std::size_t failed = 0, hopeless = 0;
  std::string first;
  for (std::size_t job = 0; job < folder.jobs().size(); ++job) {
    hopeless += folder.hopeless(job) ? 1 : 0;
    if (!folder.state(job).failed()) continue;
    if (failed++ == 0)
      first = folder.jobs()[job].id + ": " + folder.state(job).last().body.value("why", "");
  }
  if (failed == 0) return;
  throw InputError(std::to_string(failed) + " job" + (failed == 1 ? "" : "s") + " failed, " +
                   std::to_string(hopeless - failed) + " wait for them; the first is " + first +
                   "; when that is mended: regatta tickets work " +
                   shell_word(folder.path().string()) + " --again");
}

// What jobs say themselves.
const std::set<std::string> own_flags{
    "--seed",           "--steps",         "--out",        "--resume", "--mask",   "--from",
    "--init",           "--checkpoint-at", "--json",       "--plan",   "--replay", "--explain",
    "--save-gradients", "--trace",         "--trace-steps"};

int jobs_asked(const std::string& text) {
  const std::vector<std::int64_t> sizes = parse_sizes("--jobs", text);
  if (sizes.size() != 1 || sizes.front() < 1 || sizes.front() > most_workers)
    throw InputError("--jobs " + text + ": use a number of jobs side by side, or auto");
  return static_cast<int>(sizes.front());
}

std::string flag_value(const std::vector<std::string>& flags, const std::string& flag) {
  for (std::size_t i = 0; i + 1 < flags.size(); ++i)
    if (flags[i] == flag) return flags[i + 1];
  return "";
}

// For --json: the search's folder, how many jobs it has, and how many of them are done.
void write_search_result(const std::optional<std::string>& json_file, const fs::path& search,
                         std::size_t jobs, std::size_t done) {
  write_json_result(json_file, {{"search", search.string()}, {"jobs", jobs}, {"done", done}});
}

// Throws InputError if `spec`, which is to stand for the data of the search on this machine, cannot
// be trained on or is other data, as far as its size and a run that is done tell.
void require_data_of(const SearchFolder& folder, const std::string& spec) {
  const Search& search = folder.search();
  std::vector<std::string> train = search.train;
  if (const auto flag = std::ranges::find(train, "--data"); flag != train.end()) *(flag + 1) = spec;
  const TrainFacts facts = facts_of(train);
  if (facts.steps_per_epoch != search.steps_per_epoch)
    throw InputError("--data " + spec + " has " + std::to_string(facts.steps_per_epoch) +
                     " steps an epoch, the data of the search " +
                     std::to_string(search.steps_per_epoch) + ": give the same data");
  for (std::size_t job = 0; job < folder.jobs().size(); ++job) {
    if (!folder.state(job).done()) continue;
    const Json run = read_json(folder.run_of(folder.jobs()[job].id) / "run.json");
    const Recipe recipe = recipe_from_json(run.at("recipe"));
    require_same_data(recipe, spec, *open_for(recipe, spec, Split::train, {}));
    return;
  }
}

}  // namespace

void refuse_own_flags(const std::vector<std::string>& extras) {
  for (const std::string& text : extras) {
    const std::string flag = text.substr(0, text.find('='));
    if (own_flags.contains(flag))
      throw InputError(flag + " cannot be given to a search: every job has its own");
  }
}

std::vector<std::int64_t> parse_resets(const std::string& text, std::int64_t steps_per_epoch) {
  std::vector<std::int64_t> resets;
  for (const std::string& piece : listed(text)) {
    const bool zero = piece == "0" || piece == "0e";
    const Duration at = zero ? Duration{} : Duration::parse("--resets", piece);
    std::int64_t step = at.count;
    if (at.epochs && __builtin_mul_overflow(at.count, steps_per_epoch, &step))
      throw InputError("--resets " + piece + ": that is more steps than can be counted");
    resets.push_back(step);
  }
  std::ranges::sort(resets);
  const auto repeated = std::ranges::unique(resets);
  resets.erase(repeated.begin(), repeated.end());
  return resets;
}

fs::path this_program() {
  std::error_code code;
  fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (code) throw Error("cannot find this program's own file: " + code.message());
  return program;
}

TrainFacts facts_of(const std::vector<std::string>& train) {
  const ScratchFolder folder("search");
  const fs::path file = folder.path() / "facts.json";
  std::vector<std::string> arguments{this_program().string(), "train"};
  arguments.insert(arguments.end(), train.begin(), train.end());
  arguments.insert(arguments.end(), {"--explain", "--json", file.string(), "--quiet"});
  if (flag_value(train, "--granularity").empty())
    arguments.insert(arguments.end(), {"--granularity", "fixed"});
  const ProgramResult ran = regatta::run_program(arguments, {no_rank});
  if (ran.status != 0) {
    const std::string line = ran.first_line();
    const std::string name = "regatta: ";
    throw InputError(line.starts_with(name) ? line.substr(name.size()) : line);
  }
  const Json json = read_json(file);
  const Recipe recipe = recipe_from_json(json.at("recipe"));
  const auto data = open_for(recipe, recipe.data, Split::train, {});
  return {recipe.samples_per_step(), steps_per_epoch(recipe, *data), json.at("recipe")};
}

void declare_work(CLI::App& app, WorkFlags& flags) {
  app.add_option("--workers", flags.workers,
                 "CPUs for this worker's jobs (default: all it may use)")
      ->type_name("N")
      ->check(whole_number(1, most_workers));
  app.add_option("--jobs", flags.jobs,
                 "jobs side by side, which share the CPUs; auto tries which number is fastest")
      ->type_name("K|auto")
      ->capture_default_str();
  add_json_flag(app, flags.json_file);
}

int work_on(const fs::path& search, const WorkFlags& flags) {
  if (flags.json_file) require_writable(*flags.json_file);
  DiskLayer files;
  SearchFolder folder(files, search);
  folder.refresh();
  if (flags.data) require_data_of(folder, *flags.data);
  if (flags.again) forgive_failures(folder);
  const int cpus = flags.workers.value_or(default_workers());
  const SideBySide slots =
      flags.jobs == "auto" ? SideBySide::by_trial(cpus) : SideBySide(jobs_asked(flags.jobs));
  const bool gpu = flag_value(folder.search().train, "--devices").find("cuda") != std::string::npos;
  TrainerOptions trainer_options{.program = this_program(),
                                 .flags = {},
                                 .data = flags.data,
                                 .cpus = cpus,
                                 .gpus = gpu ? 1 : 0};
  ProgramTrainer trainer(trainer_options);
  const std::string machine = host_name() + ", " + std::to_string(cpus) + " CPU" +
                              (cpus == 1 ? "" : "s") + (gpu ? ", GPU" : "");
  folder.refresh();
  const auto jobs_done = [&folder] {
    std::size_t done = 0;
    for (std::size_t job = 0; job < folder.jobs().size(); ++job) done += folder.state(job).done();
    return done;
  };
  const StopAsked asked;
  {
    tickets::Worker worker(
        files, folder, trainer,
        {.name = worker_name(),
         .machine = machine,
         .slots = slots,
         .tell = [](const std::string& line) { std::cout << line << std::endl; }});
    std::cout << folder.jobs().size() << " jobs, " << jobs_done() << " of them done" << std::endl;
    bool told = false;
    while (worker.round()) {
      std::this_thread::sleep_for(worker.pause());
      if (caught != 0 && !std::exchange(told, true)) worker.stop();
    }
  }
  write_search_result(flags.json_file, search, folder.jobs().size(), jobs_done());
  if (caught != 0 && !folder.over()) {
    std::cerr << "stopped; go on with: regatta tickets work " << search.string() << "\n";
    return 128 + caught;
  }
  require_all_done(folder);
  std::cout << "all jobs are done; see: regatta tickets report " << search.string() << "\n";
  return 0;
}

int make_search(const fs::path& folder, const Search& search, bool no_work,
                const WorkFlags& flags) {
  DiskLayer files;
  SearchFolder::write(files, folder, search);
  if (!no_work) return work_on(folder, flags);
  std::cout << search.jobs.size() << " jobs in " << folder.string()
            << "; start workers with: regatta tickets work " << folder.string() << "\n";
  write_search_result(flags.json_file, folder, search.jobs.size(), 0);
  return 0;
}

void add_no_work_flag(CLI::App& app, bool& no_work) {
  app.add_flag("--no-work", no_work, "make the folder, and leave the jobs to other workers");
}

std::function<int()> declare_tickets_work(CLI::App& app) {
  struct Flags {
    std::string folder;
    WorkFlags work;
  };
  const auto flags = std::make_shared<Flags>();
  app.add_option("folder", flags->folder, "the search")->required()->type_name("DIR");
  declare_work(app, flags->work);
  app.add_option("--data", flags->work.data, "where the data lies on this machine, if elsewhere")
      ->type_name("SPEC");
  app.add_flag("--again", flags->work.again, "try jobs again that failed for good");
  app.footer(
      "Any number of workers, on any machines that see DIR, started and stopped at any time.\n"
      "Example:\n  regatta tickets work searches/lenet5 --workers 4");
  return [flags] { return work_on(flags->folder, flags->work); };
}

std::function<int()> declare_tickets_status(CLI::App& app) {
  struct Flags {
    std::string folder;
    std::optional<std::string> json_file;
  };
  const auto flags = std::make_shared<Flags>();
  app.add_option("folder", flags->folder, "the search")->required()->type_name("DIR");
  add_json_flag(app, flags->json_file);
  app.footer("Example:\n  regatta tickets status searches/lenet5");
  return [flags] {
    DiskLayer files;
    SearchFolder folder(files, flags->folder);
    folder.refresh();
    // A worker is there if it is seen to count; one beat takes a sixth of the lease.
    LeaseWatch watch(files, folder.path(), folder.search().lease);
    const std::vector<std::string> names = workers_of(files, folder.path());
    std::vector<std::string> unsure;
    for (const std::string& name : names)
      if (!watch.gone(name)) unsure.push_back(name);
    const Seconds until = files.now() + folder.search().lease / 5;
    while (!unsure.empty() && files.now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      std::erase_if(unsure, [&](const std::string& name) {
        watch.gone(name);
        return watch.seen_alive(name);
      });
    }
    folder.refresh();
    std::map<std::string, Heartbeat> heartbeats;
    std::vector<std::string> alive;
    for (const std::string& name : names) {
      if (const auto& heartbeat = watch.heartbeat(name)) heartbeats[name] = *heartbeat;
      if (watch.seen_alive(name)) alive.push_back(name);
    }
    const SearchStatus status = status_of(folder, heartbeats, alive);
    std::cout << status_text(status);
    write_json_result(flags->json_file, to_json(status));
    return 0;
  };
}

}  // namespace regatta::app
