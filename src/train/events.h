// TensorBoard's event files, written by hand: a scalar is three fields of one protocol buffer,
// which is too little to depend on TensorFlow or protobuf for. `tensorboard --logdir FOLDER` shows
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace regatta {

// Appends whole records with one write each, so that a reader at work sees no half record and a
// crash loses nothing that was written before it.
class EventFile {
 public:
  // Creates folder/events.out.tfevents.TIME.HOST.regatta; throws InputError that names it.
  explicit EventFile(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }

  void scalar(std::string_view tag, std::int64_t step, float value);
  // Tells TensorBoard to forget what older files of the folder say of `step` and later ones.
  void restart(std::int64_t step);
  void text(std::string_view tag, std::string_view text);  // markdown, on the Text page

 private:
  void append_record(std::string_view event);

  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace regatta
