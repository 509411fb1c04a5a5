// Every shipped configuration, mutated in every key: a clear error, or a plan that shows the
// effective value; never a crash and never silence.

#include <cstdlib>

#include <yaml-cpp/yaml.h>

#include "cli/plan.hpp"
#include "core/error.hpp"
#include "genotype/slots.hpp"
#include "places.hpp"
#include "prelude.hpp"
#include "study/reader/experiment.hpp"
#include "unit/data_fixture.hpp"

namespace nas::testing {
namespace {

/// A key of a configuration: the way to it from the top.
using Path = Texts;

/// "objectives[0].name", as plans write it.
std::string written(const Path& path) {
  std::string text;
  for (const auto& step : path) text += (text.empty() || step.front() == '[' ? "" : ".") + step;
  return text;
}

/// @param place  below "space.", with a step into a list perhaps.
bool is_paper_gene(const std::string& place) {
  return std::any_of(paper_slots().begin(), paper_slots().end(), [&](const Slot* slot) {
    return place.substr(0, place.find_first_of(".[")) == slot->name;
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

/// What is done to a key.
struct Mutation {
  std::string_view name;
  const char* value = nullptr;  ///< that the key then has; nullptr: it is gone
  bool refused = false;         ///< whether nothing but an error may come of it
};
constexpr Mutation kDropped{"dropped"};
constexpr Mutation kMisspelt{"misspelt", nullptr, true};
constexpr Mutation kMutations[] = {kDropped,
                                   kMisspelt,
                                   {"of a wrong type", "{what: [is, this]}", true},
                                   {"far below its range", "-987654321"},
                                   {"far above its range", "9.87e+300"}};

YAML::Node mutated(const YAML::Node& original, const Path& path, const Mutation& mutation) {
  YAML::Node copy = YAML::Clone(original);
  YAML::Node map = holder(copy, path);
  const auto& key = path.back();
  if (mutation.value != nullptr) {
    map[key] = YAML::Load(mutation.value);
    return copy;
  }
  const YAML::Node value = YAML::Clone(map[key]);
  map.remove(key);
  if (mutation.name == kMisspelt.name) map[key + "q"] = value;
  return copy;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Whether an error has the place of a key, or, where a plug-in finds it out, its name.
bool names_key(const std::string& error) {
  return (has(error, "/configs/") && has(error, ".yaml:")) || has(error, ": data.") ||
         error.starts_with("data.") || has(error, ": model.context = ") ||
         error.starts_with("objectives.latency.context = 0") ||
         has(error, " for every candidate of this space");
}

/// Whether a plan has something else in place of what was dropped.
bool has_in_its_place(const std::string& plan, const Path& path) {
  const auto place = written(path);
  if (path.back() == "rates") return true;  // found anew, or those of what it extends
  if (path.back() == "mechanisms") {        // a search, or the list of what it extends
    return has(plan, "\n  algorithm     ") || has(plan, "\n  mechanism     ");
  }
  if (place == "fidelity") return !has(plan, "\n  fidelity");  // all are trained to the end
  if (place == "data.tokenizer") return has(plan, "\n  data.unit = ");  // words
  // Genes beyond the paper's are in a space only where they are listed.
  return path.size() > 1 && place.starts_with("space.") && !is_paper_gene(place.substr(6));
}

/// Whether a plan shows a key, with this value where one is given.
bool shows(const std::string& plan, const Path& path, const char* value) {
  const auto line = "\n  " + written(path);
  if (value == nullptr) {
    return has(plan, line + " = ") || has(plan, line + ".") || has(plan, line + "[");
  }
  const std::string text = value;
  return has(plan, line + " = " + text) || has(plan, line + " = \"" + text + "\"") ||
         has(plan, line + " = [\"" + text + "\"]");
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
    if (file == "convert.yaml") {  // of a model that its user has
      EXPECT_THAT(error,
                  EndsWith("convert.yaml:7:3: problem.base: is missing, must be text (folder of "
                           "the model, as nas-model import and nas-export write it)"));
      continue;
    }
    EXPECT_EQ(error, "") << file;
    EXPECT_NE(plan.find("plan of "), std::string::npos);
  }
  EXPECT_GE(files_.size(), 16U);
}

TEST_F(ConfigurationTest, EveryMutationIsAnErrorOrShowsInThePlan) {
  int mutations = 0;
  std::set<std::string> seen;  // the same mistake at the same key, in another file
  for (const auto& file : files_) {
    const auto original = YAML::LoadFile((folder_.path() / "configs" / file).string());
    std::vector<Path> paths;
    collect(original, {}, paths);
    for (const auto& path : paths) {
      for (const auto& mutation : kMutations) {
        const auto mistake = written(path) + " " + std::string(mutation.name);
        if (!seen.insert(mistake).second) continue;
        SCOPED_TRACE(file + ": " + mistake);
        folder_.write("configs/mutated.yaml", YAML::Dump(mutated(original, path, mutation)) + "\n");
        const auto [error, plan] = plan_of("mutated.yaml");
        ++mutations;
        if (!error.empty()) {
          EXPECT_TRUE(names_key(error)) << error;
          const bool misspelt = mutation.name == kMisspelt.name;
          EXPECT_TRUE(!misspelt || has(error, path.back() + "q")) << error;
          continue;
        }
        EXPECT_FALSE(mutation.refused) << "taken for right";
        const bool dropped = mutation.name == kDropped.name;
        if (path.back() == "extends" || (dropped && has_in_its_place(plan, path))) continue;
        EXPECT_TRUE(shows(plan, path, mutation.value)) << plan;
      }
    }
  }
  EXPECT_GT(mutations, 500);
}

}  // namespace
}  // namespace nas::testing
