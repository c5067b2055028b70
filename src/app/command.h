// app/: the program: one file per command, and the only place that joins all rooms.
#pragma once

#include <CLI/CLI.hpp>
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
  int (*run)(std::span<const char* const> arguments);  // those after the command's name
};

std::span<const Command> commands();

int run_data(std::span<const char* const> arguments);
int run_eval(std::span<const char* const> arguments);
int run_models(std::span<const char* const> arguments);
int run_predict(std::span<const char* const> arguments);
int run_train(std::span<const char* const> arguments);

// Parses into what `app` binds. Returns false when --help was asked for and printed; throws
// InputError in one line, with the nearest flag for an unknown one.
bool parse(CLI::App& app, std::span<const char* const> arguments);

// Whole program: dispatch, errors to one line on stderr, exit code.
int run_program(std::span<const char* const> arguments);

void write_json_result(const std::optional<std::string>& file, const Json& result);

std::int64_t peak_memory_bytes();

}  // namespace regatta::app
