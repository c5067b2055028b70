// Inception v3 (Szegedy et al. 2015) without the auxiliary head. Branches carry torchvision's
// names; a Mixed module is called after where it stands, InceptionA to E after what it does.
#include <string>
#include <utility>

#include "models/models.h"
#include "ops/builder.h"

namespace regatta {
namespace {

class InceptionBuilder {
 public:
  explicit InceptionBuilder(const Shape& input) : net_("inception_v3", input) {}

  Graph build(std::int64_t classes) && {
    NodeId x = conv("Conv2d_1a_3x3", net_.input(), {.channels = 32, .kernel = 3, .stride = 2});
    x = conv("Conv2d_2a_3x3", x, {.channels = 32, .kernel = 3});
    x = conv("Conv2d_2b_3x3", x, {.channels = 64, .kernel = 3, .padding = 1});
    x = shrink(x);
    x = conv("Conv2d_3b_1x1", x, {.channels = 80});
    x = conv("Conv2d_4a_3x3", x, {.channels = 192, .kernel = 3});
    x = shrink(x);
    x = module_a("Mixed_5b", x, 32);
    x = module_a("Mixed_5c", x, 64);
    x = module_a("Mixed_5d", x, 64);
    x = module_b("Mixed_6a", x);
    x = module_c("Mixed_6b", x, 128);
    x = module_c("Mixed_6c", x, 160);
    x = module_c("Mixed_6d", x, 160);
    x = module_c("Mixed_6e", x, 192);
    x = module_d("Mixed_7a", x);
    x = module_e("Mixed_7b", x);
    x = module_e("Mixed_7c", x);
    x = net_.dropout("dropout", net_.global_average_pool(x), 0.5);
    x = net_.dense("fc", x, classes, {.start = start});
    return std::move(net_).finish(x);
  }

 private:
  // torchvision cuts the normal off at 20 deviations, where nothing is left to cut.
  static constexpr WeightStart start{.kind = WeightStart::Kind::normal, .deviation = 0.1};

  NodeId conv(const std::string& name, NodeId from, ConvSettings settings) {
    settings.bias = false;
    settings.start = start;
    const NodeId x = net_.conv(name + ".conv", from, settings);
    return net_.relu(net_.batch_norm(name + ".bn", x, {.epsilon = 1e-3}));
  }

  NodeId conv_3x3(const std::string& name, NodeId from, std::int64_t channels) {
    return conv(name, from, {.channels = channels, .kernel = 3, .padding = 1});
  }
  // Long kernels in one direction.
  NodeId along_row(const std::string& name, NodeId from, std::int64_t channels, std::int64_t size) {
    return conv(name, from, {.channels = channels, .kernel = {1, size}, .padding = {0, size / 2}});
  }
  NodeId along_column(const std::string& name, NodeId from, std::int64_t channels,
                      std::int64_t size) {
    return conv(name, from, {.channels = channels, .kernel = {size, 1}, .padding = {size / 2, 0}});
  }

  NodeId shrink(NodeId from) { return net_.max_pool(from, {.kernel = 3, .stride = 2}); }

  NodeId pooled(const std::string& name, NodeId from, std::int64_t channels) {
    const NodeId x = net_.average_pool(from, {.kernel = 3, .stride = 1, .padding = 1});
    return conv(name + ".branch_pool", x, {.channels = channels});
  }

  NodeId module_a(const std::string& name, NodeId from, std::int64_t pool_channels) {
    const NodeId one = conv(name + ".branch1x1", from, {.channels = 64});
    NodeId five = conv(name + ".branch5x5_1", from, {.channels = 48});
    five = conv(name + ".branch5x5_2", five, {.channels = 64, .kernel = 5, .padding = 2});
    NodeId three = conv(name + ".branch3x3dbl_1", from, {.channels = 64});
    three = conv_3x3(name + ".branch3x3dbl_2", three, 96);
    three = conv_3x3(name + ".branch3x3dbl_3", three, 96);
    return net_.concat({one, five, three, pooled(name, from, pool_channels)});
  }

  NodeId module_b(const std::string& name, NodeId from) {
    const NodeId three =
        conv(name + ".branch3x3", from, {.channels = 384, .kernel = 3, .stride = 2});
    NodeId twice = conv(name + ".branch3x3dbl_1", from, {.channels = 64});
    twice = conv_3x3(name + ".branch3x3dbl_2", twice, 96);
    twice = conv(name + ".branch3x3dbl_3", twice, {.channels = 96, .kernel = 3, .stride = 2});
    return net_.concat({three, twice, shrink(from)});
  }

  NodeId module_c(const std::string& name, NodeId from, std::int64_t width) {
    const NodeId one = conv(name + ".branch1x1", from, {.channels = 192});
    NodeId seven = conv(name + ".branch7x7_1", from, {.channels = width});
    seven = along_row(name + ".branch7x7_2", seven, width, 7);
    seven = along_column(name + ".branch7x7_3", seven, 192, 7);
    NodeId twice = conv(name + ".branch7x7dbl_1", from, {.channels = width});
    twice = along_column(name + ".branch7x7dbl_2", twice, width, 7);
    twice = along_row(name + ".branch7x7dbl_3", twice, width, 7);
    twice = along_column(name + ".branch7x7dbl_4", twice, width, 7);
    twice = along_row(name + ".branch7x7dbl_5", twice, 192, 7);
    return net_.concat({one, seven, twice, pooled(name, from, 192)});
  }

  NodeId module_d(const std::string& name, NodeId from) {
    NodeId three = conv(name + ".branch3x3_1", from, {.channels = 192});
    three = conv(name + ".branch3x3_2", three, {.channels = 320, .kernel = 3, .stride = 2});
    NodeId seven = conv(name + ".branch7x7x3_1", from, {.channels = 192});
    seven = along_row(name + ".branch7x7x3_2", seven, 192, 7);
    seven = along_column(name + ".branch7x7x3_3", seven, 192, 7);
    seven = conv(name + ".branch7x7x3_4", seven, {.channels = 192, .kernel = 3, .stride = 2});
    return net_.concat({three, seven, shrink(from)});
  }

  NodeId module_e(const std::string& name, NodeId from) {
    const NodeId one = conv(name + ".branch1x1", from, {.channels = 320});
    const NodeId three = conv(name + ".branch3x3_1", from, {.channels = 384});
    const NodeId three_row = along_row(name + ".branch3x3_2a", three, 384, 3);
    const NodeId three_column = along_column(name + ".branch3x3_2b", three, 384, 3);
    NodeId twice = conv(name + ".branch3x3dbl_1", from, {.channels = 448});
    twice = conv_3x3(name + ".branch3x3dbl_2", twice, 384);
    const NodeId twice_row = along_row(name + ".branch3x3dbl_3a", twice, 384, 3);
    const NodeId twice_column = along_column(name + ".branch3x3dbl_3b", twice, 384, 3);
    return net_.concat(
        {one, three_row, three_column, twice_row, twice_column, pooled(name, from, 192)});
  }

  NetBuilder net_;
};

Graph build(const Shape& input, std::int64_t classes) {
  return InceptionBuilder(input).build(classes);
}

}  // namespace

const ModelDef inception_v3_model{
    .name = "inception_v3", .input = {3, 299, 299}, .classes = 1000, .build = build};

}  // namespace regatta
