// Reads a JSON object member by member and notes every mistake with its place, so that a user mends
// a file once, not mistake by mistake.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace regatta {

class ObjectReader {
 public:
  // `place` is put before the names of members, such as "nodes[0]"; empty for the whole file.
  ObjectReader(const Json& json, std::string place, std::vector<std::string>& faults);

  // Each gives the member. Where it is missing or of another kind, that is noted and `otherwise`
  // given; a member with a default may be missing without a word.
  std::string text(const char* key, std::optional<std::string> otherwise = {});
  std::int64_t whole(const char* key, std::int64_t least, std::int64_t most,
                     std::optional<std::int64_t> otherwise = {});
  double number(const char* key, double least, double most, std::optional<double> otherwise = {});
  bool truth(const char* key, std::optional<bool> otherwise = {});
  // One of few words, by `named`, which throws InputError.
  template <class T, class Named>
  T word(const char* key, const Named& named, std::optional<T> otherwise = {});
  // A list or an object; null if it is missing or something else.
  const Json* list(const char* key, bool needed = true);
  const Json* object(const char* key, bool needed = true);
  // Calls `read` with each element of a list and its place.
  void each(const char* key, const std::function<void(const Json&, const std::string&)>& read,
            bool needed = true);
  std::vector<std::int64_t> wholes(const char* key, std::int64_t least, std::int64_t most);

  void wrong(const std::string& key, const std::string& what);  // "nodes[0].name: what"
  std::string place_of(const std::string& key) const;
  // To be called last: members that nobody asked for are mistakes too.
  void finish();

 private:
  const Json* find(const char* key, bool needed);

  const Json& json_;
  std::string place_;
  std::vector<std::string>& faults_;
  std::set<std::string> asked_;
};

// A whole number as a list may hold it; notes what is wrong with it at `place`.
std::int64_t whole_at(const Json& json, const std::string& place, std::int64_t least,
                      std::int64_t most, std::vector<std::string>& faults);

// All of them in one line; of very many, the first.
inline constexpr std::size_t most_faults_told = 20;  // a file of another kind would have thousands
std::string faults_text(const std::vector<std::string>& faults);

// Throws InputError of all of them in one line, if there are any.
void require_none(const std::string& who, const std::vector<std::string>& faults);

// --- how

std::string why_not(const std::function<void()>& read);  // what it threw as InputError; or empty

template <class T, class Named>
T ObjectReader::word(const char* key, const Named& named, std::optional<T> otherwise) {
  const std::size_t before = faults_.size();
  const bool there = json_.is_object() && json_.contains(key);
  const std::string name = text(key, otherwise ? std::optional<std::string>("") : std::nullopt);
  T value = otherwise.value_or(T{});
  if (!there || faults_.size() > before) return value;
  const std::string reason = why_not([&] { value = named(name); });
  if (!reason.empty()) wrong(key, reason);
  return value;
}

}  // namespace regatta
