#include "data/cifar.h"

#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "data/array_dataset.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t pixels = std::size_t{3} * 32 * 32;

// One a line; without the file, labels have no names.
std::vector<std::string> class_names(const fs::path& file, int classes) {
  std::vector<std::string> names;
  if (!fs::exists(file)) return names;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) names.push_back(line);
  if (std::ssize(names) != classes) names.clear();
  return names;
}

}  // namespace

const CifarForm& cifar10_form() {
  static const CifarForm form{"cifar10",
                              10,
                              1,
                              {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                               "data_batch_4.bin", "data_batch_5.bin"},
                              {"test_batch.bin"},
                              "batches.meta.txt",
                              "cifar-10-batches-bin",
                              {0.4914f, 0.4822f, 0.4465f},
                              {0.2470f, 0.2435f, 0.2616f}};
  return form;
}

const CifarForm& cifar100_form() {
  static const CifarForm form{"cifar100",
                              100,
                              2,
                              {"train.bin"},
                              {"test.bin"},
                              "fine_label_names.txt",
                              "cifar-100-binary",
                              {0.5071f, 0.4865f, 0.4409f},
                              {0.2673f, 0.2564f, 0.2762f}};
  return form;
}

void parse_cifar(std::span<const std::byte> bytes, const CifarForm& form, const std::string& file,
                 CifarRecords& records) {
  const std::size_t label_bytes = static_cast<std::size_t>(form.label_bytes);
  const std::size_t record = label_bytes + pixels;
  if (bytes.empty() || bytes.size() % record != 0)
    throw InputError("'" + file + "' has " + std::to_string(bytes.size()) +
                     " bytes, which are no whole records of " + std::to_string(record) +
                     ": is it " + form.name + "'s binary version?");
  for (std::size_t at = 0; at < bytes.size(); at += record) {
    const int label = std::to_integer<int>(bytes[at + label_bytes - 1]);
    if (label >= form.classes)
      throw InputError("'" + file + "' has label " + std::to_string(label) + " in record " +
                       std::to_string(at / record) + "; " + form.name + " has labels up to " +
                       std::to_string(form.classes - 1));
    records.labels.push_back(label);
    records.pixels.append(reinterpret_cast<const char*>(bytes.data() + at + label_bytes), pixels);
  }
}

std::shared_ptr<const Dataset> cifar_dataset(const std::string& spec, const CifarForm& form,
                                             const fs::path& folder, Split split) {
  const auto& files = split == Split::train ? form.train_files : form.test_files;
  fs::path place = folder;
  if (!fs::exists(place / files.front())) place = folder / form.usual_folder;
  if (!fs::exists(place / files.front()))
    throw InputError("data set '" + spec + "': neither '" + folder.string() + "' nor its '" +
                     form.usual_folder + "' has " + files.front());
  CifarRecords records;
  for (const std::string& name : files) {
    const std::string bytes = read_file(place / name);
    parse_cifar(std::as_bytes(std::span(bytes)), form, (place / name).string(), records);
  }
  const auto count = std::ssize(records.labels);
  DatasetInfo info;
  info.spec = spec;
  info.mean = form.mean;
  info.deviation = form.deviation;
  info.classes = form.classes;
  info.class_names = class_names(place / form.names_file, form.classes);
  NpyArray labels{Dtype::i32, {count}, {}};
  labels.bytes.assign(reinterpret_cast<const char*>(records.labels.data()),
                      records.labels.size() * sizeof(std::int32_t));
  return array_dataset(
      std::move(info),
      {place.string(), NpyArray{Dtype::u8, {count, 3, 32, 32}, std::move(records.pixels)}},
      {place.string(), std::move(labels)});
}

}  // namespace regatta
