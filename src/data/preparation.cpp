#include "data/preparation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/shell_word.h"
#include "data/shard_file.h"
#include "data/tfrecord.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

constexpr const char* work_file = "prepare.json";
constexpr const char* index_file = "index.json";
constexpr const char* skipped_suffix = ".skipped";

std::string five_digits(std::int64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
}

std::string part_text(int part, int of) {
  return "part " + std::to_string(part) + "/" + std::to_string(of);
}

bool is_there(const fs::path& file) {
  std::error_code code;
  return fs::exists(file, code);
}

bool has_ending(const fs::path& file, std::string_view ending) {
  return file.filename().string().ends_with(ending);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) files.push_back(entry.path());
  return files;
}

Preparation read_preparation(const fs::path& out) {
  const fs::path file = out / work_file;
  const Json json = read_json(file);
  Preparation preparation;
  try {
    preparation.form = json.at("to") == "shards" ? PreparedForm::shards : PreparedForm::tfrecord;
    preparation.parts = json.at("parts");
    preparation.head = json.at("head");
    preparation.job = preparation.head.at("job");
    preparation.arguments = json.at("arguments");
    for (const Json& split : json.at("splits"))
      preparation.splits.push_back({split.at("name"), split.at("samples"), split.at("per_file")});
  } catch (const Json::exception& error) {
    throw InputError("'" + file.string() + "' does not tell a preparation: " + error.what());
  }
  const bool sound = preparation.parts > 0 && preparation.job.size() == sizeof(ShardHeader::job) &&
                     std::ranges::all_of(preparation.splits, [](const PreparedSplit& split) {
                       return split.samples > 0 && split.per_file > 0;
                     });
  if (!sound) throw InputError("'" + file.string() + "' has numbers that make no sense");
  return preparation;
}

// What the files of a split lack, from their notes; of one part's files, unless `part` is 0. A
// sample may be noted with two files: it was due in one and would have replaced another's.
SkippedSamples skipped_of(const Preparation& preparation, const fs::path& out,
                          const PreparedSplit& split, int part) {
  std::set<std::int64_t> all;
  std::map<std::int64_t, std::string> reasons;
  for (const Preparation::File& each : preparation.files()) {
    if (each.split != &split || (part != 0 && each.part != part)) continue;
    const fs::path file = out / (preparation.name_of(each) + std::string(skipped_suffix));
    if (!is_there(file)) continue;
    const Json note = read_json(file);
    try {
      const auto indices = note.at("indices").get<std::vector<std::int64_t>>();
      const auto first = note.at("first").get<std::vector<std::string>>();
      all.insert(indices.begin(), indices.end());
      for (std::size_t i = 0; i < std::min(first.size(), indices.size()); ++i)
        reasons.emplace(indices[i], first[i]);
    } catch (const Json::exception& error) {
      throw InputError("'" + file.string() + "' does not tell samples: " + error.what());
    }
  }
  constexpr std::size_t named = 5;  // as many as a file's note names of its own
  SkippedSamples skipped;
  skipped.count = static_cast<std::int64_t>(all.size());
  skipped.indices.assign(all.begin(), all.end());
  for (const auto& [index, reason] : reasons)
    if (skipped.first.size() < named) skipped.first.push_back(reason);
  return skipped;
}

// "part 3/20 is being made by process 7 on node2; part 5/20 lacks 2 of 4 files: regatta ..."
std::string lacking(const Preparation& preparation, const fs::path& out,
                    const std::map<int, std::int64_t>& missing) {
  constexpr std::size_t most = 5;  // what still reads as one line
  std::map<int, std::int64_t> files;
  for (const Preparation::File& file : preparation.files()) ++files[file.part];
  std::string text, others;
  std::size_t told = 0;
  for (const auto& [part, count] : missing) {
    if (told++ >= most) {
      others += (others.empty() ? "" : ", ") + std::to_string(part);
      continue;
    }
    text += (text.empty() ? "" : "; ") + part_text(part, preparation.parts);
    if (const auto holder = PartLock::holder(lock_file(out, part, preparation.parts)))
      text += " is being made by " + *holder;
    else
      text += " lacks " + std::to_string(count) + " of " + std::to_string(files[part]) +
              " files: " + preparation.command(out, part);
  }
  return text + (others.empty() ? "" : "; and so do parts " + others);
}

// Removes what processes that were killed left in the folder.
void remove_traces(const fs::path& out) {
  for (const fs::path& file : entries_of(out)) {
    const std::string name = file.filename().string();
    const auto unfinished = [&](const char* ending) {
      return name.find(std::string(ending) + ".part-") != std::string::npos;
    };
    const bool lock = name.starts_with("part-") && name.ends_with(".lock");
    std::error_code ignored;
    if (unfinished(".shard") || unfinished(".tfrecord") || unfinished(skipped_suffix) ||
        unfinished(work_file) || (lock && !PartLock::holder(file)))
      fs::remove(file, ignored);
  }
}

Json index_of(const Preparation& preparation, const fs::path& out) {
  Json index = preparation.head;
  index["splits"] = Json::object();
  for (const PreparedSplit& split : preparation.splits) {
    Json files = Json::array();
    for (std::int64_t number = 0; number < split.files(); ++number) {
      const std::string name = preparation.name_of({&split, number});
      if (preparation.form == PreparedForm::shards)
        files.push_back(
            {{"file", name}, {"table_crc", MappedShard(out / name).header().table_crc}});
      else
        files.push_back({{"file", name}, {"records", split.count_of(number)}});
    }
    const SkippedSamples skipped = skipped_of(preparation, out, split, 0);
    index["splits"][split.name] = {{"samples", split.samples},
                                   {"shards", files},
                                   {"skipped", skipped.count},
                                   {"skipped_first", skipped.first}};
  }
  return index;
}

// Whether prepare.json is still to be written: not where another part of this preparation has done
// so, or where the folder is complete. Throws InputError as begin_preparation does.
bool is_new(const Preparation& preparation, const fs::path& out) {
  const std::string place = "'" + out.string() + "'";
  if (is_there(out / work_file)) {
    const Json wanted = to_json(preparation);
    Json found = read_json(out / work_file);
    if (found == wanted) return false;
    if (found.is_object()) found["parts"] = preparation.parts;
    if (found != wanted)
      throw InputError(place +
                       " holds the beginnings of another preparation: choose another --out");
    for (const fs::path& file : entries_of(out))
      if (const auto holder = has_ending(file, ".lock") ? PartLock::holder(file) : std::nullopt)
        throw InputError(place + " is being made in another number of parts: " +
                         file.stem().string() + " by " + *holder);
  } else if (is_there(out / index_file)) {
    const Json found = read_json(out / index_file);
    if (!found.is_object() || !found.contains("job") || found["job"] != preparation.job)
      throw InputError(place + " holds shards of other data or another size: choose another --out");
    return false;
  } else if (preparation.form == PreparedForm::tfrecord &&
             std::ranges::any_of(entries_of(out), [](const fs::path& file) {
               return has_ending(file, ".tfrecord");
             })) {
    throw InputError(place + " holds TFRecord files that this did not make: choose another --out");
  }
  return true;
}

// What a complete folder's index tells.
Prepared prepared_by(const Json& index, const fs::path& out) try {
  Prepared prepared;
  prepared.form = index.at("form").get<std::string>().starts_with("regatta shards")
                      ? PreparedForm::shards
                      : PreparedForm::tfrecord;
  for (const auto& [name, split] : index.at("splits").items()) {
    prepared.samples += split.at("samples").get<std::int64_t>();
    prepared.skipped.count += split.at("skipped").get<std::int64_t>();
    for (const Json& reason : split.at("skipped_first")) prepared.skipped.first.push_back(reason);
    for (const Json& shard : split.at("shards")) {
      std::error_code code;
      const auto size = fs::file_size(out / shard.at("file").get<std::string>(), code);
      prepared.bytes += code ? 0 : static_cast<std::int64_t>(size);
      ++prepared.files;
    }
  }
  return prepared;
} catch (const Json::exception& error) {
  throw InputError("'" + (out / index_file).string() + "' does not tell shards: " + error.what());
}

}  // namespace

std::int64_t PreparedSplit::count_of(std::int64_t file) const {
  return std::min(per_file, samples - first_of(file));
}

std::vector<Preparation::File> Preparation::files() const {
  std::vector<File> all;
  for (const PreparedSplit& split : splits)
    for (std::int64_t number = 0; number < split.files(); ++number)
      all.push_back({&split, number, 1 + static_cast<int>(std::ssize(all) % parts)});
  return all;
}

std::string Preparation::name_of(const File& file) const {
  const std::string name = file.split->name + "-" + five_digits(file.number);
  return form == PreparedForm::shards
             ? name + ".shard"
             : name + "-of-" + five_digits(file.split->files()) + ".tfrecord";
}

std::string Preparation::command(const fs::path& out, int part) const {
  return "regatta data prepare " + arguments + " --out " + shell_word(out.string()) +
         (parts > 1 ? " --part " + std::to_string(part) + "/" + std::to_string(parts) : "");
}

bool Preparation::is_whole(const fs::path& out, const File& file, bool every_byte) const {
  const fs::path path = out / name_of(file);
  const std::int64_t count = file.split->count_of(file.number);
  if (!is_there(path)) return false;
  try {
    if (form == PreparedForm::tfrecord) {
      if (!every_byte) return count_tfrecords(path.string()) == count;
      const std::string bytes = read_file(path);
      return std::ssize(parse_tfrecord(std::as_bytes(std::span(bytes)), path.string())) == count;
    }
    const MappedShard shard(path);
    const ShardHeader& found = shard.header();
    if (std::memcmp(found.job, job.data(), sizeof found.job) != 0 ||
        found.number != static_cast<std::uint32_t>(file.number) ||
        found.first != static_cast<std::uint64_t>(file.split->first_of(file.number)) ||
        shard.count() != count)
      return false;
    for (std::int64_t i = 0; every_byte && i < shard.count(); ++i)
      if (!shard.sound(i)) return false;
    return true;
  } catch (const InputError&) {
    return false;
  }
}

Json to_json(const Preparation& preparation) {
  Json splits = Json::array();
  for (const PreparedSplit& split : preparation.splits)
    splits.push_back(
        {{"name", split.name}, {"samples", split.samples}, {"per_file", split.per_file}});
  return {{"to", preparation.form == PreparedForm::shards ? "shards" : "tfrecord"},
          {"parts", preparation.parts},
          {"arguments", preparation.arguments},
          {"head", preparation.head},
          {"splits", splits}};
}

fs::path lock_file(const fs::path& out, int part, int of) {
  return out / ("part-" + std::to_string(part) + "-of-" + std::to_string(of) + ".lock");
}

PartLock begin_preparation(const Preparation& preparation, const fs::path& out, int part) {
  const std::string place = "'" + out.string() + "'";
  std::error_code code;
  fs::create_directories(out, code);
  if (code) throw InputError("cannot create " + place + ": " + code.message());
  const FolderLock beginning(out);
  if (is_new(preparation, out)) write_file(out / work_file, to_json(preparation).dump(2) + "\n");
  return PartLock(lock_file(out, part, preparation.parts),
                  part_text(part, preparation.parts) + " of " + place);
}

void note_skipped(const Preparation& preparation, const fs::path& out,
                  const Preparation::File& file, const SkippedSamples& skipped) {
  const fs::path note = out / (preparation.name_of(file) + std::string(skipped_suffix));
  std::error_code ignored;
  if (skipped.count == 0)
    fs::remove(note, ignored);
  else
    write_file(note, Json{{"indices", skipped.indices}, {"first", skipped.first}}.dump() + "\n");
}

SkippedSamples skipped_by(const Preparation& preparation, const fs::path& out, int part) {
  SkippedSamples sum;
  for (const PreparedSplit& split : preparation.splits) {
    const SkippedSamples skipped = skipped_of(preparation, out, split, part);
    sum.count += skipped.count;
    sum.first.insert(sum.first.end(), skipped.first.begin(), skipped.first.end());
  }
  return sum;
}

namespace {

// The caller holds the folder's lock.
Prepared join_parts(const Preparation& preparation, const fs::path& out) {
  std::map<int, std::int64_t> missing;  // number of files by part
  for (const Preparation::File& file : preparation.files())
    if (!preparation.is_whole(out, file, false)) ++missing[file.part];
  // A process that makes a part may be replacing a file of it that is damaged.
  for (int part = 1; part <= preparation.parts; ++part)
    if (PartLock::holder(lock_file(out, part, preparation.parts))) missing.try_emplace(part, 0);
  if (!missing.empty())
    throw InputError("'" + out.string() +
                     "' is not complete: " + lacking(preparation, out, missing));
  const Json index = index_of(preparation, out);
  write_file(out / index_file, index.dump(2) + "\n");
  fs::remove(out / work_file);
  sync_folder(out);
  remove_traces(out);
  return prepared_by(index, out);
}

}  // namespace

Prepared finish_preparation(const fs::path& out) {
  const FolderLock joining(out);
  if (is_there(out / work_file)) return join_parts(read_preparation(out), out);
  if (!is_there(out / index_file))
    throw InputError("'" + out.string() + "' has no " + work_file +
                     ": regatta data prepare SPEC --out FOLDER --part K/N begins one");
  Prepared prepared = prepared_by(read_json(out / index_file), out);
  remove_traces(out);
  return prepared;
}

Prepared complete_preparation(const Preparation& preparation, const fs::path& out) {
  const FolderLock joining(out);
  return join_parts(preparation, out);
}

}  // namespace regatta
