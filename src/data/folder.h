// folder:DIR: images as files, a folder for each class: DIR/CLASS/*.jpg, or DIR/train/CLASS/*.jpg
// and DIR/test/CLASS/*.jpg (or val, validation).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset.h"

namespace regatta {

// Classes are the folders, sorted by name; images are .jpg, .jpeg and .png files however deep in
// them, sorted by path; links to folders are followed, each folder once a class. The test split's
// classes are the training ones'.
std::shared_ptr<const Dataset> folder_dataset(const std::string& spec,
                                              const std::filesystem::path& folder,
                                              const DatasetOptions& options);

}  // namespace regatta
