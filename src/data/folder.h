// folder:DIR: images as files, a folder for each class: DIR/CLASS/*.jpg, or DIR/train/CLASS/*.jpg
// and DIR/test/CLASS/*.jpg (or val, validation).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace regatta {

// Classes are the folders, sorted by name; images are .jpg, .jpeg and .png files however deep in
// them, sorted by path; links to folders are followed, each folder once a class. The test split's
// classes are the training ones'.
std::shared_ptr<const Dataset> folder_dataset(const std::string& spec,
                                              const std::filesystem::path& folder,
                                              const DatasetOptions& options);

// The .jpg, .jpeg and .png files in a folder, however deep, sorted.
std::vector<std::string> images_under(const std::filesystem::path& folder);

// These images in this order, all with label 0: for those of whom nobody knows the class.
std::shared_ptr<const Dataset> files_dataset(const std::vector<std::string>& files,
                                             const DatasetOptions& options);

}  // namespace regatta
