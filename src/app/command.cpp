#include "app/command.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "app/completion.h"
#include "app/manual.h"
#include "app/quiet.h"
#include "base/error.h"
#include "base/files.h"
#include "base/standard_output.h"
#include "base/utf8.h"
#include "base/version.h"
#include "exec/versions.h"
#include "train/ranks.h"

namespace regatta::app {
namespace {

constexpr std::array<Command, 18> all_commands{
    {{"train", "train a network as a task graph", run_train},
     {"launch", "train on several machines at once", run_launch},
     {"eval", "loss and accuracy of a trained network", run_eval},
     {"predict", "what a trained network takes images for", run_predict},
     {"plan", "when and where a network is trained, as a file", run_plan},
     {"rent", "own machines or rented ones: hours, joules, money", run_rent},
     {"advise", "which parallelism suits each layer on a platform", run_advise},
     {"simulate", "when a plan's steps would end, and their joules", run_simulate},
     {"compare", "a recorded run beside its prediction", run_compare},
     {"probe", "this machine as a platform file", run_probe},
     {"report", "a run as one page: timeline, idle causes, curves", run_report},
     {"calibrate", "measure what work costs on this machine", run_calibrate},
     {"bench", "speed, task sizes, and predictions against runs", run_bench},
     {"tickets", "lottery tickets: masks, and networks pruned by them", run_tickets},
     {"models", "the networks that come with it", run_models},
     {"data", "fetch and describe data sets", run_data},
     {"trace", "where the time of a recorded run went", run_trace},
     {"doctor", "what stands in the way of a faster run", run_doctor}}};

Quiet quiet;

// While visit_flags looks at a command's flags; see there.
const std::function<void(const CLI::App&)>* flags_visitor = nullptr;

void add_quiet_flag(CLI::App& app, bool& wanted) {
  if (app.get_option_no_throw("--quiet") == nullptr)
    app.add_flag("--quiet", wanted, "print nothing but errors");
  for (CLI::App* each : app.get_subcommands([](CLI::App*) { return true; }))
    add_quiet_flag(*each, wanted);
}

// Whether some flag asks for a file on standard output, such as --json - or --out /dev/stdout.
bool writes_to_standard_output(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (std::ranges::any_of(option->results(), &is_standard_output)) return true;
  return std::ranges::any_of(app.get_subcommands(),
                             [](const CLI::App* each) { return writes_to_standard_output(*each); });
}

void print_overview() {
  std::cout << "regatta " << version << ": trains neural networks on machines that do not match\n\n"
            << "usage: regatta COMMAND [FLAGS]    (regatta COMMAND --help tells its flags)\n\n";
  for (const Command& command : all_commands)
    std::cout << "  " << command.name << std::string(10 - command.name.size(), ' ')
              << command.summary << "\n";
  std::cout << "\n  regatta manual COMMAND         its manual page, for man -l -\n"
               "  regatta completion bash|zsh    completes commands and flags in this shell\n";
}

int dispatch(std::span<const char* const> arguments) {
  const std::string_view name = arguments.empty() ? "--help" : arguments.front();
  if (name == "help" && arguments.size() > 1) return dispatch(std::array{arguments[1], "--help"});
  if (name == "--help" || name == "-h" || name == "help") {
    print_overview();
    return 0;
  }
  if (name == "--version") {
    std::cout << "regatta " << version;
    for (const auto& [library, which] : library_versions())
      std::cout << ", " << library << " " << which;
    std::cout << "\n";
    return 0;
  }
  const std::string_view subject = arguments.size() > 1 ? arguments[1] : "";
  if (name == "completion" || name == "manual") {
    std::cout << (name == "manual" ? manual_page(subject) : completion_script(subject));
    return 0;
  }
  return command_named(name).run(arguments.subspan(1));
}

// What the system refused, without the libraries' words: no permission, a name that is too long.
std::string text_of(const std::filesystem::filesystem_error& error) {
  return (error.path1().empty() ? "" : "'" + error.path1().string() + "': ") +
         error.code().message();
}

// Why JSON cannot hold what was to be written: nlohmann's number for text that is not UTF-8.
constexpr int not_utf8 = 316;

// Names the argument that JSON cannot hold.
std::string text_of_not_utf8(std::span<const char* const> arguments) {
  for (const std::string text : arguments)
    if (const std::string shown = valid_utf8(text); shown != text)
      return "'" + shown + "' is not UTF-8, as names that JSON files keep must be: rename it, or " +
             "give a symbolic link to it";
  return "a name is not UTF-8, as names that JSON files keep must be: rename it";
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

// Flags and subcommands, of those that were given too.
std::vector<std::string> known_to(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(each->get_name());
    if (!each->parsed()) continue;
    const std::vector<std::string> more = known_to(*each);
    known.insert(known.end(), more.begin(), more.end());
  }
  return known;
}

// The command and the subcommand that was given, as a user types them: "regatta tickets search".
std::string typed_name(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* each : app.get_subcommands()) name += " " + typed_name(*each);
  return name;
}

}  // namespace

std::span<const Command> commands() { return all_commands; }

const Command& command_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Command& command : all_commands) {
    if (command.name == name) return command;
    known.emplace_back(command.name);
  }
  throw InputError("there is no command '" + std::string(name) + "'" + did_you_mean(name, known) +
                   "; regatta --help lists them");
}

void visit_flags(const Command& command, const std::function<void(const CLI::App&)>& visit) {
  struct Visiting {
    explicit Visiting(const std::function<void(const CLI::App&)>& by) { flags_visitor = &by; }
    ~Visiting() { flags_visitor = nullptr; }
  } const visiting(visit);
  command.run({});  // parse, which every command calls first, visits and tells it to return
}

bool parse(CLI::App& app, std::span<const char* const> arguments) {
  bool wants_quiet = false;
  add_quiet_flag(app, wants_quiet);
  if (flags_visitor) {
    (*flags_visitor)(app);
    return false;
  }
  // CLI11 takes its arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
    if (writes_to_standard_output(app)) reserve_standard_output();
    if (wants_quiet) quiet.begin();
    return true;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    const std::string way_out = "; " + typed_name(app) + " --help tells its flags";
    std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    std::erase(unknown, "--");  // CLI11 keeps the mark after which all is positional
    if (unknown.empty()) throw InputError(one_line(error.what()) + way_out);
    const std::string flag = unknown.front().substr(0, unknown.front().find('='));
    throw InputError("'" + unknown.front() + "' is not known" + did_you_mean(flag, known_to(app)) +
                     way_out);
  }
}

std::string given_flags(const CLI::App& app,
                        const std::function<bool(const std::string& name)>& which) {
  std::string given;
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && which(option->get_name()))
      given += (given.empty() ? "" : ", ") + option->get_name();
  return given;
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    if (code == std::errc{} && stop == end && value >= least && value <= most) return "";
    const std::string range = most >= INT64_MAX ? " or more" : " to " + std::to_string(most);
    return "'" + text + "' is not a whole number of " + std::to_string(least) + range;
  };
  return {check, ""};
}

CLI::Validator number(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    if (code == std::errc{} && stop == end && value >= least && value <= most) return "";
    char range[64];
    std::snprintf(range, sizeof range, "%g to %g", least, most);
    return "'" + text + "' is not a number from " + range;
  };
  return {check, ""};
}

std::vector<std::int64_t> parse_sizes(const std::string& flag, const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string piece = text.substr(begin, end - begin);
    if (piece.empty() || piece.size() > 9 ||
        piece.find_first_not_of("0123456789") != std::string::npos)
      throw InputError(flag + " " + text + ": use whole numbers, such as 3 or 3,5");
    sizes.push_back(std::stoll(piece));
    begin = end + 1;
  }
  return sizes;
}

void add_json_flag(CLI::App& app, std::optional<std::string>& file) {
  app.add_option("--json", file, "write the result to FILE; - for standard output")
      ->type_name("FILE");
}

int run_program(std::span<const char* const> arguments) {
  struct Release {
    ~Release() {
      quiet.end();
      release_standard_output();
    }
  } const afterwards;
  const auto complain = [](const std::string& text) {
    quiet.end();
    std::cerr << "regatta: " + text + "\n";  // at once: other ranks may speak too
  };
  occupy_closed_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error like a full disk
  try {
    const int code = dispatch(arguments);
    if (code == 0) require_printed();
    return code;
  } catch (const ToldElsewhere&) {
    return 0;
  } catch (const InputError& error) {
    complain(one_line(error.what()));
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {
    complain(one_line(text_of(error)));
    return 2;
  } catch (const Json::type_error& error) {
    complain(error.id == not_utf8 ? text_of_not_utf8(arguments) : one_line(error.what()));
    return error.id == not_utf8 ? 2 : 1;
  } catch (const std::bad_alloc&) {
    complain("out of memory; a smaller --batch or --input needs less");
    return 2;
  } catch (const std::exception& error) {
    complain(one_line(error.what()));
    return 1;
  }
}

void write_json_result(const std::optional<std::string>& file, const Json& result) {
  // A name that is not UTF-8 loses the bytes that are not, rather than the whole result.
  if (file) write_file(*file, result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace regatta::app
