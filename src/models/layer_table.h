// What a layer of a network file may say: one row per operator, with the attributes it takes, the
// form each is written in and the range that makes sense. schemas/model.schema.json says the same
// to editors; a test compares the two.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace regatta {

enum class AttributeForm {
  whole,    // 64
  flag,     // true or false
  real,     // 0.1
  pair,     // 3 or [3, 5]: height and width
  padding,  // 1, [1, 2] or [top, left, bottom, right]
  choice,   // a word
};

struct AttributeRow {
  std::string_view name;
  AttributeForm form = AttributeForm::whole;
  double least = 0, most = 0;  // of numbers
  bool required = false;
  std::span<const std::string_view> choices = {};  // the graph holds a word as its place here
};

struct LayerRow {
  std::string_view op;
  std::span<const AttributeRow> attributes;
};

// Every operator a network file may name; the input and the loss are not layers of it.
std::span<const LayerRow> layer_rows();

// Null if there is none.
const LayerRow* layer_row(std::string_view op);

}  // namespace regatta
