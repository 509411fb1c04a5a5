#include <cstdlib>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "integration/program.hpp"
#include "search/objective.hpp"
#include "store/store.hpp"

namespace nas::testing {
namespace {

using ::testing::Test;

class OwnConfigurationTest : public ProgramTest {
 protected:
  fs::path write_config(const std::string& text) {
    const auto file = folder_ / "mine.yaml";
    std::ofstream(file) << text;
    return file;
  }
};

/// A text of which the validation part has a word that the training part lacks.
class BitsPerByteTest : public OwnConfigurationTest {
 protected:
  BitsPerByteTest() {
    std::string lines;
    for (int i = 0; i < 400; ++i) {
      lines += "the " + std::string(i % 3 == 0 ? "cat" : "dog") + " saw line " +
               std::to_string(i % 7) + "\n";
    }
    for (const auto* split : {"train", "valid", "test"}) {
      std::ofstream(folder_ / (std::string(split) + ".txt"))
          << lines << (std::string(split) == "valid" ? "one unheard word\n" : "");
    }
  }
  [[nodiscard]] Texts search(const std::string& unit) {
    const auto split = [this](const std::string& name) {
      return "  " + name + ": " + (folder_ / (name + ".txt")).string() + "\n";
    };
    const auto file =
        write_config("extends: " + config("smoke.yaml") +
                     "\nobjectives: [bits_per_byte]\n"
                     "data:\n"
                     "  corpus: text_file\n" +
                     split("train") + split("valid") + split("test") + "  unit: " + unit +
                     "\n"
                     "training:\n"
                     "  steps: 40\n"
                     "  checkpoints: [10, 20, 30]\n"
                     "  early_stop_after: 10\n"
                     "  early_stop_factor: 1.001\n"
                     "  score_test: true\n");
    return {file.string(), "--output", (folder_ / "run").string(), "--no-report"};
  }
};

TEST_F(BitsPerByteTest, OfWhatIsStoppedEarlyIsThatOfItsCurve) {
  ASSERT_TRUE(ran("nas-run", search("byte")));
  const Store store(folder_ / "run" / "store.sqlite", Store::Mode::read_only);
  int stopped = 0;
  for (const auto& evaluation : store.evaluations()) {
    ASSERT_TRUE(is_usable(evaluation)) << evaluation.reason;
    const auto& valid = evaluation.curve.back().valid;
    EXPECT_DOUBLE_EQ(evaluation.values.at("bits_per_byte"), std::log2(valid.perplexity()))
        << "a token is a byte";
    if (evaluation.status == Status::stopped_early) {
      ++stopped;
      continue;
    }
    const auto test = test_scores(evaluation);
    EXPECT_GE(test.correct, 0);
    EXPECT_GT(test.batches, 0);
    EXPECT_EQ(test.unknown_tokens, 0);
    EXPECT_NEAR(test.published_perplexity(), test.perplexity(), 0.1 * test.perplexity());
  }
  EXPECT_GT(stopped, 0);
  EXPECT_EQ(store.meta("facts")->at("valid_unknown_targets"), 0);
  EXPECT_TRUE(store.meta("facts")->at("unknown_shares").empty());
  EXPECT_EQ(store.meta("facts")->at("test_bytes_per_token"), 1.0);
}

TEST_F(BitsPerByteTest, OfUnknownWordsIsRefused) {
  expect_refusal("nas-run", search("word"), "objectives: bits_per_byte is unavailable: ");
  expect_text("of the validation targets are <unk>");
  expect_text("take data.unit = byte");
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(BitsPerByteTest, SharesOfUnknownWordsAreSaidAtOnceAndRecorded) {
  // Of the 2,400 targets of 400 lines 134 cats and 400 numbers; valid has three words more.
  const std::string shares =
      "22.25 % of the targets of train are <unk>, 22.34 % of valid, 22.25 % of test";
  auto words = search("word");
  words.insert(words.end(), {"objectives=[perplexity]", "data.vocabulary=6"});
  ASSERT_TRUE(ran("nas-run", words));
  expect_text("warning: " + shares + ": ");
  expect_text("data: {tokenizer: bpe, vocabulary: 2000}");
  const Store store(folder_ / "run" / "store.sqlite", Store::Mode::read_only);
  EXPECT_EQ(store.meta("facts")->at("unknown_shares").at("valid"), 537.0 / 2404);
  words.push_back("--dry-run");
  ASSERT_TRUE(ran("nas-run", words));
  expect_text("  unknown       " + shares);
}

class SpaceTest : public OwnConfigurationTest {
 protected:
  /// A search of all combinations in the frame of the paper's choices.
  Texts search(const std::string& genes, const std::string& folder, Texts further = {}) {
    const auto file = write_config(
        "extends: " + config("smoke.yaml") +
        "\n"
        "space: {similarity: dot, normalization: softmax, gating: none, temperature: fixed, bias: "
        "true, attention_dropout: 0.1, " +
        genes + "}\nalgorithm: {name: exhaustive, population: 2}\n");
    further.insert(further.begin(), {file.string(), "--output", (folder_ / folder).string()});
    return further;
  }
  [[nodiscard]] std::map<std::string, Evaluation> evaluations(const std::string& folder) const {
    std::map<std::string, Evaluation> found;
    const Store store(folder_ / folder / "store.sqlite", Store::Mode::read_only);
    for (auto& evaluation : store.evaluations()) found[evaluation.candidate] = evaluation;
    return found;
  }
};

TEST_F(SpaceTest, WhatIsNoModelIsRejectedAndTheSearchGoesOn) {
  const std::string genes = "mixer: [attn, none], ffn: [swiglu, none]";
  ASSERT_TRUE(ran("nas-run", search(genes, "run", {"--dry-run"})));
  expect_text("3 of 4 combinations are models; others are rejected, e.g.: mixer = none, must have");
  expect_text("about 3 trained");
  ASSERT_TRUE(ran("nas-run", search(genes, "run", {"--no-report"})));
  expect_text("rejected");
  const auto found = evaluations("run");
  const auto& none = found.at("none+none");
  EXPECT_EQ(none.status, Status::rejected);
  EXPECT_EQ(none.reason,
            "no such model: mixer = none, must have a feed-forward layer beside it: ffn is none, "
            "too");
  EXPECT_EQ(std::count_if(found.begin(), found.end(),
                          [](const auto& item) { return is_usable(item.second); }),
            std::ssize(found) - 1);
  const auto results = results_of(folder_ / "run");
  EXPECT_EQ(results["rejected"][0]["candidate"], "none+none");
  const auto first = canonical_export(folder_ / "run");
  ASSERT_TRUE(ran("nas-run", search(genes, "run", {"--no-report"})));
  EXPECT_EQ(canonical_export(folder_ / "run"), first) << "it is known";
}

TEST_F(SpaceTest, TrainingIsSearchedBesideTheModel) {
  const std::string genes =
      "training.optimizer: [section, adamw, lion], training.learning_rate: {min: 3e-3, max: 8e-3, "
      "log: true}";
  ASSERT_TRUE(ran("nas-run", search(genes, "run", {"--no-report", "algorithm.levels=2"})));
  const auto found = evaluations("run");
  EXPECT_EQ(found.size(), 6U) << "2 drawn, of the grid's 6 with adamw or 0.003 said or not 4";
  const auto nll = [](const Evaluation& evaluation) { return evaluation.curve.back().valid.nll; };
  for (const std::string optimizer : {"adamw", "lion"}) {
    const auto section = "training.optimizer=" + optimizer;
    ASSERT_TRUE(ran("nas-run", search("tied: [1, 0]", optimizer,
                                      {"--no-report", "training.learning_rate=8e-3", section})));
    const auto& own =
        found.at("model{learning_rate=0.008" +
                 std::string(optimizer == "lion" ? ",optimizer=lion" : "") + "}/attn");
    EXPECT_DOUBLE_EQ(nll(own), nll(evaluations(optimizer).at("dot|softmax|none|fixed|bias|0.1")))
        << optimizer;
  }
  ASSERT_TRUE(ran("nas-run",
                  search(genes, "run",
                         {"--no-report", "algorithm.levels=2", "retest={top: 1, replicates: 2}"})));
  const auto best = results_of(folder_ / "run")["retest"]["candidates"][0];
  EXPECT_THAT(best["candidate"].get<std::string>(),
              HasSubstr("learning_rate=" + best["learning_rate"].dump()));
  // The search's section says 0.003 of them all.
  EXPECT_THAT(read_file(folder_ / "run" / "evaluations.csv"),
              AllOf(HasSubstr(",ok,,0.003,"), HasSubstr(",ok,,0.008,")));
  ASSERT_TRUE(ran("nas-run", search(genes, "plan",
                                    {"--dry-run", "retest={top: 1, replicates: 2}",
                                     "space.training.optimizer=[section, soap]"})));
  expect_text("10 training runs, 6 of them to find learning rates");
  // Of matrices 4 x 16 x 16 and 2 x 64 x 16 two moments and four squares, of 1,008 others two moments.
  expect_text("optimiser 116 KiB");
}

TEST_F(SpaceTest, ModelsMatchInParameters) {
  const std::string genes = "norm: rms, position_embedding: none, ffn: [gelu, swiglu]";
  const auto matched = genes + ", match_parameters: true";
  ASSERT_TRUE(ran("nas-run", search(genes, "own", {"--no-report"})));
  ASSERT_TRUE(
      ran("nas-run", search(matched, "matched", {"--no-report", "evaluation.keep_models=9"})));
  const auto own = evaluations("own");
  const auto found = evaluations("matched");
  ASSERT_EQ(found.size(), own.size());
  const auto target = Store(folder_ / "matched" / "store.sqlite", Store::Mode::read_only)
                          .meta("facts")
                          ->at("vanilla_parameters")
                          .get<double>();
  const std::string frame = "model{position_embedding=none,norm=rms}/attn";
  for (const std::string ffn : {"", "+swiglu"}) {
    const auto& evaluation = found.at(frame + ffn);
    EXPECT_EQ(evaluation.status, Status::ok) << evaluation.reason;
    constexpr double kStep = 3 * 16 * 8;  // of the hidden width by 8
    EXPECT_NEAR(evaluation.values.at("parameters"), target, kStep / 2) << ffn;
    EXPECT_NE(evaluation.id, own.at(frame + ffn).id);
    EXPECT_EQ(evaluation.identity.at("model").at("match_parameters"), true);
    EXPECT_FALSE(own.at(frame + ffn).identity.at("model").contains("match_parameters"));
  }
  EXPECT_GT(found.at(frame).values.at("parameters"), own.at(frame).values.at("parameters"))
      << "in place of the position embedding";
  expect_refusal("nas-run", search("ffn: [gelu, none], match_parameters: true", "none"),
                 "space.ffn = none: match_parameters: no layer has a feed-forward layer");
  // Weights of the matched width are read again.
  const auto folder = (folder_ / "matched").string();
  EXPECT_TRUE(ran("nas-model", {"take", folder, frame + "+swiglu", "-o", folder + "/taken"}));
}

}  // namespace
}  // namespace nas::testing
