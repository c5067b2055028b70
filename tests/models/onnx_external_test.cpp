// Weights that an ONNX file keeps outside, as exporters leave those of large networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <functional>

#include "base/files.h"
#include "models/load.h"
#include "ops/builder.h"
#include "support/error_text.h"
#include "support/temporary_folder.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

Graph small_network() {
  NetBuilder net("small", {1, 4, 4});
  const NodeId x = net.conv("conv", net.input(), {.channels = 2, .kernel = 3, .bias = false});
  return std::move(net).finish(net.dense("fc", x, 3));
}

Weights counted_weights(const Graph& graph) {
  Weights weights;
  float next = 0.5F;
  for (const Parameter& parameter : graph.parameters())
    for (std::int64_t i = 0; i < parameter.shape.elements(); ++i)
      weights[parameter.name].push_back(next += 0.25F);
  return weights;
}

class OnnxExternal : public testing::Test {
 protected:
  using Change = std::function<void(onnx::TensorProto&)>;

  static void say(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
    for (onnx::StringStringEntryProto& entry : *tensor.mutable_external_data())
      if (entry.key() == key) return entry.set_value(value);
    onnx::StringStringEntryProto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }

  // net.onnx with all weights in net.onnx.data, one behind the other; `change` is told of the dense
  // layer's weight.
  void write(const Change& change = {}) {
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(write_onnx(graph, weights)));
    std::string data;
    for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
      if (!tensor.has_raw_data()) continue;
      const std::string bytes = tensor.raw_data();
      tensor.clear_raw_data();
      tensor.set_data_location(onnx::TensorProto::EXTERNAL);
      say(tensor, "location", "net.onnx.data");
      say(tensor, "offset", std::to_string(data.size()));
      say(tensor, "length", std::to_string(bytes.size()));
      data += bytes;
      if (change && tensor.name() == "fc.weight") change(tensor);
    }
    write_file(folder.path() / "net.onnx.data", data);
    write_file(folder.path() / "net.onnx", model.SerializeAsString());
  }

  std::string complaint(const Change& change) {
    write(change);
    return error_text([&] { read_model_file(folder.path() / "net.onnx"); });
  }

  const Graph graph = small_network();
  const Weights weights = counted_weights(graph);
  const TemporaryFolder folder;
};

TEST_F(OnnxExternal, WeightsAreReadFromTheFileBeside) {
  write();
  EXPECT_EQ(read_model_file(folder.path() / "net.onnx").weights, weights);
}

TEST_F(OnnxExternal, TheFileIsFoundFromItsOwnFolderToo) {
  write();
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const std::string said = error_text([] { read_model_file("net.onnx"); });
  fs::current_path(before);
  EXPECT_EQ(said, "no error");
}

TEST_F(OnnxExternal, ATensorWithAFileOfItsOwnNeedsNoNumbers) {
  fs::create_directory(folder.path() / "parts");
  const std::vector<float>& values = weights.at("fc.weight");
  write_file(folder.path() / "parts" / "fc.bin",
             {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  write([](onnx::TensorProto& tensor) {
    tensor.clear_external_data();
    say(tensor, "location", "parts/fc.bin");
  });
  EXPECT_EQ(read_model_file(folder.path() / "net.onnx").weights, weights);
}

TEST_F(OnnxExternal, APlaceOutsideTheFolderIsRefused) {
  write_file(folder.path() / "secret", std::string(48, 'x'));
  for (const std::string& place : {std::string("../secret"), std::string("a/../../secret"),
                                   (folder.path() / "secret").string(), std::string()})
    EXPECT_THAT(complaint([&](onnx::TensorProto& tensor) { say(tensor, "location", place); }),
                AllOf(HasSubstr("fc.weight"), HasSubstr("no file of the network's own folder")))
        << place;
  fs::create_symlink("/etc/passwd", folder.path() / "link");
  EXPECT_THAT(complaint([](onnx::TensorProto& tensor) { say(tensor, "location", "link"); }),
              HasSubstr("leads out of the network's folder"));
}

TEST_F(OnnxExternal, AFileThatIsNoneIsNamed) {
  EXPECT_THAT(complaint([](onnx::TensorProto& tensor) { say(tensor, "location", "gone.data"); }),
              AllOf(HasSubstr("'gone.data'"), HasSubstr("No such file")));
  fs::create_directory(folder.path() / "parts");
  EXPECT_THAT(complaint([](onnx::TensorProto& tensor) { say(tensor, "location", "parts"); }),
              HasSubstr("no plain file"));
}

TEST_F(OnnxExternal, LyingOffsetsAndLengthsAreRefused) {
  const auto lie = [&](const char* key, const std::string& value) {
    return complaint([&](onnx::TensorProto& tensor) { say(tensor, key, value); });
  };
  EXPECT_THAT(lie("offset", "1000"), HasSubstr("at byte 1000 of"));
  EXPECT_THAT(lie("offset", "18446744073709551615"), HasSubstr("18446744073709551615"));
  EXPECT_THAT(lie("length", "18446744073709551615"), HasSubstr("which has"));
  EXPECT_THAT(lie("length", "4"), HasSubstr("it needs 96 bytes, but has 4"));
  EXPECT_THAT(lie("offset", "-4"), HasSubstr("'-4', which is no number of bytes"));
  EXPECT_THAT(lie("length", "96 "), HasSubstr("'96 ', which is no number of bytes"));
  EXPECT_THAT(lie("offset", "18446744073709551616"), HasSubstr("no number of bytes"));
}

TEST_F(OnnxExternal, BytesAloneHaveNoFolderToLookIn) {
  write();
  const std::string bytes = read_file(folder.path() / "net.onnx");
  EXPECT_THAT(error_text([&] { read_onnx(std::as_bytes(std::span(bytes))); }),
              HasSubstr("its values are in another file"));
}

}  // namespace
}  // namespace regatta
