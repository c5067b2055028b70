#include "report/page.h"

#include <zlib.h>

#include "base/error.h"
#include "base/version.h"

namespace regatta {
namespace {

// zlib's format, which browsers call "deflate".
std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6);
  if (code != Z_OK) throw Error("zlib could not compress the report: " + std::to_string(code));
  packed.resize(size);
  return packed;
}

// Inside a script element only "<" can end it; JSON may spell it otherwise.
std::string for_script(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

void replace(std::string& text, std::string_view mark, const std::string& with) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) throw Error("the report page lacks " + std::string(mark));
  text.replace(at, mark.size(), with);
}

}  // namespace

PageData::PageData(Json json) : json_(std::move(json)) {
  json_["version"] = version;
  json_["columns"] = Json::array();
}

void PageData::append(const std::string& name, const char* type, std::span<const std::byte> bytes,
                      std::size_t count) {
  bytes_.resize((bytes_.size() + 7) / 8 * 8);  // typed arrays start at multiples of their size
  json_["columns"].push_back(
      {{"name", name}, {"type", type}, {"offset", bytes_.size()}, {"count", count}});
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void PageData::add(const std::string& name, std::span<const double> column) {
  append(name, "f64", std::as_bytes(column), column.size());
}
void PageData::add(const std::string& name, std::span<const float> column) {
  append(name, "f32", std::as_bytes(column), column.size());
}
void PageData::add(const std::string& name, std::span<const std::uint32_t> column) {
  append(name, "u32", std::as_bytes(column), column.size());
}
void PageData::add(const std::string& name, std::span<const std::uint16_t> column) {
  append(name, "u16", std::as_bytes(column), column.size());
}
void PageData::add(const std::string& name, std::span<const std::uint8_t> column) {
  append(name, "u8", std::as_bytes(column), column.size());
}

std::string PageData::html() const {
  if (report_page.empty())
    throw InputError(
        "this regatta was built without its report page; build it with npm there, and without "
        "-DREGATTA_PAGE=OFF");
  std::string page(report_page);
  // Names of files need not be UTF-8; the page must be.
  replace(page, "/*DATA*/", for_script(json_.dump(-1, ' ', false, Json::error_handler_t::replace)));
  replace(page, "/*BYTES*/", bytes_.empty() ? "" : base64(deflated(bytes_)));
  return page;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j)
      three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? digits[three >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace regatta
