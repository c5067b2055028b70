#include "data/relabel.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"

namespace regatta {
namespace {

class RelabelledDataset final : public Dataset {
 public:
  RelabelledDataset(std::shared_ptr<const Dataset> inner, const std::vector<std::string>& classes,
                    std::vector<std::int32_t> labels)
      : inner_(std::move(inner)), labels_(std::move(labels)) {
    info_ = inner_->info();
    info_.classes = static_cast<int>(classes.size());
    info_.class_names = classes;
  }

  void read(std::span<const std::int64_t> indices, std::byte* samples,
            std::int32_t* labels) const override {
    inner_->read(indices, samples, labels);
    relabel({labels, indices.size()});
  }
  void read(std::span<const Visit> visits, std::byte* samples,
            std::int32_t* labels) const override {
    inner_->read(visits, samples, labels);
    relabel({labels, visits.size()});
  }
  std::int32_t label(std::int64_t index) const override {
    return labels_[static_cast<std::size_t>(inner_->label(index))];
  }
  std::vector<std::int64_t> order(std::uint64_t seed, std::int64_t epoch,
                                  bool shuffle) const override {
    return inner_->order(seed, epoch, shuffle);
  }
  SkippedSamples skipped() const override { return inner_->skipped(); }
  std::string sample_name(std::int64_t index) const override { return inner_->sample_name(index); }
  std::int64_t bytes() const override { return inner_->bytes(); }
  Json identity() const override { return inner_->identity(); }

 private:
  void relabel(std::span<std::int32_t> labels) const {
    for (std::int32_t& label : labels) label = labels_[static_cast<std::size_t>(label)];
  }

  std::shared_ptr<const Dataset> inner_;
  std::vector<std::int32_t> labels_;  // the network's, by the data's
};

// The first few, quoted, and how many more there are.
std::string few_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;  // what still reads as one line
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

std::vector<std::string> lacking(const std::vector<std::string>& names,
                                 const std::vector<std::string>& among) {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found), [&](const std::string& name) {
    return std::ranges::find(among, name) == among.end();
  });
  return found;
}

}  // namespace

std::shared_ptr<const Dataset> labelled_as(std::shared_ptr<const Dataset> data,
                                           const std::vector<std::string>& classes) {
  const std::vector<std::string>& own = data->info().class_names;
  const bool named = !own.empty() && std::ssize(own) >= data->info().classes;
  if (!named || classes.empty() || own == classes) return data;
  const std::string culprit = "data '" + data->info().spec + "' ";
  if (const auto unknown = lacking(own, classes); !unknown.empty()) {
    const auto missing = lacking(classes, own);
    throw InputError(
        culprit + "has classes that the network was not trained on: " + few_of(unknown) +
        (missing.empty() ? "" : "; it lacks the network's " + few_of(missing)) +
        "; name its classes as the training data did, or train for them with --new-classes");
  }
  std::map<std::string, std::int32_t> outputs;
  for (const std::string& name : classes)
    if (!outputs.emplace(name, static_cast<std::int32_t>(outputs.size())).second)
      throw InputError(culprit + "cannot be matched by name: the network has two classes '" + name +
                       "'");
  std::vector<std::int32_t> labels;
  for (const std::string& name : own) labels.push_back(outputs.at(name));
  return std::make_shared<RelabelledDataset>(std::move(data), classes, std::move(labels));
}

}  // namespace regatta
