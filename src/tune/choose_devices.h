// Which devices of a machine with a GPU compute, and how the batch is shared among them: the GPU
// alone while cores load for it, cores alone, or both.
#pragma once

#include <string>

#include "tune/choose.h"

namespace regatta {

bool computes(const PlanOptions& options, DeviceKind kind);

// The layouts that a GPU's plan is to be compared in: one where the user or the precision decides.
std::vector<Layout> gpu_layouts(const PlanOptions& options, Precision precision);

// With options.devices_open: nothing is left open where only one of the devices can follow the
// recipe and the flags, cores or the GPU.
void leave_out_devices(PlanOptions& options, bool cores_can, bool gpu_can);

// Throws InputError, which says why, if cores and a GPU cannot share the batch, whatever the
// shares.
void require_sharing(const Graph& graph, std::int64_t batch, PlanOptions options);

// Threads of the teams that are to be compared beside a GPU, one team to each chunk: one team of a
// power of two, as kernels share out few samples to all their threads; or two, four, ... of all
// cores, down to teams of two.
std::vector<int> teams_beside_gpu(const PlanOptions& options);

// options.devices names a GPU. With options.devices_open any of the three ways may be chosen;
// otherwise the devices named compute, all of them. Plans that do not fit are left out, unless none
// fits.
Choice choose_devices(const Graph& graph, const Recipe& recipe, const PlanOptions& options,
                      const CostsFor& costs, const PlanFits& fits);

// What each device is for in the chosen plan, and what the other ways would have taken; empty where
// nothing was to be chosen.
std::string roles_of(const Choice& choice);

}  // namespace regatta
