// A data set whose samples and labels are two arrays in memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/npy.h"

namespace regatta {

// An array and the file it came from, for errors.
struct FileArray {
  std::string file;
  NpyArray array;
};

// Images stored as N x H x W x C become N x C x H x W. Without `stored` the shape tells: the last
// extent is 1 or 3, the others are no channels.
void to_nchw(FileArray& images, std::optional<Layout> stored);

// Takes over `images` (u8 or f32; N x C x H x W, or N x H x W for one channel) without a copy.
// `labels` are N integers from 0. Of `info`, what the arrays tell is filled in; mean and deviation
// are 0 and 1 unless already given, and there are as many classes as the labels show, or more if
// given. Throws InputError that names the file and the misfit.
std::shared_ptr<const Dataset> array_dataset(DatasetInfo info, FileArray images,
                                             const FileArray& labels);

}  // namespace regatta
