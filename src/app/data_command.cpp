// `data get`, `data info`, `data prepare`, `data finish` and `data compare`.
#include <algorithm>
#include <iostream>
#include <limits>
#include <utility>

#include "app/command.h"
#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "base/shell_word.h"
#include "data/dataset.h"
#include "data/fetch.h"
#include "data/prepare.h"
#include "data/skips.h"
#include "data/statistics.h"
#include "platform/machine.h"

namespace regatta::app {
namespace {

struct DataFlags {
  std::string name, spec, other, out, folder, to = "shards";
  std::optional<std::string> json_file, input, size, shard_size, normalise, part, subset, classes;
  std::optional<int> resize, workers;
  bool exact = false, strict = false;
  std::uint64_t seed = 1;
};

constexpr std::int64_t sampled_images = 1000;

std::optional<Shape> input_of(const std::optional<std::string>& text) {
  return text ? std::optional(Shape::parse(*text)) : std::nullopt;
}

Json describe(const DataFlags& flags) {
  const auto open = [&](Split split) {
    return open_dataset(flags.spec, DatasetOptions{.split = split,
                                                   .seed = flags.seed,
                                                   .input = input_of(flags.input),
                                                   .strict = flags.strict});
  };
  const auto data = open(Split::train);
  const DatasetInfo& info = data->info();
  Json json{{"data", info.spec},
            {"samples", info.count},
            {"shape", info.sample.text()},
            {"classes", info.classes},
            {"stored_as", info.dtype == Dtype::u8 ? "uint8" : "float32"},
            {"mean", info.mean},
            {"deviation", info.deviation}};
  Json splits{{"train", {{"samples", info.count}, {"bytes", data->bytes()}}}};
  if (!info.splits_coincide) {
    const auto test = open(Split::test);
    splits["test"] = {{"samples", test->info().count}, {"bytes", test->bytes()}};
  }
  json["splits"] = splits;
  json["class_names"] = info.class_names;
  json["identity"] = data->identity();
  const PixelStatistics found = pixel_statistics(
      *data, flags.exact ? std::numeric_limits<std::int64_t>::max() : sampled_images);
  json["pixels"] = {
      {"samples", found.samples}, {"mean", found.mean}, {"deviation", found.deviation}};
  json["skipped"] = to_json(data->skipped());
  return json;
}

// A line each; a thousand class names are for --json.
void print(const Json& json) {
  constexpr std::size_t most_names = 20;
  for (const auto& [key, value] : json.items()) {
    if (key == "skipped" && value["count"] == 0) continue;
    if (key == "class_names" && value.empty()) continue;
    Json shown = value;
    std::string rest;
    if (key == "class_names" && value.size() > most_names) {
      shown.erase(shown.begin() + most_names, shown.end());
      rest = " and " + std::to_string(value.size() - most_names) + " more";
    }
    std::cout << key << ": " << (shown.is_string() ? shown.get<std::string>() : shown.dump())
              << rest << "\n";
  }
}

int get(const DataFlags& flags) {
  const auto folder = fetch_dataset(flags.name, std::cerr);
  std::cout << flags.name << " is in " << folder.string() << "\n";
  write_json_result(flags.json_file, {{"data", flags.name}, {"folder", folder.string()}});
  return 0;
}

int info(const DataFlags& flags) {
  const Json json = describe(flags);
  print(json);
  write_json_result(flags.json_file, json);
  return 0;
}

// "64MiB", "1GiB" or a number of bytes.
std::int64_t bytes_of(const std::string& text) {
  const auto fail = [&] {
    throw InputError("--shard-size " + text + ": use bytes, or such as 64MiB or 1GiB");
  };
  std::int64_t unit = 1;
  std::string number = text;
  for (const auto& [suffix, factor] : {std::pair{"KiB", std::int64_t{1} << 10},
                                       {"MiB", std::int64_t{1} << 20},
                                       {"GiB", std::int64_t{1} << 30}})
    if (number.ends_with(suffix)) {
      unit = factor;
      number.resize(number.size() - 3);
      break;
    }
  if (number.empty() || number.size() > 12 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    fail();
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(std::stoll(number), unit, &bytes) || bytes < 1 ||
      bytes > std::int64_t{64} << 30)
    fail();
  return bytes;
}

// A bar with images/s and the time left, of what was not there before.
class PrepareConsole {
 public:
  explicit PrepareConsole(const std::optional<PreparePart>& part)
      : task_(part ? "part " + std::to_string(part->number) + "/" + std::to_string(part->of)
                   : "prepare") {}

  void show(const PrepareProgress& now) {
    const Progress::Clock::time_point time = Progress::Clock::now();
    const double seconds = Seconds(time - begin_).count();
    const std::int64_t made = now.samples - now.kept;
    ProgressState state;
    state.task = task_;
    state.done = now.samples;
    state.total = now.all;
    if (made > 0 && seconds > 0) {
      state.images_per_second = static_cast<double>(made) / seconds;
      state.left = Seconds(static_cast<double>(now.all - now.samples) / state.images_per_second);
    }
    if (now.samples < now.all)
      progress_.update(state, time);
    else if (!std::exchange(ended_, true))
      progress_.finish_epoch(state, time);
  }

 private:
  std::string task_;
  Progress progress_{std::cerr};
  Progress::Clock::time_point begin_ = Progress::Clock::now();
  bool ended_ = false;  // the last line was written
};

void tell(const Prepared& made, const DataFlags& flags, const std::string& out,
          const std::string& then) {
  std::cout << made.samples << " samples, " << made.bytes << " bytes in " << made.files
            << " files (" << made.kept << " of them kept) in " << out << "; " << then << "\n";
  for (const std::string& line : lines_of(made.skipped, "sample")) std::cout << line << "\n";
  write_json_result(flags.json_file, {{"out", out},
                                      {"samples", made.samples},
                                      {"bytes", made.bytes},
                                      {"shards", made.files},
                                      {"kept", made.kept},
                                      {"skipped", to_json(made.skipped)}});
}

std::string how_to_train(PreparedForm form, const std::string& out) {
  return form == PreparedForm::shards
             ? "train with --data " + shell_word("shards:" + out)
             : "train with --data " + shell_word("tfrecord:" + out + "/train-*.tfrecord");
}

int prepare(const DataFlags& flags) {
  PrepareOptions options;
  options.spec = flags.spec;
  options.out = flags.out;
  options.seed = flags.seed;
  options.strict = flags.strict;
  options.normalise = flags.normalise;
  options.form = flags.to == "shards" ? PreparedForm::shards : PreparedForm::tfrecord;
  options.selection = {flags.classes.value_or(""), flags.subset.value_or("")};
  if (flags.input && flags.size) throw InputError("--size and --input say the same: give one");
  if (flags.size) options.input = Shape::parse("3x" + *flags.size);
  if (flags.input) options.input = Shape::parse(*flags.input);
  options.resize_to = flags.resize.value_or(0);
  if (flags.resize && !options.input) options.input = Shape{3, *flags.resize, *flags.resize};
  if (flags.shard_size) options.file_bytes = bytes_of(*flags.shard_size);
  options.workers = flags.workers.value_or(available_cpus());
  std::optional<PreparePart> part;
  if (flags.part) part = parse_part(*flags.part);

  PrepareConsole console(part);
  const OnProgress show = [&](const PrepareProgress& now) { console.show(now); };
  if (part)
    tell(prepare_part(options, *part, show), flags, flags.out,
         "when all parts are there: regatta data finish " + shell_word(flags.out));
  else
    tell(prepare_data(options, show), flags, flags.out, how_to_train(options.form, flags.out));
  return 0;
}

int finish(const DataFlags& flags) {
  const Prepared made = finish_preparation(flags.folder);
  tell(made, flags, flags.folder, how_to_train(made.form, flags.folder));
  return 0;
}

// Both splits in the order of a first epoch, sample by sample.
int compare(const DataFlags& flags) {
  Json json = Json::object();
  bool same = true;
  for (const Split split : {Split::train, Split::test}) {
    const auto open = [&](const std::string& spec) {
      return open_dataset(spec, DatasetOptions{.split = split,
                                               .seed = flags.seed,
                                               .input = input_of(flags.input),
                                               .strict = flags.strict});
    };
    const auto first = open(flags.spec), second = open(flags.other);
    const DatasetInfo &a = first->info(), &b = second->info();
    if (a.sample != b.sample || a.dtype != b.dtype || a.count != b.count)
      throw InputError("'" + a.spec + "' has " + std::to_string(a.count) + " samples of " +
                       a.sample.text() + ", '" + b.spec + "' has " + std::to_string(b.count) +
                       " of " + b.sample.text());
    const auto order = first->order(flags.seed, 0, split == Split::train);
    const auto other_order = second->order(flags.seed, 0, split == Split::train);
    const std::size_t bytes = static_cast<std::size_t>(a.sample.elements()) * dtype_bytes(a.dtype);
    std::vector<std::byte> sample(bytes), other(bytes);
    std::int64_t differ = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::int32_t label = 0, other_label = 0;
      first->read(std::span(&order[i], 1), sample.data(), &label);
      second->read(std::span(&other_order[i], 1), other.data(), &other_label);
      differ += label != other_label || sample != other;
    }
    const char* name = split == Split::train ? "train" : "test";
    std::cout << name << ": " << differ << " of " << a.count << " samples differ\n";
    json[name] = {{"samples", a.count}, {"differ", differ}};
    same = same && differ == 0;
    if (a.splits_coincide && b.splits_coincide) break;
  }
  write_json_result(flags.json_file, json);
  return same ? 0 : 1;
}

}  // namespace

int run_data(std::span<const char* const> arguments) {
  CLI::App app("Fetches data sets into the cache folder, describes or prepares them.",
               "regatta data");
  app.require_subcommand(1);
  DataFlags flags;
  CLI::App* getting = app.add_subcommand("get", "fetch, verify and cache a data set");
  getting->add_option("name", flags.name, "mnist or fashion-mnist")->required()->type_name("NAME");
  getting->footer("Example:\n  regatta data get mnist");
  CLI::App* telling = app.add_subcommand("info", "describe a data set");
  telling->add_flag("--exact", flags.exact,
                    "mean and deviation of all pixels, not of 1000 samples");
  telling->footer("Example:\n  regatta data info synth:3x64x64/10@1000");
  CLI::App* preparing = app.add_subcommand(
      "prepare", "decode and resize once: shards that training reads at the speed of the disk");
  preparing->add_option("--out", flags.out, "folder of the shards")
      ->required()
      ->type_name("FOLDER");
  preparing->add_option("--to", flags.to, "shards (default) or tfrecord, which TensorFlow reads")
      ->type_name("FORM")
      ->check(CLI::IsMember({"shards", "tfrecord"}));
  preparing
      ->add_option("--part", flags.part,
                   "make this part alone, such as 3/20 on any machine; regatta data finish joins "
                   "them")
      ->type_name("K/N");
  preparing
      ->add_option("--subset", flags.subset,
                   "keep so many training samples (10000), a share (0.1, 10%), or those a file "
                   "names")
      ->type_name("N|SHARE|FILE");
  preparing
      ->add_option("--classes", flags.classes,
                   "keep these classes, labelled in this order; or a file with a name on each line")
      ->type_name("A,B,..|FILE");
  preparing->add_option("--size", flags.size, "cut HxW out of each image, as --input 3xHxW")
      ->type_name("HxW");
  preparing
      ->add_option(
          "--resize", flags.resize,
          "of the shorter side, before that (default: 256/224 of the size); without a size "
          "the middle NxN is kept")
      ->type_name("N")
      ->check(whole_number(1, 1 << 14));
  preparing->add_option("--shard-size", flags.shard_size, "such as 256MiB or 1GiB (default 64MiB)")
      ->type_name("BYTES");
  preparing
      ->add_option("--workers", flags.workers, "threads (default: the CPUs this process may use)")
      ->type_name("N")
      ->check(whole_number(1, 256));
  preparing->footer(
      "Example:\n  regatta data prepare folder:imagenet --size 256x256 --resize 256 --out shards\n"
      "  regatta data prepare folder:imagenet --resize 256 --out shards --part 3/20\n"
      "The same command goes on where an interrupted one stopped.");
  preparing
      ->add_option(
          "--normalise", flags.normalise,
          "what training makes of pixels: MEANS:DEVIATIONS or a name (default: the data's)")
      ->type_name("HOW");
  CLI::App* finishing =
      app.add_subcommand("finish", "join the parts that data prepare --part made");
  finishing->add_option("folder", flags.folder, "as --out had it")->required()->type_name("FOLDER");
  finishing->footer("Example:\n  regatta data finish shards");
  CLI::App* comparing =
      app.add_subcommand("compare", "whether two data sets give the same batches");
  for (CLI::App* each : {telling, preparing, comparing}) {
    each->add_option("spec", flags.spec, "as --data takes it")->required()->type_name("SPEC");
    each->add_option("--input", flags.input, "sample size, if images have many")
        ->type_name("CxHxW");
    each->add_flag("--strict", flags.strict, "an image that cannot be read is an error");
    each->add_option("--seed", flags.seed, "of the mixing and of synthetic data")
        ->type_name("N")
        ->check(whole_number(0, UINT64_MAX));
  }
  comparing->add_option("other", flags.other, "the other one")->required()->type_name("SPEC");
  comparing->footer("Example:\n  regatta data compare folder:images shards:shards");
  for (CLI::App* each : {getting, telling, preparing, finishing, comparing})
    add_json_flag(*each, flags.json_file);
  app.footer(
      "Example:\n  regatta data get mnist\n  regatta data info synth:3x64x64/10@1000\n"
      "  regatta data prepare folder:images --size 224x224 --out shards");
  if (!parse(app, arguments)) return 0;
  if (flags.json_file) require_writable(*flags.json_file);
  if (getting->parsed()) return get(flags);
  if (preparing->parsed()) return prepare(flags);
  if (finishing->parsed()) return finish(flags);
  return telling->parsed() ? info(flags) : compare(flags);
}

}  // namespace regatta::app
