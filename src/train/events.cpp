#include "train/events.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "data/tfrecord.h"

namespace regatta {
namespace {

template <class Number>
std::string little_endian(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// Protocol buffers: a field is its number and wire type, then its value.
enum WireType : std::uint64_t {
  varint_type = 0,
  fixed64_type = 1,
  bytes_type = 2,
  fixed32_type = 5
};

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
  return bytes;
}

std::string key(std::uint64_t field, WireType type) { return varint(field << 3 | type); }

std::string number_field(std::uint64_t field, std::int64_t value) {
  return key(field, varint_type) + varint(static_cast<std::uint64_t>(value));
}
std::string double_field(std::uint64_t field, double value) {
  return key(field, fixed64_type) + little_endian(value);
}
std::string float_field(std::uint64_t field, float value) {
  return key(field, fixed32_type) + little_endian(value);
}
std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return key(field, bytes_type) + varint(bytes.size()) + std::string(bytes);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// message Event { double wall_time = 1; int64 step = 2; string file_version = 3;
//                 Summary summary = 5; }
// message Summary { repeated Value value = 1; }
std::string summary_event(std::int64_t step, const std::string& value) {
  return double_field(1, now()) + number_field(2, step) + bytes_field(5, bytes_field(1, value));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || !name[0]) return "localhost";
  return name.data();
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder)
    : path_(folder / ("events.out.tfevents." + std::to_string(static_cast<std::int64_t>(now())) +
                      "." + host_name() + ".regatta")) {
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) throw InputError("cannot create '" + path_.string() + "': " + std::strerror(errno));
  append_record(double_field(1, now()) + bytes_field(3, "brain.Event:2"));
}

// message Value { string tag = 1; float simple_value = 2; TensorProto tensor = 8;
//                 SummaryMetadata metadata = 9; }
void EventFile::scalar(std::string_view tag, std::int64_t step, float value) {
  append_record(summary_event(step, bytes_field(1, tag) + float_field(2, value)));
}

// message SessionLog { SessionStatus status = 1; }, status START = 1, is field 7 of an Event.
void EventFile::restart(std::int64_t step) {
  append_record(double_field(1, now()) + number_field(2, step) +
                bytes_field(7, number_field(1, 1)));
}

// message SummaryMetadata { PluginData plugin_data = 1; }   message PluginData { string name = 1; }
// message TensorProto { DataType dtype = 1; TensorShapeProto shape = 2; bytes string_val = 8; }
void EventFile::text(std::string_view tag, std::string_view text) {
  constexpr std::int64_t string_type = 7;
  const std::string tensor =
      number_field(1, string_type) + bytes_field(2, "") + bytes_field(8, text);
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));
  append_record(
      summary_event(0, bytes_field(1, tag) + bytes_field(8, tensor) + bytes_field(9, metadata)));
}

void EventFile::append_record(std::string_view event) {
  const std::string record = tfrecord_of(event);
  ssize_t wrote = 0;
  do wrote = ::write(file_.get(), record.data(), record.size());
  while (wrote < 0 && errno == EINTR);
  if (wrote < 0) throw InputError("cannot write '" + path_.string() + "': " + std::strerror(errno));
  if (static_cast<std::size_t>(wrote) != record.size())
    throw InputError("cannot write '" + path_.string() + "': the disk is full");
}

}  // namespace regatta
