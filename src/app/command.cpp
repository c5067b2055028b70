#include "app/command.h"

#include <sys/resource.h>

#include <array>
#include <iostream>

#include "base/error.h"
#include "base/files.h"
#include "base/version.h"

namespace regatta::app {
namespace {

constexpr std::array<Command, 5> all_commands{
    {{"train", "train a network as a task graph", run_train},
     {"eval", "loss and accuracy of a trained network", run_eval},
     {"predict", "a trained network's logits, as an npy file", run_predict},
     {"models", "the networks that come with it", run_models},
     {"data", "fetch and describe data sets", run_data}}};

void print_overview() {
  std::cout << "regatta " << version << ": trains neural networks on machines that do not match\n\n"
            << "usage: regatta COMMAND [FLAGS]    (regatta COMMAND --help tells its flags)\n\n";
  for (const Command& command : all_commands)
    std::cout << "  " << command.name << std::string(10 - command.name.size(), ' ')
              << command.summary << "\n";
}

int dispatch(std::span<const char* const> arguments) {
  const std::string_view name = arguments.empty() ? "--help" : arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print_overview();
    return 0;
  }
  if (name == "--version") {
    std::cout << "regatta " << version << "\n";
    return 0;
  }
  std::vector<std::string> known;
  for (const Command& command : all_commands) {
    if (command.name == name) return command.run(arguments.subspan(1));
    known.emplace_back(command.name);
  }
  throw InputError("there is no command '" + std::string(name) + "'" + did_you_mean(name, known) +
                   "; regatta --help lists them");
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

std::span<const Command> commands() { return all_commands; }

bool parse(CLI::App& app, std::span<const char* const> arguments) {
  // CLI11 takes its arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    const std::string found = app.remaining().front();
    const std::string flag = found.substr(0, found.find('='));
    throw InputError(app.get_name() + ": '" + found + "' is not known" +
                     did_you_mean(flag, known) + "; " + app.get_name() + " --help tells its flags");
  } catch (const CLI::ParseError& error) {
    throw InputError(app.get_name() + ": " + one_line(error.what()));
  }
}

int run_program(std::span<const char* const> arguments) {
  try {
    return dispatch(arguments);
  } catch (const InputError& error) {
    std::cerr << "regatta: " << one_line(error.what()) << "\n";
    return 2;
  } catch (const std::bad_alloc&) {
    std::cerr << "regatta: out of memory; a smaller --batch or --input needs less\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "regatta: " << one_line(error.what()) << "\n";
    return 1;
  }
}

void write_json_result(const std::optional<std::string>& file, const Json& result) {
  if (file) write_file(*file, result.dump(2) + "\n");
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace regatta::app
