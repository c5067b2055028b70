#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "data/augment_sample.h"
#include "data/shard_file.h"
#include "data/shards.h"
#include "data/statistics.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// One split's part of the job.
struct SplitJob {
  std::string name;
  std::shared_ptr<const Dataset> data;
  std::vector<std::int64_t> order;  // by position
  std::int64_t per_shard = 0;

  std::int64_t shards() const { return (data->info().count + per_shard - 1) / per_shard; }
  std::string file(std::int64_t shard) const {
    std::string digits = std::to_string(shard);
    return name + "-" + std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits +
           ".shard";
  }
};

SplitJob split_job(const PrepareOptions& options, Split split) {
  SplitJob job;
  job.name = split == Split::train ? "train" : "test";
  job.data = open_dataset(options.spec, DatasetOptions{.split = split,
                                                       .seed = options.seed,
                                                       .input = options.input,
                                                       .resize_to = options.resize_to,
                                                       .strict = options.strict});
  const DatasetInfo& info = job.data->info();
  if (info.dtype != Dtype::u8)
    throw InputError("data '" + info.spec + "' holds float32; shards hold uint8 images");
  if (options.input && *options.input != info.sample)
    throw InputError("data '" + info.spec + "' has samples of " + info.sample.text() +
                     ", which are not resized to " + options.input->text());
  // Nobody shuffles a test split, so it stays in order.
  job.order = epoch_order(info.count, options.seed, 0, split == Split::train);
  job.per_shard = std::max<std::int64_t>(
      1, options.shard_bytes / static_cast<std::int64_t>(sample_bytes(info)));
  return job;
}

// What tells this preparation from others: the options that matter and the names of all samples.
std::string fingerprint(const PrepareOptions& options, const std::vector<SplitJob>& jobs) {
  Json json{{"form", 1}, {"seed", options.seed}, {"resize", options.resize_to}};
  for (const SplitJob& job : jobs) {
    const DatasetInfo& info = job.data->info();
    std::string names;
    for (std::int64_t i = 0; i < info.count; ++i) names += job.data->sample_name(i) + '\n';
    json[job.name] = {info.count, info.sample.text(), job.per_shard, info.class_names,
                      sha256_hex(names)};
  }
  return sha256_hex(json.dump()).substr(0, sizeof(ShardHeader::job));
}

class Preparation {
 public:
  explicit Preparation(const PrepareOptions& options) : options_(options) {
    jobs_.push_back(split_job(options, Split::train));
    if (!jobs_.front().data->info().splits_coincide)
      jobs_.push_back(split_job(options, Split::test));
    const DatasetInfo& info = jobs_.front().data->info();
    normalisation_ = {info.scale, info.mean, info.deviation};
    if (options.normalise)
      normalisation_ = parse_normalisation(*options.normalise, info.sample.channels(), info.scale);
    job_ = fingerprint(options, jobs_);
    for (std::size_t split = 0; split < jobs_.size(); ++split)
      for (std::int64_t shard = 0; shard < jobs_[split].shards(); ++shard)
        work_.push_back({&jobs_[split], shard});
  }

  Prepared run(const std::function<void(std::int64_t, std::int64_t)>& on_shard) {
    std::error_code code;
    fs::create_directories(options_.out, code);
    if (code) throw InputError("cannot create '" + options_.out.string() + "': " + code.message());
    forget_unfinished();
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < options_.workers; ++i) threads.emplace_back([&] { work(on_shard); });
      work(on_shard);
    }
    if (failure_) std::rethrow_exception(failure_);
    write_file(options_.out / "index.json", index().dump(2) + "\n");
    return result();
  }

 private:
  struct Piece {
    const SplitJob* split;
    std::int64_t shard;
  };

  // What a killed run was writing; and the index goes, so that the folder counts as unfinished.
  void forget_unfinished() const {
    const fs::path index_file = options_.out / "index.json";
    std::error_code ignored;
    if (fs::exists(index_file, ignored) && read_json(index_file).value("job", "") != job_)
      throw InputError("'" + options_.out.string() +
                       "' holds shards of other data or another size: choose another --out");
    for (const auto& entry : fs::directory_iterator(options_.out, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.find(".shard.part-") != std::string::npos) fs::remove(entry.path(), ignored);
    }
    fs::remove(index_file, ignored);
  }

  void work(const std::function<void(std::int64_t, std::int64_t)>& on_shard) {
    for (std::size_t i = next_++; i < work_.size() && !failed_; i = next_++) {
      try {
        if (finished_before(work_[i]))
          ++kept_;
        else
          make(work_[i]);
        if (on_shard) {
          const std::scoped_lock lock(mutex_);
          on_shard(++done_, std::ssize(work_));
        }
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_ = true;
      }
    }
  }

  // Every sample is read again: a shard that a crash or a disk spoiled is made anew.
  bool finished_before(const Piece& piece) const {
    const fs::path file = options_.out / piece.split->file(piece.shard);
    std::error_code code;
    if (!fs::exists(file, code)) return false;
    try {
      const MappedShard shard(file);
      const ShardHeader wanted = header_of(piece);
      const ShardHeader& found = shard.header();
      if (std::memcmp(found.job, wanted.job, sizeof wanted.job) != 0 ||
          found.first != wanted.first || found.number != wanted.number)
        return false;
      for (std::int64_t i = 0; i < shard.count(); ++i)
        if (!shard.sound(i)) return false;
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  ShardHeader header_of(const Piece& piece) const {
    const Shape& sample = piece.split->data->info().sample;
    ShardHeader header;
    std::memcpy(header.job, job_.data(), sizeof header.job);
    header.channels = static_cast<std::uint32_t>(sample.channels());
    header.height = static_cast<std::uint32_t>(sample.height());
    header.width = static_cast<std::uint32_t>(sample.width());
    header.number = static_cast<std::uint32_t>(piece.shard);
    header.first = static_cast<std::uint64_t>(piece.shard * piece.split->per_shard);
    return header;
  }

  void make(const Piece& piece) const {
    const SplitJob& split = *piece.split;
    const std::int64_t first = piece.shard * split.per_shard;
    const std::int64_t count = std::min(split.per_shard, split.data->info().count - first);
    const std::size_t bytes = sample_bytes(split.data->info());
    std::string samples(static_cast<std::size_t>(count) * bytes, '\0');
    std::vector<ShardEntry> entries(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < entries.size() && !failed_; ++i) {
      entries[i].index = split.order[static_cast<std::size_t>(first) + i];
      split.data->read(std::span<const std::int64_t>(&entries[i].index, 1),
                       reinterpret_cast<std::byte*>(samples.data() + i * bytes), &entries[i].label);
    }
    if (failed_) return;
    write_file(options_.out / split.file(piece.shard),
               shard_bytes(header_of(piece), std::move(entries), samples));
  }

  Json index() const {
    const DatasetInfo& info = jobs_.front().data->info();
    int classes = 0;
    for (const SplitJob& split : jobs_) classes = std::max(classes, split.data->info().classes);
    Json json{{"form", "regatta shards 1"},
              {"made_of", info.spec},
              {"job", job_},
              {"sample", info.sample.text()},
              {"classes", classes},
              {"class_names", info.class_names},
              {"mean", normalisation_.mean},
              {"deviation", normalisation_.deviation},
              {"splits", Json::object()}};
    for (const SplitJob& split : jobs_) {
      Json shards = Json::array();
      for (std::int64_t i = 0; i < split.shards(); ++i)
        shards.push_back(
            {{"file", split.file(i)},
             {"table_crc", MappedShard(options_.out / split.file(i)).header().table_crc}});
      const SkippedSamples skipped = split.data->skipped();
      json["splits"][split.name] = {{"samples", split.data->info().count},
                                    {"shards", shards},
                                    {"skipped", skipped.count},
                                    {"skipped_first", skipped.first}};
    }
    return json;
  }

  Prepared result() const {
    Prepared prepared;
    prepared.shards = std::ssize(work_);
    prepared.kept = kept_;
    for (const SplitJob& split : jobs_) {
      const DatasetInfo& info = split.data->info();
      prepared.samples += info.count;
      prepared.bytes += info.count * static_cast<std::int64_t>(sample_bytes(info));
      SkippedSamples skipped = split.data->skipped();
      prepared.skipped.count += skipped.count;
      std::ranges::move(skipped.first, std::back_inserter(prepared.skipped.first));
    }
    return prepared;
  }

  const PrepareOptions& options_;
  std::vector<SplitJob> jobs_;
  Normalisation normalisation_;
  std::string job_;
  std::vector<Piece> work_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::int64_t> kept_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::int64_t done_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

Prepared prepare_shards(const PrepareOptions& options,
                        const std::function<void(std::int64_t, std::int64_t)>& on_shard) {
  return Preparation(options).run(on_shard);
}

}  // namespace regatta
