#include "data/corpus_facts.hpp"
#include "data_fixture.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

constexpr auto kNone = kNotScored;

Windows stream_of_seven() {
  Windows windows;
  windows.length = 3;
  windows.tokens = {10, 11, 12, 13, 14, 15, 16};
  windows.starts = {0, 3};
  windows.shift = 3;
  return windows;
}

TEST(Windows, TargetIsTheNextToken) {
  const auto window = read_window(stream_of_seven(), 1);
  EXPECT_THAT(window.input, ElementsAre(13, 14, 15));
  EXPECT_THAT(window.target, ElementsAre(14, 15, 16));
}

TEST(Windows, OffsetShiftsAndTheEndIsNotScored) {
  const auto window = read_window(stream_of_seven(), 1, 2);
  EXPECT_THAT(window.input, ElementsAre(15, 16, 0));
  EXPECT_THAT(window.target, ElementsAre(16, kNone, kNone));
}

TEST(Windows, LastTargetReplacesTheNextToken) {
  Windows windows = stream_of_seven();
  windows.last_target = 0;
  EXPECT_THAT(read_window(windows, 0).target, ElementsAre(11, 12, 0));
}

TEST(Windows, ExplicitTargetsAreGivenAsTheyAre) {
  Windows windows = stream_of_seven();
  windows.targets = {kNone, 1, kNone, 2, kNone, 3};
  const auto window = read_window(windows, 1);
  EXPECT_THAT(window.input, ElementsAre(13, 14, 15));
  EXPECT_THAT(window.target, ElementsAre(2, kNone, 3));
  EXPECT_EQ(windows.num_scored(), 3);
}

TEST(Windows, NumScoredLeavesOutThePadding) {
  Windows windows = stream_of_seven();
  EXPECT_EQ(windows.num_scored(), 6);
  windows.starts.push_back(6);  // one input, nothing after it
  EXPECT_EQ(windows.num_scored(), 6);
}

TEST(Windows, EveryNextTokenIsAskedWithinAWindow) {
  Windows windows = stream_of_seven();
  windows.starts.push_back(6);  // one input, nothing after it
  windows.targets = next_token_targets(windows);
  EXPECT_THAT(windows.targets, ElementsAre(11, 12, kNone, 14, 15, kNone, kNone, kNone, kNone));
  EXPECT_THAT(read_window(windows, 1).target, ElementsAre(14, 15, kNone));
  EXPECT_EQ(windows.num_scored(), 4);
}

TEST(CorpusFacts, TrainingMayAskForMoreThanIsScored) {
  Corpus corpus;
  corpus.vocabulary = 20;
  corpus.train = corpus.valid = corpus.test = stream_of_seven();
  for (auto* split : {&corpus.train, &corpus.valid, &corpus.test}) {
    split->targets = {kNone, 1, kNone, 2, kNone, 3};
  }
  const auto hash = corpus_hash(corpus);
  corpus.train.targets = next_token_targets(corpus.train);
  EXPECT_NE(corpus_hash(corpus), hash);
  EXPECT_EQ(corpus.train.num_scored(), 4);
  EXPECT_EQ(corpus.valid.num_scored(), 3);
  EXPECT_THAT(read_window(corpus.train, 1).target, ElementsAre(14, 15, kNone));
  EXPECT_THAT(read_window(corpus.valid, 1).target, ElementsAre(2, kNone, 3));
}

TEST(CorpusFacts, HashCoversAllThatTrainingSees) {
  Corpus corpus;
  corpus.vocabulary = 20;
  corpus.train = corpus.valid = corpus.test = stream_of_seven();
  const std::string hash = corpus_hash(corpus);
  EXPECT_EQ(hash.size(), 64U);

  const auto changed = [&](auto change) {
    Corpus other = corpus;
    change(other);
    return corpus_hash(other);
  };
  EXPECT_NE(hash, changed([](Corpus& c) { c.train.tokens[2] = 1; }));
  EXPECT_NE(hash, changed([](Corpus& c) { c.valid.starts[1] = 2; }));
  EXPECT_NE(hash, changed([](Corpus& c) { c.test.targets = {1, 2, 3, 4, 5, 6}; }));
  EXPECT_NE(hash, changed([](Corpus& c) { c.train.length = 2; }));
  EXPECT_NE(hash, changed([](Corpus& c) { c.train.last_target = 0; }));
  EXPECT_NE(hash, changed([](Corpus& c) { c.train.shift = 1; }));
  EXPECT_NE(hash, changed([](Corpus& c) { c.vocabulary = 21; }));
  EXPECT_NE(hash, changed([](Corpus& c) { c.special.unknown = 1; }));
  EXPECT_EQ(hash, changed([](Corpus& c) { c.name = c.description = "other"; }));
}

TEST(CorpusFacts, UnigramPerplexityByHand) {
  Windows train;
  train.length = 3;
  train.tokens = {0, 1, 1, 2};  // targets 1, 1, 2
  train.starts = {0};
  Windows valid = train;
  valid.tokens = {2, 1, 0, 0};
  // (c + 1) / (N + V) with N = 3, V = 3: p(0) = 1/6, p(1) = 3/6; targets 1, 0, 0.
  EXPECT_NEAR(unigram_perplexity(train, valid, 3), std::cbrt(2.0 * 6.0 * 6.0), 1e-12);
  // A last target is no text: neither the 2 of train nor the last 0 of valid counts.
  train.last_target = valid.last_target = 0;
  valid.tokens = {2, 1, 2, 0};
  // N = 2 (1, 1): p(1) = 3/5, p(2) = 1/5; targets 1, 2.
  EXPECT_NEAR(unigram_perplexity(train, valid, 3), std::sqrt(5.0 / 3.0 * 5.0), 1e-12);
}

TEST(CorpusFacts, UnigramPerplexityNeedsATarget) {
  const Windows train = stream_of_seven();
  Windows valid;
  valid.length = 3;
  EXPECT_EQ(error_of([&] { (void)unigram_perplexity(train, valid, 20); }),
            "the valid split has 0 scored targets, must be at least 1");
}

}  // namespace
}  // namespace nas
