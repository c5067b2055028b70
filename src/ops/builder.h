// Networks written layer by layer, as one would say them:
//
//   NetBuilder net("lenet5", {1, 28, 28});
//   NodeId x = net.conv("conv1", net.input(), {.channels = 6, .kernel = 5, .padding = 2});
//   x = net.max_pool(net.relu(x), {.kernel = 2});
//   x = net.dense("fc", x, 10);
//   return std::move(net).finish(x);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "regatta/layers.h"

namespace regatta {

class NetBuilder {
 public:
  NetBuilder(std::string name, const Shape& input);

  NodeId input() const { return NodeId{0}; }

  // Layers with parameters are named, since checkpoints are read by those names.
  NodeId conv(std::string name, NodeId from, const ConvSettings& settings);
  NodeId dense(std::string name, NodeId from, std::int64_t features,
               const DenseSettings& settings = {});  // flattens an image first
  NodeId batch_norm(std::string name, NodeId from, const BatchNormSettings& settings = {});
  NodeId layer_norm(std::string name, NodeId from, double epsilon = 1e-5);

  NodeId relu(NodeId from);
  NodeId relu6(NodeId from);
  NodeId leaky_relu(NodeId from, double slope = 0.01);
  NodeId sigmoid(NodeId from);
  NodeId tanh(NodeId from);
  NodeId gelu(NodeId from, bool by_tanh = false);  // by the approximation with tanh, or exactly
  NodeId max_pool(NodeId from, const PoolSettings& settings);
  NodeId average_pool(NodeId from, const PoolSettings& settings);
  NodeId adaptive_average_pool(NodeId from, Extent output);
  NodeId global_average_pool(NodeId from);
  NodeId local_response_norm(NodeId from, const LocalResponseNormSettings& settings);
  NodeId flatten(NodeId from);
  NodeId add(NodeId left, NodeId right);
  // Along the channels, any number of values; one alone is returned as it is.
  NodeId concat(const std::vector<NodeId>& parts);
  // The name decides what is drawn; without one, the place in the network does.
  NodeId dropout(std::string name, NodeId from, double probability = 0.5);
  NodeId dropout(NodeId from, double probability = 0.5);

  // Ends the network with the cross-entropy of `logits`, named "loss".
  Graph finish(NodeId logits) &&;

 private:
  GraphBuilder graph_;
};

}  // namespace regatta
