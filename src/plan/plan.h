// A plan is data: which devices, which chunks, how the graph is gathered into segments, and how
// gradients come together. It never changes what is computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "graph/graph.h"

namespace regatta {

enum class DeviceKind { cpu, cuda };

// What shares memory and is fed as one: a node's cores, or one GPU.
struct DeviceGroup {
  std::string name = "cpu";
  DeviceKind kind = DeviceKind::cpu;
  int workers = 1;
  Layout layout = Layout::blocked16;
  std::vector<std::int64_t> chunks;  // samples of a full batch; their sum is the group's share
  // Chunk i runs in lane i % lanes: chunks of a lane share memory and, in order, a gradient slot.
  int lanes = 1;
  int team = 1;  // threads of each CPU worker; workers * team should not pass the CPUs there are
};

struct PlanNode {
  std::string name = "here";
  std::vector<DeviceGroup> groups;
};

// Consecutive operators that run back to back, `first` to `last` inclusive.
struct Segment {
  NodeId first, last;
  bool operator==(const Segment&) const = default;
};

enum class Reduction {
  slots,  // explicit reduce tasks over slots, in fixed order
  redux,  // StarPU's reduction access; the order is StarPU's
  loop,   // every chunk adds into the one gradient, taking turns
};

// What StarPU's model-based schedulers are told a task takes.
enum class PerfModel {
  fitted,      // by the profile of this machine
  history,     // StarPU's mean of earlier runs of the same task
  regression,  // StarPU's power law over the FLOPs of earlier tasks
};

struct Plan {
  std::string recipe;  // fingerprint
  std::vector<PlanNode> nodes;
  std::vector<Segment> segments;
  Reduction reduction = Reduction::slots;
  // Consecutive phases of a chunk that need no meeting run as one task.
  bool gather_phases = true;
  std::int64_t bucket_bytes = std::int64_t{4} << 20;  // parameters updated by one task
  int steps_in_flight = 2;
  int loaders = 0;  // CPU workers that only feed GPUs; a CPU group loads for itself
  std::string scheduler = "eager";
  PerfModel perf_model = PerfModel::fitted;
  bool deterministic = false;
};

// A chunk of the batch and where it is computed.
struct Chunk {
  ChunkId id;
  GroupId group;
  std::int64_t capacity = 0;  // samples of a full batch
  int slot = 0;               // of its gradients, counted over all groups
  ChunkId lane_first;         // the first chunk of its lane
};

std::vector<const DeviceGroup*> groups_of(const Plan& plan);  // indexed by GroupId
std::vector<Chunk> chunks_of(const Plan& plan);               // indexed by ChunkId
int gradient_slots(const Plan& plan);

// Every broken invariant, one line each; empty for a sound plan.
std::vector<std::string> faults(const Plan& plan, const Graph& graph, std::int64_t batch);
void require_valid(const Plan& plan, const Graph& graph, std::int64_t batch);  // InputError, all

Json to_json(const Plan& plan, const Graph& graph);
Plan plan_from_json(const Json& json, const Graph& graph);  // throws InputError

std::string_view reduction_name(Reduction reduction);
Reduction reduction_named(std::string_view name);
std::string_view perf_model_name(PerfModel model);
PerfModel perf_model_named(std::string_view name);

}  // namespace regatta
