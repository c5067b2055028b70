// A network through plan, task list and StarPU, on given numbers: what is compared with the oracle.
#pragma once

#include <string>
#include <vector>

#include "exec/executor.h"
#include "plan/make_plan.h"
#include "support/reference_run.h"

namespace regatta {

struct ExecutedRun {
  std::vector<double> losses;              // mean, of every step, on the same samples each
  std::vector<float> logits;               // evaluation before the first step
  Tensors<float> gradients;                // of step 1, by ParameterId
  Tensors<float> states;                   // after step 1, by StateId
  Tensors<float> parameters;               // after the last step, by ParameterId
  std::size_t captures_after_warm_up = 0;  // CUDA graphs made after the sixth step
};

// A plan for `batch` samples as the flags would make it.
Plan plan_for(const Graph& graph, std::int64_t batch, PlanOptions options);

ExecutedRun execute_by(const OptimizerSettings& optimizer, const Graph& graph, const Plan& plan,
                       const ReferenceInput<float>& input, int steps, RankOptions ranks = {},
                       Precision precision = Precision::fp32,
                       Precision wire_precision = Precision::fp32);
ExecutedRun execute(const Graph& graph, const Plan& plan, const ReferenceInput<float>& input,
                    const ReferenceSgd& sgd, int steps, Precision precision = Precision::fp32);

// |a - b| / |b|, or |a| where b vanishes.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace regatta
