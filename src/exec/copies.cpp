#include "exec/copies.h"

#include "base/target.h"
#include "exec/cuda_runner.h"

namespace regatta {
namespace {

// Calls `visit` with the bytes that a task writes of each buffer that has two copies.
template <class Visit>
void for_each_written(const Blueprint& blueprint, const TaskRun& run, const Visit& visit) {
  for (std::size_t i = 0; i < run.task->accesses.size(); ++i) {
    const BufferData& data = run.data[i];
    const Access& access = run.task->accesses[i];
    if (!data.host || !data.device || !writes(access.mode)) continue;
    if (run.list->buffers[access.buffer].kind != BufferKind::samples) {
      visit(data, {access.from, bytes_of(*run.list, access)});
      continue;
    }
    const Action& load = run.task->actions.front();
    const Chunk& chunk = blueprint.chunks[load.chunk.value];
    const ChunkSpan live{0, run.submission->spans[chunk.id.value].count};
    const ChunkSpan piece = piece_of(blueprint, chunk, load.part, live);
    const auto first = static_cast<std::size_t>(piece.first);
    const auto count = static_cast<std::size_t>(piece.count);
    if (count == 0) continue;
    visit(data, {first * blueprint.sample_bytes, count * blueprint.sample_bytes});
    visit(data, {blueprint.targets_offset + first * sizeof(Target), count * sizeof(Target)});
  }
}

}  // namespace

std::vector<cuda::Copy> Copies::copies_of(const TaskRun& run, bool to_gpu) const {
  std::vector<cuda::Copy> copies;
  if (gpu_device_ < 0) return copies;
  for_each_written(blueprint_, run, [&](const BufferData& data, ByteRange range) {
    std::byte* const host = data.host + range.from;
    std::byte* const device = data.device + range.from;
    copies.push_back({to_gpu ? device : host, to_gpu ? host : device, range.bytes});
    if (run.submission->recording) run.submission->recording->copied(to_gpu, range.bytes);
  });
  return copies;
}

void Copies::bring_to_gpu(const TaskRun& run) const {
  const std::vector<cuda::Copy> copies = copies_of(run, /*to_gpu=*/true);
  if (!copies.empty()) copy_on_device(gpu_device_, copies);
}

}  // namespace regatta
