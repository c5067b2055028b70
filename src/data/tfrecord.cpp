#include "data/tfrecord.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/crc32c.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/regular_file.h"
#include "data/encoded_dataset.h"

namespace regatta {
namespace {

constexpr std::uint64_t header_bytes = 12, footer_bytes = 4;
constexpr std::uint64_t longest_record = std::uint64_t{1} << 30;
constexpr std::int64_t most_classes = 1 << 20;

constexpr std::array<std::string_view, 4> image_keys{"image/encoded", "image", "image_raw", "jpeg"};
constexpr std::array<std::string_view, 3> label_keys{"image/class/label", "label", "class"};
constexpr std::size_t longest_key = 64;  // longer ones are none of ours

template <class Number>
Number number_at(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

// --- where bytes come from: memory, or a file of which only what is looked at is read

class MemorySource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const { return bytes_.size(); }
  void copy(std::uint64_t offset, std::size_t count, char* target) const {
    std::memcpy(target, bytes_.data() + offset, count);
  }

 private:
  std::span<const std::byte> bytes_;
};

void read_at(const Descriptor& file, std::uint64_t offset, std::size_t count, void* target) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = ::pread(file.get(), static_cast<char*>(target) + done, count - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) throw InputError("it shrank while being read");
    done += static_cast<std::size_t>(got);
  }
}

class FileSource {
 public:
  explicit FileSource(const std::string& path) : window_(1 << 14, '\0') {
    require_regular_file(path);
    file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat about {};
    if (!file_ || ::fstat(file_.get(), &about) != 0)
      throw InputError("cannot read '" + path + "': " + std::strerror(errno));
    size_ = static_cast<std::uint64_t>(about.st_size);
  }
  std::uint64_t size() const { return size_; }
  void copy(std::uint64_t offset, std::size_t count, char* target) {
    if (offset < first_ || offset + count > first_ + held_) {
      first_ = offset;
      held_ = static_cast<std::size_t>(std::min<std::uint64_t>(window_.size(), size_ - offset));
      read_at(file_, first_, held_, window_.data());
    }
    std::memcpy(target, window_.data() + (offset - first_), count);
  }

 private:
  Descriptor file_;
  std::uint64_t size_ = 0, first_ = 0;
  std::size_t held_ = 0;
  std::string window_;  // no number or key is longer
};

// --- protocol buffers: a field is its number and wire type, then its value

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class Source>
class MessageReader {
 public:
  MessageReader(Source& source, std::uint64_t begin, std::uint64_t end)
      : source_(source), at_(begin), end_(end) {}

  bool done() const { return at_ >= end_; }
  std::uint64_t at() const { return at_; }
  std::uint64_t end() const { return end_; }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (done()) fail();
      char c;
      source_.copy(at_++, 1, &c);
      const auto byte = static_cast<std::uint8_t>(c);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  // The next field's number; its value comes next.
  std::uint64_t field(WireType& type) {
    const std::uint64_t key = varint();
    type = static_cast<WireType>(key & 7);
    return key >> 3;
  }

  // A length-delimited value, as a message of its own.
  MessageReader inside() {
    const std::uint64_t length = varint();
    if (length > end_ - at_) fail();
    const MessageReader inner(source_, at_, at_ + length);
    at_ += length;
    return inner;
  }

  void skip(WireType type) {
    switch (type) {
      case WireType::varint:
        varint();
        return;
      case WireType::fixed64:
        return advance(8);
      case WireType::fixed32:
        return advance(4);
      case WireType::bytes:
        inside();
        return;
    }
    fail();  // groups are long out of use
  }

  std::string text() {
    if (end_ - at_ > longest_key) return {};
    std::string result(static_cast<std::size_t>(end_ - at_), '\0');
    source_.copy(at_, result.size(), result.data());
    return result;
  }

  [[noreturn]] static void fail() { throw InputError("it is no tf.train.Example"); }

 private:
  void advance(std::uint64_t count) {
    if (count > end_ - at_) fail();
    at_ += count;
  }

  Source& source_;
  std::uint64_t at_, end_;
};

struct FoundExample {
  std::uint64_t image = 0, image_bytes = 0;
  std::optional<std::int64_t> label;
};

// message Feature { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; }
// each with `repeated ... value = 1`, numbers packed or not.
template <class Source>
void read_feature(const std::string& key, MessageReader<Source> feature, FoundExample& found) {
  const bool image = std::ranges::find(image_keys, key) != image_keys.end();
  const bool label = std::ranges::find(label_keys, key) != label_keys.end();
  WireType type{};
  while ((image || label) && !feature.done()) {
    const std::uint64_t kind = feature.field(type);
    if (type != WireType::bytes) {
      feature.skip(type);
      continue;
    }
    MessageReader<Source> list = feature.inside();
    while (!list.done()) {
      const bool value = list.field(type) == 1;
      if (value && image && kind == 1 && type == WireType::bytes) {
        const MessageReader<Source> bytes = list.inside();
        found.image = bytes.at();
        found.image_bytes = bytes.end() - bytes.at();
      } else if (value && label && kind == 3 && type == WireType::varint) {
        found.label = static_cast<std::int64_t>(list.varint());
      } else if (value && label && kind == 3 && type == WireType::bytes) {
        MessageReader<Source> packed = list.inside();
        if (!packed.done()) found.label = static_cast<std::int64_t>(packed.varint());
      } else {
        list.skip(type);
      }
    }
  }
}

// message Example { Features features = 1; }  message Features { map<string, Feature> feature = 1;
// } A map is repeated entries { string key = 1; Feature value = 2; }.
template <class Source>
FoundExample find_in_example(Source& source, std::uint64_t begin, std::uint64_t end) {
  FoundExample found;
  MessageReader<Source> example(source, begin, end);
  WireType type{};
  const auto inside_of = [&](MessageReader<Source>& message, std::uint64_t wanted) {
    std::optional<MessageReader<Source>> inner;
    if (message.field(type) == wanted && type == WireType::bytes)
      inner.emplace(message.inside());
    else
      message.skip(type);
    return inner;
  };
  while (!example.done()) {
    auto features = inside_of(example, 1);
    while (features && !features->done()) {
      auto entry = inside_of(*features, 1);
      std::string key;
      while (entry && !entry->done()) {
        const std::uint64_t field = entry->field(type);
        if (type != WireType::bytes)
          entry->skip(type);
        else if (field == 1)
          key = entry->inside().text();
        else
          read_feature(key, entry->inside(), found);
      }
    }
  }
  return found;
}

// Calls `on_record(place)` for each; lengths are checked, payloads are not.
template <class Source, class OnRecord>
void scan(Source& source, const std::string& name, OnRecord on_record) {
  const auto fail = [&](std::uint64_t at, const std::string& lie) {
    throw InputError("'" + name + "' is not a usable TFRecord file: " + lie + " at byte " +
                     std::to_string(at));
  };
  for (std::uint64_t at = 0; at < source.size();) {
    const std::uint64_t left = source.size() - at;
    if (left < header_bytes + footer_bytes) fail(at, "it is cut off");
    std::array<char, header_bytes> header{};
    source.copy(at, header.size(), header.data());
    if (masked_crc32c({header.data(), 8}) != number_at<std::uint32_t>(header.data() + 8))
      fail(at, "the checksum of a length is wrong");
    const auto length = number_at<std::uint64_t>(header.data());
    if (length > longest_record) fail(at, "a record claims " + std::to_string(length) + " bytes");
    if (length > left - header_bytes - footer_bytes) fail(at, "a record is cut off");
    on_record(RecordPlace{at + header_bytes, length});
    at += header_bytes + length + footer_bytes;
  }
}

struct LabelledRecord {
  RecordPlace place;
  std::int32_t label = 0;
};

std::vector<LabelledRecord> index_of(const std::string& path) {
  FileSource source(path);
  std::vector<LabelledRecord> records;
  scan(source, path, [&](const RecordPlace& place) {
    const auto fail = [&](const std::string& what) {
      throw InputError("'" + path + "', record " + std::to_string(records.size()) + ": " + what);
    };
    FoundExample found;
    try {
      found = find_in_example(source, place.offset, place.offset + place.bytes);
    } catch (const InputError& error) {
      fail(error.what());
    }
    if (!found.label) fail("it has no int64 feature image/class/label or label");
    if (*found.label < 0 || *found.label >= most_classes)
      fail("its label is " + std::to_string(*found.label));
    records.push_back({place, static_cast<std::int32_t>(*found.label)});
  });
  return records;
}

std::vector<std::string> files_of(const std::string& pattern) {
  glob_t found{};
  const int code = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (code != 0 || files.empty()) throw InputError("no TFRecord file matches '" + pattern + "'");
  return files;
}

class TfrecordStore final : public ImageStore {
 public:
  explicit TfrecordStore(std::vector<std::string> files) : files_(std::move(files)) {
    std::vector<std::vector<LabelledRecord>> by_file(files_.size());
    std::vector<std::exception_ptr> failures(files_.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < files_.size(); i = next++) try {
          by_file[i] = index_of(files_[i]);
        } catch (...) {
          failures[i] = std::current_exception();
        }
    };
    {
      std::vector<std::jthread> threads;
      const std::size_t most = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
      for (std::size_t i = 1; i < std::min(most, files_.size()); ++i) threads.emplace_back(work);
      work();
    }
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    for (const auto& records : by_file) {
      records_.insert(records_.end(), records.begin(), records.end());
      ends_.push_back(std::ssize(records_));
    }
  }

  std::int64_t count() const override { return std::ssize(records_); }
  std::int32_t label(std::int64_t index) const override {
    return records_[static_cast<std::size_t>(index)].label;
  }
  std::string name(std::int64_t index) const override {
    const std::size_t file = file_of(index);
    return files_[file] + " record " + std::to_string(index - (file == 0 ? 0 : ends_[file - 1]));
  }
  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const LabelledRecord& record : records_)
      sum += static_cast<std::int64_t>(record.place.bytes + header_bytes + footer_bytes);
    return sum;
  }

  Json identity() const override {
    std::vector<std::uint64_t> numbers;
    for (const LabelledRecord& record : records_) {
      numbers.push_back(record.place.bytes);
      numbers.push_back(static_cast<std::uint64_t>(record.label));
    }
    return {{"record sizes and labels", crc32c({reinterpret_cast<const char*>(numbers.data()),
                                                numbers.size() * sizeof(std::uint64_t)})}};
  }

  void fetch(std::int64_t index, std::vector<std::byte>& bytes) const override {
    const RecordPlace& place = records_[static_cast<std::size_t>(index)].place;
    const Descriptor file(::open(files_[file_of(index)].c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw InputError(std::strerror(errno));
    thread_local std::vector<std::byte> record;
    record.resize(place.bytes + footer_bytes);
    read_at(file, place.offset, record.size(), record.data());
    const std::span<const std::byte> payload(record.data(), place.bytes);
    const auto* text = reinterpret_cast<const char*>(record.data());
    if (masked_crc32c({text, place.bytes}) != number_at<std::uint32_t>(text + place.bytes))
      throw InputError("its checksum is wrong");
    const std::span<const std::byte> image = parse_image_example(payload).image;
    if (image.empty()) throw InputError("it has no bytes feature image/encoded or image");
    bytes.assign(image.begin(), image.end());
  }

  void require_present() const override {
    const bool present = std::ranges::any_of(
        files_, [](const std::string& file) { return std::filesystem::exists(file); });
    if (!present)
      throw InputError("the data has gone: '" + files_.front() + "' is no longer there");
  }

  int classes() const {
    return records_.empty() ? 0 : std::ranges::max(records_, {}, &LabelledRecord::label).label + 1;
  }

 private:
  std::size_t file_of(std::int64_t index) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  }

  std::vector<std::string> files_;
  std::vector<std::int64_t> ends_;  // of each file's records
  std::vector<LabelledRecord> records_;
};

template <class Number>
std::string little_endian(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

}  // namespace

ImageExample parse_image_example(std::span<const std::byte> bytes) {
  MemorySource source(bytes);
  const FoundExample found = find_in_example(source, 0, bytes.size());
  return {bytes.subspan(found.image, found.image_bytes), found.label};
}

std::vector<RecordPlace> parse_tfrecord(std::span<const std::byte> bytes, const std::string& name) {
  MemorySource source(bytes);
  std::vector<RecordPlace> places;
  scan(source, name, [&](const RecordPlace& place) {
    const auto* payload = reinterpret_cast<const char*>(bytes.data() + place.offset);
    if (masked_crc32c({payload, place.bytes}) != number_at<std::uint32_t>(payload + place.bytes))
      throw InputError("'" + name + "' is not a usable TFRecord file: the checksum of record " +
                       std::to_string(places.size()) + " is wrong");
    places.push_back(place);
  });
  return places;
}

std::int64_t count_tfrecords(const std::string& path) {
  FileSource source(path);
  std::int64_t count = 0;
  scan(source, path, [&](const RecordPlace&) { ++count; });
  return count;
}

std::string tfrecord_of(std::string_view payload) {
  const std::string length = little_endian(static_cast<std::uint64_t>(payload.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(payload) +
         little_endian(masked_crc32c(payload));
}

std::shared_ptr<const Dataset> tfrecord_dataset(const std::string& spec, const std::string& globs,
                                                const DatasetOptions& options) {
  const std::size_t comma = globs.find(',');
  const bool alone = comma == std::string::npos;
  const std::string train = globs.substr(0, comma);
  const std::string wanted =
      alone || options.split == Split::train ? train : globs.substr(comma + 1);
  auto store = std::make_unique<const TfrecordStore>(files_of(wanted));
  if (store->count() == 0) throw InputError("data set '" + spec + "' has no records");
  DatasetInfo info;
  info.spec = spec;
  info.classes = store->classes();
  info.splits_coincide = alone;
  return encoded_dataset(std::move(info), std::move(store), options);
}

}  // namespace regatta
