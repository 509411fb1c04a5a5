// What models are asked: next tokens, labels of sequences, a toy, and splits of other lengths.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "array_step.hpp"
#include "core/error.hpp"
#include "data/corpus_facts.hpp"
#include "ops/torch_compat.hpp"
#include "small_corpus.hpp"
#include "training/batches.hpp"
#include "training/task.hpp"
#include "training/trainer.hpp"
#include "training/validation.hpp"
#include "unit/message_of.hpp"

namespace nas {
namespace {

/// Sequences of ids 3 .. 8; the label is the remainder by 3 of the first.
Corpus labelled_corpus(std::int64_t length = 8) {
  Corpus corpus;
  corpus.name = "remainders";
  corpus.vocabulary = 9;
  corpus.task = "classification";
  corpus.labels = 3;
  for (auto* split : {&corpus.train, &corpus.valid, &corpus.test}) {
    split->length = length;
    RandomEngine random(split == &corpus.train ? 1 : 2);
    for (std::int64_t i = 0; i < 40; ++i) {
      split->starts.push_back(std::ssize(split->tokens));
      for (std::int64_t t = 0; t < length; ++t) {
        split->tokens.push_back(static_cast<std::int32_t>(3 + random.below(6)));
        split->targets.push_back(static_cast<std::int32_t>(kNotScored));
      }
      split->targets.back() = split->tokens[static_cast<std::size_t>(split->starts.back())] % 3;
    }
  }
  return corpus;
}

TrainingJob job_of(const Corpus& corpus, std::int64_t steps, std::int64_t micro = 0) {
  Parameters parameters(training_settings());
  parameters.set("steps", steps);
  parameters.set("batch_size", std::int64_t{8});
  parameters.set("learning_rate", 1e-2);
  parameters.set("micro_batch", micro);
  auto architecture = nn::test::small("dot|softmax|none|fixed|bias|0");
  architecture.context = corpus.train.length;
  architecture.vocabulary = corpus.vocabulary;
  return {.architecture = architecture, .settings = TrainingSettings(parameters), .run_seed = 5};
}

TrainingResult train_once(const Corpus& corpus, const TrainingJob& job) {
  return train({&job, 1}, corpus, {}).front();
}

double value_of(const LearningTask& task, const std::string& name, const Scores& scores) {
  for (const auto& value : task.values()) {
    if (value.name == name) return value.of(scores);
  }
  ADD_FAILURE() << "no value " << name;
  return 0.0;
}

TEST(LearningTask, OfACorpusIsTheNextTokenUnlessItSaysOtherwise) {
  std::vector<std::string> names;
  for (const auto& value : task_of(Corpus())->values()) names.push_back(value.name);
  EXPECT_EQ(names, (std::vector<std::string>{"perplexity", "published_perplexity", "accuracy"}));
  Corpus corpus;
  corpus.task = "clasification";
  EXPECT_EQ(message_of<InputError>([&] { (void)task_of(corpus); }).find("unknown task 'clasif"),
            0U);
}

TEST(Classification, LearnsTheLabelOfASequence) {
  const auto corpus = labelled_corpus();
  const auto result = train_once(corpus, job_of(corpus, 150));
  ASSERT_EQ(result.status, Status::ok) << result.reason;
  const auto& scores = result.curve.back().valid;
  EXPECT_EQ(scores.tokens, 40) << "one target of each window";
  const auto task = task_of(corpus);
  EXPECT_GT(value_of(*task, "accuracy", scores), 0.9);
  EXPECT_EQ(value_of(*task, "mean_nll", scores), scores.nll / 40.0);
  EXPECT_LT(value_of(*task, "mean_nll", scores), label_chance(corpus.valid, 3).nll);
}

TEST(Classification, IsScoredAmongTheLabelsAlone) {
  const auto corpus = labelled_corpus();
  nn::TransformerArray models({job_of(corpus, 1).architecture, job_of(corpus, 1).architecture},
                              NumericalMode::exact);
  models.initialise({{1, 0}, {2, 0}});
  std::vector<std::int64_t> all = evenly_spaced(corpus.valid.size(), 0);
  const auto task = task_of(corpus);
  const auto scores = validate(models, corpus.valid, all, {}, 7, "cpu", *task);
  const auto batch = read_batch(corpus.valid, all, 0);
  const auto inputs = batch.input.unsqueeze(0).expand({2, 40, 8});
  const auto logits = models.logits(inputs, nn::Pass{}).select(2, 7).narrow(2, 0, 3);
  const auto labels = batch.target.select(1, 7);
  const auto loss = task->loss(models.hidden(inputs, nn::Pass{}),
                               batch.target.unsqueeze(0).expand({2, 40, 8}), {});
  for (std::int64_t r = 0; r < 2; ++r) {
    const auto nll = at::cross_entropy_loss(logits[r].to(at::kDouble), labels).item<double>();
    const auto& of_model = scores[static_cast<std::size_t>(r)];
    EXPECT_NEAR(of_model.nll / 40.0, nll, 1e-6);
    EXPECT_NEAR(loss[r].item<double>(), nll, 1e-6);
    EXPECT_EQ(of_model.correct, logits[r].argmax(-1).eq(labels).sum().item<std::int64_t>());
  }
}

TEST(Classification, IsTrainedInPartsOfABatch) {
  const auto corpus = labelled_corpus();
  const auto whole = train_once(corpus, job_of(corpus, 10));
  const auto parts = train_once(corpus, job_of(corpus, 10, 3));
  EXPECT_NEAR(parts.curve.back().train_nll, whole.curve.back().train_nll, 1e-5);
}

TEST(Classification, ChanceIsTheFrequencyOfLabels) {
  Windows windows;
  windows.length = 1;
  windows.tokens = {5, 5, 5, 5};
  windows.starts = {0, 1, 2, 3};
  windows.targets = {0, 0, 0, 2};
  const auto chance = label_chance(windows, 3);
  EXPECT_EQ(chance.accuracy, 0.75);
  EXPECT_DOUBLE_EQ(chance.nll, -0.75 * std::log(0.75) - 0.25 * std::log(0.25));
}

TEST(Classification, RefusesACorpusOfOtherTargets) {
  const auto error_of = [](auto change) {
    auto corpus = labelled_corpus();
    change(corpus);
    return message_of<InputError>([&] { (void)task_of(corpus); });
  };
  EXPECT_EQ(error_of([](Corpus& c) { c.labels = 1; }),
            "remainders: the corpus has 1 labels, must be 2 to its vocabulary of 9");
  EXPECT_EQ(error_of([](Corpus& c) { c.labels = 10; }),
            "remainders: the corpus has 10 labels, must be 2 to its vocabulary of 9");
  EXPECT_EQ(error_of([](Corpus& c) { c.valid.targets[15] = 3; }),
            "remainders: window 1 of valid has target 3 at position 7, must be a label below 3");
  EXPECT_EQ(error_of([](Corpus& c) { c.test.targets[8] = 1; }),
            "remainders: window 1 of test has target 1 at position 0, must be -100 but at the last "
            "position");
  EXPECT_EQ(error_of([](Corpus& c) {
              c.further["test_9"] = c.test;
              c.further["test_9"].targets.clear();
            }).find("remainders: window 0 of test_9 has target "),
            0U);
}

/// Next tokens, of which a target counts as correct that is among the first two.
class TopTwo final : public LearningTask {
 public:
  [[nodiscard]] torch::Tensor loss(const nn::Hidden& hidden, const torch::Tensor& targets,
                                   const torch::Tensor& counted) const override {
    return next_->loss(hidden, targets, counted);
  }
  [[nodiscard]] nn::TokenScores scores(const nn::Hidden& hidden,
                                       const torch::Tensor& targets) const override {
    auto scores = next_->scores(hidden, targets);
    const auto logits = at::matmul(hidden.features, hidden.output.unsqueeze(1).transpose(2, 3));
    const auto first = std::get<1>(logits.topk(2, -1)).eq(targets.unsqueeze(-1)).any(-1);
    scores.correct = first.flatten(1);
    return scores;
  }
  [[nodiscard]] std::vector<MeasuredValue> values() const override {
    return {{"top_two", "1", true, &Scores::accuracy}};
  }

 private:
  std::shared_ptr<const LearningTask> next_ = next_token();
};

NAS_REGISTER_TASK({.key = "top_two", .summary = "a toy: top_two", .settings = {}, .file = __FILE__},
                  [](const Corpus&) -> std::shared_ptr<const LearningTask> {
                    return std::make_shared<TopTwo>();
                  });

TEST(LearningTask, SaysWhatIsCorrectAndWhatFollows) {
  auto corpus = test::counting_corpus(11, 12, 40);
  const auto plain = train_once(corpus, job_of(corpus, 3));
  corpus.task = "top_two";
  const auto toy = train_once(corpus, job_of(corpus, 3));
  EXPECT_EQ(toy.curve.back().valid.nll, plain.curve.back().valid.nll);
  EXPECT_GT(toy.curve.back().valid.correct, plain.curve.back().valid.correct);
  Evaluation evaluation;
  evaluation.status = Status::ok;
  evaluation.curve = toy.curve;
  set_task_values(evaluation, *task_of(corpus), {{"test_24", toy.curve.back().valid}});
  EXPECT_EQ(evaluation.values.at("top_two"), toy.curve.back().valid.accuracy());
  EXPECT_EQ(evaluation.values.at("test_24_top_two"), evaluation.values.at("top_two"));
  EXPECT_EQ(evaluation.values.at("test_24_tokens"), 480.0);
  EXPECT_EQ(evaluation.values.size(), 3U);
}

TEST(FurtherSplits, AreScoredOnceAtTheEndInTheirOwnLength) {
  auto corpus = test::counting_corpus(11, 12, 40);
  auto job = job_of(corpus, 20);
  job.architecture.genes.set("position_embedding", "none");
  const auto without = train_once(corpus, job);
  EXPECT_TRUE(without.further.empty());
  corpus.further["test_24"] = test::counting_corpus(11, 24, 10).test;
  corpus.further["test_6"] = test::counting_corpus(11, 6, 10).test;
  const auto with = train_once(corpus, job);
  EXPECT_EQ(with.curve.back().valid.nll, without.curve.back().valid.nll);
  ASSERT_EQ(with.further.size(), 2U);
  EXPECT_EQ(with.further.at("test_24").tokens, 240);
  EXPECT_EQ(with.further.at("test_6").tokens, 60);
  EXPECT_GT(with.further.at("test_24").nll, 0.0);
}

TEST(FurtherSplits, AreNamedAsTestsAndReadable) {
  auto corpus = test::counting_corpus(11, 12, 40);
  corpus.further["test_24"] = test::counting_corpus(11, 24, 10).test;
  auto architecture = job_of(corpus, 1).architecture;
  EXPECT_EQ(unreadable_split(corpus, architecture),
            "split test_24 of the corpus counting has windows of 24 tokens, must be at most "
            "model.context = 12 where position_embedding is learned; sinusoidal and none read "
            "longer ones");
  architecture.genes.set("position_embedding", "sinusoidal");
  EXPECT_EQ(unreadable_split(corpus, architecture), "");
  EXPECT_EQ(task_facts(corpus, *task_of(corpus)).dump(),
            R"({"further_splits":{"test_24":{"length":24,"targets":240,"windows":10}}})");
  const auto error_of = [&corpus] {
    return message_of<InputError>([&] { (void)task_of(corpus); });
  };
  corpus.further["long"] = corpus.test;
  EXPECT_EQ(error_of(), "corpus counting: further split 'long', its name must begin with test_");
  corpus.further.erase("long");
  corpus.further["test_24"] = Windows();
  EXPECT_EQ(error_of(), "corpus counting: split test_24 has 0 windows, must have at least 1");
}

TEST(FurtherSplits, AndTasksAreOfTheCorpussHash) {
  const auto corpus = labelled_corpus();
  const auto changed = [&](auto change) {
    auto other = corpus;
    change(other);
    return corpus_hash(other) != corpus_hash(corpus);
  };
  EXPECT_TRUE(changed([](Corpus& c) { c.further["test_9"] = c.test; }));
  EXPECT_TRUE(changed([](Corpus& c) { c.labels = 4; }));
  EXPECT_TRUE(changed([](Corpus& c) { c.task = "next_token"; }));
  auto one = corpus;
  one.further["test_9"] = corpus.test;
  auto other = corpus;
  other.further["test_8"] = corpus.test;
  EXPECT_NE(corpus_hash(one), corpus_hash(other));
}

}  // namespace
}  // namespace nas
