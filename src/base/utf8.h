// Names of files need not be UTF-8, but JSON must be.
#pragma once

#include <string>

#include "base/json.h"

namespace regatta {

// The text with a replacement character for each byte that is not UTF-8.
inline std::string valid_utf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace regatta
