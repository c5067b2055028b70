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

#include "graph/graph.h"
#include "regatta/layers.h"

namespace regatta {

class NetBuilder {
 public:
  NetBuilder(std::string name, const Shape& input);

  NodeId input() const { return NodeId{0}; }

  // Layers with parameters are named, since checkpoints are read by those names.
  NodeId conv(std::string name, NodeId from, const ConvSettings& settings);
  NodeId dense(std::string name, NodeId from, std::int64_t features);  // flattens an image first
  NodeId batch_norm(std::string name, NodeId from);

  NodeId relu(NodeId from);
  NodeId max_pool(NodeId from, const PoolSettings& settings);
  NodeId global_average_pool(NodeId from);
  NodeId flatten(NodeId from);
  NodeId add(NodeId left, NodeId right);

  // Ends the network with the cross-entropy of `logits`, named "loss".
  Graph finish(NodeId logits) &&;

 private:
  GraphBuilder graph_;
};

}  // namespace regatta
