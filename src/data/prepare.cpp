#include "data/prepare.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/shell_word.h"
#include "data/augment_sample.h"
#include "data/image.h"
#include "data/shard_file.h"
#include "data/skips.h"
#include "data/statistics.h"
#include "data/tf_example.h"
#include "data/tfrecord.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

// What is read for one split, in which order.
struct SplitSource {
  std::shared_ptr<const Dataset> data;
  std::vector<std::int64_t> order;  // by position
  bool undecoded = false;           // image files go into records as they are
};

SplitSource open_split(const PrepareOptions& options, Split split) {
  SplitSource source;
  DatasetOptions opening{.split = split,
                         .seed = options.seed,
                         .input = options.input,
                         .resize_to = options.resize_to,
                         .strict = options.strict};
  opening.undecoded = options.form == PreparedForm::tfrecord && !options.input;
  source.data = open_selection(options.spec, options.selection, opening);
  const DatasetInfo& info = source.data->info();
  if (info.dtype != Dtype::u8)
    throw InputError("data '" + info.spec + "' holds float32; shards hold uint8 images");
  if (options.input && *options.input != info.sample)
    throw InputError("data '" + info.spec + "' has samples of " + info.sample.text() +
                     ", which are not resized to " + options.input->text());
  if (opening.undecoded) {
    std::vector<std::byte> image;
    std::int32_t label = 0;
    source.undecoded = source.data->read_encoded(0, image, &label).has_value();
  }
  if (options.form == PreparedForm::tfrecord && info.sample.channels() != 1 &&
      info.sample.channels() != 3)
    throw InputError("data '" + info.spec + "' has samples of " + info.sample.text() +
                     "; TFRecord files hold images of 1 or 3 channels");
  // A test split is never shuffled, so it stays in order.
  source.order = epoch_order(info.count, options.seed, 0, split == Split::train);
  return source;
}

// Mean bytes of an image file, from some that are spread over the data; where samples are stored
// decoded, the bytes of one sample.
std::int64_t typical_bytes(const SplitSource& source) {
  const DatasetInfo& info = source.data->info();
  if (!source.undecoded) return static_cast<std::int64_t>(sample_bytes(info));
  constexpr std::int64_t probes = 32;  // as many as tell whether images have one size
  const std::int64_t count = std::min(probes, info.count);
  std::int64_t sum = 0;
  std::vector<std::byte> image;
  std::int32_t label = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    source.data->read_encoded(i * info.count / count, image, &label);
    sum += std::ssize(image);
  }
  return std::max<std::int64_t>(1, sum / count);
}

// What tells this preparation from others: the options that matter and the names of all samples.
std::string fingerprint(const PrepareOptions& options, const std::vector<SplitSource>& sources,
                        const std::vector<PreparedSplit>& splits) {
  Json json{{"form", 1}, {"seed", options.seed}, {"resize", options.resize_to}};
  if (options.form == PreparedForm::tfrecord)
    json["tfrecord"] = sources.front().undecoded ? "as stored" : "png";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const DatasetInfo& info = sources[i].data->info();
    std::string names;
    for (std::int64_t each = 0; each < info.count; ++each)
      names += sources[i].data->sample_name(each) + '\n';
    json[splits[i].name] = {info.count, info.sample.text(), splits[i].per_file, info.class_names,
                            sha256_hex(names)};
  }
  return sha256_hex(json.dump()).substr(0, sizeof(ShardHeader::job));
}

// The options as flags of `regatta data prepare`.
std::string arguments_of(const PrepareOptions& options) {
  const PrepareOptions defaults;
  std::string text = shell_word(options.spec);
  if (options.form == PreparedForm::tfrecord) text += " --to tfrecord";
  if (options.input) text += " --input " + options.input->text();
  if (options.resize_to) text += " --resize " + std::to_string(options.resize_to);
  if (!options.selection.classes.empty())
    text += " --classes " + shell_word(options.selection.classes);
  if (!options.selection.subset.empty())
    text += " --subset " + shell_word(options.selection.subset);
  if (options.normalise) text += " --normalise " + shell_word(*options.normalise);
  if (options.seed != defaults.seed) text += " --seed " + std::to_string(options.seed);
  if (options.file_bytes != defaults.file_bytes)
    text += " --shard-size " + std::to_string(options.file_bytes);
  return text + (options.strict ? " --strict" : "");
}

class Maker {
 public:
  Maker(const PrepareOptions& options, const PreparePart& part, const OnProgress& on_progress)
      : options_(options), part_(part), on_progress_(on_progress) {
    sources_.push_back(open_split(options, Split::train));
    if (!sources_.front().data->info().splits_coincide)
      sources_.push_back(open_split(options, Split::test));
    for (const SplitSource& source : sources_)
      plan_.splits.push_back(
          {plan_.splits.empty() ? "train" : "test", source.data->info().count,
           std::max<std::int64_t>(1, options.file_bytes / typical_bytes(source))});
    plan_.form = options.form;
    plan_.parts = part.of;
    plan_.arguments = arguments_of(options);
    plan_.job = fingerprint(options, sources_, plan_.splits);
    plan_.head = head();
    for (const Preparation::File& file : plan_.files())
      if (file.part == part.number) {
        work_.push_back(file);
        progress_.all += file.split->count_of(file.number);
      }
  }

  const Preparation& plan() const { return plan_; }

  Prepared run() {
    const PartLock lock = begin_preparation(plan_, options_.out, part_.number);
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < options_.workers; ++i) threads.emplace_back([&] { work(); });
      work();
    }
    if (failure_) std::rethrow_exception(failure_);
    made_.files = std::ssize(work_);
    made_.samples = progress_.all;
    made_.skipped = skipped_by(plan_, options_.out, part_.number);
    return made_;
  }

 private:
  // The fields of index.json before its splits.
  Json head() const {
    const DatasetInfo& info = sources_.front().data->info();
    Normalisation normalisation{info.scale, info.mean, info.deviation};
    if (options_.normalise)
      normalisation = parse_normalisation(*options_.normalise, info.sample.channels(), info.scale);
    int classes = 0;
    for (const SplitSource& source : sources_)
      classes = std::max(classes, source.data->info().classes);
    const bool shards = plan_.form == PreparedForm::shards;
    return {{"form", shards ? "regatta shards 1" : "regatta tfrecords 1"},
            {"made_of", info.spec},
            {"job", plan_.job},
            {"sample", sources_.front().undecoded ? "as stored" : info.sample.text()},
            {"classes", classes},
            {"class_names", info.class_names},
            {"mean", normalisation.mean},
            {"deviation", normalisation.deviation}};
  }

  void work() {
    for (std::size_t i = next_++; i < work_.size() && !failed_; i = next_++) {
      try {
        const Preparation::File& file = work_[i];
        const fs::path path = options_.out / plan_.name_of(file);
        const bool kept = plan_.is_whole(options_.out, file, true);
        if (!kept) make(file, path);
        if (failed_) return;
        const auto bytes = static_cast<std::int64_t>(fs::file_size(path));
        const std::scoped_lock lock(mutex_);
        made_.kept += kept;
        made_.bytes += bytes;
        if (kept) {
          progress_.kept += file.split->count_of(file.number);
          progress_.samples += file.split->count_of(file.number);
        }
        if (on_progress_) on_progress_(progress_);
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_ = true;
      }
    }
  }

  void make(const Preparation::File& file, const fs::path& path) {
    remove_unfinished(path);
    Skips skips;
    std::string bytes;
    {
      const SkipsOfThread noting(skips);
      bytes = plan_.form == PreparedForm::shards ? shard_of(file) : records_of(file);
    }
    if (failed_) return;
    note_skipped(plan_, options_.out, file, skips.report());
    write_file(path, bytes);
  }

  // Removes files that a killed process of this part was writing.
  static void remove_unfinished(const fs::path& path) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path.parent_path(), ignored))
      if (entry.path().filename().string().starts_with(path.filename().string() + ".part-"))
        fs::remove(entry.path(), ignored);
  }

  const SplitSource& source_of(const Preparation::File& file) const {
    return sources_[static_cast<std::size_t>(file.split - plan_.splits.data())];
  }

  std::span<const std::int64_t> indices_of(const Preparation::File& file) const {
    return std::span(source_of(file).order)
        .subspan(static_cast<std::size_t>(file.split->first_of(file.number)),
                 static_cast<std::size_t>(file.split->count_of(file.number)));
  }

  void count_sample() {
    const std::scoped_lock lock(mutex_);
    ++progress_.samples;
    if (on_progress_) on_progress_(progress_);
  }

  std::string shard_of(const Preparation::File& file) {
    const Dataset& data = *source_of(file).data;
    const Shape& sample = data.info().sample;
    ShardHeader header;
    std::memcpy(header.job, plan_.job.data(), sizeof header.job);
    header.channels = static_cast<std::uint32_t>(sample.channels());
    header.height = static_cast<std::uint32_t>(sample.height());
    header.width = static_cast<std::uint32_t>(sample.width());
    header.number = static_cast<std::uint32_t>(file.number);
    header.first = static_cast<std::uint64_t>(file.split->first_of(file.number));
    const std::size_t bytes = sample_bytes(data.info());
    const auto indices = indices_of(file);
    std::string samples(indices.size() * bytes, '\0');
    std::vector<ShardEntry> entries(indices.size());
    for (std::size_t i = 0; i < entries.size() && !failed_; ++i) {
      entries[i].index = indices[i];
      data.read(indices.subspan(i, 1), reinterpret_cast<std::byte*>(samples.data() + i * bytes),
                &entries[i].label);
      count_sample();
    }
    return shard_bytes(header, std::move(entries), samples);
  }

  std::string records_of(const Preparation::File& file) {
    const SplitSource& source = source_of(file);
    const DatasetInfo& info = source.data->info();
    std::vector<std::byte> image(sample_bytes(info));
    std::string records, encoded;
    for (const std::int64_t index : indices_of(file)) {
      if (failed_) return {};
      ExampleImage example;
      std::int32_t label = 0;
      std::string name;
      if (source.undecoded) {
        const auto found = source.data->read_encoded(index, image, &label);
        const ImageHeader header = image_header(image);
        encoded.assign(reinterpret_cast<const char*>(image.data()), image.size());
        name = fs::path(source.data->sample_name(found.value_or(index))).filename().string();
        example.format = header.kind == ImageKind::jpeg ? "JPEG" : "PNG";
        example.shape = {3, header.size.height, header.size.width};
      } else {
        source.data->read(std::span<const std::int64_t>(&index, 1), image.data(), &label);
        encoded = png_of(reinterpret_cast<const std::uint8_t*>(image.data()),
                         static_cast<int>(info.sample.channels()), size_of(info.sample));
        example.format = "PNG";
        example.shape = info.sample;
      }
      example.encoded = encoded;
      example.label = label;
      example.file_name = name;
      if (static_cast<std::size_t>(label) < info.class_names.size())
        example.class_name = info.class_names[static_cast<std::size_t>(label)];
      records += tfrecord_of(tf_example(example));
      count_sample();
    }
    return records;
  }

  const PrepareOptions& options_;
  const PreparePart part_;
  const OnProgress& on_progress_;
  std::vector<SplitSource> sources_;
  Preparation plan_;
  std::vector<Preparation::File> work_;  // of this part
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  PrepareProgress progress_;
  Prepared made_;
  std::exception_ptr failure_;
};

}  // namespace

PreparePart parse_part(const std::string& text) {
  PreparePart part;
  const char* end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, part.number);
  bool understood = error == std::errc{} && slash != end && *slash == '/';
  if (understood) {
    const auto [stop, other] = std::from_chars(slash + 1, end, part.of);
    understood = other == std::errc{} && stop == end;
  }
  if (!understood || part.number < 1 || part.number > part.of)
    throw InputError("--part " + text + ": use K/N, such as 3/20 for the third of twenty parts");
  return part;
}

Prepared prepare_part(const PrepareOptions& options, const PreparePart& part,
                      const OnProgress& on_progress) {
  return Maker(options, part, on_progress).run();
}

Prepared prepare_data(const PrepareOptions& options, const OnProgress& on_progress) {
  Maker maker(options, PreparePart{}, on_progress);
  const Prepared made = maker.run();
  Prepared all = complete_preparation(maker.plan(), options.out);
  all.kept = made.kept;
  return all;
}

}  // namespace regatta
