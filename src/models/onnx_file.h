// A network of an ONNX file, with the weights that the file may keep in others beside it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "models/onnx.h"

namespace regatta {

// As read_onnx, but weights that the file keeps outside are read from `folder`, the one it lies in.
OnnxModel read_onnx_file(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                         const std::optional<Shape>& input = {});

}  // namespace regatta
