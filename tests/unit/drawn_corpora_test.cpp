#include <array>

#include "core/format.hpp"
#include "data/corpus_facts.hpp"
#include "data/drawn_corpus.hpp"
#include "data_fixture.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using Settings = std::initializer_list<std::pair<std::string, Value>>;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kNone = kNotScored;

std::int64_t integer(int value) { return value; }

// What is right at every position, from the input alone.
using Solve = std::function<Ids(const Ids& input)>;

/// The split must be what `solve` says.
void expect_solved(const Windows& windows, const Solve& solve) {
  for (std::int64_t i = 0; i < windows.size(); ++i) {
    const auto window = read_window(windows, i);
    ASSERT_EQ(window.target, solve(window.input)) << "example " << i;
  }
}
void expect_solved(const Corpus& corpus, const Solve& solve) {
  expect_solved(corpus.train, solve);
  expect_solved(corpus.valid, solve);
  expect_solved(corpus.test, solve);
}

/// Every next token, and at the end what is right there.
Solve every_next(const Solve& solve) {
  return [solve](const Ids& input) {
    auto next = solve(input);
    std::copy(input.begin() + 1, input.end(), next.begin());
    return next;
  };
}

Ids nothing_scored(const Ids& input) { return Ids(input.size(), kNone); }

Ids induction_answers(const Ids& input) {
  auto answers = nothing_scored(input);
  for (std::size_t period = (input.size() + 3) / 4; period <= input.size() / 2; ++period) {
    if (!std::equal(input.begin() + static_cast<std::ptrdiff_t>(period), input.end(),
                    input.begin())) {
      continue;
    }
    for (std::size_t t = period; t < input.size(); ++t) answers[t] = input[t - period + 1];
    return answers;
  }
  ADD_FAILURE() << "no period";
  return answers;
}

Solve count_answers(std::int64_t modulus) {
  return [modulus](const Ids& input) {
    Ids answers;
    std::int64_t count = 0;
    for (const auto bit : input) {
      EXPECT_TRUE(bit == 0 || bit == 1);
      count += bit;
      answers.push_back(count % modulus);
    }
    return answers;
  };
}

/// Pairs from the left; keys are below `values`, values below `noise`.
Solve recall_answers(std::int64_t values, std::int64_t noise, bool multi_query) {
  return [=](const Ids& input) {
    auto answers = nothing_scored(input);
    std::map<std::int64_t, std::int64_t> value_of;
    for (std::size_t t = 0; t + 2 < input.size(); t += 2) {
      if (input[t] >= noise) {
        EXPECT_GE(input[t + 1], noise);
        continue;
      }
      EXPECT_LT(input[t], values);
      EXPECT_TRUE(input[t + 1] >= values && input[t + 1] < noise);
      const auto [known, added] = value_of.try_emplace(input[t], input[t + 1]);
      EXPECT_EQ(known->second, input[t + 1]);
      if (!added && multi_query) answers[t] = known->second;
    }
    const std::size_t last = input.size() - (multi_query ? 2 : 1);
    answers[last] = value_of.at(input[last]);
    return answers;
  };
}

Ids copying_answers(const Ids& input) {
  const std::int64_t copy = *std::max_element(input.begin(), input.end());
  const auto sign = std::find(input.begin(), input.end(), copy);
  Ids tokens;
  std::copy_if(input.begin(), sign, std::back_inserter(tokens),
               [&](std::int64_t id) { return id < copy - 1; });
  EXPECT_NE(*(sign - 1), copy - 1) << "no blank before the sign";
  EXPECT_EQ(std::count(sign + 1, input.end(), copy - 1), std::ssize(tokens));
  auto answers = nothing_scored(input);
  std::copy(tokens.begin(), tokens.end(), answers.end() - std::ssize(tokens));
  return answers;
}

TEST(DrawnCorpora, AnswersFollowFromTheInput) {
  expect_solved(make_corpus("induction", 48, {}), induction_answers);
  expect_solved(make_corpus("induction", 5, {{"vocabulary", integer(1000)}}), induction_answers);
  expect_solved(make_corpus("parity", 32, {}), count_answers(2));
  expect_solved(make_corpus("modular_count", 33, {{"modulus", integer(5)}}), count_answers(5));
  expect_solved(make_corpus("selective_copying", 256, {}), copying_answers);
  expect_solved(make_corpus("selective_copying", 12, {{"tokens", integer(5)}}), copying_answers);
}

TEST(DrawnCorpora, RecallIsScoredByAnswersAndLearnedFromAllTokens) {
  struct Case {
    std::string key;
    std::int64_t context;
    std::vector<std::pair<std::string, Value>> changes;
    Solve solve;
  };
  const std::vector<Case> cases{
      {"in_context_recall", 128, {}, recall_answers(8, 16, true)},
      {"in_context_recall", 32, {{"multi_query", false}}, recall_answers(7, 15, false)},
      {"noisy_recall", 128, {}, recall_answers(8, 16, true)},
      {"noisy_recall", 8, {{"noise_share", 0.95}}, recall_answers(8, 16, true)},
      {"noisy_recall", 64, {{"multi_query", false}}, recall_answers(7, 15, false)}};
  for (const auto& row : cases) {
    SCOPED_TRACE(row.key);
    const auto& entry = corpora().at(row.key);
    Parameters settings(entry.description.settings);
    for (const auto& [name, value] : row.changes) settings.set(name, value);
    const Corpus corpus = entry.make(settings, row.context, {});
    expect_solved(corpus.valid, row.solve);
    expect_solved(corpus.test, row.solve);
    expect_solved(corpus.train, every_next(row.solve));
  }
}

TEST(Urns, DrawsFollowPolyasUrnsAndTheDescriptionSaysTheLeastPerplexity) {
  const Corpus corpus = make_corpus("urns", 32, {});
  double nll = 0.0;
  double draws = 0.0;
  std::array<double, 2> expected{};  // draws of values that came before, by half
  std::array<double, 2> seen{};
  for (const Windows* windows : {&corpus.train, &corpus.valid, &corpus.test}) {
    for (std::int64_t i = 0; i < windows->size(); ++i) {
      const auto window = read_window(*windows, i);
      std::map<std::int64_t, Ids> urns;
      for (std::size_t t = 0; t < window.input.size(); t += 2) {
        const auto value = window.input[t + 1];
        ASSERT_TRUE(window.input[t] < 4 && value >= 4 && value < 12);
        ASSERT_EQ(window.target[t], value);
        ASSERT_EQ(window.target[t + 1], kNone);
        auto& urn = urns[window.input[t]];
        const auto n = static_cast<double>(urn.size());
        const auto times = static_cast<double>(std::count(urn.begin(), urn.end(), value));
        nll -= std::log((times + 0.05) / (n + 0.4));
        ++draws;
        const auto kinds =
            static_cast<double>(std::set<std::int64_t>(urn.begin(), urn.end()).size());
        const auto half = static_cast<std::size_t>(t >= 16);
        expected[half] += (n + 0.05 * kinds) / (n + 0.4);
        seen[half] += times > 0 ? 1.0 : 0.0;
        urn.push_back(value);
      }
    }
  }
  for (const std::size_t half : {0U, 1U}) EXPECT_NEAR(seen[half] / expected[half], 1.0, 0.005);
  const auto least = std::exp(nll / draws);
  EXPECT_NEAR(least, 3.1358, 0.01);  // by formula, from the beta-binomial counts of each value
  EXPECT_NEAR(corpus.chance->nll, std::log(8.0), 1e-12);
  EXPECT_THAT(corpus.description,
              EndsWith("least possible perplexity " + shortest(std::round(1e3 * least) / 1e3)));
}

struct Row {
  std::string key;
  std::int64_t context;
  std::string hash;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.key; }

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      {"induction", 48, "3ba59ce073c48828dd4c2f26b58bdc1cfd4059c08e2c553126eda5a69c1bbc0d"},
      {"parity", 32, "d5907f5852f75319ff51bb51f3eb7c12ca1a121b7d56fa693379354ba1cd3d47"},
      {"modular_count", 32, "563ef11a6b19d2b0a4ac4bfe844a50ca0fc25201cf031263cc66cd84e2b9ec4b"},
      {"in_context_recall", 128,
       "1afa3f82c36a7894bb646ba73b7bcd8eda059f2fd3786dccfd8f5ab8e6e73ad9"},
      {"noisy_recall", 128, "8d8f7379f5b6a8890cd81db919e6636bfdd5a7594afe6687bce22880686a07ac"},
      {"selective_copying", 256,
       "f4131c57b31a587a41571d9bbdfc81620b4b435d2a93b4c8c041026093fe36d1"},
      {"urns", 32, "71a81387d59d65617c992a0be3a816fabfff12bb51a2e199b0c9cee144e94639"},
      {"mqar", 64, "93869e2b191b6d7fd74c227145f93ae6a080173caa399af8d281cc3119c130b1"}};
  return kRows;
}

class DrawnCorpus : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(All, DrawnCorpus, ::testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.key; });

TEST_P(DrawnCorpus, TheSeedDecidesAndFewerExamplesAreTheBeginningOfMore) {
  const auto make = [](int train_examples, int seed) {
    return make_corpus(GetParam().key, GetParam().context,
                       {{"train_examples", integer(train_examples)}, {"seed", integer(seed)}});
  };
  const Corpus few = make(20, 1);
  const Corpus more = make(40, 1);
  EXPECT_EQ(few.train.size(), 20);
  EXPECT_TRUE(
      std::equal(few.train.tokens.begin(), few.train.tokens.end(), more.train.tokens.begin()));
  EXPECT_NE(few.train.tokens, make(20, 2).train.tokens);
  EXPECT_NE(few.valid.tokens, few.test.tokens);
}

// Runs are stored under these hashes.
TEST_P(DrawnCorpus, ExamplesStayAsTheyAreAndNoneOfTheTestIsInTraining) {
  const Corpus corpus = make_corpus(GetParam().key, GetParam().context, {});
  EXPECT_EQ(corpus.hash, GetParam().hash);
  std::set<Ids> known;
  for (std::int64_t i = 0; i < corpus.train.size(); ++i) {
    known.insert(read_window(corpus.train, i).input);
  }
  for (const Windows* windows : {&corpus.valid, &corpus.test}) {
    for (std::int64_t i = 0; i < windows->size(); ++i) {
      EXPECT_TRUE(known.insert(read_window(*windows, i).input).second) << "example " << i;
    }
  }
  for (const Windows* windows : {&corpus.train, &corpus.valid, &corpus.test}) {
    for (std::size_t i = 0; i < windows->tokens.size(); ++i) {
      const auto token = windows->tokens[i];
      const auto target = windows->targets[i];
      ASSERT_TRUE(token >= 0 && token < corpus.vocabulary) << token;
      ASSERT_TRUE(target == kNone || (target >= 0 && target < corpus.vocabulary)) << target;
    }
  }
}

TEST(DrawnCorpora, ChanceIsTheFormulaAndWhatIsMeasured) {
  struct Formula {
    std::string key;
    std::int64_t context;
    double answers;
    std::string by;
  };
  for (const auto& [key, context, answers, by] :
       {Formula{"induction", 48, 32, "guessing among all tokens"},
        Formula{"in_context_recall", 128, 8, "guessing among the values"},
        Formula{"noisy_recall", 128, 8, "guessing among the values"},
        Formula{"selective_copying", 256, 14, "guessing among the tokens"}}) {
    const Corpus corpus = make_corpus(key, context, {});
    EXPECT_NEAR(corpus.chance->nll, std::log(answers), 1e-12) << key;
    EXPECT_NEAR(corpus.chance->accuracy, 1 / answers, 1e-12) << key;
    EXPECT_EQ(corpus.chance->by, by);
    const auto measured = label_chance(corpus.valid, corpus.vocabulary);
    EXPECT_NEAR(measured.nll, corpus.chance->nll, 0.01) << key;
    EXPECT_NEAR(measured.accuracy, corpus.chance->accuracy, 0.01) << key;
  }
}

TEST(Parity, ChanceIsHalfButForTheFirstBit) {
  const auto chance = make_corpus("parity", 32, {}).chance;
  EXPECT_NEAR(chance->accuracy, 33.0 / 64, 1e-12);
  EXPECT_NEAR(chance->nll, 31.0 / 32 * std::log(2.0), 1e-12);
  EXPECT_EQ(chance->by, "guessing by the token and its place");
}

TEST(Parity, IsTestedOnFurtherLengths) {
  const Corpus corpus =
      make_corpus("parity", 32, {{"test_lengths", std::vector<std::int64_t>{64, 256}}});
  ASSERT_EQ(corpus.further.size(), 2U);
  for (const auto& [name, windows] : corpus.further) {
    EXPECT_EQ(name, "test_" + std::to_string(windows.length));
    EXPECT_EQ(windows.size(), 1000);
    expect_solved(windows, count_answers(2));
  }
  const Corpus alone = make_corpus("parity", 32, {});
  EXPECT_EQ(corpus.train.tokens, alone.train.tokens);
  EXPECT_EQ(corpus.test.tokens, alone.test.tokens);
  EXPECT_NE(corpus.hash, alone.hash) << "what a run reports belongs to it";
  EXPECT_EQ(
      error_of([] {
        make_corpus("modular_count", 32, {{"test_lengths", std::vector<std::int64_t>{64, 0}}});
      }),
      "modular_count: data.test_lengths = 0, must be at least 1");
}

// The best that knows place and token, over all sequences of 6 bits.
TEST(ModularCount, ChanceIsTheBestByTokenAndPlace) {
  for (const int modulus : {2, 3, 5}) {
    const auto chance = make_corpus("modular_count", 6, {{"modulus", integer(modulus)}}).chance;
    double accuracy = 0.0;
    double nll = 0.0;
    for (int t = 0; t < 6; ++t) {
      std::map<int, std::map<int, double>> count;  // of answers, by the token
      for (int bits = 0; bits < 64; ++bits) {
        const int ones = __builtin_popcount(static_cast<unsigned>(bits) & ((2U << t) - 1U));
        count[(bits >> t) & 1][ones % modulus] += 1.0 / 64;
      }
      for (const auto& [token, answers] : count) {
        double best = 0.0;
        for (const auto& [answer, share] : answers) {
          best = std::max(best, share);
          nll -= share * std::log(2 * share) / 6;
        }
        accuracy += best / 6;
      }
    }
    EXPECT_NEAR(chance->accuracy, accuracy, 1e-12) << modulus;
    EXPECT_NEAR(chance->nll, nll, 1e-12) << modulus;
  }
}

TEST(DrawnCorpora, SettingsThatDoNotFitAreRefused) {
  const auto expect = [](const std::string& key, std::int64_t context, Settings settings,
                         const std::string& message) {
    EXPECT_EQ(error_of([&] { make_corpus(key, context, settings); }), key + ": " + message);
  };
  expect("induction", 3, {}, "model.context = 3, must be at least 4");
  expect("in_context_recall", 33, {}, "model.context = 33, must be even and at least 4");
  expect("in_context_recall", 2, {}, "model.context = 2, must be even and at least 4");
  expect("in_context_recall", 32, {{"vocabulary", integer(4)}, {"multi_query", false}},
         "data.vocabulary = 4, must be at least 5, of which 1 are neither keys nor values");
  expect("noisy_recall", 32, {{"vocabulary", integer(16)}},
         "data.vocabulary = 16, must be at least 20, of which 16 are neither keys nor values");
  expect("selective_copying", 33, {},
         "data.tokens = 16, must be less than half of model.context - 1 (32)");
  expect("urns", 31, {}, "model.context = 31, must be even and at least 4");
}

TEST(DrawnCorpora, WhatCannotFitIsRefusedBeforeItIsDrawn) {
  const std::int64_t many = 1'000'000'000'000;
  EXPECT_THAT(error_of([&] {
                (void)make_corpus("parity", 64, {{"train_examples", many}});
              }),
              HasSubstr("parity: data.train_examples = 1000000000000, "
                        "data.test_examples = 1000 of model.context = 64 tokens: at "
                        "least 465.7 TiB of memory"));
}

}  // namespace
}  // namespace nas
