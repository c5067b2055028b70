// Inputs that once broke a reader, found by fuzzing or by hand. tests/fuzz/cases/NAME/ holds those
// of fuzz/NAME_fuzz.cpp. Each is read or refused, and nothing worse; under "make asan" that says
// most.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image.h"
#include "data/mask.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "data/shard_file.h"
#include "data/tfrecord.h"
#include "models/network_json.h"
#include "models/onnx.h"
#include "plan/plan_file.h"
#include "platform/simgrid_xml.h"
#include "platform/wiring.h"
#include "profile/store.h"
#include "support/places.h"
#include "trace/import.h"
#include "train/job.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

const fs::path cases = test_files() / "tests" / "fuzz" / "cases";

const std::map<std::string, std::function<void(const fs::path&)>> readers{
    {"cifar",
     [](const fs::path& file) {
       const std::string bytes = read_file(file);
       CifarRecords records;
       parse_cifar(std::as_bytes(std::span(bytes)), cifar10_form(), file, records);
     }},
    {"costs", [](const fs::path& file) { profile_from_json(read_json(file)); }},
    {"idx", [](const fs::path& file) { read_idx(file); }},
    {"image",
     [](const fs::path& file) {
       const std::string text = read_file(file);
       const auto bytes = std::as_bytes(std::span(text));
       image_header(bytes);
       DecodedImage image;
       decode_image(bytes, 3, 8, {}, image);
     }},
    {"mask", [](const fs::path& file) { read_mask(file); }},
    {"network_json", [](const fs::path& file) { graph_from_json(read_file(file)); }},
    {"npy", [](const fs::path& file) { read_npy(file); }},
    {"paje", [](const fs::path& file) { trace::import_trace(file); }},
    {"profile", [](const fs::path& file) { trace::import_profile(file); }},
    {"onnx",
     [](const fs::path& file) {
       const std::string bytes = read_file(file);
       read_onnx(std::as_bytes(std::span(bytes)));
     }},
    {"platform", [](const fs::path& file) { Wiring{platform_from_json(read_json(file))}; }},
    {"platform_xml", [](const fs::path& file) { Wiring{platform_from_xml(read_file(file))}; }},
    {"plan", [](const fs::path& file) { read_plan_file(file, graph_of_recipe); }},
    {"run_json", [](const fs::path& file) { job_of_run(read_json(file)); }},
    {"safetensors", [](const fs::path& file) { read_safetensors(file); }},
    {"shard", [](const fs::path& file) { MappedShard shard(file); }},
    {"tfrecord",
     [](const fs::path& file) {
       const std::string bytes = read_file(file);
       parse_image_example(std::as_bytes(std::span(bytes)));
     }},
};

TEST(FuzzRegressions, AreReadOrRefused) {
  for (const auto& [name, read] : readers) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(cases / name, none)) {
      SCOPED_TRACE(entry.path());
      try {
        read(entry.path());
      } catch (const InputError&) {
      }
    }
  }
}

TEST(FuzzRegressions, EveryFuzzerHasAReaderHere) {
  const fs::path folder = test_files() / "fuzz";
  if (!fs::exists(folder)) GTEST_SKIP() << "no sources here";
  std::set<std::string> fuzzers, known;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename(); name.ends_with("_fuzz.cpp"))
      fuzzers.insert(name.substr(0, name.size() - std::string("_fuzz.cpp").size()));
  for (const auto& [name, read] : readers) known.insert(name);
  EXPECT_EQ(fuzzers, known);
}

}  // namespace
}  // namespace regatta
