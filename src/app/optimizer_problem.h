// A network and a platform as the numbers that the optimizer works with.
#pragma once

#include "app/node_plan.h"
#include "optimize/model.h"
#include "optimize/pipeline.h"

namespace regatta::app {

// Costs are those of the profiles and the platform: the lower ends of their intervals for bounds.
// The problem has a kind of nodes for each entry of the platform. Cores of a node with GPUs are not
// offered: offer_all_devices() does. Throws InputError if the batch is not made of whole groups of
// the batch norm.
optimize::Problem optimizer_problem(const Graph& graph, const Recipe& recipe,
                                    const Platform& platform, const sim::Profiles& profiles,
                                    const NodeOptions& options);

// The images of the whole run, which limits speak of.
void set_images(optimize::Problem& problem, std::int64_t images);

// Plans may let cores compute beside the GPUs of their node too.
void offer_all_devices(optimize::Problem& problem);

// The devices of a choice by name; of nodes alike the first.
std::vector<DeviceShare> devices_of(const optimize::Problem& problem, const Platform& platform,
                                    const optimize::Choice& choice);
// The devices of a pipeline's stages, by stage; each has the whole batch.
std::vector<DeviceShare> devices_of(const optimize::Problem& problem, const Platform& platform,
                                    const optimize::Pipeline& pipeline);

}  // namespace regatta::app
