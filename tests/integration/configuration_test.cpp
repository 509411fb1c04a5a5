// Every shipped configuration, mutated in every key: a clear error, or a plan that shows the
// effective value; never a crash and never silence.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "cli/plan.hpp"
#include "core/error.hpp"
#include "genotype/slots.hpp"
#include "places.hpp"
#include "study/reader/experiment.hpp"
#include "unit/data_fixture.hpp"

namespace nas::testing {
namespace {

namespace fs = std::filesystem;

/// A key of a configuration: the way to it from the top.
using Path = std::vector<std::string>;

/// "objectives[0].name", as plans write it.
std::string written(const Path& path) {
  std::string text;
  for (const auto& step : path) text += (text.empty() || step.front() == '[' ? "" : ".") + step;
  return text;
}

/// @param place  below "space.", with a step into a list perhaps.
bool is_paper_gene(const std::string& place) {
  return std::any_of(paper_slots().begin(), paper_slots().end(), [&](const Slot& slot) {
    return place.substr(0, place.find_first_of(".[")) == slot.name;
  });
}

void collect(const YAML::Node& node, const Path& path, std::vector<Path>& paths) {
  if (node.IsMap()) {
    for (const auto& entry : node) {
      auto next = path;
      next.push_back(entry.first.as<std::string>());
      paths.push_back(next);
      collect(entry.second, next, paths);
    }
  } else if (node.IsSequence()) {
    for (std::size_t i = 0; i < node.size(); ++i) {
      auto next = path;
      next.push_back("[" + std::to_string(i) + "]");
      collect(node[i], next, paths);
    }
  }
}

/// The map that holds a path's last key.
YAML::Node holder(YAML::Node node, const Path& path) {
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const auto& step = path[i];
    node.reset(step.front() == '[' ? node[std::stoul(step.substr(1))] : node[step]);
  }
  return node;
}

enum class Kind { dropped, misspelt, wrong_type, far_below, far_above };
const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::dropped:
      return "dropped";
    case Kind::misspelt:
      return "misspelt";
    case Kind::wrong_type:
      return "of a wrong type";
    case Kind::far_below:
      return "far below its range";
    default:
      return "far above its range";
  }
}

constexpr const char* kFarBelow = "-987654321";
constexpr const char* kFarAbove = "9.87e+300";

YAML::Node mutated(const YAML::Node& original, const Path& path, Kind kind) {
  YAML::Node copy = YAML::Clone(original);
  YAML::Node map = holder(copy, path);
  const auto& key = path.back();
  switch (kind) {
    case Kind::dropped:
      map.remove(key);
      break;
    case Kind::misspelt: {
      const YAML::Node value = YAML::Clone(map[key]);
      map.remove(key);
      map[key + "q"] = value;
      break;
    }
    case Kind::wrong_type:
      map[key] = YAML::Load("{what: [is, this]}");
      break;
    case Kind::far_below:
      map[key] = YAML::Load(kFarBelow);
      break;
    case Kind::far_above:
      map[key] = YAML::Load(kFarAbove);
      break;
  }
  return copy;
}

class ConfigurationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::current_path(source_folder());  // from which configurations name tables
    const auto* before = std::getenv("NAS_DATA_DIR");
    if (before != nullptr) data_before_ = before;
    std::string text;
    for (int i = 0; i < 200; ++i) {
      for (int word = 0; word < 200; ++word)
        text += word % 9 == 0 ? "<unk> " : "abcdefgh" + std::to_string(word % 7) + " ";
      text += "\n";
    }
    for (const std::string corpus : {"wikitext-2", "brown", "gcide", "debian_reference_zh_cn"}) {
      for (const std::string split : {"train", "valid", "test"}) {
        folder_.write("data/" + corpus + "/" + split + ".txt", text);
      }
    }
    for (const std::string split : {"train", "valid", "test"}) {
      std::string images;  // of ten classes, black
      for (int i = 0; i < 40; ++i) {
        images += static_cast<char>(i % 10) + std::string(std::size_t{28} * 28, '\0');
      }
      folder_.write("data/fashion_mnist/" + split + ".txt", images);
    }
    setenv("NAS_DATA_DIR", (folder_.path() / "data").c_str(), 1);
    for (const auto& entry : fs::directory_iterator(source_folder() + "/configs")) {
      fs::create_directories(folder_.path() / "configs");
      fs::copy_file(entry.path(), folder_.path() / "configs" / entry.path().filename());
      const auto name = entry.path().filename().string();
      if (!name.starts_with("compare_")) files_.insert(name);  // those are read by nas-compare
    }
  }
  void TearDown() override {
    fs::current_path(folder_before_);
    if (data_before_) {
      setenv("NAS_DATA_DIR", data_before_->c_str(), 1);
    } else {
      unsetenv("NAS_DATA_DIR");
    }
  }

  struct Outcome {
    std::string error;  ///< empty if there is a plan
    std::string plan;
  };
  /// What --dry-run does, but for timing steps.
  [[nodiscard]] Outcome plan_of(const std::string& file) const {
    try {
      const Study study(folder_.path() / "configs" / file, {}, folder_.path() / "run");
      return {"", plan_text(study, study.plan(/*calibrate=*/false), /*with_settings=*/true)};
    } catch (const InputError& error) {
      return {error.what(), ""};
    }
  }

  TemporaryFolder folder_;
  std::set<std::string> files_;
  std::optional<std::string> data_before_;
  fs::path folder_before_ = fs::current_path();
};

TEST_F(ConfigurationTest, EveryShippedOneHasAPlan) {
  for (const auto& file : files_) {
    const auto [error, plan] = plan_of(file);
    EXPECT_EQ(error, "") << file;
    EXPECT_NE(plan.find("plan of "), std::string::npos);
  }
  EXPECT_GE(files_.size(), 16U);
}

TEST_F(ConfigurationTest, EveryMutationIsAnErrorOrShowsInThePlan) {
  int mutations = 0;
  int errors = 0;
  std::map<std::string, int> seen;  // the same mistake at the same key, in that many files
  for (const auto& file : files_) {
    const auto path_of_file = folder_.path() / "configs" / file;
    const auto original = YAML::LoadFile(path_of_file.string());
    std::vector<Path> paths;
    collect(original, {}, paths);
    for (const auto& path : paths) {
      for (const auto kind :
           {Kind::dropped, Kind::misspelt, Kind::wrong_type, Kind::far_below, Kind::far_above}) {
        const auto mistake = written(path) + " " + name_of(kind);
        if (++seen[mistake] > 3) continue;
        SCOPED_TRACE(file + ": " + mistake);
        folder_.write("configs/mutated.yaml", YAML::Dump(mutated(original, path, kind)) + "\n");
        const auto [error, plan] = plan_of("mutated.yaml");
        ++mutations;
        if (!error.empty()) {
          ++errors;
          // With the place of the key, or, where a plug-in finds it out, its name.
          const bool placed = error.find("/configs/") != std::string::npos &&
                              error.find(".yaml:") != std::string::npos;
          const bool named = error.find(": data.") != std::string::npos ||
                             error.find(": model.context = ") != std::string::npos ||
                             error.starts_with("objectives.latency.context = 0") ||
                             error.find(" for every candidate of this space") != std::string::npos;
          EXPECT_TRUE(placed || named) << error;
          if (kind == Kind::misspelt) {
            EXPECT_NE(error.find(path.back() + "q"), std::string::npos) << error;
          }
          continue;
        }
        EXPECT_NE(kind, Kind::misspelt) << "taken for right";
        EXPECT_NE(kind, Kind::wrong_type) << "taken for right";
        if (path.back() == "extends") continue;
        // They are found anew, or are those of what it extends.
        if (kind == Kind::dropped && path.back() == "rates") continue;
        if (kind == Kind::dropped && path.back() == "mechanisms") {
          EXPECT_TRUE(plan.find("\n  algorithm     ") != std::string::npos ||
                      plan.find("\n  mechanism     ") != std::string::npos)
              << "a search in its place, or the list of what it extends";
          continue;
        }
        if (kind == Kind::dropped && written(path) == "fidelity") {
          EXPECT_EQ(plan.find("\n  fidelity"), std::string::npos) << "all are trained to the end";
          continue;
        }
        if (kind == Kind::dropped && written(path) == "data.tokenizer") {
          EXPECT_NE(plan.find("\n  data.unit = "), std::string::npos)
              << "words, as they were before";
          continue;
        }
        // Genes beyond the paper's are in a space only where they are listed.
        if (kind == Kind::dropped && path.size() > 1 && written(path).starts_with("space.") &&
            !is_paper_gene(written(path).substr(6))) {
          continue;
        }
        const auto line = "\n  " + written(path);
        const bool shown = plan.find(line + " = ") != std::string::npos ||
                           plan.find(line + ".") != std::string::npos ||
                           plan.find(line + "[") != std::string::npos;
        EXPECT_TRUE(shown) << plan;
        for (const auto& [given, value] : {std::pair(Kind::far_below, std::string(kFarBelow)),
                                           std::pair(Kind::far_above, std::string(kFarAbove))}) {
          if (kind != given) continue;
          EXPECT_TRUE(plan.find(line + " = " + value) != std::string::npos ||
                      plan.find(line + " = \"" + value + "\"") != std::string::npos ||
                      plan.find(line + " = [\"" + value + "\"]") != std::string::npos)
              << plan;
        }
      }
    }
  }
  std::cout << mutations << " mutations of " << files_.size() << " configurations, " << errors
            << " refused\n";
  EXPECT_GT(mutations, 1000);
}

}  // namespace
}  // namespace nas::testing
