// A data set whose samples and labels are two arrays in memory.
#pragma once

#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/npy.h"

namespace regatta {

// An array and the file it came from, for errors.
struct FileArray {
  std::string file;
  NpyArray array;
};

// Takes over `images` (u8 or f32; N x C x H x W, or N x H x W for one channel) without a copy.
// `labels` are N integers from 0. Of `info`, what the arrays tell is filled in; mean and deviation
// are 0 and 1 unless already given. Throws InputError that names the file and the misfit.
std::shared_ptr<const Dataset> array_dataset(DatasetInfo info, FileArray images,
                                             const FileArray& labels);

}  // namespace regatta
