#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>

#include "app/command.h"
#include "app/mpirun_defaults.h"
#include "app/rank_run.h"
#include "base/error.h"
#include "base/files.h"
#include "base/host_name.h"
#include "base/program.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

namespace regatta::app {
namespace {

namespace fs = std::filesystem;

// Exit statuses of shells and of `timeout`.
constexpr int not_there = 127, timed_out = 124;

struct Host {
  std::string name;
  int ranks = 1;
};

// "a,b:4": host b has four ranks.
std::vector<Host> parse_hosts(const std::string& text) {
  std::vector<Host> hosts;
  std::istringstream pieces(text);
  for (std::string piece; std::getline(pieces, piece, ',');) {
    const std::size_t colon = piece.find(':');
    Host host{piece.substr(0, colon), 1};
    const std::string count = colon == std::string::npos ? "1" : piece.substr(colon + 1);
    const bool named = !host.name.empty() && !host.name.starts_with('-') &&
                       std::ranges::all_of(host.name, [](unsigned char c) {
                         return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == '@';
                       });
    if (!named || count.empty() || count.size() > 4 ||
        count.find_first_not_of("0123456789") != std::string::npos || std::stoi(count) < 1)
      throw InputError("--hosts " + text + ": use names and ranks of each, such as a:2,b");
    host.ranks = std::stoi(count);
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw InputError("--hosts names no host");
  return hosts;
}

std::string listed(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts)
    text += (text.empty() ? "" : ",") + host.name + ":" + std::to_string(host.ranks);
  return text;
}

volatile sig_atomic_t interrupted = 0;

// Runs mpirun. The first signal that would end this process becomes SIGUSR1, which mpirun hands to
// all ranks: they finish their step, save and end. mpirun's own way with Ctrl-C is to wait without
// telling them, and then to kill them. The second signal ends mpirun.
int run_here(const std::vector<std::string>& arguments) {
  static pid_t child = -1;
  ::signal(SIGCHLD, SIG_DFL);  // a parent that ignores it would leave nothing to wait for
  child = ::fork();
  if (child < 0) throw Error("cannot start a process");
  if (child == 0) {
    ::setpgid(0, 0);  // a terminal's Ctrl-C must not reach mpirun
    // A process in the background that reads from the terminal is stopped.
    if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, 0);
    std::vector<char*> pointers;
    for (const std::string& each : arguments) pointers.push_back(const_cast<char*>(each.c_str()));
    pointers.push_back(nullptr);
    ::execvp(pointers[0], pointers.data());
    std::_Exit(not_there);
  }
  const auto pass_on = [](int signal) {
    ::kill(child, interrupted ? SIGTERM : SIGUSR1);
    interrupted = signal;
  };
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) ::signal(signal, pass_on);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw Error("cannot wait for mpirun");
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) ::signal(signal, SIG_DFL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> mpirun(const std::vector<Host>& hosts,
                                const std::vector<std::string>& command) {
  int ranks = 0;
  for (const Host& host : hosts) ranks += host.ranks;
  std::vector<std::string> arguments{"mpirun",      "-q", "-H",
                                     listed(hosts), "-n", std::to_string(ranks)};
  arguments.push_back(fs::read_symlink("/proc/self/exe").string());
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

// Starts nothing but "true" on the hosts, to see whether a program can be started there.
ProgramResult try_to_start_on(const std::vector<Host>& hosts) {
  std::string names;
  for (const Host& host : hosts) names += (names.empty() ? "" : ",") + host.name;
  return regatta::run_program({"timeout", "-k", "1", "20", "mpirun", "-q", "-H", names, "-n",
                               std::to_string(hosts.size()), "true"});
}

// Throws InputError that names the first of the hosts that no program can be started on. One mpirun
// asks all of them; only if that fails they are asked one by one.
void require_reachable(const std::vector<Host>& hosts) {
  std::vector<Host> others;
  for (const Host& host : hosts)
    if (host.name != "localhost" && host.name != host_name()) others.push_back(host);
  if (others.empty()) return;
  const ProgramResult all = try_to_start_on(others);
  if (all.status == 0 || all.status == not_there) return;
  for (const Host& host : others) {
    const ProgramResult one = others.size() == 1 ? all : try_to_start_on({host});
    if (one.status == 0) continue;
    const std::string cause = one.status == timed_out ? "no answer" : one.first_line();
    throw InputError("--hosts: nothing can be started on " + host.name +
                     (cause.empty() ? "" : " (" + cause + ")") + "; it must be reachable by: ssh " +
                     host.name + " true");
  }
}

// The hosts that a program can still be started on.
std::vector<Host> reachable(const std::vector<Host>& hosts) {
  std::vector<Host> found;
  for (const Host& host : hosts) {
    if (try_to_start_on({host}).status == 0)
      found.push_back(host);
    else
      std::cerr << "regatta: " << host.name << " cannot be reached: going on without it\n";
  }
  return found;
}

// The value of a flag of `command`, written "--flag VALUE" or "--flag=VALUE".
std::optional<std::string> flag_of(const std::vector<std::string>& command,
                                   const std::string& flag) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == flag && i + 1 < command.size()) return command[i + 1];
    if (command[i].starts_with(flag + "=")) return command[i].substr(flag.size() + 1);
  }
  return std::nullopt;
}

std::string dated_folder() {
  const std::time_t now = std::time(nullptr);
  char text[64];
  std::strftime(text, sizeof text, "runs/launch-%Y%m%d-%H%M%S", std::localtime(&now));
  return text;
}

// The same run, from where it stands.
std::vector<std::string> resuming(const std::vector<std::string>& command,
                                  const std::string& folder) {
  std::vector<std::string> again{"train", "--resume", folder};
  for (const char* flag : {"--json", "--update", "--workers", "--data", "--test"})
    if (const auto value = flag_of(command, flag)) {
      again.emplace_back(flag);
      again.push_back(*value);
    }
  if (std::ranges::find(command, "--quiet") != command.end()) again.emplace_back("--quiet");
  return again;
}

// The last step of a run whose steps are all done and whose last epoch is reported; none for
// others.
std::optional<std::int64_t> finished_step(const fs::path& folder) try {
  const Json run = read_json(folder / "run.json");
  const TrainState state = checkpoint_state(latest_checkpoint(folder));
  const Json data = run.at("recipe").value("data_identity", Json::object());
  const bool unreported = state.seen > 0 && state.seen == data.value("samples", std::int64_t{0});
  const std::int64_t last = run.at("last_step");
  return state.step < last || unreported ? std::nullopt : std::optional(last);
} catch (const InputError&) {
  return std::nullopt;
} catch (const Json::exception&) {
  return std::nullopt;
}

}  // namespace

int run_launch(std::span<const char* const> arguments) {
  CLI::App app("Runs a command as one rank or more on each of several machines, by mpirun.",
               "regatta launch");
  std::string hosts_text;
  int restarts = 3;
  std::vector<std::string> command;
  app.add_option("--hosts", hosts_text, "machines, and ranks of each if not one: a:2,b")
      ->type_name("LIST");
  app.add_option("--restarts", restarts,
                 "so often, when a rank or machine dies, the run goes on from its last checkpoint\n"
                 "on those that are left")
      ->type_name("N")
      ->check(whole_number(0, 1000))
      ->capture_default_str();
  app.add_option("command", command, "what to run, after --: train and its flags");
  app.footer(
      "Example:\n  regatta launch --hosts a,b -- train --model resnet18 --data cifar10-synth "
      "--batch 256");
  if (!parse(app, arguments)) return 0;
  if (hosts_text.empty()) throw InputError("launch needs --hosts, such as --hosts a,b");
  if (command.empty() || command.front() != "train")
    throw InputError("launch needs a command after --, such as -- train --model resnet18 ...");
  std::vector<Host> hosts = parse_hosts(hosts_text);
  set_mpirun_defaults();
  require_reachable(hosts);
  std::optional<std::string> folder = flag_of(command, "--out");
  if (!folder) folder = flag_of(command, "--resume");
  if (!folder) {
    folder = dated_folder();
    command.insert(command.end(), {"--out", *folder});
  }
  std::vector<std::string> next = command;
  const std::optional<std::int64_t> finished_before = finished_step(*folder);
  while (true) {
    const int code = run_here(mpirun(hosts, next));
    if (code == not_there) throw InputError("there is no mpirun here (Debian: openmpi-bin)");
    // A user's mistake stays one, and who interrupts a run wants it to end.
    if (interrupted && code != 0) return 128 + interrupted;
    if (code == 0 || code == 2) return code;
    if (const auto finished = finished_step(*folder); finished && finished != finished_before) {
      std::cerr << "regatta: the run ended with code " << code << " after all its " << *finished
                << " steps: the weights in " << latest_checkpoint(*folder).string()
                << " are complete; the trace, the report and --json may be missing\n";
      return 0;
    }
    if (restarts == 0) return code;
    --restarts;
    hosts = reachable(hosts);
    if (hosts.empty()) {
      std::cerr << "regatta: no machine is left\n";
      return try_again_code;
    }
    const bool began = fs::exists(fs::path(*folder) / "run.json");
    next = began ? resuming(command, *folder) : command;
    std::cerr << "regatta: the run ended with code " << code << "; starting it again on "
              << listed(hosts) << (began ? " from its last checkpoint" : "") << "\n";
  }
}

}  // namespace regatta::app
