// CIFAR-10 and CIFAR-100 in their binary versions: records of one or two label bytes and 3 x 32 x
// 32 pixels.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace regatta {

struct CifarForm {
  const char* name;
  int classes;
  int label_bytes;  // the last one counts: CIFAR-100 puts the coarse label first
  std::vector<std::string> train_files, test_files;
  const char* names_file;              // class names, one a line
  const char* usual_folder;            // what the published archive calls its folder
  std::vector<float> mean, deviation;  // of the training pixels
};
const CifarForm& cifar10_form();
const CifarForm& cifar100_form();

struct CifarRecords {
  std::string pixels;  // 3072 bytes a record
  std::vector<std::int32_t> labels;
};

// Appends the records in `bytes`; throws InputError that names `file`: no whole records, or a label
// out of range.
void parse_cifar(std::span<const std::byte> bytes, const CifarForm& form, const std::string& file,
                 CifarRecords& records);

// The files are in `folder` or in the archive's usual folder inside it.
std::shared_ptr<const Dataset> cifar_dataset(const std::string& spec, const CifarForm& form,
                                             const std::filesystem::path& folder, Split split);

}  // namespace regatta
