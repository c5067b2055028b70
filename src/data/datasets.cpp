#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/array_dataset.h"
#include "data/augment_sample.h"
#include "data/cifar.h"
#include "data/dataset.h"
#include "data/digits.h"
#include "data/fetch.h"
#include "data/folder.h"
#include "data/idx.h"
#include "data/npy.h"
#include "data/shards.h"
#include "data/synthetic.h"
#include "data/tfrecord.h"

namespace regatta {
namespace {

using ReadArray = NpyArray (*)(const std::filesystem::path&);

std::shared_ptr<const Dataset> open_arrays(DatasetInfo info, ReadArray read,
                                           const std::filesystem::path& images,
                                           const std::filesystem::path& labels,
                                           std::optional<Layout> layout = {}) {
  FileArray image_array{images.string(), read(images)};
  to_nchw(image_array, layout);
  return array_dataset(std::move(info), std::move(image_array), {labels.string(), read(labels)});
}

// MNIST and its relatives, from the cache.
std::shared_ptr<const Dataset> open_fetched(const std::string& name, Split split, float mean,
                                            float deviation, std::vector<std::string> class_names) {
  const std::filesystem::path folder = dataset_folder(name);
  const std::size_t first = split == Split::train ? 0 : 2;
  if (!is_fetched(name))
    throw InputError("data set '" + name + "' is not in '" + folder.string() +
                     "': run 'regatta data get " + name + "'");
  DatasetInfo info;
  info.spec = name;
  info.mean = {mean};
  info.deviation = {deviation};
  info.class_names = std::move(class_names);
  return open_arrays(std::move(info), read_idx, folder / idx_file_names[first],
                     folder / idx_file_names[first + 1]);
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

struct ArrayFiles {
  std::string images, labels;
  std::optional<Layout> layout;
  bool splits_coincide = false;
};

// Behind "npy:" or "idx:": "IMAGES,LABELS" or "IMAGES,LABELS,TEST_IMAGES,TEST_LABELS", and "@nhwc"
// or
// "@nchw" behind if the shape alone would mislead.
ArrayFiles array_files(const std::string& spec, Split split) {
  const std::string kind = spec.substr(0, 3);
  std::string_view list = std::string_view(spec).substr(4);
  ArrayFiles found;
  for (const Layout each : {Layout::nchw, Layout::nhwc})
    if (const std::string suffix = "@" + std::string(layout_name(each)); list.ends_with(suffix)) {
      found.layout = each;
      list.remove_suffix(suffix.size());
    }
  const std::vector<std::string> files = split_at_commas(list);
  bool understood = files.size() == 2 || files.size() == 4;
  for (const std::string& file : files) understood = understood && !file.empty();
  if (!understood)
    throw InputError("data set '" + spec + "': write " + kind + ":IMAGES,LABELS or " + kind +
                     ":IMAGES,LABELS,TEST_IMAGES,TEST_LABELS");
  const std::size_t first = split == Split::test && files.size() == 4 ? 2 : 0;
  found.images = files[first];
  found.labels = files[first + 1];
  found.splits_coincide = files.size() == 2;
  return found;
}

std::shared_ptr<const Dataset> open_files(const std::string& spec, ReadArray read, Split split) {
  const ArrayFiles files = array_files(spec, split);
  DatasetInfo info;
  info.spec = spec;
  info.splits_coincide = files.splits_coincide;
  return open_arrays(std::move(info), read, files.images, files.labels, files.layout);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void Dataset::require_index(std::int64_t index) const {
  if (index < 0 || index >= info_.count)
    throw Error("sample " + std::to_string(index) + " was asked of data set '" + info_.spec +
                "', which has " + std::to_string(info_.count));
}

void Dataset::read(std::span<const Visit> visits, std::byte* samples, std::int32_t* labels) const {
  std::vector<std::int64_t> indices;
  indices.reserve(visits.size());
  for (const Visit& visit : visits) indices.push_back(visit.index);
  read(std::span<const std::int64_t>(indices), samples, labels);
}

std::int32_t Dataset::label(std::int64_t index) const {
  std::vector<std::byte> sample(sample_bytes(info_));
  std::int32_t found = 0;
  read(std::span<const std::int64_t>(&index, 1), sample.data(), &found);
  return found;
}

std::optional<std::int64_t> Dataset::read_encoded(std::int64_t, std::vector<std::byte>&,
                                                  std::int32_t*) const {
  return std::nullopt;
}

std::string Dataset::sample_name(std::int64_t index) const {
  return "sample " + std::to_string(index) + " of " + info_.spec;
}

std::vector<std::int64_t> Dataset::order(std::uint64_t seed, std::int64_t epoch,
                                         bool shuffle) const {
  return epoch_order(info_.count, seed, epoch, shuffle);
}

const std::vector<std::string>& dataset_names() {
  static const std::vector<std::string> names{"mnist", "fashion-mnist", "digits-synth",
                                              "cifar10-synth", "imagenet-synth"};
  return names;
}

namespace {

std::shared_ptr<const Dataset> open_plain(const std::string& spec, const DatasetOptions& options) {
  const auto [split, seed] = std::pair(options.split, options.seed);
  // The means and deviations are those of the training pixels.
  if (spec == "mnist") return open_fetched(spec, split, 0.1307f, 0.3081f, digit_names());
  if (spec == "fashion-mnist")
    return open_fetched(spec, split, 0.2860f, 0.3530f,
                        {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                         "Sneaker", "Bag", "Ankle boot"});
  if (spec == "digits-synth") return digits_dataset(spec, split, seed);
  const auto like = [&](const Shape& sample, int classes, std::int64_t train, std::int64_t test) {
    const Shape size = options.input.value_or(sample);
    // Sizes that cannot be made are told as for synth:.
    parse_synthetic(size.text() + "/" + std::to_string(classes) + "@" + std::to_string(train));
    return synthetic_dataset(spec, {size, classes, train, test, /*any_size=*/true}, split, seed);
  };
  if (spec == "cifar10-synth") return like({3, 32, 32}, 10, 50'000, 10'000);
  if (spec == "imagenet-synth") return like({3, 224, 224}, 1000, 1'281'167, 50'000);
  if (spec.starts_with("synth:"))
    return synthetic_dataset(spec, parse_synthetic(spec.substr(6)), split, seed);
  if (spec.starts_with("idx:")) return open_files(spec, read_idx, split);
  if (spec.starts_with("npy:")) return open_files(spec, read_npy, split);
  if (spec.starts_with("cifar10:"))
    return cifar_dataset(spec, cifar10_form(), spec.substr(8), split);
  if (spec.starts_with("cifar100:"))
    return cifar_dataset(spec, cifar100_form(), spec.substr(9), split);
  throw InputError(
      "data set '" + spec + "' is unknown" + did_you_mean(spec, dataset_names()) + ": use " +
      listed(dataset_names()) +
      ", synth:CxHxW/CLASSES@COUNT, npy:IMAGES,LABELS, idx:IMAGES,LABELS, cifar10:DIR, "
      "cifar100:DIR, folder:DIR, tfrecord:GLOB or shards:DIR");
}

}  // namespace

std::shared_ptr<const Dataset> open_dataset(const std::string& spec,
                                            const DatasetOptions& options) {
  if (spec.starts_with("folder:")) return folder_dataset(spec, spec.substr(7), options);
  if (spec.starts_with("tfrecord:")) return tfrecord_dataset(spec, spec.substr(9), options);
  if (spec.starts_with("shards:"))
    return augmented(shards_dataset(spec, spec.substr(7), options), options.augmentation,
                     options.input);
  return augmented(open_plain(spec, options), options.augmentation);
}

std::int64_t bytes_read_into_memory(const std::string& spec, Split split) {
  if (!spec.starts_with("npy:") && !spec.starts_with("idx:")) return 0;
  const ArrayFiles files = array_files(spec, split);
  std::int64_t bytes = 0;
  for (const std::string& file : {files.images, files.labels}) {
    std::error_code missing;  // opening it will say so
    const std::uintmax_t size = std::filesystem::file_size(file, missing);
    if (!missing) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

std::string absolute_spec(const std::string& spec) {
  const std::string kind = spec.substr(0, spec.find(':') + 1);
  const auto among = [&](std::initializer_list<std::string_view> kinds) {
    return std::ranges::find(kinds, std::string_view(kind)) != kinds.end();
  };
  const bool list = among({"idx:", "npy:", "tfrecord:"});
  if (!list && !among({"folder:", "shards:", "cifar10:", "cifar100:"})) return spec;
  const std::string paths = spec.substr(kind.size());
  std::string absolute;
  for (const std::string& path : list ? split_at_commas(paths) : std::vector{paths}) {
    const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
    absolute += (absolute.empty() ? kind : ",") +
                (whole.has_filename() ? whole : whole.parent_path()).string();
  }
  return absolute;
}

std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch,
                                      bool shuffle) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!shuffle) return order;
  // Fisher and Yates. A remainder of 64 bits favours no index by more than count / 2^64.
  const std::uint64_t stream = stream_of("shuffle") ^ static_cast<std::uint64_t>(epoch);
  for (std::size_t last = order.size(); last-- > 1;)
    std::swap(order[last], order[random_bits(seed, stream, last) % (last + 1)]);
  return order;
}

}  // namespace regatta
