#include <iostream>

#include "app/command.h"
#include "base/error.h"
#include "base/files.h"
#include "data/dataset.h"
#include "data/fetch.h"

namespace regatta::app {
namespace {

Json describe(const DatasetInfo& info) {
  return {{"data", info.spec},
          {"samples", info.count},
          {"shape", info.sample.text()},
          {"classes", info.classes},
          {"stored_as", info.dtype == Dtype::u8 ? "uint8" : "float32"},
          {"mean", info.mean},
          {"deviation", info.deviation}};
}

}  // namespace

int run_data(std::span<const char* const> arguments) {
  CLI::App app("Fetches data sets into the cache folder, or describes one.", "regatta data");
  app.require_subcommand(1);
  std::string name, spec;
  std::optional<std::string> json_file;
  CLI::App* get = app.add_subcommand("get", "fetch, verify and cache a data set");
  get->add_option("name", name, "mnist or fashion-mnist")->required()->type_name("NAME");
  get->footer("Example:\n  regatta data get mnist");
  CLI::App* info = app.add_subcommand("info", "describe a data set");
  info->add_option("spec", spec, "as --data takes it")->required()->type_name("SPEC");
  info->footer("Example:\n  regatta data info synth:3x64x64/10@1000");
  for (CLI::App* each : {get, info}) add_json_flag(*each, json_file);
  app.footer("Example:\n  regatta data get mnist\n  regatta data info synth:3x64x64/10@1000");
  if (!parse(app, arguments)) return 0;
  if (json_file) require_writable(*json_file);

  if (get->parsed()) {
    const auto folder = fetch_dataset(name, std::cerr);
    std::cout << name << " is in " << folder.string() << "\n";
    write_json_result(json_file, {{"data", name}, {"folder", folder.string()}});
    return 0;
  }
  const Json json = describe(open_dataset(spec, Split::train, 1)->info());
  for (const auto& [key, value] : json.items())
    std::cout << key << ": " << (value.is_string() ? value.get<std::string>() : value.dump())
              << "\n";
  write_json_result(json_file, json);
  return 0;
}

}  // namespace regatta::app
