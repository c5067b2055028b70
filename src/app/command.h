// app/: the program: one file per command, and the only place that joins all rooms.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace regatta::app {

// One row per command.
struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(std::span<const char* const> arguments);  // the arguments after the command's name
};

std::span<const Command> commands();
const Command& command_named(std::string_view name);  // throws InputError

// Calls `visit` with the flags that `command` declares; the command itself is not run.
void visit_flags(const Command& command, const std::function<void(const CLI::App&)>& visit);

int run_advise(std::span<const char* const> arguments);
int run_bench(std::span<const char* const> arguments);
int run_calibrate(std::span<const char* const> arguments);
int run_compare(std::span<const char* const> arguments);
int run_data(std::span<const char* const> arguments);
int run_doctor(std::span<const char* const> arguments);
int run_launch(std::span<const char* const> arguments);
int run_eval(std::span<const char* const> arguments);
int run_models(std::span<const char* const> arguments);
int run_plan(std::span<const char* const> arguments);
int run_predict(std::span<const char* const> arguments);
int run_probe(std::span<const char* const> arguments);
int run_rent(std::span<const char* const> arguments);
int run_report(std::span<const char* const> arguments);
int run_simulate(std::span<const char* const> arguments);
int run_trace(std::span<const char* const> arguments);
int run_tickets(std::span<const char* const> arguments);
int run_train(std::span<const char* const> arguments);

// Parses into what `app` binds. Returns false when --help was asked for and printed; throws
// InputError in one line, with the nearest flag for an unknown one. Adds --quiet to every command.
bool parse(CLI::App& app, std::span<const char* const> arguments);

// The names of those flags that were given and that `which` picks: "--chunks, --update".
std::string given_flags(const CLI::App& app,
                        const std::function<bool(const std::string& name)>& which);

// For flags that count: CLI11 would take -1 or 1e30 for some number.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most = INT64_MAX);
// For those that measure: CLI11's own ranges let "nan" through.
CLI::Validator number(double least, double most);

// "3" or "3,5"; `flag` is named in the error.
std::vector<std::int64_t> parse_sizes(const std::string& flag, const std::string& text);

// --json FILE. A command that works for long checks with require_writable first.
void add_json_flag(CLI::App& app, std::optional<std::string>& file);

// At the end of a run: its report.html, and for TensorBoard the idle share and joules of traced
// steps. Throws InputError if they cannot be written.
void leave_report(const std::filesystem::path& folder);

// Whole program: dispatch, errors to one line on stderr, exit code.
int run_program(std::span<const char* const> arguments);

void write_json_result(const std::optional<std::string>& file, const Json& result);

std::int64_t peak_memory_bytes();

}  // namespace regatta::app
