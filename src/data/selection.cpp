#include "data/selection.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/augment_sample.h"
#include "data/skips.h"

namespace regatta {
namespace {

// `inner` was opened strictly: this class replaces what cannot be read.
class SelectedDataset final : public Dataset {
 public:
  SelectedDataset(std::shared_ptr<const Dataset> inner, std::vector<std::int64_t> indices,
                  const std::vector<std::string>& class_names,
                  std::map<std::int32_t, std::int32_t> labels, bool strict)
      : inner_(std::move(inner)),
        indices_(std::move(indices)),
        labels_(std::move(labels)),
        strict_(strict) {
    info_ = inner_->info();
    info_.count = std::ssize(indices_);
    if (!labels_.empty()) {
      info_.classes = static_cast<int>(class_names.size());
      info_.class_names = class_names;
    }
  }

  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    for (const std::int64_t index : indices) {
      read_replacing(index, [&](std::int64_t inner) {
        inner_->read(std::span<const std::int64_t>(&inner, 1), samples, labels);
      });
      *labels = relabelled(*labels);
      samples += sample_bytes(info_);
      ++labels;
    }
  }

  std::optional<std::int64_t> read_encoded(std::int64_t wanted, std::vector<std::byte>& image,
                                           std::int32_t* label) const override {
    bool encoded = true;
    const std::int64_t found = read_replacing(wanted, [&](std::int64_t inner) {
      encoded = inner_->read_encoded(inner, image, label).has_value();
    });
    if (!encoded) return std::nullopt;
    *label = relabelled(*label);
    return found;
  }

  std::int32_t label(std::int64_t index) const override {
    require_index(index);
    return relabelled(inner_->label(indices_[static_cast<std::size_t>(index)]));
  }
  SkippedSamples skipped() const override { return skips_.report(); }
  std::string sample_name(std::int64_t index) const override {
    return inner_->sample_name(indices_[static_cast<std::size_t>(index)]);
  }
  std::int64_t bytes() const override { return inner_->bytes(); }
  Json identity() const override {
    Json json = inner_->identity();
    json["selected"] = crc_of_indices();
    return json;
  }

 private:
  // Calls `read` with the index in the whole data; returns the index in the selection that was
  // read at last.
  template <class Read>
  std::int64_t read_replacing(std::int64_t wanted, const Read& read) const {
    require_index(wanted);
    std::int64_t found = wanted;
    std::exception_ptr gone;  // not a sample but all of the data
    const auto read_at = [&](std::int64_t index) {
      try {
        read(indices_[static_cast<std::size_t>(index)]);
        found = index;
      } catch (const UnreadableSample& sample) {
        throw InputError(sample.cause());
      } catch (const InputError&) {
        gone = std::current_exception();
        throw;
      }
    };
    read_or_next(
        wanted, info_.count, strict_, skips_, read_at,
        [&](std::int64_t index) { return sample_name(index); },
        [&] {
          if (gone) std::rethrow_exception(gone);
        });
    return found;
  }

  std::int32_t relabelled(std::int32_t label) const {
    return labels_.empty() ? label : labels_.at(label);
  }

  std::string crc_of_indices() const {
    return sha256_hex({reinterpret_cast<const char*>(indices_.data()),
                       indices_.size() * sizeof(std::int64_t)})
        .substr(0, 16);
  }

  std::shared_ptr<const Dataset> inner_;
  std::vector<std::int64_t> indices_;            // of the whole data, by index of the selection
  std::map<std::int32_t, std::int32_t> labels_;  // new ones by old ones; empty: unchanged
  bool strict_;
  mutable Skips skips_;
};

// The lines of a file that are not empty, without spaces around them.
std::vector<std::string> lines_of_file(const std::string& file) {
  std::istringstream text(read_file(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    lines.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
  }
  return lines;
}

std::vector<std::string> class_list(const std::string& text) {
  std::error_code code;
  if (std::filesystem::is_regular_file(text, code)) {
    std::vector<std::string> names = lines_of_file(text);
    if (names.empty()) throw InputError("--classes " + text + ": the file names no class");
    return names;
  }
  std::vector<std::string> names;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

// New labels by old ones.
std::map<std::int32_t, std::int32_t> label_map(const DatasetInfo& info,
                                               const std::vector<std::string>& wanted) {
  std::vector<std::string> names = info.class_names;
  for (int label = static_cast<int>(names.size()); label < info.classes; ++label)
    names.push_back(std::to_string(label));
  std::map<std::int32_t, std::int32_t> labels;
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      throw InputError("--classes: data '" + info.spec + "' has no class '" + name + "'" +
                       did_you_mean(name, names));
    if (!labels
             .emplace(static_cast<std::int32_t>(found - names.begin()),
                      static_cast<std::int32_t>(labels.size()))
             .second)
      throw InputError("--classes names '" + name + "' twice");
  }
  return labels;
}

// The samples of `among` that the lines of `file` name.
std::vector<std::int64_t> listed_in(const std::string& file, const Dataset& data,
                                    const std::vector<std::int64_t>& among) {
  const std::vector<std::string> lines = lines_of_file(file);
  const std::unordered_set<std::string> wanted(lines.begin(), lines.end());
  std::unordered_set<std::string> met;
  std::vector<std::int64_t> chosen;
  for (const std::int64_t index : among) {
    bool named = false;
    const auto look_for = [&](const std::string& name) {
      if (!wanted.contains(name)) return;
      met.insert(name);
      named = true;
    };
    look_for(std::to_string(index));
    const std::string name = data.sample_name(index);
    look_for(name);
    for (std::size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1))
      look_for(name.substr(slash + 1));
    if (named) chosen.push_back(index);
  }
  for (const std::string& line : lines)
    if (!met.contains(line))
      throw InputError("--subset " + file + ": no training sample of '" + data.info().spec +
                       "' that is kept is called '" + line + "'");
  return chosen;
}

}  // namespace

std::optional<SubsetSize> parse_subset_size(const std::string& text) {
  const bool percent = text.ends_with('%');
  double value = 0;
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  const bool whole = !percent && text.find_first_not_of("0123456789") == std::string::npos;
  if (percent) value /= 100;
  if (!(value > 0) || (!whole && value > 1) || value > 1e15)
    throw InputError("--subset " + text +
                     ": use a number of samples, a share such as 0.1 or 10%, or a file of names");
  if (whole) return SubsetSize{static_cast<std::int64_t>(value), 1};
  return SubsetSize{std::nullopt, value};
}

std::vector<std::int64_t> drawn_by_class(const std::vector<std::int32_t>& labels,
                                         std::int64_t count, std::uint64_t seed) {
  std::map<std::int32_t, std::vector<std::int64_t>> by_class;
  for (std::size_t i = 0; i < labels.size(); ++i)
    by_class[labels[i]].push_back(static_cast<std::int64_t>(i));
  // Each class's samples in random order lie evenly in [0, 1); the first `count` of all are taken.
  struct Ranked {
    double rank;
    std::int64_t index;
    auto operator<=>(const Ranked&) const = default;
  };
  std::vector<Ranked> ranked;
  for (const auto& [label, members] : by_class) {
    const auto order =
        epoch_order(std::ssize(members), seed,
                    static_cast<std::int64_t>(stream_of("subset") >> 1) ^ label, true);
    for (std::size_t i = 0; i < order.size(); ++i)
      ranked.push_back({(static_cast<double>(i) + 0.5) / static_cast<double>(order.size()),
                        members[static_cast<std::size_t>(order[i])]});
  }
  std::ranges::sort(ranked);
  ranked.resize(static_cast<std::size_t>(std::min(count, std::ssize(ranked))));
  std::vector<std::int64_t> indices;
  for (const Ranked& each : ranked) indices.push_back(each.index);
  std::ranges::sort(indices);
  return indices;
}

std::shared_ptr<const Dataset> open_selection(const std::string& spec, const Selection& selection,
                                              const DatasetOptions& options) {
  if (!selection.any()) return open_dataset(spec, options);
  DatasetOptions strictly = options;
  strictly.strict = true;
  const auto whole = open_dataset(spec, strictly);
  const std::vector<std::string> classes =
      selection.classes.empty() ? std::vector<std::string>{} : class_list(selection.classes);
  const auto labels = label_map(whole->info(), classes);
  const bool train = options.split == Split::train || whole->info().splits_coincide;
  const std::string& subset = selection.subset;
  const auto size = subset.empty() ? SubsetSize{} : parse_subset_size(subset);
  const auto kept_of = [&](const Dataset& data) {
    std::vector<std::int64_t> kept;
    for (std::int64_t i = 0; i < data.info().count; ++i)
      if (labels.empty() || labels.contains(data.label(i))) kept.push_back(i);
    if (kept.empty())
      throw InputError("data '" + spec + "' has no sample of the classes that --classes names");
    return kept;
  };
  std::vector<std::int64_t> indices = kept_of(*whole);
  if (!size) {
    if (train) indices = listed_in(subset, *whole, indices);
  } else if (size->count || size->share < 1) {
    double share = size->share;
    if (size->count) {
      DatasetOptions of_training = strictly;
      of_training.split = Split::train;
      const std::int64_t training =
          train ? std::ssize(indices) : std::ssize(kept_of(*open_dataset(spec, of_training)));
      if (*size->count > training)
        throw InputError("--subset " + subset + ": '" + spec + "' has only " +
                         std::to_string(training) + " training samples to choose from");
      share = static_cast<double>(*size->count) / static_cast<double>(training);
    }
    std::vector<std::int32_t> their_labels;
    for (const std::int64_t index : indices) their_labels.push_back(whole->label(index));
    const std::int64_t count =
        std::max<std::int64_t>(1, std::llround(share * static_cast<double>(indices.size())));
    std::vector<std::int64_t> drawn;
    for (const std::int64_t each : drawn_by_class(their_labels, count, options.seed))
      drawn.push_back(indices[static_cast<std::size_t>(each)]);
    indices = std::move(drawn);
  }
  return std::make_shared<SelectedDataset>(whole, std::move(indices), classes, labels,
                                           options.strict);
}

}  // namespace regatta
