// What the profile calls the pieces of a task: one list, so that what is measured under a name is
// what is looked up under it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "profile/signature.h"
#include "tasks/task_list.h"

namespace regatta {

struct CostName {
  std::string signature;
  double flops = 0, bytes = 0;  // by unit of size, for a guess where nothing was measured
  // In a step of several segments, whose data lies in colder memory: its name in a step of one.
  std::string in_one_segment = {};
  // Workers whose caches the data may lie in; its cost then does not depend on how many are busy.
  // 0: the cost depends on how many workers are busy.
  int sharing_workers = 0;
  // `whole` is set for an instruction of a split backward: its operator's unsplit backward, of
  // which the instruction does the part `share`, from 0 to 1. Until the instruction itself was
  // measured, it costs that part of the unsplit backward.
  const CostName* whole = nullptr;
  double share = 1;
};

struct CostPiece {
  const CostName* name = nullptr;
  double size = 0;
};

// Not for several threads at once: names are made when they are first asked for.
class CostNames {
 public:
  // `data` as the recipe writes it: loading differs from data to data. The blueprint stays.
  CostNames(const Blueprint& blueprint, const std::string& data, Pass pass);

  // In the order in which they are carried out, one for each timing that the executor can take:
  // the instructions of a part, the nodes of a packing, or the action as a whole. `samples`: those
  // of the action's chunk.
  std::vector<CostPiece> pieces(const Action& action, std::int64_t samples) const;

  // A GPU carries a task out as one graph: it has no pieces to be timed, and is learned whole.
  bool one_piece(const Task& task) const;
  CostPiece whole(const Task& task, std::int64_t samples) const;

  KernelSetting setting(GroupId group) const;
  int workers() const;  // of all groups, and loaders
  const Blueprint& blueprint() const { return blueprint_; }
  Pass pass() const { return pass_; }

 private:
  const CostName* instruction(const Instruction& step, GroupId group) const;
  std::vector<CostPiece> packs(const Action& action) const;
  CostPiece bookkeeping(const Action& action, std::int64_t samples) const;
  bool shares(const Node& node) const;
  void name_in_segments(CostName& name, bool shared) const;
  const CostName* kept(CostName name) const;

  const Blueprint& blueprint_;
  Pass pass_;
  CostName load_;
  std::vector<bool> shared_;                                   // by node: another segment reads it
  mutable std::vector<std::optional<CostName>> instructions_;  // by group, node and work
  mutable std::map<std::string, CostName> bookkeeping_;
};

}  // namespace regatta
