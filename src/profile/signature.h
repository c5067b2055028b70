// Names for work, different where its time differs. A signature is readable text without the size
// of the work, of which a fit is a function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/optimizer.h"
#include "base/precision.h"
#include "graph/program.h"
#include "profile/profile.h"

namespace regatta {

// What decides which kernels do some work, and how fast.
struct KernelSetting {
  std::string device = "cpu";  // or "cuda"
  Layout layout = Layout::blocked16;
  Precision precision = Precision::fp32;
  int team = 1;  // threads that share a task
};

// An instruction; its size is samples. Names of nodes and settings that are no whole numbers do not
// matter: two layers of one shape share what was learned. `layouts`, by node: how values lie, where
// that is not all the same.
std::string signature_of(const Graph& graph, const GradientFlow& flow, const Instruction& step,
                         Pass pass, const KernelSetting& setting,
                         const std::vector<Layout>& layouts = {});

// The same where a step has several segments: what one worker leaves behind another one takes up.
// `shared`: it reads or writes a value of two segments, which lies in memory of its own.
std::string segment_signature(const std::string& whole, bool shared);
bool of_segments(std::string_view signature);

// Bookkeeping, and its size.
std::string load_signature(const std::string& data, const Shape& sample, Dtype dtype);  // samples
std::string deliver_signature(Pass pass, std::int64_t classes);                         // samples
// "combine" and "combine_gradient" (channels x chunks), "track" (channels x groups), "reduce"
// (bytes of all slots), "measure" (bytes) and "clip" (buckets).
std::string bookkeeping_signature(const KernelSetting& setting, std::string_view what);
std::string update_signature(const KernelSetting& setting,
                             const OptimizerSettings& optimizer);  // bytes
// How far chunks' tasks spread: its size is 1 for the fastest of `spread_levels` equal parts of
// them, 2 for the next, ..., its seconds are how many times the typical time these take.
constexpr int spread_levels = 16;
std::string spread_signature(const KernelSetting& setting);
// Once, for all parameters of a node.
std::string pack_signature(const Graph& graph, const Node& node, const KernelSetting& setting);

// The runtime's own: each of size 1 and with one worker busy.
struct RuntimeCost {
  std::string_view signature;
  double RuntimeCosts::*value;
};
const std::vector<RuntimeCost>& runtime_costs();

}  // namespace regatta
