#include "exec/rank_messages.h"

namespace regatta {
namespace {

const std::shared_ptr<Transport>& with_channels(const Blueprint& blueprint,
                                                const std::shared_ptr<Transport>& transport) {
  if (blueprint.ranks.update == NodeUpdate::mpi)
    transport->open_channels(static_cast<int>(blueprint.buckets.size()));
  return transport;
}

}  // namespace

RankMessages::RankMessages(const Blueprint& blueprint, const RankOptions& ranks, bool spare_cpu)
    : travels_(blueprint),
      communicator_(with_channels(blueprint, ranks.transport), ranks.names,
                    most_messages(blueprint.ranks), travels_.numbers(), spare_cpu) {}

void RankMessages::start(const TaskRun& run, std::byte* const* data,
                         std::function<void(std::exception_ptr failure)> arrived) {
  if (run.times) run.times->start = run.times->taken = TraceClock::now();
  Travels::Prepared prepared = travels_.prepare(*run.task, *run.submission, data);
  prepared.travel.done = [arrived = std::move(arrived),
                          finish = std::move(prepared.finish)](std::exception_ptr failure) {
    if (!failure && finish) finish();
    arrived(std::move(failure));
  };
  communicator_.start(std::move(prepared.travel));
}

}  // namespace regatta
