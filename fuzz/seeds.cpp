// Small good files, a folder for each fuzzer to start from: fuzz_seeds FOLDER
#include <zlib.h>

#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "data/idx.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "models/models.h"
#include "plan/make_plan.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

fs::path folder_in(const fs::path& root, const char* name) {
  fs::create_directories(root / name);
  return root / name;
}

void write_gzip(const fs::path& path, const std::string& bytes) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

void idx_seeds(const fs::path& folder) {
  write_idx(folder / "images", {Dtype::u8, {2, 3, 3}, std::string(18, '\x7f')});
  write_idx(folder / "labels", {Dtype::u8, {4}, "\x01\x02\x03\x04"});
  write_gzip(folder / "images.gz", read_file(folder / "images"));
}

void npy_seeds(const fs::path& folder) {
  write_npy(folder / "floats", {Dtype::f32, {1, 1, 2, 2}, std::string(16, '\0')});
  write_npy(folder / "labels", {Dtype::i64, {2}, std::string(16, '\0')});
  write_npy(folder / "bytes", {Dtype::u8, {3, 1}, "abc"});
}

void safetensors_seeds(const fs::path& folder) {
  TensorFile file;
  file.tensors.push_back({"conv.weight", Dtype::f32, {2, 1, 1, 1}, std::string(8, '\0')});
  file.tensors.push_back({"bn.num_batches_tracked", Dtype::i64, {}, std::string(8, '\0')});
  write_safetensors(folder / "two", file);
  file.metadata["format"] = "pt";
  write_safetensors(folder / "metadata", file);
}

void run_json_seeds(const fs::path& folder) {
  Recipe recipe;
  recipe.model = "tiny";
  const Graph graph = fuse(build_model("tiny"));
  recipe.input = graph.node(graph.input()).shape;
  recipe.classes = graph.classes();
  recipe.data = "digits-synth";
  recipe.batch = 64;
  PlanOptions options;
  options.workers = 2;
  const Plan plan = make_plan(graph, recipe, options);
  write_file(folder / "run.json",
             Json{{"recipe", recipe.to_json()}, {"plan", to_json(plan, graph)}}.dump());
}

}  // namespace
}  // namespace regatta

int main(int count, char** arguments) {
  using namespace regatta;
  if (count != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  const fs::path root = arguments[1];
  idx_seeds(folder_in(root, "idx"));
  npy_seeds(folder_in(root, "npy"));
  safetensors_seeds(folder_in(root, "safetensors"));
  run_json_seeds(folder_in(root, "run_json"));
  return 0;
}
