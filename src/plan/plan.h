// A plan is data: which devices, which chunks, how the graph is gathered into segments, and how
// gradients come together. It never changes what is computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "graph/graph.h"
#include "platform/device_kind.h"

namespace regatta {

// The scheduler that asks our own policy (tasks/policy.h); all others are StarPU's.
inline constexpr const char* own_scheduler = "regatta";

// How slow a worker is and what it draws, where the workers of a group differ.
struct WorkerPower {
  double slow = 1;   // times as long as costs say that its tasks take
  double watts = 0;  // drawn beyond idle while it works
  bool operator==(const WorkerPower&) const = default;
};

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
  // For experiments with unequal devices: how many times as long each worker, or the GPU, takes for
  // its tasks, by waiting after them. Empty: as long as they take.
  std::vector<double> slow = {};
  std::string state = {};                // of the platform's power states; empty: full speed
  std::vector<WorkerPower> powers = {};  // by worker; empty: all alike
};

struct PlanNode {
  std::string name = "here";
  std::vector<DeviceGroup> groups;
};

// Consecutive operators that run back to back, `first` to `last` inclusive.
struct Segment {
  NodeId first, last;
  // What its forward leaves inside it is not kept for its backward, which computes it again first.
  bool recomputed = false;
  bool operator==(const Segment&) const = default;
};

enum class Reduction {
  slots,  // explicit reduce tasks over slots, in fixed order
  redux,  // StarPU's reduction access; the order is StarPU's
  loop,   // every chunk adds into the one gradient, taking turns
};

// Whether input gradients and weight gradients are computed together.
enum class Backward {
  whole,  // by one task
  split,  // weight gradients by tasks of their own, which fill gaps until their update is due
};

// How much of "which worker runs what, and when" is fixed before a step.
enum class Placement {
  dynamic,  // nothing: a free worker of a group takes what the policy says
  hybrid,   // who: every chunk is computed by one worker of its group; the policy says when
  fixed,    // who and when: every worker has its ordered list. "static" to users
};

// How the gradients of several nodes come together, and who takes the step.
enum class NodeUpdate {
  ring,          // all nodes hold a part of the sum in turn: 2(n-1)/n of the bytes on each link
  tree,          // up a binary tree and down again
  hierarchical,  // inside each site first, then between sites
  server_cpu,    // one node's CPUs add all gradients and send parameters back
  server_gpu,    // one node's GPU adds all gradients and sends parameters back
  replicated,    // every node sends its gradient to every other, and each adds them all
  chain,         // a running sum passed from node to node, then the total from the last to all:
                 // the only one that adds in the order of a single process, bit for bit
  mpi,           // MPI's own non-blocking all-reduce
};

// Consecutive segments that belong to one group: a pipeline.
struct Stage {
  std::string node, group;
  std::uint32_t first = 0, last = 0;  // segments, both included
  bool operator==(const Stage&) const = default;
};

// What StarPU's model-based schedulers are told a task takes.
enum class PerfModel {
  fitted,      // by the profile of this machine
  history,     // StarPU's mean of earlier runs of the same task
  regression,  // StarPU's power law over the FLOPs of earlier tasks
};

struct Plan {
  std::string recipe;    // fingerprint
  std::string platform;  // fingerprint; empty: for whatever has such groups
  std::vector<PlanNode> nodes;
  std::vector<Segment> segments;
  Reduction reduction = Reduction::slots;
  Backward backward = Backward::whole;
  // Consecutive phases of a chunk that need no meeting run as one task.
  bool gather_phases = true;
  // The samples of a CPU's chunk are loaded by the task of its first forward, not by one of their
  // own that may run ahead: a task less for each chunk, but no gap is filled by loading. A GPU's
  // are always loaded apart, on the host.
  bool gather_loads = false;
  int cpus = 0;  // of the machine that it is for; 0: more than its threads take
  std::int64_t bucket_bytes = std::int64_t{4} << 20;  // parameters updated by one task
  int steps_in_flight = 2;
  int loaders = 0;  // CPU workers that only feed GPUs; a CPU group loads for itself
  // Seconds that a step may take: workers that need less energy then do all that they can in that
  // time, and the others rest (tasks/policy.h). 0: as fast as it goes.
  double pace_s = 0;
  std::string scheduler = own_scheduler;
  PerfModel perf_model = PerfModel::fitted;
  bool deterministic = false;
  Placement placement = Placement::dynamic;
  // With Placement::fixed, for every worker (see workers_of; node by node) the tasks of a training
  // step in the order it runs them, counted as in its node's task list. Loads are done in the gaps
  // before they are needed, and with several nodes likewise what waits for others' gradients: only
  // who does them is fixed.
  std::vector<std::vector<std::uint32_t>> order;
  NodeUpdate update = NodeUpdate::ring;
  std::vector<Stage> stages;  // empty: every group computes all segments
};

// A worker of a plan: those of the groups in order, a GPU being one worker, then the loaders.
struct PlanWorker {
  DeviceKind kind = DeviceKind::cpu;
  std::optional<GroupId> group;  // none: it only loads
  int number = 0;                // among all workers of its kind
};
std::vector<PlanWorker> workers_of(const Plan& plan);
int threads_of(const Plan& plan);  // of all its workers and their teams, one for each GPU
int cpus_of(const Plan& plan);     // that its CPU workers, their teams and its loaders use
// Its threads take all CPUs of its machine, so the thread that submits would have to interrupt
// them: long task lists are handed to StarPU by tasks of their own, a few tasks by each, which CPU
// workers run in their gaps.
bool takes_all_cpus(const Plan& plan);
// Tasks are held back by gates of ours (exec/gates.h) until what they depend on has ended. Where
// StarPU's schedulers, its reduction or its performance models were asked for, StarPU holds them
// back instead: it is told of every buffer that a task accesses.
bool waits_at_gates(const Plan& plan);
int loading_workers(const Plan& plan);  // that may load for a GPU: the loaders, or a CPU group's
std::vector<double> slowness_of(const Plan& plan);  // by worker, by --slow; 1: as it is
// By worker; where --slow slows one down too, the longer of both times counts.
std::vector<WorkerPower> powers_of(const Plan& plan);
// How many workers at full speed do as much as all workers of a group.
double full_workers(const DeviceGroup& group);
// By worker: the part, from 0 to 1, of the full memory contention in its group that slows it down.
// Workers that --slow slows down compute for a part of their time and leave memory alone for the
// rest.
std::vector<double> contention_of(const Plan& plan);

// With Placement::hybrid, the worker (counted in its group) that computes the i-th of a group's
// chunks: chunks of a lane share memory, so they share the worker.
inline int worker_of_chunk(const DeviceGroup& group, std::size_t i) {
  return static_cast<int>(i % static_cast<std::size_t>(group.lanes)) % group.workers;
}

// What one node does of a plan for several, as a plan of its own; its batch is that node's share.
Plan plan_of_node(const Plan& plan, std::size_t node);
std::int64_t share_of(const PlanNode& node);
std::int64_t share_of(const DeviceGroup& group);

// A chunk of the batch and where it is computed.
struct Chunk {
  ChunkId id;
  GroupId group;
  std::int64_t capacity = 0;  // samples of a full batch
  int slot = 0;               // of its gradients, counted over all groups
  ChunkId lane_first;         // the first chunk of its lane
};

std::vector<const DeviceGroup*> groups_of(const Plan& plan);  // indexed by GroupId
// The group with the largest share of the batch: it keeps the parameters and takes the steps. Its
// gradient slots are the first.
GroupId owner_of(const Plan& plan);
std::vector<Chunk> chunks_of(const Plan& plan);  // indexed by ChunkId
int gradient_slots(const Plan& plan);

// Every broken invariant, one line each; empty for a sound plan.
std::vector<std::string> faults(const Plan& plan, const Graph& graph, std::int64_t batch);
void require_valid(const Plan& plan, const Graph& graph, std::int64_t batch);  // InputError, all
// Throws InputError with all of these faults; does nothing if there are none.
void require_no_fault(const std::vector<std::string>& faults);

// Every reason why this program, on one node, could not carry it out (it may still be simulated).
std::vector<std::string> hindrances(const Plan& plan);

Json to_json(const Plan& plan, const Graph& graph);
// Throws InputError that names every mistake with its place, such as nodes[0].groups[1].chunks.
Plan plan_from_json(const Json& json, const Graph& graph);
// The same, but mistakes are added to `faults`, each place beginning with `at`. Without a graph any
// operator is taken for known.
Plan plan_from_json(const Json& json, const Graph* graph, const std::string& at,
                    std::vector<std::string>& faults);

std::string_view reduction_name(Reduction reduction);
Reduction reduction_named(std::string_view name);
std::string_view backward_name(Backward backward);
Backward backward_named(std::string_view name);
std::string_view perf_model_name(PerfModel model);
PerfModel perf_model_named(std::string_view name);
std::string_view placement_name(Placement placement);
Placement placement_named(std::string_view name);
std::string_view node_update_name(NodeUpdate update);
NodeUpdate node_update_named(std::string_view name);

}  // namespace regatta
