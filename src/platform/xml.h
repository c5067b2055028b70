// As much of XML as platform files use: elements, attributes, comments, declarations.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::vector<XmlElement> children;
  int line = 1;
};

// The outermost element. Throws InputError that names `who` and the line.
XmlElement parse_xml(std::string_view text, const std::string& who);

std::string xml_escaped(std::string_view text);

}  // namespace regatta
