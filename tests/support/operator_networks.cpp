#include "support/operator_networks.h"

namespace regatta {
namespace {

// Convolutions and pools whose windows are out of the ordinary.
std::vector<SmallNetwork> window_networks() {
  return {
      {"grouped_convs",
       {3, 9, 9},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 12, .kernel = 3, .padding = 1});
         x = n.conv("b", x, {.channels = 18, .kernel = 3, .stride = 2, .padding = 1, .groups = 3});
         return head(n, n.conv("c", n.relu(x), {.channels = 6, .kernel = 1, .groups = 2}));
       }},
      {"grouped_convs_of_vectors",  // one of its gradients is added
       {3, 8, 8},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 32, .kernel = 3, .bias = false});
         NodeId y = n.conv("b", x, {.channels = 32, .kernel = 3, .padding = 1, .groups = 4});
         return head(n, n.relu(n.add(y, x)));
       }},
      {"groups_of_the_images",
       {3, 9, 8},
       [](NetBuilder& n) {
         return head(n, n.conv("a", n.input(), {.channels = 6, .kernel = 3, .groups = 3}));
       }},
      {"depthwise_convs",
       {3, 10, 11},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 16, .kernel = 1});
         x = n.conv("b", x,
                    {.channels = 16, .kernel = 3, .padding = 1, .groups = 16, .bias = false});
         x = n.relu6(n.batch_norm("c", x));
         x = n.conv("d", x, {.channels = 16, .kernel = 5, .stride = 2, .padding = 2, .groups = 16});
         return head(n, n.conv("e", n.relu(x), {.channels = 8, .kernel = 1}));
       }},
      {"depthwise_convs_of_odd_counts",  // one of its gradients is added
       {3, 9, 9},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 13, .kernel = 1});
         NodeId y = n.conv("b", x, {.channels = 13, .kernel = 3, .padding = 1, .groups = 13});
         y = n.conv(
             "c", n.add(y, x),
             {.channels = 13, .kernel = 3, .stride = 2, .padding = 2, .dilation = 2, .groups = 13});
         return head(n, y);
       }},
      {"depthwise_conv_of_the_images",
       {3, 9, 8},
       [](NetBuilder& n) {
         return head(
             n, n.conv("a", n.input(), {.channels = 3, .kernel = 3, .padding = 1, .groups = 3}));
       }},
      {"dilated_and_uneven_convs",
       {3, 13, 12},
       [](NetBuilder& n) {
         NodeId x = n.conv(
             "a", n.input(),
             {.channels = 8, .kernel = 3, .padding = {2, 1}, .dilation = {2, 1}, .bias = false});
         x = n.conv("b", x, {.channels = 16, .kernel = 3, .stride = 2, .padding = {0, 0, 1, 1}});
         return head(
             n, n.conv("c", n.relu(x), {.channels = 8, .kernel = {2, 3}, .padding = {1, 2, 0, 0}}));
       }},
      {"pools_out_of_the_ordinary",
       {3, 14, 13},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 16, .kernel = 3, .padding = 1});
         x = n.max_pool(x, {.kernel = 3, .stride = 2, .ceil = true});
         x = n.conv("b", x, {.channels = 17, .kernel = 3, .padding = 1});
         x = n.max_pool(x, {.kernel = 2, .stride = 1, .padding = {1, 0, 0, 1}, .dilation = 2});
         return head(n, x);
       }},
      {"average_pools",
       {3, 14, 13},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 16, .kernel = 3, .padding = 1});
         x = n.average_pool(x, {.kernel = 3, .stride = 2, .padding = 1, .ceil = true});
         x = n.conv("b", x, {.channels = 17, .kernel = 3, .padding = 1});
         NodeId y = n.average_pool(
             x, {.kernel = {2, 3}, .stride = 1, .padding = {1, 1, 0, 1}, .count_padding = false});
         return head(n, n.add(y, x));
       }},
      {"adaptive_pools",
       {3, 9, 7},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 8, .kernel = 3, .padding = 1});
         x = n.adaptive_average_pool(x, {4, 3});
         x = n.conv("b", x, {.channels = 5, .kernel = 1});
         return head(n, n.adaptive_average_pool(x, {6, 2}));
       }},
  };
}

std::vector<SmallNetwork> other_networks() {
  return {
      {"activations_of_images",
       {3, 6, 5},
       [](NetBuilder& n) {
         const auto conv = [&](const char* name, NodeId from) {
           return n.conv(name, from, {.channels = 8, .kernel = 3, .padding = 1});
         };
         NodeId x = n.relu6(conv("a", n.input()));
         x = n.leaky_relu(conv("b", x), 0.1);
         x = n.gelu(conv("c", x));
         return head(n, n.sigmoid(conv("d", x)));
       }},
      {"activations_of_vectors",  // odd counts, gradients that are added, and one of the logits
       {1, 5, 5},
       [](NetBuilder& n) {
         NodeId x = n.dense("a", n.input(), 13);
         x = n.add(n.tanh(x), n.add(n.gelu(x, true), x));
         x = n.add(n.sigmoid(x), n.add(n.relu6(x), n.leaky_relu(x)));
         return n.tanh(head(n, x));
       }},
      {"concats_of_vectors_of_channels",
       {3, 7, 6},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 16, .kernel = 3});
         NodeId y = n.conv("b", x, {.channels = 8, .kernel = 1});
         NodeId z = n.conv("c", x, {.channels = 24, .kernel = 1, .bias = false});
         return head(n, n.conv("d", n.concat({y, x, z}), {.channels = 4, .kernel = 2}));
       }},
      {"concats_of_odd_counts",  // a value twice, and values of which one is added to
       {3, 6, 6},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 5, .kernel = 3});
         NodeId y = n.relu(x);
         NodeId z = n.conv("b", n.concat({x, y, x, n.conv("c", y, {.channels = 3})}),
                           {.channels = 4, .kernel = 1});
         return head(n, n.concat({n.dense("d", z, 11), n.dense("e", y, 6)}));
       }},
      {"dropouts",
       {3, 6, 7},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 8, .kernel = 3, .padding = 1});
         x = n.conv("b", n.dropout("first", x, 0.3), {.channels = 5, .kernel = 3});
         x = n.dense("c", n.dropout("second", n.relu(x), 0.5), 33);
         return head(n, n.add(n.dropout("third", x, 0.25), x));
       }},
      {"local_response_norms",
       {3, 6, 5},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 9, .kernel = 3, .padding = 1});
         x = n.local_response_norm(x, {.size = 5, .alpha = 0.3, .beta = 0.75, .k = 2});
         x = n.conv("b", x, {.channels = 4, .kernel = 1});
         NodeId y = n.local_response_norm(x, {.size = 4, .alpha = 0.1, .beta = 0.5, .k = 1});
         return head(n, n.add(y, x));
       }},
      {"layer_norms",
       {3, 6, 5},
       [](NetBuilder& n) {
         NodeId x = n.conv("a", n.input(), {.channels = 9, .kernel = 3, .padding = 1});
         x = n.layer_norm("b", x);
         x = n.dense("c", n.add(n.layer_norm("d", x), x), 20);
         return head(n, n.relu(n.layer_norm("e", x)));
       }},
  };
}

}  // namespace

std::vector<SmallNetwork> operator_networks() {
  std::vector<SmallNetwork> all = window_networks();
  for (SmallNetwork& network : other_networks()) all.push_back(std::move(network));
  return all;
}

}  // namespace regatta
