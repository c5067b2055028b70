#include "support/small_networks.h"

#include <utility>

namespace regatta {

void PrintTo(const SmallNetwork& network, std::ostream* out) { *out << network.name; }

Graph build(const SmallNetwork& network) {
  NetBuilder net(network.name, network.input);
  const NodeId logits = network.body(net);
  Graph graph = std::move(net).finish(logits);
  return network.fused ? fuse(graph) : graph;
}

NodeId head(NetBuilder& net, NodeId x) { return net.dense("head", x, 7); }

std::vector<SmallNetwork> small_networks() {
  return {
      {"dense_alone", {3, 5, 4}, [](NetBuilder& n) { return head(n, n.input()); }},
      {"dense_relu",
       {1, 6, 6},
       [](NetBuilder& n) { return head(n, n.relu(n.dense("a", n.input(), 33))); }},
      {"conv_of_one_plane",
       {1, 12, 12},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 4, .kernel = 3, .padding = 1});
         return head(n, n.max_pool(n.relu(x), {.kernel = 2}));
       }},
      {"conv_odd_counts",
       {3, 13, 11},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 6, .kernel = 5, .stride = 2, .padding = 2});
         return head(n, n.relu(n.conv("b", n.relu(x), {.channels = 18, .kernel = 3})));
       }},
      {"conv_whole_vectors",
       {16, 7, 9},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 32, .kernel = 1, .bias = false});
         x = n.conv("b", x, {.channels = 16, .kernel = 3, .stride = 2, .padding = 1});
         return head(n, n.conv("c", x, {.channels = 24, .kernel = 1, .bias = false}));
       }},
      {"overlapping_pool",
       {3, 13, 12},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 17, .kernel = 3, .padding = 1});
         return head(n, n.max_pool(x, {.kernel = 3, .stride = 2, .padding = 1}));
       }},
      {"overlapping_pool_of_vectors",
       {3, 14, 15},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 16, .kernel = 3, .padding = 1});
         return head(n, n.max_pool(x, {.kernel = 3, .stride = 2, .padding = 1}));
       }},
      {"pool_beside_pool",  // two users, so that one of the gradients is added
       {3, 9, 9},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 8, .kernel = 3, .padding = 1});
         NodeId y = n.max_pool(x, {.kernel = 3, .stride = 1, .padding = 1});
         NodeId z = n.max_pool(x, {.kernel = 1, .stride = 1});
         return head(n, n.global_average_pool(n.add(y, n.add(z, x))));
       }},
      {"averages_and_vectors_added",
       {3, 7, 5},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 12, .kernel = 2});
         NodeId y = n.global_average_pool(x);
         NodeId z = n.dense("b", x, 12);
         return head(n, n.relu(n.add(y, n.add(n.relu(y), z))));
       },
       false},
      {"norm",
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 12, .kernel = 3, .bias = false});
         return head(n, n.batch_norm("b", x));
       }},
      {"norm_of_odd_counts",
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 37, .kernel = 3, .bias = false});
         return head(n, n.relu(n.batch_norm("b", x)));
       }},
      {"norm_relu",
       {3, 20, 20},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 64, .kernel = 3, .bias = false});
         x = n.relu(n.batch_norm("b", x));
         return head(n, n.conv("c", x, {.channels = 8, .kernel = 3, .stride = 2}));
       }},
      {"norm_of_vectors",
       {1, 4, 4},
       [](NetBuilder& n) {
         return head(n, n.relu(n.batch_norm("b", n.dense("a", n.input(), 24))));
       }},
      {"residual_block",  // the convolution's gradient is added to the residual's
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.relu(n.conv("stem", n.input(), {.channels = 16, .kernel = 3, .padding = 1}));
         NodeId y = n.conv("a", x, {.channels = 16, .kernel = 3, .padding = 1, .bias = false});
         y = n.batch_norm("b", y);
         return head(n, n.relu(n.add(y, x)));
       }},
      {"residual_of_odd_counts",
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.relu(n.conv("stem", n.input(), {.channels = 10, .kernel = 3, .padding = 1}));
         NodeId y = n.conv("a", x, {.channels = 10, .kernel = 3, .padding = 1, .bias = false});
         y = n.batch_norm("b", y);
         return head(n, n.relu(n.add(y, x)));
       }},
      {"residual_downsample",
       {3, 9, 9},
       [](NetBuilder& n) {
         NodeId x = n.relu(n.conv("stem", n.input(), {.channels = 8, .kernel = 3, .padding = 1}));
         NodeId z = n.batch_norm(
             "d", n.conv("down", x, {.channels = 24, .kernel = 1, .stride = 2, .bias = false}));
         NodeId y = n.batch_norm(
             "b", n.conv("a", x,
                         {.channels = 24, .kernel = 3, .stride = 2, .padding = 1, .bias = false}));
         return head(n, n.relu(n.add(y, z)));
       }},
      {"norm_beside_norm",  // both norms read one value: one writes its gradient, one adds
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.conv("stem", n.input(), {.channels = 8, .kernel = 3});
         NodeId y = n.batch_norm("a", x);
         NodeId z = n.batch_norm("b", x);
         return head(n, n.relu(n.add(y, n.relu(n.add(z, x)))));
       }},
      {"nothing_fused",
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.relu(n.conv("stem", n.input(), {.channels = 8, .kernel = 3, .padding = 1}));
         NodeId y = n.batch_norm("b", n.conv("a", x, {.channels = 8, .kernel = 1}));
         return head(n, n.relu(n.dense("c", n.relu(n.add(y, x)), 15)));
       },
       false},
  };
}

}  // namespace regatta
