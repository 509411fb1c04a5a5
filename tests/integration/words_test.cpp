// What programs say without LibTorch (cli/start.hpp): as with it, which none of them loads.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/corpus.hpp"
#include "genotype/component.hpp"
#include "genotype/slots.hpp"
#include "integration/program.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {
namespace {

using testing::ProgramTest;
using testing::Start;
using Words = std::vector<std::string>;

/// Names of what is described, of each kind some that LibTorch's library registers.
Words names() {
  Words names{"space", "training", "training.steps", "steps", "similarity", "dask"};
  for (const auto& slot : slots()) {
    if (!slot.is_component()) continue;
    for (const auto& key : components().keys(slot.name)) names.push_back(key);
  }
  const auto add = [&names](const Words& keys) {
    names.insert(names.end(), keys.begin(), keys.end());
  };
  add(problems().keys());
  add(objectives().keys());
  add(tasks().keys());
  add(corpora().keys());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

class WordsTest : public ProgramTest {
 protected:
  /// A command gives the same text and exit code with LibTorch, which this process has, and without
  /// it, where it must not be loaded.
  void expect_same(const std::string& program, const Words& words) {
    const int code = run(program, words);
    const auto said = text();
    const auto loaded = folder_ / "loaded";
    std::filesystem::create_directory(loaded);
    const auto log_libraries = [&] {
      setenv("LD_DEBUG", "files", 1);
      setenv("LD_DEBUG_OUTPUT", (loaded / "by").c_str(), 1);
    };
    const auto command = program + " " + (words.empty() ? "" : words.front());
    EXPECT_EQ(run(program, words, log_libraries, Start::executed), code) << command;
    EXPECT_EQ(text(), said) << command;
    for (const auto& log : std::filesystem::directory_iterator(loaded)) {
      const auto libraries = testing::read_file(log);
      EXPECT_NE(libraries.find("libattnas_base"), std::string::npos) << command;
      EXPECT_EQ(libraries.find("libtorch"), std::string::npos) << command;
    }
    EXPECT_FALSE(std::filesystem::is_empty(loaded));
    std::filesystem::remove_all(loaded);
  }
};

TEST_F(WordsTest, HelpIsTheSameWithoutTorch) {
  for (const auto* program : {"nas-analyse", "nas-compare", "nas-export", "nas-model", "nas-run",
                              "nas-train", "nas-work"}) {
    expect_same(program, {"--help"});
    expect_same(program, {"--halp"});
    expect_same(program, {"--halp=1", "quickstart"});
  }
  for (const auto* program :
       {"nas-analyse", "nas-compare", "nas-export", "nas-model", "nas-run", "nas-train"}) {
    expect_same(program, {});
  }
}

TEST_F(WordsTest, ListsAreTheSameWithoutTorch) {
  expect_same("nas-run", {"list"});
  for (const auto* kind : {"algorithms", "problems", "objectives", "components", "data", "sections",
                           "engines", "configurations", "tasks", "tokenizers", "component"}) {
    expect_same("nas-run", {"list", kind});
  }
  expect_same("nas-run", {"schema"});
}

TEST_F(WordsTest, DescriptionsAreTheSameWithoutTorch) {
  for (const auto& name : names()) expect_same("nas-run", {"describe", name});
  for (const auto* name : {"sparsmax", "rope+sparsemax", "gdn", "training.stepz"}) {
    expect_same("nas-run", {"describe", name});
  }
}

TEST_F(WordsTest, MistakesAreFoundWithoutTorch) {
  expect_same("nas-run", {"quikstart"});
  expect_same("nas-run", {"lst"});
  expect_same("nas-run", {"quickstart", "training.stepz=3"});
  expect_same("nas-run", {"quickstart", "algorithm.name=nsga3"});
  expect_same("nas-run", {"quickstart", "training.steps=-3"});
  expect_same("nas-run", {"quickstart", "space.similarity=[cosin]"});
  expect_same("nas-run", {"quickstart", "problem.type=attention_serch"});
  expect_same("nas-run", {"quickstart", "objectives=[perplexty]"});
  expect_same("nas-run", {"quickstart", "--retry", "all"});
  expect_same("nas-train", {"sparsmax", "quickstart"});
  expect_same("nas-train", {"sparsemax", "quickstrat"});
  expect_same("nas-compare", {"compare_txt"});
  expect_same("nas-export", {folder_.string(), "--format", "pytorh"});
  expect_same("nas-model", {"evalute", "best"});
  expect_same("nas-work", {"--foldr", "x"});
}

TEST_F(WordsTest, WithoutAnEntireCatalogueTheAnswerIsThatOfTheWholeProgram) {
  // Programs and libraries as installed, but for the catalogue.
  const std::filesystem::path programs(program_folder());
  std::filesystem::create_directory(folder_ / "bin");
  std::filesystem::copy(programs / "nas-run", folder_ / "bin" / "nas-run");
  std::filesystem::create_directory(folder_ / "lib");
  for (const auto& file : std::filesystem::directory_iterator(programs.parent_path() / "lib")) {
    if (file.is_directory()) continue;
    std::filesystem::create_symlink(std::filesystem::canonical(file),
                                    folder_ / "lib" / file.path().filename());
  }
  ASSERT_EQ(run("nas-run", {"list", "tasks"}), 0);
  const auto said = text();
  const auto command = "LD_LIBRARY_PATH=" + (folder_ / "lib").string() + " " +
                       (folder_ / "bin" / "nas-run").string() + " list tasks >" +
                       (folder_ / "output.txt").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(text(), said);

  auto catalogue = nlohmann::json::parse(
      std::ifstream(programs.parent_path() / "lib" / "attnas" / "words.json"));
  catalogue.erase("components");
  std::filesystem::create_directory(folder_ / "lib" / "attnas");
  for (const auto& damaged : {catalogue, nlohmann::json({{"version", 1}})}) {
    std::ofstream(folder_ / "lib" / "attnas" / "words.json") << damaged;
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(text(), said);
  }
}

TEST_F(WordsTest, WhatGoesBeyondWordsIsSaidWithTorchAndOnce) {
  // Versions are those of the libraries that are loaded.
  ASSERT_EQ(run("nas-run", {"--version"}), 0);
  auto said = text();
  EXPECT_EQ(run("nas-run", {"--version"}, {}, Start::executed), 0);
  EXPECT_EQ(text(), said);
  expect_text("LibTorch");
  // The corpus is not there, which shows once a run begins; a note stands before it.
  const Words command{config("smoke.yaml"), "training.steps=20", "training.warmup_steps=30",
                      "--dry-run",          "--output",          (folder_ / "run").string()};
  const int code = run("nas-run", command);
  said = text();
  EXPECT_EQ(run("nas-run", command, {}, Start::executed), code);
  EXPECT_EQ(text().substr(0, 60), said.substr(0, 60));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace nas
