// Small good files, a folder for each fuzzer to start from: fuzz_seeds FOLDER
// clang-format off
#include <cstdio>  // jpeglib.h leans on it
#include <jpeglib.h>
// clang-format on
#include <png.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "data/idx.h"
#include "data/mask.h"
#include "data/npy.h"
#include "data/safetensors.h"
#include "data/shard_file.h"
#include "data/tfrecord.h"
#include "models/models.h"
#include "models/network_json.h"
#include "models/onnx.h"
#include "ops/builder.h"
#include "plan/make_plan.h"
#include "plan/plan_file.h"
#include "platform/simgrid_xml.h"
#include "profile/store.h"
#include "trace/sqlite.h"
#include "trace/store.h"
#include "trace/writers.h"

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

void mask_seeds(const fs::path& folder) {
  Mask mask{"net#1",
            {whole_tensor("conv.weight", {2, 1, 3, 3}), whole_tensor("fc.weight", {4, 2})}};
  mask.tensors[0].set(4, false);
  write_mask(folder / "two", mask);
}

void cifar_seeds(const fs::path& folder) {
  write_file(folder / "cifar10", std::string(1, '\x03') + std::string(3072, '\x40'));
  write_file(folder / "cifar100", std::string("\x03\x04") + std::string(3072, '\x40'));
}

// Protocol buffers by hand: a field of bytes.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

void tfrecord_seeds(const fs::path& folder) {
  const std::string image = field(1, field(1, "image/encoded") + field(2, field(1, field(1, "x"))));
  const std::string label =
      field(1, field(1, "image/class/label") + field(2, field(3, field(1, "\x05"))));
  const std::string example = field(1, image + label);
  write_file(folder / "example", example);
  write_file(folder / "records", tfrecord_of(example) + tfrecord_of("\x08\x01"));
}

std::string jpeg(int components, bool progressive) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = 20;
  info.image_height = 12;
  info.input_components = components;
  info.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::string row(static_cast<std::size_t>(20 * components), '\0');
  for (int y = 0; y < 12; ++y) {
    for (std::size_t x = 0; x < row.size(); ++x) row[x] = static_cast<char>(x * 11 + y * 7);
    auto* pointer = reinterpret_cast<unsigned char*>(row.data());
    jpeg_write_scanlines(&info, &pointer, 1);
  }
  jpeg_finish_compress(&info);
  std::string result(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return result;
}

void write_png(const fs::path& path, png_uint_32 format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = 9;
  image.height = 7;
  image.format = format;
  const std::string pixels(PNG_IMAGE_SIZE(image), '\x31');
  const std::string colours(1024, '\x52');
  image.colormap_entries = format & PNG_FORMAT_FLAG_COLORMAP ? 256 : 0;
  png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, colours.data());
}

void image_seeds(const fs::path& folder) {
  for (const int components : {1, 3, 4}) {
    const std::string name = "jpeg" + std::to_string(components);
    write_file(folder / name, jpeg(components, false));
    write_file(folder / (name + "-progressive"), jpeg(components, true));
  }
  write_png(folder / "png-grey", PNG_FORMAT_GRAY);
  write_png(folder / "png-rgb", PNG_FORMAT_RGB);
  write_png(folder / "png-rgba", PNG_FORMAT_RGBA);
  write_png(folder / "png-16", PNG_FORMAT_LINEAR_RGB_ALPHA);
  write_png(folder / "png-palette", PNG_FORMAT_RGB_COLORMAP);
}

void shard_seeds(const fs::path& folder) {
  ShardHeader header;
  header.channels = 1;
  header.height = header.width = 2;
  write_file(folder / "shard", shard_bytes(header, {{0, 1, 0}, {1, 2, 0}}, "abcdefgh"));
}

Graph small_network() {
  NetBuilder net("small", {1, 6, 6});
  NodeId x = net.conv("conv", net.input(), {.channels = 3, .kernel = 3, .bias = false});
  x = net.relu(net.batch_norm("bn", x));
  x = net.concat({x, net.sigmoid(x)});
  x = net.dropout(net.max_pool(x, {.kernel = 2, .stride = 2}), 0.25);
  x = net.dense("dense", x, 3);
  return std::move(net).finish(x);
}

void network_seeds(const fs::path& json, const fs::path& onnx) {
  std::vector<Graph> networks{small_network()};
  for (const char* name : {"tiny", "lenet5"}) networks.push_back(build_model(name));
  for (const Graph& graph : networks) {
    write_file(json / graph.name(), network_text(graph));
    Weights weights;
    for (const auto& parameters : {graph.parameters(), graph.states()})
      for (const Parameter& what : parameters)
        weights[what.name].resize(static_cast<std::size_t>(what.shape.elements()));
    if (const std::string bytes = write_onnx(graph, weights); bytes.size() < 65536)
      write_file(onnx / graph.name(), bytes);
  }
}

void platform_seeds(const fs::path& json, const fs::path& xml) {
  Platform platform{.name = "p", .remark = {}, .nodes = {}, .network = {}};
  PlatformNode node;
  node.name = "n";
  node.count = 3;
  node.groups = {{.name = "cpu", .memory = 1, .costs = {.flops = 1e9}}};
  platform.nodes = {node};
  platform.network.link = {1e9, 1e-6};
  write_file(json / "star", platform.to_json().dump());
  Platform priced = platform;
  priced.energy_price = 0.3;
  PlatformNode& first = priced.nodes[0];
  first.groups[0].states = {{.name = "eco", .speed = 0.5, .watts = {0, 1}}};
  first.groups.push_back({.name = "more",
                          .count = 4,
                          .memory = 1,
                          .watts = {1, 5},
                          .slow_cores = SlowCores{2, 3, 2},
                          .costs = {.flops = 1e9}});
  first.unused_watts = 0;
  first.price = Price{.purchase = 100, .lifetime_hours = 1000};
  write_file(json / "priced", priced.to_json().dump());
  write_file(xml / "star", platform_to_xml(platform));
  platform.nodes[0].attached = "s";
  platform.network.topology = Topology::wide_area;
  platform.network.switches = {{.name = "r"},
                               {.name = "s", .count = 2, .parent = "r", .link = {1e9, 0}}};
  write_file(json / "tree", platform.to_json().dump());
  write_file(xml / "tree", platform_to_xml(platform));
  write_file(xml / "cluster",
             "<platform version='4.1'><cluster id='c' prefix='n' suffix='' radical='0-3' "
             "speed='1Gf' bw='1Gbps' lat='1us' topology='FAT_TREE' "
             "topo_parameters='2;2,2;1,1;1,1'/></platform>");
}

void run_json_seeds(const fs::path& folder, const fs::path& plans) {
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
  PlanFile file{.recipe = recipe, .plan = plan};
  file.plan.nodes[0].groups[0].slow = {1};
  file.plan.nodes[0].groups[0].powers = {{.slow = 2, .watts = 3}};
  file.plan.pace_s = 0.5;
  file.plan.placement = Placement::fixed;
  file.plan.order = {{0}};
  file.buckets = {{0, 64}};
  file.predicted = Prediction{{0.1, 0.1, 0.1}, 1, {{"here", "cpu", 0.1, 1}}};
  write_plan_file(plans / "plan.json", file, graph);
  file.plan.placement = Placement::dynamic;
  file.plan.order.clear();
  file.plan.stages = {
      {"here", "cpu", 0, static_cast<std::uint32_t>(file.plan.segments.size()) - 1}};
  write_plan_file(plans / "stages.json", file, graph);
}

trace::Record small_record() {
  trace::Record record;
  record.workers.push_back({"cpu 0", "cpu", "here", "cpu"});
  record.kinds.push_back({.job = "train", .phases = "forward", .group = "cpu"});
  for (int t = 0; t < 3; ++t) {
    trace::Task task;
    task.id = t;
    task.worker = 0;
    task.step = 1;
    task.submit = task.ready = 10 * t;
    task.start = 10 * t + 2;
    task.end = 10 * t + 9;
    record.tasks.push_back(task);
    if (t > 0) record.dependencies.push_back({t, t - 1});
  }
  return record;
}

void paje_seeds(const fs::path& folder) {
  std::ostringstream text;
  trace::write_paje(text, small_record());
  write_file(folder / "own", text.str());
}

void profile_seeds(const fs::path& folder) {
  fs::remove(folder / "store");
  trace::write_store(folder / "store", small_record());
  fs::remove(folder / "nsight");
  trace::Database(folder / "nsight", trace::Database::Access::make)
      .run(
          "PRAGMA page_size = 512; CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
          "INSERT INTO StringIds VALUES (5, 'gemm');"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId,"
          " shortName); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 1, 5);");
}

void costs_seeds(const fs::path& folder) {
  Profile profile;
  std::vector<Observation> session;
  for (int i = 0; i < 24; ++i)
    session.push_back({i % 2 ? "work" : "runtime task", 1.0 + i % 3, 1 + i % 4 / 2, 1e-3});
  profile.learn(session);
  write_file(
      folder / "profile.json",
      to_json(profile, {.cpu = "cpu", .gpus = {"gpu"}, .libraries = {{"starpu", "1"}}}).dump());
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
  mask_seeds(folder_in(root, "mask"));
  cifar_seeds(folder_in(root, "cifar"));
  tfrecord_seeds(folder_in(root, "tfrecord"));
  image_seeds(folder_in(root, "image"));
  shard_seeds(folder_in(root, "shard"));
  paje_seeds(folder_in(root, "paje"));
  profile_seeds(folder_in(root, "profile"));
  network_seeds(folder_in(root, "network_json"), folder_in(root, "onnx"));
  run_json_seeds(folder_in(root, "run_json"), folder_in(root, "plan"));
  costs_seeds(folder_in(root, "costs"));
  platform_seeds(folder_in(root, "platform"), folder_in(root, "platform_xml"));
  return 0;
}
