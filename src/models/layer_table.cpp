#include "models/layer_table.h"

#include <algorithm>

namespace regatta {
namespace {

using Form = AttributeForm;

// Bounds that no network reaches, so that no product of sizes overflows while shapes are checked.
constexpr double most_channels = 1 << 24;
constexpr double most_extent = 1 << 15;

constexpr AttributeRow kernel{"kernel", Form::pair, 1, most_extent, true};
constexpr AttributeRow stride{"stride", Form::pair, 1, most_extent};
constexpr AttributeRow padding{"padding", Form::padding, 0, most_extent};
constexpr AttributeRow dilation{"dilation", Form::pair, 1, most_extent};
constexpr AttributeRow ceil_flag{"ceil", Form::flag};
constexpr AttributeRow bias{"bias", Form::flag};
constexpr AttributeRow epsilon{"epsilon", Form::real, 1e-12, 1};

// In the order of WeightStart::Kind.
constexpr std::string_view starts[] = {"usual", "he_normal_out", "he_normal_in", "he_uniform_in",
                                       "normal"};
constexpr AttributeRow start{"init", Form::choice, 0, 0, false, starts};
constexpr AttributeRow start_deviation{"init_deviation", Form::real, 0, 1e6};
constexpr AttributeRow start_zero_bias{"init_zero_bias", Form::flag};

constexpr AttributeRow conv[] = {
    {"channels", Form::whole, 1, most_channels, true},
    kernel,
    stride,
    padding,
    dilation,
    {"groups", Form::whole, 1, most_channels},
    bias,
    start,
    start_deviation,
    start_zero_bias,
};
constexpr AttributeRow dense[] = {
    {"features", Form::whole, 1, most_channels, true},
    bias,
    start,
    start_deviation,
    start_zero_bias,
};
constexpr AttributeRow batch_norm[] = {epsilon, {"momentum", Form::real, 0, 1}};
constexpr AttributeRow layer_norm[] = {epsilon};
constexpr AttributeRow max_pool[] = {kernel, stride, padding, dilation, ceil_flag};
constexpr AttributeRow average_pool[] = {
    kernel, stride, padding, ceil_flag, {"count_padding", Form::flag}};
constexpr AttributeRow adaptive_average_pool[] = {{"output", Form::pair, 1, most_extent, true}};
constexpr AttributeRow leaky_relu[] = {{"slope", Form::real, -1e6, 1e6}};
constexpr AttributeRow gelu[] = {{"tanh", Form::flag}};
// Not 1: what is kept is scaled by 1 / (1 - probability).
constexpr AttributeRow dropout[] = {{"probability", Form::real, 0, 0.999}};
constexpr AttributeRow local_response_norm[] = {{"size", Form::whole, 1, most_extent, true},
                                                {"alpha", Form::real, 0, 1e6},
                                                {"beta", Form::real, 0, 1e6},
                                                {"k", Form::real, 0, 1e6}};

constexpr LayerRow rows[] = {
    {"add", {}},
    {"adaptive_average_pool", adaptive_average_pool},
    {"average_pool", average_pool},
    {"batch_norm", batch_norm},
    {"concat", {}},
    {"conv", conv},
    {"dense", dense},
    {"dropout", dropout},
    {"flatten", {}},
    {"gelu", gelu},
    {"global_average_pool", {}},
    {"layer_norm", layer_norm},
    {"leaky_relu", leaky_relu},
    {"local_response_norm", local_response_norm},
    {"max_pool", max_pool},
    {"relu", {}},
    {"relu6", {}},
    {"sigmoid", {}},
    {"tanh", {}},
};

}  // namespace

std::span<const LayerRow> layer_rows() { return rows; }

const LayerRow* layer_row(std::string_view op) {
  const auto found = std::ranges::find(rows, op, &LayerRow::op);
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace regatta
