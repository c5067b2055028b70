#include "platform/xml.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace regatta {
namespace {

constexpr int deepest = 100;
constexpr std::array<std::pair<std::string_view, char>, 5> entities{
    {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};

class Parser {
 public:
  Parser(std::string_view text, const std::string& who) : text_(text), who_(who) {}

  XmlElement parse() {
    skip_between();
    if (!starts("<")) fail("no element");
    XmlElement root = element(0);
    skip_between();
    if (at_ < text_.size()) fail("something follows the outermost element");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(who_ + ", line " + std::to_string(line_) + ": " + what);
  }
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void advance(std::size_t count) {
    const std::string_view passed = text_.substr(at_, count);
    line_ += static_cast<int>(std::ranges::count(passed, '\n'));
    at_ += passed.size();
  }
  void skip_to_end_of(std::string_view what) {
    const std::size_t end = text_.find(what, at_);
    if (end == std::string_view::npos) fail("it breaks off");
    advance(end + what.size() - at_);
  }
  void skip_space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      advance(1);
  }
  // Space, comments and declarations.
  void skip_between() {
    for (;;) {
      skip_space();
      if (starts("<!--"))
        skip_to_end_of("-->");
      else if (starts("<?"))
        skip_to_end_of("?>");
      else if (starts("<!DOCTYPE"))
        skip_to_end_of(">");
      else
        return;
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    const auto belongs = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.' || c == ':';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == begin) fail("a name is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string value() {
    if (!starts("\"") && !starts("'")) fail("an attribute's value is not quoted");
    const char quote = text_[at_];
    advance(1);
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("an attribute's value has no end");
    const std::string_view raw = text_.substr(at_, end - at_);
    std::string plain;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == '<') fail("a value holds '<'");
      if (raw[i] != '&') {
        plain += raw[i];
        continue;
      }
      const std::size_t stop = std::min(raw.find(';', i), raw.size());
      const std::string_view entity = raw.substr(i + 1, stop - i - 1);
      const auto found =
          std::ranges::find(entities, entity, &decltype(entities)::value_type::first);
      if (found == entities.end()) fail("an entity that is not known");
      plain += found->second;
      i = stop;
    }
    advance(raw.size() + 1);
    return plain;
  }

  XmlElement element(int depth) {
    if (depth > deepest) fail("elements are nested too deep");
    XmlElement made;
    made.line = line_;
    advance(1);
    made.name = name();
    for (;;) {
      skip_space();
      if (starts("/>")) {
        advance(2);
        return made;
      }
      if (starts(">")) break;
      if (at_ >= text_.size()) fail("<" + made.name + "> breaks off");
      const std::string key = name();
      skip_space();
      if (!starts("=")) fail("attribute '" + key + "' has no value");
      advance(1);
      skip_space();
      if (!made.attributes.emplace(key, value()).second)
        fail("attribute '" + key + "' is there twice");
    }
    advance(1);
    for (;;) {
      skip_between();
      if (starts("</")) break;
      if (!starts("<"))
        fail(at_ < text_.size() ? "text inside <" + made.name + ">"
                                : "<" + made.name + "> has no end");
      made.children.push_back(element(depth + 1));
    }
    advance(2);
    if (name() != made.name) fail("<" + made.name + "> is closed by another name");
    skip_space();
    if (!starts(">")) fail("</" + made.name + "> has no end");
    advance(1);
    return made;
  }

  std::string_view text_;
  const std::string& who_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

XmlElement parse_xml(std::string_view text, const std::string& who) {
  return Parser(text, who).parse();
}

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto found = std::ranges::find(entities, c, &decltype(entities)::value_type::second);
    if (found == entities.end())
      escaped += c;
    else
      escaped += "&" + std::string(found->first) + ";";
  }
  return escaped;
}

}  // namespace regatta
