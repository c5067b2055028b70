// A plan that the optimizer's model found, made and simulated.
#pragma once

#include "app/node_plan.h"
#include "app/optimizer_problem.h"

namespace regatta::app {

// More nodes than the simulator plays message by message are not simulated: the model's word is
// taken.
inline constexpr std::int64_t most_simulated_nodes = 64;

// A plan with what the model and the simulation say of it: of shares, or of a pipeline.
struct Candidate {
  Plan plan;
  std::vector<DeviceShare> devices;  // who computes
  optimize::Outcome modelled, outcome;
  std::int64_t nodes = 0;
  std::optional<optimize::Choice> choice;
  std::optional<optimize::Pipeline> pipeline;
  bool by_speed = false;  // its chunks are sized by the speeds of unequal cores
};

// What is the same for all candidates.
struct OptimizerSubject {
  const Graph& graph;
  const Recipe& recipe;
  const Platform& platform;
  const sim::Profiles& profiles;
  const NodeOptions& options;
  const optimize::Problem& problem;
};

// None: it does not fit into memory.
std::optional<Candidate> candidate(const OptimizerSubject& subject, const optimize::Choice& choice);
std::optional<Candidate> candidate(const OptimizerSubject& subject,
                                   const optimize::Pipeline& pipeline);

// Variants of a plan for the cores of one node: finer chunks, which are easier to deal out among
// unequal cores, and with `paces` steps that take longer, so that cores which need more joules can
// rest. `longest_step_s`: no step may take longer. Empty for other plans.
std::vector<Candidate> variants_of(const OptimizerSubject& subject, const Candidate& made,
                                   bool paces, std::optional<double> longest_step_s);

// Variants in which each worker of nodes with unequal cores has one chunk, sized by its speed.
// Empty if there are no such nodes, or the options say how the batch is cut.
std::vector<Candidate> variants_by_speed(const OptimizerSubject& subject, const Candidate& made);

// The variant that takes steps of parameters when all chunks are computed. None: see
// with_steps_last().
std::optional<Candidate> variant_with_steps_last(const OptimizerSubject& subject,
                                                 const Candidate& made);

// The name of one of a platform's nodes that are alike.
std::string node_name(const PlatformNode& node, int copy);

}  // namespace regatta::app
