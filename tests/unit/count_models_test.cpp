#include "data/count_models.hpp"

#include <numeric>

#include "core/seed.hpp"
#include "data_fixture.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using ::testing::Pointwise;
using Tokens = std::vector<std::int32_t>;

/// Contiguous windows over a stream.
Windows stream(Tokens tokens, std::int64_t length) {
  Windows windows;
  windows.length = length;
  for (std::int64_t i = 0; i + 1 < std::ssize(tokens); i += length) windows.starts.push_back(i);
  windows.tokens = std::move(tokens);
  return windows;
}

/// One window whose only scored target is the last one, after `history`.
Windows question(Tokens history, std::int32_t token) {
  Windows windows;
  windows.length = std::ssize(history);
  windows.starts = {0};
  windows.targets.assign(history.size(), static_cast<std::int32_t>(kNotScored));
  windows.targets.back() = token;
  windows.tokens = std::move(history);
  return windows;
}

Tokens random_tokens(std::uint64_t seed, std::size_t size, std::int64_t vocabulary) {
  RandomEngine random(seed);
  Tokens tokens;
  for (std::size_t i = 0; i < size; ++i) {
    // Skewed, so that some histories are frequent and others never come.
    const auto a = random.below(vocabulary);
    tokens.push_back(static_cast<std::int32_t>(std::min(a, random.below(vocabulary))));
  }
  return tokens;
}

CountedScores scores_of(const Windows& train, std::int64_t vocabulary,
                        const std::vector<Windows>& judged) {
  std::vector<const Windows*> places;
  for (const auto& windows : judged) places.push_back(&windows);
  return count_scores(train, all_windows(train), vocabulary, places);
}

/// p(token | history) of every order.
std::vector<double> probabilities(const CountedScores& scores, std::size_t question) {
  std::vector<double> values;
  for (const auto& of_order : scores.scores.at(question)) values.push_back(std::exp(-of_order.nll));
  return values;
}

/// The same models, as their formula is written.
class Reference {
 public:
  Reference(const Windows& train, const std::vector<DrawnWindow>& drawn, std::int64_t vocabulary)
      : vocabulary_(vocabulary) {
    std::set<std::int64_t> counted;
    for (const auto& window : drawn) {
      const auto [input, target] = read_window(train, window.index, window.offset);
      for (std::size_t t = 0; t < input.size(); ++t) {
        if (target[t] == kNotScored || target[t] == train.last_target) continue;
        const auto place = train.targets.empty()
                               ? train.starts[static_cast<std::size_t>(window.index)] +
                                     window.offset + static_cast<std::int64_t>(t)
                               : window.index * train.length + static_cast<std::int64_t>(t);
        if (!counted.insert(place).second) continue;
        for (std::size_t known = 0; known <= t + 1; ++known) {
          const std::vector<std::int64_t> history(
              input.begin() + static_cast<std::ptrdiff_t>(t + 1 - known),
              input.begin() + static_cast<std::ptrdiff_t>(t + 1));
          ++counts_[history][target[t]];
        }
      }
    }
  }

  [[nodiscard]] double probability(std::vector<std::int64_t> history, std::int64_t token) const {
    const auto next = counts_.find(history);
    double lower = 1.0 / static_cast<double>(vocabulary_);
    if (!history.empty()) {
      lower = probability({history.begin() + 1, history.end()}, token);
    }
    if (next == counts_.end()) return lower;
    double count = 0.0;
    for (const auto& [of, n] : next->second) count += n;
    const auto types = static_cast<double>(next->second.size());
    const auto found = next->second.find(token);
    const double of_token = found == next->second.end() ? 0.0 : found->second;
    return (of_token + types * lower) / (count + types);
  }

  [[nodiscard]] CountScores score(const Windows& windows, std::size_t order) const {
    CountScores scores;
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      const auto [input, target] = read_window(windows, i);
      for (std::size_t t = 0; t < input.size(); ++t) {
        if (target[t] == kNotScored || target[t] == windows.last_target) continue;
        const auto known = std::min(order - 1, t + 1);
        const std::vector<std::int64_t> history(
            input.begin() + static_cast<std::ptrdiff_t>(t + 1 - known),
            input.begin() + static_cast<std::ptrdiff_t>(t + 1));
        std::int64_t best = 0;
        for (std::int64_t w = 1; w < vocabulary_; ++w) {
          // Beyond rounding: of equals the first one is best.
          if (probability(history, w) > probability(history, best) * (1.0 + 1e-12)) best = w;
        }
        scores.nll -= std::log(probability(history, target[t]));
        scores.correct += best == target[t] ? 1 : 0;
        ++scores.tokens;
      }
    }
    return scores;
  }

 private:
  std::int64_t vocabulary_;
  std::map<std::vector<std::int64_t>, std::map<std::int64_t, double>> counts_;
};

void expect_as_reference(const Windows& train, const std::vector<DrawnWindow>& drawn,
                         std::int64_t vocabulary, const Windows& judged) {
  const Windows* const splits[] = {&judged};
  const auto counted = count_scores(train, drawn, vocabulary, splits);
  const Reference reference(train, drawn, vocabulary);
  for (std::size_t order = 1; order <= kMostOrder; ++order) {
    const auto& found = counted.scores[0][order - 1];
    const auto expected = reference.score(judged, order);
    EXPECT_NEAR(found.nll, expected.nll, 1e-9 * expected.nll) << "order " << order;
    EXPECT_EQ(found.tokens, expected.tokens);
    EXPECT_EQ(found.correct, expected.correct) << "order " << order;
  }
}

// Windows 0 1 0 and 1 0 2 with the targets 1 0 1 and 0 2 0; V = 4.
TEST(CountModels, AreThoseComputedByHand) {
  auto train = stream({0, 1, 0, 1, 0, 2}, 3);
  train.targets = {1, 0, 1, 0, 2, 0};
  const std::vector<Windows> questions{question({3}, 0), question({0}, 1), question({1, 0}, 2)};
  const auto scores = scores_of(train, 4, questions);
  EXPECT_EQ(scores.tokens, 6);
  // Targets: 0 three times, 1 twice, 2 once: c = 6, T = 3, and p(0) = (3 + 3/4) / 9.
  EXPECT_NEAR(probabilities(scores, 0)[0], 5.0 / 12.0, 1e-12);
  EXPECT_NEAR(probabilities(scores, 0)[1], 5.0 / 12.0, 1e-12) << "3 was never seen";
  EXPECT_NEAR(probabilities(scores, 1)[0], 11.0 / 36.0, 1e-12);
  // After 0: 1, 1, 2 (inputs 0 of both windows): c = 3, T = 2.
  const double one_after_zero = (2.0 + 2.0 * 11.0 / 36.0) / 5.0;
  EXPECT_NEAR(probabilities(scores, 1)[1], one_after_zero, 1e-12);
  const double two_after_zero = (1.0 + 2.0 * 7.0 / 36.0) / 5.0;
  EXPECT_NEAR(probabilities(scores, 2)[1], two_after_zero, 1e-12);
  // After "1 0": 1, 2.
  EXPECT_NEAR(probabilities(scores, 2)[2], (1.0 + 2.0 * two_after_zero) / 4.0, 1e-12);
}

TEST(CountModels, AreTheReferencesOnRandomTexts) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const std::int64_t vocabulary = 2 + static_cast<std::int64_t>(seed);
    const std::int64_t length = 1 + static_cast<std::int64_t>(seed % 9);
    const auto train = stream(random_tokens(seed, 250, vocabulary), length);
    const auto judged = stream(random_tokens(1000 + seed, 120, vocabulary), length);
    SCOPED_TRACE(seed);
    expect_as_reference(train, all_windows(train), vocabulary, judged);
  }
}

TEST(CountModels, CountDrawnWindowsOnceAndShifted) {
  auto train = stream(random_tokens(3, 200, 5), 8);
  train.shift = 8;
  const auto judged = stream(random_tokens(4, 80, 5), 8);
  // The second epoch has another offset: only what the first one did not reach is new.
  const std::vector<DrawnWindow> drawn{{3, 2}, {0, 2}, {3, 2}, {3, 5}, {7, 5}, {24, 7}};
  expect_as_reference(train, drawn, 5, judged);
  const Windows* const splits[] = {&judged};
  EXPECT_EQ(count_scores(train, std::span(drawn).first(1), 5, splits).tokens, 8);
  EXPECT_EQ(count_scores(train, std::span(drawn).first(3), 5, splits).tokens, 16);
  EXPECT_EQ(count_scores(train, std::span(drawn).first(4), 5, splits).tokens, 19);
}

TEST(CountModels, HistoryEndsWhereTheWindowBegins) {
  // 1 always follows 0 0, but no window of one token sees two of them.
  const Tokens text{0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0};
  const auto one = stream(text, 1);
  const auto scores = scores_of(one, 3, {one}).scores[0];
  EXPECT_EQ(scores[1].nll, scores[5].nll) << "no window has more than one token of history";
  const auto whole = stream(text, 12);
  const auto longer = scores_of(whole, 3, {whole}).scores[0];
  EXPECT_LT(longer[2].nll, longer[1].nll);
}

TEST(CountModels, WhatIsNotScoredOrAnEndOfAWindowCountsForNothing) {
  auto train = stream({0, 1, 2, 3, 0, 1, 2, 3}, 4);
  train.last_target = 3;
  const auto judged = stream({0, 1, 2, 3, 0}, 4);
  const auto counted = scores_of(train, 4, {judged, train});
  EXPECT_EQ(counted.tokens, 4);  // 1 2 and 1 2: 3 is what stands for the end
  EXPECT_EQ(counted.scores[0][0].tokens, 4);
  expect_as_reference(train, all_windows(train), 4, judged);

  auto asked = stream({0, 1, 2, 3, 0, 1, 2, 3}, 4);
  constexpr auto kNothing = static_cast<std::int32_t>(kNotScored);
  asked.targets = {kNothing, 2, kNothing, kNothing, kNothing, kNothing, kNothing, 1};
  EXPECT_EQ(scores_of(asked, 4, {asked}).tokens, 2);
  EXPECT_EQ(scores_of(asked, 4, {asked}).scores[0][3].tokens, 2);
  expect_as_reference(asked, all_windows(asked), 4, asked);
}

TEST(CountModels, OfNothingGuessEvenly) {
  const auto judged = stream({0, 1, 2}, 2);
  const Windows* const splits[] = {&judged};
  const auto scores = count_scores(judged, {}, 8, splits);
  EXPECT_EQ(scores.tokens, 0);
  for (const auto& of_order : scores.scores[0]) {
    EXPECT_NEAR(of_order.mean_nll(), std::log(8.0), 1e-12);
  }
  EXPECT_TRUE(std::isnan(CountScores().mean_nll()));
  EXPECT_TRUE(std::isnan(CountScores().accuracy()));
}

TEST(CountModels, TokensOfALargeVocabularyAreNotConfused) {
  constexpr std::int32_t kFar = 65535;
  const auto train = stream({kFar, 0, kFar, 1, kFar - 1, 2, kFar, 0, 256, 0, 1, 65280}, 12);
  expect_as_reference(train, all_windows(train), 65536, question({kFar}, 0));
  const auto scores = scores_of(train, 65536, {question({kFar}, 0), question({kFar - 1}, 0)});
  EXPECT_GT(probabilities(scores, 0)[1], 5.0 * probabilities(scores, 1)[1]);
}

}  // namespace
}  // namespace nas
