// Event files as somebody else reads them: framed by checksums that are computed another way, and
// parsed by protobuf itself from TensorBoard's definitions of the messages.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "report/page.h"
#include "support/program_run.h"
#include "support/temporary_folder.h"
#include "train/events.h"

namespace regatta {
namespace {

namespace pb = google::protobuf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

// As in tensorboard/compat/proto, as far as our files use them. Fields we never write are there
// too where a mistake in a number would hit them.
constexpr const char* definitions = R"(
  name: "event.proto" package: "tensorboard" syntax: "proto3"
  message_type { name: "Event"
    field { name: "wall_time" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
    field { name: "step" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL }
    field { name: "file_version" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
    field { name: "graph_def" number: 4 type: TYPE_BYTES label: LABEL_OPTIONAL oneof_index: 0 }
    field { name: "summary" number: 5 type: TYPE_MESSAGE type_name: ".tensorboard.Summary"
            label: LABEL_OPTIONAL oneof_index: 0 }
    field { name: "session_log" number: 7 type: TYPE_MESSAGE type_name: ".tensorboard.SessionLog"
            label: LABEL_OPTIONAL oneof_index: 0 }
    oneof_decl { name: "what" } }
  message_type { name: "SessionLog"
    field { name: "status" number: 1 type: TYPE_ENUM type_name: ".tensorboard.SessionStatus"
            label: LABEL_OPTIONAL }
    field { name: "checkpoint_path" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "msg" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL } }
  enum_type { name: "SessionStatus"
    value { name: "STATUS_UNSPECIFIED" number: 0 } value { name: "START" number: 1 }
    value { name: "STOP" number: 2 } value { name: "CHECKPOINT" number: 3 } }
  message_type { name: "Summary"
    field { name: "value" number: 1 type: TYPE_MESSAGE type_name: ".tensorboard.Value"
            label: LABEL_REPEATED } }
  message_type { name: "Value"
    field { name: "node_name" number: 7 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "tag" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "metadata" number: 9 type: TYPE_MESSAGE type_name: ".tensorboard.Metadata"
            label: LABEL_OPTIONAL }
    field { name: "simple_value" number: 2 type: TYPE_FLOAT label: LABEL_OPTIONAL oneof_index: 0 }
    field { name: "tensor" number: 8 type: TYPE_MESSAGE type_name: ".tensorboard.Tensor"
            label: LABEL_OPTIONAL oneof_index: 0 }
    oneof_decl { name: "value" } }
  message_type { name: "Metadata"
    field { name: "plugin_data" number: 1 type: TYPE_MESSAGE type_name: ".tensorboard.PluginData"
            label: LABEL_OPTIONAL }
    field { name: "display_name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
  message_type { name: "PluginData"
    field { name: "plugin_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "content" number: 2 type: TYPE_BYTES label: LABEL_OPTIONAL } }
  message_type { name: "Tensor"
    field { name: "dtype" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
    field { name: "tensor_shape" number: 2 type: TYPE_MESSAGE type_name: ".tensorboard.Shape"
            label: LABEL_OPTIONAL }
    field { name: "version_number" number: 3 type: TYPE_INT32 label: LABEL_OPTIONAL }
    field { name: "tensor_content" number: 4 type: TYPE_BYTES label: LABEL_OPTIONAL }
    field { name: "string_val" number: 8 type: TYPE_BYTES label: LABEL_REPEATED } }
  message_type { name: "Shape"
    field { name: "unknown_rank" number: 3 type: TYPE_BOOL label: LABEL_OPTIONAL } }
)";

// CRC-32C by a table over the reflected polynomial of Castagnoli.
std::uint32_t table_crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < made.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0x82f63b78u : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::uint32_t expected_mark(std::string_view bytes) {
  const std::uint32_t crc = table_crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

class Messages {
 public:
  Messages() {
    pb::FileDescriptorProto file;
    if (!pb::TextFormat::ParseFromString(definitions, &file)) throw Error("bad definitions");
    const pb::FileDescriptor* built = pool_.BuildFile(file);
    if (!built) throw Error("bad definitions");
    event_ = built->FindMessageTypeByName("Event");
  }

  // Every record of the file, its checksums looked at, parsed to the last byte.
  std::vector<std::unique_ptr<pb::Message>> read(const std::filesystem::path& path) {
    const std::string file = read_file(path);
    std::vector<std::unique_ptr<pb::Message>> events;
    std::size_t at = 0;
    while (at < file.size()) {
      std::uint64_t length = 0;
      std::uint32_t length_mark = 0, data_mark = 0;
      if (file.size() - at < 16) throw Error("cut");
      std::memcpy(&length, file.data() + at, 8);
      std::memcpy(&length_mark, file.data() + at + 8, 4);
      EXPECT_EQ(length_mark, expected_mark({file.data() + at, 8}));
      if (file.size() - at < 16 + length) throw Error("cut");
      const std::string_view data(file.data() + at + 12, length);
      std::memcpy(&data_mark, file.data() + at + 12 + length, 4);
      EXPECT_EQ(data_mark, expected_mark(data));
      events.emplace_back(factory_.GetPrototype(event_)->New());
      EXPECT_TRUE(events.back()->ParseFromArray(data.data(), static_cast<int>(data.size())));
      EXPECT_EQ(unknown_fields(*events.back()), 0);
      at += 16 + length;
    }
    return events;
  }

 private:
  static int unknown_fields(const pb::Message& message) {
    const pb::Reflection& reflection = *message.GetReflection();
    int count = reflection.GetUnknownFields(message).field_count();
    std::vector<const pb::FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const pb::FieldDescriptor* field : fields) {
      if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        count += unknown_fields(reflection.GetMessage(message, field));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i)
        count += unknown_fields(reflection.GetRepeatedMessage(message, field, i));
    }
    return count;
  }

  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_{&pool_};
  const pb::Descriptor* event_ = nullptr;
};

const pb::FieldDescriptor* field(const pb::Message& of, const char* name) {
  return of.GetDescriptor()->FindFieldByName(name);
}
bool has(const pb::Message& of, const char* name) {
  return of.GetReflection()->HasField(of, field(of, name));
}
const pb::Message& message(const pb::Message& of, const char* name) {
  return of.GetReflection()->GetMessage(of, field(of, name));
}
const pb::Message& only_value(const pb::Message& event) {
  const pb::Message& summary = message(event, "summary");
  const pb::FieldDescriptor* values = field(summary, "value");
  EXPECT_EQ(summary.GetReflection()->FieldSize(summary, values), 1);
  return summary.GetReflection()->GetRepeatedMessage(summary, values, 0);
}
std::string text(const pb::Message& of, const char* name) {
  return of.GetReflection()->GetString(of, field(of, name));
}
std::int64_t step_of(const pb::Message& event) {
  return event.GetReflection()->GetInt64(event, field(event, "step"));
}
float scalar(const pb::Message& value) {
  return value.GetReflection()->GetFloat(value, field(value, "simple_value"));
}
// What the Text page shows of a value.
std::string shown_text(const pb::Message& value) {
  EXPECT_EQ(text(message(message(value, "metadata"), "plugin_data"), "plugin_name"), "text");
  const pb::Message& tensor = message(value, "tensor");
  EXPECT_EQ(tensor.GetReflection()->GetInt32(tensor, field(tensor, "dtype")), 7);  // DT_STRING
  return tensor.GetReflection()->GetRepeatedString(tensor, field(tensor, "string_val"), 0);
}

TEST(EventMessages, AreWhatProtobufReads) {
  const TemporaryFolder folder;
  EventFile events(folder.path());
  events.scalar("train/loss", 3, 2.5f);
  events.scalar("train/loss", 1'000'000'000'000, -0.125f);
  events.restart(17);
  events.text("plan", "**one** segment\n\xc3\xa9");
  Messages messages;
  const auto found = messages.read(events.path());
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(text(*found[0], "file_version"), "brain.Event:2");
  EXPECT_EQ(step_of(*found[1]), 3);
  EXPECT_EQ(text(only_value(*found[1]), "tag"), "train/loss");
  EXPECT_EQ(scalar(only_value(*found[1])), 2.5f);
  EXPECT_EQ(step_of(*found[2]), 1'000'000'000'000);
  EXPECT_EQ(scalar(only_value(*found[2])), -0.125f);
  EXPECT_EQ(step_of(*found[3]), 17);
  const pb::Message& log = message(*found[3], "session_log");
  EXPECT_EQ(log.GetReflection()->GetEnumValue(log, field(log, "status")), 1);
  EXPECT_EQ(text(only_value(*found[4]), "tag"), "plan");
  EXPECT_EQ(shown_text(only_value(*found[4])), "**one** segment\n\xc3\xa9");
  for (const auto& event : found)
    EXPECT_GT(event->GetReflection()->GetDouble(*event, field(*event, "wall_time")), 1.7e9);
}

TEST(EventMessages, OfATracedRunHoldItsCurvesAndItsPlan) {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const ProgramRun result =
      run_regatta({"train", "--model", "tiny", "--data", "digits-synth", "--batch", "16", "--steps",
                   "12", "--workers", "1", "--test", "none", "--trace", "--out", run});
  ASSERT_EQ(result.code, 0) << result.err;
  Messages messages;
  std::multimap<std::string, std::int64_t> scalars;
  std::string plan;
  for (const auto& file : std::filesystem::directory_iterator(run)) {
    if (!file.path().filename().string().starts_with("events.out.tfevents.")) continue;
    for (const auto& event : messages.read(file.path())) {
      if (!has(*event, "summary")) continue;
      const pb::Message& value = only_value(*event);
      if (has(value, "simple_value"))
        scalars.emplace(text(value, "tag"), step_of(*event));
      else if (text(value, "tag") == "plan")
        plan = shown_text(value);
    }
  }
  for (const char* tag : {"train/loss", "train/learning_rate", "train/images_per_s"})
    EXPECT_THAT(scalars, Contains(Pair(tag, 1)));
  if (!report_page.empty()) {  // they come with the report
    for (const char* tag : {"trace/idle_share", "trace/joules"})
      EXPECT_THAT(scalars, Contains(Pair(tag, 12)));
  }
  EXPECT_THAT(plan, HasSubstr("segment"));
}

}  // namespace
}  // namespace regatta
