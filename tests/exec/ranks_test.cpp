// Training over several processes: RanksOverMpi starts this program by mpirun, and RankedRun is
// what each rank then runs. Without a launcher the latter is skipped.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "models/models.h"
#include "parity/fixtures.h"
#include "parity/formula.h"
#include "plan/rank_plan.h"
#include "plan/shares.h"
#include "support/distance.h"
#include "support/executor_run.h"
#include "support/grouped.h"
#include "support/mpirun.h"
#include "train/batches.h"
#include "train/memory_check.h"
#include "train/weights.h"
#include "transport/collectives.h"
#include "transport/launcher.h"

namespace regatta {
namespace {

// The transport of all tests of this process: MPI can be started only once.
std::shared_ptr<Transport> ranks() {
  static const std::shared_ptr<Transport> transport =
      launch_environment() ? open_mpi() : std::shared_ptr<Transport>();
  return transport;
}

enum class Shares { equal, uneven };

struct Way {
  const char* model;
  NodeUpdate update;
  Shares shares = Shares::uneven;
  const char* segments = "step";
  const char* scheduler = own_scheduler;
};

std::vector<std::int64_t> shares_for(std::int64_t batch, Shares kind, std::int64_t granule = 1) {
  std::vector<double> speeds;
  for (int rank = 0; rank < ranks()->size(); ++rank)
    speeds.push_back(kind == Shares::equal ? 1 : 1 + 2 * rank);
  return shares_by_speed(speeds, batch, granule);
}

struct RankedPlan {
  Plan own;
  RankOptions ranks;
};

RankedPlan ranked(const Graph& graph, std::int64_t batch, const PlanOptions& options,
                  std::vector<std::int64_t> shares, NodeUpdate update) {
  Recipe recipe;
  recipe.model = graph.name();
  recipe.batch = batch;
  std::vector<RankResources> resources;
  std::vector<std::string> names;
  std::vector<int> sites;
  for (int rank = 0; rank < ranks()->size(); ++rank) {
    names.push_back("rank " + std::to_string(rank));
    resources.push_back(
        {names.back(), 1, plan_for(graph, batch, {}).nodes.front().groups.front().layout});
    sites.push_back(rank / 2);
  }
  if (options.deterministic)
    shares = whole_chunk_shares(canonical_chunks(graph, recipe, options, resources.size()), shares);
  const Plan whole = plan_over_ranks(graph, recipe, options, resources, shares, update);
  require_valid(whole, graph, batch);
  const auto own = static_cast<std::size_t>(ranks()->rank());
  return {plan_of_node(whole, own), {rank_place(whole, own, sites), ranks(), names}};
}

class RankedRun : public testing::Test {
 protected:
  void SetUp() override {
    if (!launch_environment()) GTEST_SKIP() << "RanksOverMpi starts these by mpirun";
  }
};
class RankedParity : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!launch_environment()) GTEST_SKIP() << "RanksOverMpi starts these by mpirun";
  }
};

TEST_P(RankedParity, IsAsNearToFloat64AsPyTorchsFloat32) {
  const Way& way = GetParam();
  const Fixture fixture = Fixture::load(way.model);
  const Graph graph = fuse(fixture.graph());
  PlanOptions options;
  options.segments = way.segments;
  options.scheduler = way.scheduler;
  const RankedPlan plan = ranked(graph, fixture.images(), options,
                                 shares_for(fixture.images(), way.shares), way.update);
  OptimizerSettings sgd;
  sgd.learning_rate = fixture.optimizer().learning_rate;
  sgd.momentum = fixture.optimizer().momentum;
  sgd.weight_decay = fixture.optimizer().weight_decay;
  const ExecutedRun run =
      execute_by(sgd, graph, plan.own, make_input<float>(graph, fixture.images(), fixture.calm()),
                 static_cast<int>(fixture.steps()), plan.ranks);
  if (ranks()->rank() == 0) {
    EXPECT_EQ(fixture.compare_logits(std::span<const float>(run.logits), {}), Failures{});
  }
  EXPECT_EQ(fixture.compare_losses(run.losses, {}), Failures{});
  EXPECT_EQ(fixture.compare_gradients(graph, run.gradients, {}), Failures{});
  EXPECT_EQ(fixture.compare_states(graph, run.states, {}), Failures{});
}

std::string name_of(const testing::TestParamInfo<Way>& each) {
  const Way& way = each.param;
  std::string name = std::string(way.model) + "_" + std::string(node_update_name(way.update)) +
                     (way.shares == Shares::equal ? "_equal_" : "_uneven_") + way.segments + "_" +
                     way.scheduler;
  std::ranges::replace(name, ':', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    AllWays, RankedParity,
    testing::Values(Way{"tiny", NodeUpdate::ring}, Way{"tiny", NodeUpdate::tree},
                    Way{"tiny", NodeUpdate::hierarchical}, Way{"tiny", NodeUpdate::server_cpu},
                    Way{"tiny", NodeUpdate::replicated}, Way{"tiny", NodeUpdate::chain},
                    Way{"tiny", NodeUpdate::mpi},
                    Way{"lenet5", NodeUpdate::ring, Shares::equal, "op"},
                    Way{"lenet5", NodeUpdate::ring, Shares::uneven, "op", "lws"},
                    Way{"resnet20", NodeUpdate::ring, Shares::uneven, "block"},
                    Way{"resnet20", NodeUpdate::replicated, Shares::equal, "step", "eager"}),
    name_of);

// The full cross takes minutes for each number of ranks: scripts/rank-cross asks for it.
std::vector<Way> crossed(const std::vector<const char*>& models) {
  std::vector<Way> ways;
  if (!std::getenv("REGATTA_RANK_CROSS")) return ways;
  for (const char* model : models)
    for (const NodeUpdate update :
         {NodeUpdate::ring, NodeUpdate::tree, NodeUpdate::hierarchical, NodeUpdate::server_cpu,
          NodeUpdate::replicated, NodeUpdate::chain, NodeUpdate::mpi})
      for (const Shares shares : {Shares::equal, Shares::uneven})
        ways.push_back({model, update, shares, "block"});
  return ways;
}
INSTANTIATE_TEST_SUITE_P(Cross, RankedParity,
                         testing::ValuesIn(crossed({"lenet5", "resnet18", "resnet50"})), name_of);

// Batch norm by groups of two samples. The truth is plain loops in double.
class RankedGroups : public RankedParity {};

TEST_P(RankedGroups, AreAsNearToFloat64AsPlainLoops) {
  const Way& way = GetParam();
  constexpr std::int64_t batch = 12, group = 2;
  const Graph graph = grouped(fuse(build_model(way.model)), group);
  static const ReferenceResult<double> truth =
      reference_run(graph, make_input<double>(graph, batch));
  static const ReferenceResult<float> plain = reference_run(graph, make_input<float>(graph, batch));
  PlanOptions options;
  options.segments = way.segments;
  const RankedPlan plan =
      ranked(graph, batch, options, shares_for(batch, way.shares, group), way.update);
  const ExecutedRun run =
      execute_by({}, graph, plan.own, make_input<float>(graph, batch), 1, plan.ranks);
  const auto expect_near = [](const std::vector<double>& found, const std::vector<double>& own,
                              const std::vector<double>& exact) {
    EXPECT_LT(distance(found, exact), std::max(3 * distance(own, exact), 1e-5));
  };
  expect_near(joined(run.gradients), joined(plain.parameter_gradients),
              joined(truth.parameter_gradients));
  expect_near(joined(run.states), joined(plain.states), joined(truth.states));
}

INSTANTIATE_TEST_SUITE_P(Cross, RankedGroups, testing::ValuesIn(crossed({"resnet20"})), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(
    RankedGroups);  // no case unless the cross is asked for

ExecutedRun run_alone(const Graph& graph, std::int64_t batch, PlanOptions options,
                      const OptimizerSettings& optimizer, const ReferenceInput<float>& input) {
  return execute_by(optimizer, graph, plan_for(graph, batch, std::move(options)), input, 3);
}

void expect_bits_of_one_process(const Graph& graph, std::int64_t batch) {
  const ReferenceInput<float> input = make_input<float>(graph, batch);
  OptimizerSettings sgd;
  sgd.learning_rate = 0.01;
  sgd.momentum = 0.9;
  PlanOptions options;
  options.deterministic = true;
  const ExecutedRun alone = run_alone(graph, batch, options, sgd, input);
  for (const Shares kind : {Shares::equal, Shares::uneven}) {
    const RankedPlan plan =
        ranked(graph, batch, options, shares_for(batch, kind), NodeUpdate::chain);
    const ExecutedRun run = execute_by(sgd, graph, plan.own, input, 3, plan.ranks);
    EXPECT_EQ(run.losses, alone.losses);
    EXPECT_EQ(run.gradients, alone.gradients);
    EXPECT_EQ(run.states, alone.states);
    EXPECT_EQ(run.parameters, alone.parameters);
  }
}

TEST_F(RankedRun, DeterministicLeNet5HasTheBitsOfOneProcess) {
  expect_bits_of_one_process(fuse(build_model("lenet5")), 96);
}

TEST_F(RankedRun, DeterministicBatchNormHasTheBitsOfOneProcess) {
  expect_bits_of_one_process(fuse(build_model("resnet20")), 12);
}

TEST_F(RankedRun, GroupedBatchNormHasTheBitsOfOneProcess) {
  expect_bits_of_one_process(grouped(fuse(build_model("resnet20")), 2), 12);
}

TEST_F(RankedRun, AShortLastBatchIsSharedOutLikeAFullOne) {
  const Graph graph = fuse(build_model("lenet5"));
  const ReferenceInput<float> input = make_input<float>(graph, 7);  // of plans for 12
  OptimizerSettings sgd;
  sgd.learning_rate = 0.01;
  const ExecutedRun alone = run_alone(graph, 12, {}, sgd, input);
  const RankedPlan plan =
      ranked(graph, 12, {}, shares_for(12, Shares::uneven), NodeUpdate::replicated);
  const ExecutedRun run = execute_by(sgd, graph, plan.own, input, 3, plan.ranks);
  for (std::size_t i = 0; i < alone.losses.size(); ++i)
    EXPECT_NEAR(run.losses[i], alone.losses[i], 1e-5 * alone.losses[i]);
  for (std::size_t p = 0; p < alone.gradients.size(); ++p)
    EXPECT_LT(relative_distance(run.gradients[p], alone.gradients[p]), 1e-5) << p;
}

TEST_F(RankedRun, ClippingMeasuresTheGradientOfTheWholeBatch) {
  const Graph graph = fuse(build_model("lenet5"));
  const ReferenceInput<float> input = make_input<float>(graph, 12);
  OptimizerSettings optimizer;
  optimizer.kind = OptimizerKind::adamw;
  optimizer.learning_rate = 0.01;
  optimizer.clip_norm = 0.1;
  optimizer.ema = 0.9;
  const ExecutedRun alone = run_alone(graph, 12, {}, optimizer, input);
  const RankedPlan plan = ranked(graph, 12, {}, shares_for(12, Shares::uneven), NodeUpdate::ring);
  const ExecutedRun run = execute_by(optimizer, graph, plan.own, input, 3, plan.ranks);
  for (std::size_t p = 0; p < alone.parameters.size(); ++p)
    EXPECT_LT(relative_distance(run.parameters[p], alone.parameters[p]), 1e-4) << p;
}

// One step of `tiny` by this way with gradients that travel as bf16: all ranks have the same bits
// of the gradient and of the parameters, and the gradient is at most as far from that of one
// process as roundings to bf16, one for each rank, may move it: each by less than 2^-9 in the mean.
void expect_rounded_gradients(NodeUpdate update) {
  constexpr std::int64_t batch = 12;
  const Graph graph = fuse(build_model("tiny"));
  const ReferenceInput<float> input = make_input<float>(graph, batch);
  OptimizerSettings sgd;
  sgd.learning_rate = 0.01;
  const ExecutedRun alone = execute_by(sgd, graph, plan_for(graph, batch, {}), input, 1);
  const RankedPlan plan = ranked(graph, batch, {}, shares_for(batch, Shares::uneven), update);
  const ExecutedRun run =
      execute_by(sgd, graph, plan.own, input, 1, plan.ranks, Precision::fp32, Precision::bf16);
  const double apart = distance(joined(run.gradients), joined(alone.gradients));
  EXPECT_LT(apart, ranks()->size() / 512.0) << node_update_name(update);
  EXPECT_GT(apart, 1e-4) << node_update_name(update) << ": nothing was rounded";
  std::string bits;
  for (const Tensors<float>& tensors : {run.gradients, run.parameters})
    for (const std::vector<float>& each : tensors)
      bits.append(reinterpret_cast<const char*>(each.data()), each.size() * sizeof(float));
  for (const std::string& each : gather_texts(*ranks(), bits))
    EXPECT_TRUE(each == bits) << node_update_name(update) << ": the ranks' bits differ";
}

TEST_F(RankedRun, GradientsThatTravelAsBf16AreNearAndTheSameOnAllRanks) {
  for (const NodeUpdate update :
       {NodeUpdate::ring, NodeUpdate::tree, NodeUpdate::hierarchical, NodeUpdate::server_cpu,
        NodeUpdate::replicated, NodeUpdate::chain})
    expect_rounded_gradients(update);
}

// An executor of this rank for `tiny`, and steps of it.
class Tiny {
 public:
  explicit Tiny(std::int64_t batch, const std::shared_ptr<Transport>& transport = ranks())
      : graph_(fuse(build_model("tiny"))),
        plan_(ranked(graph_, batch, {}, shares_for(batch, Shares::equal), NodeUpdate::ring)),
        executor_(graph_, plan_.own, options_of(plan_, transport)) {
    for (std::uint32_t p = 0; p < graph_.parameters().size(); ++p)
      executor_.set_parameter(
          ParameterId{p},
          std::vector<float>(static_cast<std::size_t>(graph_.parameters()[p].shape.elements()),
                             0.01f));
    executor_.wait(executor_.submit(ListKind::prepare, {}));
    input_.samples = batch;
  }

  static ExecOptions options_of(const RankedPlan& plan,
                                const std::shared_ptr<Transport>& transport) {
    ExecOptions options;
    options.numbers.samples = Dtype::f32;
    options.normalisation.scale = 1;
    options.normalisation.mean.assign(1, 0.0f);
    options.normalisation.deviation.assign(1, 1.0f);
    options.ranks = plan.ranks;
    options.ranks.transport = transport;
    return options;
  }

  Executor& executor() { return executor_; }
  // Samples of ones; those for which `special` says so get its value.
  StepInput input(std::function<float(std::int64_t sample)> value) const {
    StepInput made = input_;
    const auto elements = static_cast<std::size_t>(graph_.node(graph_.input()).shape.elements());
    made.load = [elements, value](std::int64_t first, std::int64_t count, std::byte* samples,
                                  Target* targets) {
      auto* to = reinterpret_cast<float*>(samples);
      for (std::int64_t i = 0; i < count; ++i) {
        std::fill_n(to + static_cast<std::size_t>(i) * elements, elements, value(first + i));
        targets[i] = Target::of(0);
      }
    };
    return made;
  }

 private:
  Graph graph_;
  RankedPlan plan_;
  Executor executor_;
  StepInput input_;
};

TEST_F(RankedRun, ALossThatIsNotANumberOnOneRankStopsAllBeforeTheStep) {
  Tiny tiny(8);
  const std::vector<float> before = tiny.executor().parameter(ParameterId{0});
  // The last sample is the last rank's.
  const StepInput broken = tiny.input([](std::int64_t sample) {
    return sample == 7 ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
  });
  EXPECT_THROW(tiny.executor().wait(tiny.executor().submit(ListKind::train, broken)), NotFinite);
  EXPECT_EQ(tiny.executor().parameter(ParameterId{0}), before);
  const std::string where = tiny.executor().find_not_finite(broken);
  EXPECT_EQ(where.empty(), ranks()->rank() + 1 < ranks()->size());
}

// Chunks of both ranks meet, and what a rank needs for that depends on the chunks of the other.
TEST_F(RankedRun, TheBuffersOfARankAreKnownBeforehand) {
  JobOptions options;
  options.model = "resnet20";
  options.data = "synth:3x16x16/10@64";
  options.batch = 16;
  options.test = "none";
  options.workers = 1;
  TrainJob job = make_job(options);
  const Visits visits{job.data, std::make_shared<const std::vector<std::int64_t>>(
                                    job.data->order(1, 0, /*shuffle=*/false))};
  for (const NodeUpdate update : {NodeUpdate::ring, NodeUpdate::chain, NodeUpdate::replicated}) {
    RankedPlan part =
        ranked(job.graph, options.batch, {}, shares_for(options.batch, Shares::uneven), update);
    job.plan = std::move(part.own);
    job.ranks = std::move(part.ranks);
    Executor executor(job.graph, job.plan, job.exec_options(true));
    initialise_weights(executor, 1);
    // Samples have a buffer for each step in flight.
    for (int step = 0; step < job.plan.steps_in_flight; ++step)
      executor.wait(executor.submit(ListKind::train, train_batch(visits, 0, 16, job.recipe, 0)));
    EXPECT_EQ(buffer_bytes_of(job, job.plan), executor.buffer_bytes()) << node_update_name(update);
  }
}

TEST_F(RankedRun, WishesOfAnyRankReachAll) {
  Tiny tiny(8);
  StepInput input = tiny.input([](std::int64_t) { return 1.0f; });
  EXPECT_EQ(tiny.executor().wait(tiny.executor().submit(ListKind::train, input)).wishes, 0u);
  input.wishes = ranks()->rank() == 1 ? 2 : 0;
  EXPECT_EQ(tiny.executor().wait(tiny.executor().submit(ListKind::train, input)).wishes, 2u);
}

// Counts what its rank leaves to the transport.
class LeavesCounted : public Transport {
 public:
  int rank() const override { return ranks()->rank(); }
  int size() const override { return ranks()->size(); }
  int largest_tag() const override { return ranks()->largest_tag(); }
  std::unique_ptr<Message> send(int to, int tag, std::span<const std::byte> data) override {
    return ranks()->send(to, tag, data);
  }
  std::unique_ptr<Message> receive(int from, int tag, std::span<std::byte> data) override {
    return ranks()->receive(from, tag, data);
  }
  std::unique_ptr<Message> sum(int channel, std::span<float> values) override {
    return ranks()->sum(channel, values);
  }
  void open_channels(int count) override { ranks()->open_channels(count); }
  void leave(std::shared_ptr<const void> memory) override {
    ++left;
    ranks()->leave(std::move(memory));
  }
  void end_all(int code) override { ranks()->end_all(code); }
  void end_within(std::chrono::milliseconds patience, int code) override {
    ranks()->end_within(patience, code);
  }
  int left = 0;
};

TEST_F(RankedRun, TheBuffersOfAnExecutorAreLeftToTheTransport) {
  const auto counted = std::make_shared<LeavesCounted>();
  const int of_communicator = ranks()->size();  // rooms of the other ranks' words, and its last
  std::optional<Tiny> tiny(std::in_place, 8, counted);
  const StepInput input = tiny->input([](std::int64_t) { return 1.0f; });
  tiny->executor().wait(tiny->executor().submit(ListKind::train, input));
  EXPECT_EQ(counted->left, 0);
  tiny.reset();
  EXPECT_GT(counted->left, of_communicator);
}

// Started apart: what was on its way stays in MPI, and would meet the next executor's messages.
class RankedFailure : public RankedRun {};

TEST_F(RankedFailure, ARankThatCannotReadItsSamplesEndsAllAndIsNamed) {
  Tiny tiny(8);
  const bool culprit = ranks()->rank() == 1;
  const StepInput input = tiny.input([culprit](std::int64_t) -> float {
    if (culprit) throw InputError("cannot read 'photo.jpg'");
    return 1;
  });
  try {
    tiny.executor().wait(tiny.executor().submit(ListKind::train, input));
    FAIL() << "went on";
  } catch (const InputError& error) {
    EXPECT_TRUE(culprit);
    tiny.executor().give_up(error.what());
  } catch (const NotFinite&) {
    // The culprit's numbers are no numbers; what happened is told with the next list.
    EXPECT_FALSE(culprit);
    try {
      tiny.executor().find_not_finite(input);
      FAIL() << "went on";
    } catch (const RankFailed& error) {
      EXPECT_STREQ(error.what(), "rank 1 failed: cannot read 'photo.jpg'");
    }
  } catch (const RankFailed& error) {
    EXPECT_FALSE(culprit);
    EXPECT_STREQ(error.what(), "rank 1 failed: cannot read 'photo.jpg'");
  }
}

// A test that is started apart for the same reason. A sum that is given up must leave MPI neither
// writing to freed memory nor waiting for the other ranks, which never begin it.
class RankedSum : public RankedRun {};

TEST_F(RankedSum, CanBeGivenUp) {
  ranks()->open_channels(1);
  if (ranks()->rank() > 0) return;
  std::vector<float> values(1 << 16, 1.0f);
  const std::unique_ptr<Message> sum = ranks()->sum(0, values);
  EXPECT_FALSE(sum->done());
}

// Also started apart. Of a message that long MPI sends the begin, and the rest when it is received.
class RankedMessage : public RankedRun {};

TEST_F(RankedMessage, KeepsItsMemoryWhenItIsGivenUp) {
  constexpr std::size_t bytes = std::size_t{16} << 20;
  auto unused = std::make_shared<std::vector<std::byte>>(bytes);
  const std::weak_ptr<const void> freed = unused;
  ranks()->leave(std::move(unused));
  EXPECT_TRUE(freed.expired()) << "no message was given up";
  if (ranks()->rank() > 0) return;
  auto sent = std::make_shared<std::vector<std::byte>>(bytes);
  const std::weak_ptr<const void> kept = sent;
  ranks()->send(1, first_free_tag, *sent).reset();
  ranks()->leave(std::move(sent));
  EXPECT_FALSE(kept.expired());
}

class RanksOverMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mpi_missing(); !why.empty()) GTEST_SKIP() << why;
  }
  static void expect_success(int count, const std::string& filter) {
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
    const ProgramResult result =
        mpirun(count, {self.string(), "--gtest_filter=" + filter, "--gtest_brief=1"});
    EXPECT_EQ(result.status, 0) << result.output;
  }
};

TEST_F(RanksOverMpi, TwoRanksPassAll) { expect_success(2, "RankedRun.*:*RankedParity.*"); }
TEST_F(RanksOverMpi, ThreeRanksPassThoseThatTellThemApart) {
  expect_success(3, "RankedRun.Deterministic*:RankedRun.*Bf16*:*RankedParity*tiny*");
}
TEST_F(RanksOverMpi, AFailingRankEndsAll) { expect_success(3, "RankedFailure.*"); }
TEST_F(RanksOverMpi, AMessageThatIsGivenUpDoesNoHarm) { expect_success(2, "RankedMessage.*"); }
TEST_F(RanksOverMpi, ASumThatIsGivenUpDoesNoHarm) { expect_success(2, "RankedSum.*"); }

}  // namespace
}  // namespace regatta
