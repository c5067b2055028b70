// The page people look at: one HTML file that needs nothing else. The program carries it with its
// scripts and charts (web/); here it is filled with data.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace regatta {

// Empty if the program was built without it.
extern const std::string_view report_page;

// What a page shows: a JSON object, and columns of numbers, which would be slow as text.
class PageData {
 public:
  explicit PageData(Json json);

  Json& json() { return json_; }
  const Json& json() const { return json_; }
  void add(const std::string& name, std::span<const double> column);
  void add(const std::string& name, std::span<const float> column);
  void add(const std::string& name, std::span<const std::uint32_t> column);
  void add(const std::string& name, std::span<const std::uint16_t> column);
  void add(const std::string& name, std::span<const std::uint8_t> column);

  // Throws InputError if the program was built without the page.
  std::string html() const;

 private:
  void append(const std::string& name, const char* type, std::span<const std::byte> bytes,
              std::size_t count);

  Json json_;
  std::string bytes_;
};

std::string base64(std::string_view bytes);

}  // namespace regatta
