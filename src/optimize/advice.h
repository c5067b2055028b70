// Which kind of parallelism suits a layer: what each would send over the links, beside the work.
#pragma once

#include <cstdint>
#include <string>

namespace regatta::optimize {

// A layer with parameters.
struct LayerFacts {
  std::string name;
  double gradient_bytes = 0;
  double input_bytes = 0, output_bytes = 0;  // of a sample's values
  double sample_s = 0;                       // of one sample, forward and backward, on one node
};

// Nodes that are taken to be alike.
struct Cluster {
  double nodes = 2;
  double bandwidth = 1;  // of a node's link, bytes a second each way
  std::int64_t batch = 1;
};

enum class Parallelism { data, model, pipeline };
std::string parallelism_name(Parallelism kind);

// Seconds of a step.
struct Advice {
  double work_s = 0;   // of the layer on each node, the batch shared out
  double data_s = 0;   // its gradients around a ring
  double model_s = 0;  // its weights dealt out: everyone gets all inputs, and sums their gradients
  double pipeline_s = 0;  // the layer on one node: its values and their gradients cross one link
  Parallelism suits = Parallelism::data;
  double data_from_batch = 0;  // from this batch on, gradients hide behind the work
  bool gradients_cost_more() const { return data_s > work_s; }
};

// Data parallelism suits where gradients hide behind the layer's work; elsewhere what sends least.
Advice advice_for(const LayerFacts& layer, const Cluster& cluster);

}  // namespace regatta::optimize
