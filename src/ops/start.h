// How the parameters of convolutions and dense layers start out. Attributes: "init" (0, a
// WeightStart::Kind), "init_deviation" (0.01) of normal weights, "init_zero_bias" (0).
#pragma once

#include <cmath>

#include "graph/op.h"
#include "regatta/layers.h"

namespace regatta {

inline Init weight_start(const Node& node, double fan_in, double fan_out) {
  using Kind = WeightStart::Kind;
  switch (static_cast<Kind>(node.attributes.integer("init", 0))) {
    case Kind::he_normal_out:
      return {Init::Kind::normal, std::sqrt(2.0 / fan_out)};
    case Kind::he_normal_in:
      return {Init::Kind::normal, std::sqrt(2.0 / fan_in)};
    case Kind::he_uniform_in:
      return {Init::Kind::uniform, std::sqrt(6.0 / fan_in)};
    case Kind::normal:
      return {Init::Kind::normal, node.attributes.real("init_deviation", 0.01)};
    case Kind::usual:
      break;
  }
  return {Init::Kind::uniform, 1.0 / std::sqrt(fan_in)};
}

inline Init bias_start(const Node& node, double fan_in) {
  if (node.attributes.flag("init_zero_bias")) return {Init::Kind::zeros};
  return {Init::Kind::uniform, 1.0 / std::sqrt(fan_in)};
}

}  // namespace regatta
