#include "base/json_reader.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace regatta {
namespace {

std::string range_text(double least, double most) {
  Json low = least, high = most;
  if (most >= 1e15) return "a number of " + low.dump() + " or more";
  return "a number from " + low.dump() + " to " + high.dump();
}

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

}  // namespace

ObjectReader::ObjectReader(const Json& json, std::string place, std::vector<std::string>& faults)
    : json_(json), place_(std::move(place)), faults_(faults) {
  if (!json_.is_object())
    faults_.push_back((place_.empty() ? "" : place_ + ": ") + "it is no object but " +
                      shown(json_));
}

std::string ObjectReader::place_of(const std::string& key) const {
  return place_.empty() ? key : place_ + "." + key;
}

void ObjectReader::wrong(const std::string& key, const std::string& what) {
  faults_.push_back(place_of(key) + ": " + what);
}

const Json* ObjectReader::find(const char* key, bool needed) {
  asked_.insert(key);
  if (!json_.is_object()) return nullptr;
  const auto found = json_.find(key);
  if (found != json_.end()) return &*found;
  if (needed) wrong(key, "is missing");
  return nullptr;
}

std::string ObjectReader::text(const char* key, std::optional<std::string> otherwise) {
  const Json* found = find(key, !otherwise);
  if (found && found->is_string()) return found->get<std::string>();
  if (found) wrong(key, shown(*found) + " is no text");
  return std::move(otherwise).value_or("");
}

std::int64_t whole_at(const Json& json, const std::string& place, std::int64_t least,
                      std::int64_t most, std::vector<std::string>& faults) {
  const bool in_range =
      json.is_number_integer() &&
      (!json.is_number_unsigned() ||
       json.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::max<std::int64_t>(most, 0))) &&
      json.get<std::int64_t>() >= least && json.get<std::int64_t>() <= most;
  if (in_range) return json.get<std::int64_t>();
  faults.push_back(place + ": " + shown(json) + " is not a whole number from " +
                   std::to_string(least) + " to " + std::to_string(most));
  return least;
}

std::int64_t ObjectReader::whole(const char* key, std::int64_t least, std::int64_t most,
                                 std::optional<std::int64_t> otherwise) {
  const Json* found = find(key, !otherwise);
  if (!found) return otherwise.value_or(least);
  return whole_at(*found, place_of(key), least, most, faults_);
}

double ObjectReader::number(const char* key, double least, double most,
                            std::optional<double> otherwise) {
  const Json* found = find(key, !otherwise);
  if (!found) return otherwise.value_or(least);
  if (found->is_number()) {
    const auto value = found->get<double>();
    if (std::isfinite(value) && value >= least && value <= most) return value;
  }
  wrong(key, shown(*found) + " is not " + range_text(least, most));
  return otherwise.value_or(least);
}

bool ObjectReader::truth(const char* key, std::optional<bool> otherwise) {
  const Json* found = find(key, !otherwise);
  if (found && found->is_boolean()) return found->get<bool>();
  if (found) wrong(key, shown(*found) + " is neither true nor false");
  return otherwise.value_or(false);
}

const Json* ObjectReader::list(const char* key, bool needed) {
  const Json* found = find(key, needed);
  if (found && found->is_array()) return found;
  if (found) wrong(key, shown(*found) + " is no list");
  return nullptr;
}

const Json* ObjectReader::object(const char* key, bool needed) {
  const Json* found = find(key, needed);
  if (found && found->is_object()) return found;
  if (found) wrong(key, shown(*found) + " is no object");
  return nullptr;
}

void ObjectReader::each(const char* key,
                        const std::function<void(const Json&, const std::string&)>& read,
                        bool needed) {
  const Json* found = list(key, needed);
  if (!found) return;
  for (std::size_t i = 0; i < found->size(); ++i)
    read((*found)[i], place_of(key) + "[" + std::to_string(i) + "]");
}

std::vector<std::int64_t> ObjectReader::wholes(const char* key, std::int64_t least,
                                               std::int64_t most) {
  std::vector<std::int64_t> values;
  each(key, [&](const Json& json, const std::string& place) {
    values.push_back(whole_at(json, place, least, most, faults_));
  });
  return values;
}

void ObjectReader::finish() {
  if (!json_.is_object()) return;
  for (const auto& [key, value] : json_.items())
    if (!asked_.contains(key))
      wrong(key, "is not known" + did_you_mean(key, {asked_.begin(), asked_.end()}));
}

std::string why_not(const std::function<void()>& read) {
  try {
    read();
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string faults_text(const std::vector<std::string>& faults) {
  std::string text;
  for (std::size_t i = 0; i < std::min(faults.size(), most_faults_told); ++i)
    text += (i ? "; " : "") + faults[i];
  if (faults.size() > most_faults_told)
    text += "; and " + std::to_string(faults.size() - most_faults_told) + " more";
  return text;
}

void require_none(const std::string& who, const std::vector<std::string>& faults) {
  if (!faults.empty()) throw InputError(who + ": " + faults_text(faults));
}

}  // namespace regatta
