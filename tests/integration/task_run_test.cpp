// Runs of another task than the next token, and of splits of other lengths: a corpus of this file.

#include "core/seed.hpp"
#include "data/corpus.hpp"
#include "data/corpus_facts.hpp"
#include "integration/program.hpp"

namespace nas {
namespace {

/// Sequences of ids 3 .. 8, whose label is the remainder by 3 of the first.
Windows remainders(std::int64_t length, std::int64_t count, std::uint64_t seed) {
  Windows windows;
  windows.length = length;
  RandomEngine random(seed);
  for (std::int64_t i = 0; i < count; ++i) {
    windows.starts.push_back(std::ssize(windows.tokens));
    for (std::int64_t t = 0; t < length; ++t) {
      windows.tokens.push_back(static_cast<std::int32_t>(3 + random.below(6)));
      windows.targets.push_back(static_cast<std::int32_t>(kNotScored));
    }
    windows.targets.back() = windows.tokens[static_cast<std::size_t>(windows.starts.back())] % 3;
  }
  return windows;
}

NAS_REGISTER_CORPUS(
    {.key = "remainders",
     .summary = "a toy of labelled sequences",
     .settings = {{.name = "longer", .default_value = false, .help = "also a split test_32"}},
     .file = __FILE__},
    [](const Parameters& settings, std::int64_t context, const DataLocation&) {
      Corpus corpus;
      corpus.name = "remainders";
      corpus.vocabulary = 9;
      corpus.task = "classification";
      corpus.labels = 3;
      corpus.train = remainders(context, 60, 1);
      corpus.valid = remainders(context, 30, 2);
      corpus.test = remainders(context, 30, 3);
      if (settings.get<bool>("longer")) {
        corpus.further["test_32"] = remainders(32, 20, 4);
      }
      corpus.hash = corpus_hash(corpus);
      corpus.chance = label_chance(corpus.train, corpus.labels);
      return corpus;
    });

}  // namespace

namespace testing {
namespace {

class TaskRun : public ProgramTest {
 protected:
  int run_it(const fs::path& out, Texts more) {
    Texts words{config("smoke.yaml"), "--output", out.string(), "--no-report",
                "training.score_test=true"};
    words.insert(words.end(), more.begin(), more.end());
    return run("nas-run", words);
  }
};

constexpr const char* kLabels = "data={corpus: remainders}";
constexpr const char* kLonger = "data={corpus: remainders, longer: true}";
constexpr const char* kAccuracy = "objectives=[accuracy, mean_nll]";
constexpr const char* kFront = "algorithm={name: nsga2, population: 8, generations: 1}";

TEST_F(TaskRun, RecordsWhatItMeasures) {
  const auto out = folder_ / "run";
  ASSERT_EQ(run_it(out, {kLabels, kAccuracy, kFront}), 0) << text();
  const auto found = results_of(out);
  const auto& task = found["facts"]["task"];
  EXPECT_EQ(task["name"], "classification");
  EXPECT_EQ(task["values"][0]["name"], "accuracy");
  EXPECT_EQ(task["values"][1]["unit"], "nat");
  ASSERT_FALSE(found["evaluations"].empty());
  for (const auto& evaluation : found["evaluations"]) {
    const auto& values = evaluation["values"];
    const auto& valid = evaluation["curve"].back()["valid"];
    EXPECT_EQ(valid["tokens"], 30);
    EXPECT_DOUBLE_EQ(values["accuracy"].get<double>(), valid["correct"].get<double>() / 30.0);
    EXPECT_DOUBLE_EQ(values["mean_nll"].get<double>(), valid["nll"].get<double>() / 30.0);
    EXPECT_EQ(values["test_tokens"], 30);
    EXPECT_EQ(values["test_accuracy"], values["test_correct"].get<double>() / 30.0);
    EXPECT_TRUE(values.contains("test_mean_nll"));
  }
  EXPECT_NE(read_file(out / "evaluations.csv").find("mean_nll"), std::string::npos);
}

TEST_F(TaskRun, ScoresLongerSplitsUnlessPositionsAreLearned) {
  EXPECT_EQ(run_it(folder_ / "learned", {kLonger, kAccuracy, kFront}), 2);
  expect_text(
      "split test_32 of the corpus remainders has windows of 32 tokens, must be at most "
      "model.context = 16 where position_embedding is learned");
  const auto out = folder_ / "run";
  ASSERT_EQ(run_it(out, {kLonger, kAccuracy, kFront, "space.position_embedding=[sinusoidal]",
                         "baseline=model{position_embedding=sinusoidal}/attn"}),
            0)
      << text();
  const auto found = results_of(out);
  EXPECT_EQ(found["facts"]["further_splits"]["test_32"],
            nlohmann::json({{"windows", 20}, {"length", 32}, {"targets", 20}}));
  for (const auto& evaluation : found["evaluations"]) {
    EXPECT_EQ(evaluation["values"]["test_32_tokens"], 20);
    EXPECT_TRUE(evaluation["values"].contains("test_32_accuracy"));
  }
}

}  // namespace
}  // namespace testing
}  // namespace nas
