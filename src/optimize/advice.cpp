#include "optimize/advice.h"

#include <algorithm>
#include <cmath>

namespace regatta::optimize {

std::string parallelism_name(Parallelism kind) {
  return kind == Parallelism::data ? "data" : kind == Parallelism::model ? "model" : "pipeline";
}

Advice advice_for(const LayerFacts& layer, const Cluster& cluster) {
  Advice made;
  const auto batch = static_cast<double>(cluster.batch);
  const double around = 2 * (cluster.nodes - 1) / cluster.nodes / cluster.bandwidth;
  made.work_s = layer.sample_s * batch / cluster.nodes;
  made.data_s = around * layer.gradient_bytes;
  made.model_s = around * layer.input_bytes * batch;
  made.pipeline_s = cluster.nodes > 1 ? 2 * layer.output_bytes * batch / cluster.bandwidth : 0;
  made.data_from_batch =
      layer.sample_s > 0 ? std::ceil(made.data_s * cluster.nodes / layer.sample_s) : 0;
  if (!made.gradients_cost_more()) return made;
  if (made.model_s < std::min(made.data_s, made.pipeline_s))
    made.suits = Parallelism::model;
  else if (made.pipeline_s < made.data_s)
    made.suits = Parallelism::pipeline;
  return made;
}

}  // namespace regatta::optimize
