#include "plan/rank_plan.h"

#include <cstdlib>
#include <numeric>

#include "base/error.h"

namespace regatta {
namespace {

std::string listed(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t each : numbers) text += (text.empty() ? "" : ",") + std::to_string(each);
  return text;
}

// How many chunks, from `first` on, hold exactly so many samples; 0: none do.
std::size_t chunks_holding(const std::vector<std::int64_t>& chunks, std::size_t first,
                           std::int64_t samples) {
  std::int64_t held = 0;
  for (std::size_t c = first; c < chunks.size() && held < samples; ++c) {
    held += chunks[c];
    if (held == samples) return c + 1 - first;
  }
  return 0;
}

}  // namespace

std::vector<std::string> wire_hindrances(const Plan& plan, const Recipe& recipe) {
  std::vector<std::string> found;
  if (recipe.wire_precision == Precision::fp32) return found;
  const std::string flag = "--wire-precision " + std::string(precision_name(recipe.wire_precision));
  if (plan.deterministic)
    found.push_back(flag +
                    " rounds wherever a rank ends, so bits depend on the number of ranks: drop it "
                    "or --deterministic");
  if (plan.update == NodeUpdate::mpi)
    found.push_back(flag + ": MPI's own sum takes floats alone: use another --update than mpi");
  if (!plan.stages.empty()) found.push_back(flag + ": a pipeline sends no gradients: drop it");
  return found;
}

std::vector<std::int64_t> canonical_chunks(const Graph& graph, const Recipe& recipe,
                                           const PlanOptions& options, std::size_t ranks) {
  const Plan alone = make_plan(graph, recipe, options);
  const DeviceGroup& group = alone.nodes.front().groups.front();
  if (alone.nodes.front().groups.size() > 1 || group.lanes != std::ssize(group.chunks))
    throw InputError(
        "--deterministic over several ranks adds up chunk by chunk, so it needs one "
        "device a rank and at most 8 --chunks");
  if (group.chunks.size() < ranks)
    throw InputError("--deterministic cuts this batch into " + std::to_string(group.chunks.size()) +
                     " chunk" + (group.chunks.size() == 1 ? "" : "s") + ", too few for " +
                     std::to_string(ranks) +
                     " ranks; give more with --chunks (and with the same "
                     "number on a single process, for the same bits)");
  return group.chunks;
}

std::vector<std::int64_t> whole_chunk_shares(const std::vector<std::int64_t>& chunks,
                                             const std::vector<std::int64_t>& wanted) {
  std::vector<std::int64_t> shares;
  std::size_t next = 0;
  std::int64_t border = 0, held = 0;  // samples up to here: wanted, and given
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    border += wanted[r];
    const std::size_t ranks_left = wanted.size() - r - 1;
    std::int64_t share = chunks[next];
    held += chunks[next++];
    // The chunk that crosses the border goes to the side on which most of it lies.
    while (next + ranks_left < chunks.size() &&
           (ranks_left == 0 || 2 * (border - held) >= chunks[next])) {
      share += chunks[next];
      held += chunks[next++];
    }
    shares.push_back(share);
  }
  return shares;
}

Plan plan_over_ranks(const Graph& graph, const Recipe& recipe, const PlanOptions& options,
                     const std::vector<RankResources>& ranks,
                     const std::vector<std::int64_t>& shares, NodeUpdate update) {
  if (shares.size() != ranks.size())
    throw InputError("--shares names " + std::to_string(shares.size()) + " numbers for " +
                     std::to_string(ranks.size()) + " ranks");
  const std::int64_t all = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  if (all != recipe.batch)
    throw InputError("--shares " + listed(shares) + " are " + std::to_string(all) +
                     " samples, the batch " + std::to_string(recipe.batch));
  for (const std::int64_t share : shares)
    if (share < 1)
      throw InputError("--shares " + listed(shares) + ": each rank needs a sample at least");
  if (options.deterministic && update != NodeUpdate::chain)
    throw InputError("--update " + std::string(node_update_name(update)) +
                     " adds in an order that depends on the ranks, so it cannot be "
                     "--deterministic; use --update chain");
  const std::vector<std::int64_t> canonical =
      options.deterministic ? canonical_chunks(graph, recipe, options, ranks.size())
                            : std::vector<std::int64_t>{};
  Plan whole;
  std::size_t next = 0;  // canonical chunk
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    PlanOptions own = options;
    own.workers = ranks[r].workers;
    own.layout = ranks[r].layout;
    own.cpus = 0;
    Recipe part = recipe;
    part.batch = shares[r];
    if (options.deterministic) {
      const std::size_t count = chunks_holding(canonical, next, shares[r]);
      if (count == 0)
        throw InputError("--shares " + listed(shares) +
                         " with --deterministic must be whole "
                         "chunks of " +
                         listed(canonical));
      const auto first = canonical.begin() + static_cast<std::ptrdiff_t>(next);
      // Sizes, but one number would be a count.
      own.chunks = count == 1 ? std::vector<std::int64_t>{1}
                              : std::vector(first, first + static_cast<std::ptrdiff_t>(count));
      next += count;
    }
    Plan plan = make_plan(graph, part, own);
    plan.nodes.front().name = ranks[r].name;
    if (r == 0)
      whole = std::move(plan);
    else
      whole.nodes.push_back(std::move(plan.nodes.front()));
  }
  whole.recipe = recipe.fingerprint();
  whole.update = update;
  return whole;
}

}  // namespace regatta
