// The rooms of src/ and who may include whom: data flows one way. The docs show the same table;
// change both together.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/places.h"

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// Permission is transitive: train may include graph because exec, tasks, plan and so on lead there.
const std::map<std::string, Names> direct_permissions = {
    {"base", {}},
    {"graph", {"base"}},
    {"ops", {"graph"}},
    {"models", {"ops"}},
    {"platform", {"base"}},
    {"profile", {"graph", "platform"}},
    {"plan", {"profile", "ops"}},
    {"tasks", {"plan"}},
    {"transport", {"base"}},
    {"trace", {"base"}},
    {"sim", {"tasks", "trace"}},
    {"optimize", {"plan"}},
    {"backends", {"ops"}},
    {"exec", {"tasks", "trace", "backends", "transport"}},
    {"data", {"base"}},
    {"train", {"exec", "data", "models"}},
    {"tune", {"train"}},
    {"tickets", {"train"}},
    {"report", {"trace", "plan"}},
    {"app", {"tickets", "report", "sim", "optimize", "tune"}},
};

// Libraries that belong to few rooms: which headers, and the folders that may include them.
struct Reserved {
  std::string header_prefix;
  std::vector<std::string> folders;
};
const std::vector<Reserved> reserved_libraries = {
    {"starpu", {"src/exec/", "src/backends/cpu/", "src/backends/cuda/"}},
    {"simgrid", {"src/sim/"}},
    {"mpi.h", {"src/transport/mpi/"}},
    {"onnx/", {"src/models/"}},
    {"coin/", {"src/optimize/"}},
};

Names allowed_rooms(const std::string& room) {
  Names allowed = {room};
  for (const std::string& next : direct_permissions.at(room)) allowed.merge(allowed_rooms(next));
  return allowed;
}

std::string first_folder(const std::string& path) { return path.substr(0, path.find('/')); }

// Every broken rule of one file, given as its path from the project's root and its text.
std::vector<std::string> violations(const std::string& path, const std::string& text) {
  std::vector<std::string> found;
  const auto report = [&](const std::string& what) { found.push_back(path + ": " + what); };

  const bool is_public = path.starts_with("include/regatta/");
  const std::string room = is_public ? "" : first_folder(path.substr(std::string("src/").size()));
  if (!is_public && !direct_permissions.contains(room)) {
    report("room '" + room + "' is not in the table of include_rules_test.cpp");
    return found;
  }

  static const std::regex include_line(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, include_line)) continue;
    const std::string header = match[2];
    const std::string target = first_folder(header);

    for (const Reserved& library : reserved_libraries) {
      const bool may = std::ranges::any_of(
          library.folders, [&](const std::string& folder) { return path.starts_with(folder); });
      if (header.starts_with(library.header_prefix) && !may) {
        report("may not include <" + header + ">");
      }
    }
    if (direct_permissions.contains(target) && header != target) {
      if (is_public) {
        report("a public header may not include \"" + header + "\"");
      } else if (!allowed_rooms(room).contains(target)) {
        report(room + " may not include \"" + header + "\"");
      }
    } else if (match[1] == "\"" && target != "regatta") {
      report("\"" + header + "\" is neither room/file.h nor regatta/file.h");
    }
  }
  return found;
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> source_files(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (Names{".h", ".cpp", ".cu", ".cuh"}.contains(extension)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

const fs::path root = regatta::test_files();

TEST(IncludeRules, EveryFileKeepsThem) {
  if (!fs::exists(root / "src")) GTEST_SKIP() << "no sources here";
  int checked = 0;
  for (const char* folder : {"src", "include/regatta"}) {
    for (const fs::path& file : source_files(root / folder)) {
      ++checked;
      for (const std::string& violation : violations(fs::relative(file, root), read(file))) {
        ADD_FAILURE() << violation;
      }
    }
  }
  EXPECT_GT(checked, 0) << "no sources under " << root;
}

TEST(IncludeRules, EveryRoomSaysWhatLivesThere) {
  if (!fs::exists(root / "src")) GTEST_SKIP() << "no sources here";
  for (const auto& entry : fs::directory_iterator(root / "src")) {
    const std::string room = entry.path().filename();
    const std::vector<fs::path> files = source_files(entry.path());
    if (files.empty()) continue;
    const bool said = std::ranges::any_of(files, [&](const fs::path& file) {
      return file.extension() == ".h" && read(file).starts_with("// " + room + "/: ");
    });
    EXPECT_TRUE(said) << "src/" << room << ": no header starts with \"// " << room
                      << "/: what lives here\"";
  }
}

TEST(IncludeRules, DataFlowsOneWay) {
  for (const auto& [room, direct] : direct_permissions) {
    for (const std::string& next : direct) {
      EXPECT_FALSE(allowed_rooms(next).contains(room)) << room << " and " << next << " are a cycle";
    }
  }
}

TEST(IncludeRules, SimAndExecNeverMeetBelowApp) {
  for (const auto& [room, direct] : direct_permissions) {
    const Names allowed = allowed_rooms(room);
    EXPECT_FALSE(room != "app" && allowed.contains("sim") && allowed.contains("exec")) << room;
  }
}

TEST(IncludeRules, AppSeesEverything) {
  EXPECT_EQ(allowed_rooms("app").size(), direct_permissions.size());
}

// The rules would be worthless if the checker could not fail.
TEST(IncludeRules, TheCheckerCatchesEachKindOfViolation) {
  const auto count = [](const std::string& path, const std::string& text) {
    return violations(path, text).size();
  };
  EXPECT_EQ(count("src/graph/graph.cpp", "#include \"exec/executor.h\"\n"), 1u);
  EXPECT_EQ(count("src/sim/simulate.cpp", "#include \"exec/executor.h\"\n"), 1u);
  EXPECT_EQ(count("src/exec/executor.cpp", "#include \"sim/simulate.h\"\n"), 1u);
  EXPECT_EQ(count("src/base/error.h", "  #  include <graph/graph.h>\n"), 1u);
  EXPECT_EQ(count("src/train/loop.cpp", "#include <starpu.h>\n"), 1u);
  EXPECT_EQ(count("src/backends/backend.h", "#include <starpu.h>\n"), 1u);
  EXPECT_EQ(count("src/exec/executor.cpp", "#include <simgrid/s4u.hpp>\n"), 1u);
  EXPECT_EQ(count("src/plan/plan.cpp", "#include \"segments.h\"\n"), 1u);
  EXPECT_EQ(count("src/attic/old.cpp", ""), 1u);
  EXPECT_EQ(count("include/regatta/regatta.h", "#include \"train/loop.h\"\n"), 1u);
  EXPECT_EQ(count("src/ops/relu.cpp", "#include \"plan/plan.h\"\n#include \"data/idx.h\"\n"), 2u);
}

TEST(IncludeRules, TheCheckerAcceptsWhatIsAllowed) {
  EXPECT_TRUE(violations("src/exec/executor.cpp",
                         "#include <starpu.h>\n#include \"base/error.h\"\n#include \"exec/a.h\"\n"
                         "#include \"regatta/regatta.h\"\n#include <graph>\n")
                  .empty());
  EXPECT_TRUE(violations("src/sim/simulate.cpp", "#include <simgrid/s4u.hpp>\n").empty());
  EXPECT_TRUE(violations("src/backends/cuda/glue.cpp", "#include <starpu_cuda.h>\n").empty());
  EXPECT_TRUE(
      violations("include/regatta/a.h", "#include <string>\n#include \"regatta/b.h\"\n").empty());
}

}  // namespace
