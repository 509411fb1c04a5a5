#include <array>

#include "data_fixture.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using Settings = std::initializer_list<std::pair<std::string, Value>>;

Corpus mqar(std::int64_t length, Settings settings) {
  return make_corpus("mqar", length, settings);
}

std::int64_t integer(int value) { return value; }

// What every example must satisfy, by the definition of the task.
void check_example(const ReadWindow& example, std::int64_t vocabulary, std::size_t pairs) {
  std::map<std::int64_t, std::int64_t> value_of;
  std::set<std::int64_t> values;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t key = example.input[2 * pair];
    const std::int64_t value = example.input[2 * pair + 1];
    EXPECT_GE(key, 1);
    EXPECT_LE(key, vocabulary / 2 - 1);
    EXPECT_GE(value, vocabulary / 2);
    EXPECT_LE(value, vocabulary - 1);
    value_of[key] = value;
    values.insert(value);
  }
  ASSERT_EQ(value_of.size(), pairs) << "keys are distinct";
  ASSERT_EQ(values.size(), pairs) << "values are distinct";
  std::set<std::int64_t> asked;
  for (std::size_t t = 0; t < example.input.size(); ++t) {
    if (example.target[t] == kNotScored) continue;
    EXPECT_GE(t, 2 * pairs);
    EXPECT_EQ(t % 2, 0U) << "queries stand at even gaps";
    ASSERT_TRUE(value_of.contains(example.input[t]));
    EXPECT_EQ(example.target[t], value_of[example.input[t]]);
    asked.insert(example.input[t]);
  }
  EXPECT_EQ(asked.size(), pairs) << "each key is asked for once";
}

TEST(Mqar, EveryExampleIsWellFormed) {
  for (const bool random : {true, false}) {
    const Corpus corpus = mqar(32, {{"vocabulary", integer(40)},
                                    {"pairs", integer(8)},  // 4 D = L: every gap is taken
                                    {"train_examples", integer(200)},
                                    {"test_examples", integer(50)},
                                    {"random_non_queries", random}});
    EXPECT_EQ(corpus.vocabulary, 40);
    for (const Windows* windows : {&corpus.train, &corpus.valid, &corpus.test}) {
      for (std::int64_t i = 0; i < windows->size(); ++i) {
        check_example(read_window(*windows, i), 40, 8);
      }
    }
    EXPECT_EQ(corpus.train.size(), 200);
    EXPECT_EQ(corpus.valid.size(), 50);
    EXPECT_EQ(corpus.test.size(), 50);
    EXPECT_EQ(corpus.train.num_scored(), 200 * 8);
  }
}

TEST(Mqar, ChanceIsAGuessByTheQuerysPlace) {
  const auto chance = [](double power, int pairs) {
    return mqar(12, {{"vocabulary", integer(24)},
                     {"pairs", integer(pairs)},
                     {"train_examples", integer(50000)},
                     {"power", power}})
        .chance.value();
  };
  EXPECT_EQ(chance(1.0, 3).by, "guessing among the values shown, by the place of the query");
  EXPECT_NEAR(chance(1.0, 3).nll, std::log(3.0), 1e-3);
  EXPECT_NEAR(chance(1.0, 3).accuracy, 1.0 / 3.0, 0.01);
  // Three gaps of weights 1, 1/2 and 1/3: the first pair is asked for at the first one in 6 of 11 cases.
  const auto near = chance(0.0, 3);
  EXPECT_GT(near.accuracy, 0.42);
  EXPECT_LT(near.accuracy, 6.0 / 11.0);
  EXPECT_LT(near.nll, std::log(3.0) - 0.05);
  EXPECT_NEAR(chance(0.0, 1).nll, 0.0, 1e-12) << "there is one pair only";
}

// Runs are stored under these hashes.
TEST(Mqar, ExamplesStayAsTheyAre) {
  EXPECT_EQ(mqar(64, {{"random_non_queries", false},
                      {"power", 0.5},
                      {"pairs", integer(8)},
                      {"train_examples", integer(50)},
                      {"test_examples", integer(20)}})
                .hash,
            "70b86b746bbaefb04f47da81f9f8dda556a0d202b72986b5721ce0e600d537b6");
}

// Pairs, updates and queries of one example with updates, by reading it from the left.
void check_updates(const ReadWindow& example, std::size_t pairs, std::size_t updates) {
  std::map<std::int64_t, std::int64_t> value_of;
  for (std::size_t pair = 0; pair < pairs + updates; ++pair) {
    const auto key = example.input[2 * pair];
    const auto value = example.input[2 * pair + 1];
    const auto [known, added] = value_of.try_emplace(key, value);
    EXPECT_EQ(added, pair < pairs);
    EXPECT_EQ(known->second == value, added) << "another value";
    known->second = value;
  }
  EXPECT_EQ(value_of.size(), pairs);
  std::set<std::int64_t> updated;
  for (std::size_t pair = pairs; pair < pairs + updates; ++pair) {
    updated.insert(example.input[2 * pair]);
  }
  EXPECT_EQ(updated.size(), updates);
  std::set<std::int64_t> asked;
  for (std::size_t t = 0; t < example.input.size(); ++t) {
    if (example.target[t] == kNotScored) continue;
    EXPECT_GE(t, 2 * (pairs + updates));
    EXPECT_EQ(example.target[t], value_of.at(example.input[t]));
    asked.insert(example.input[t]);
  }
  EXPECT_EQ(asked.size(), pairs);
}

TEST(MqarUpdates, TheLastValueIsRight) {
  struct Size {
    int length, pairs, updates;
  };
  for (const auto& size : {Size{64, 4, 2}, Size{64, 8, 8}, Size{256, 32, 16}, Size{48, 8, 8}}) {
    const Corpus corpus = mqar(size.length, {{"vocabulary", integer(512)},
                                             {"pairs", integer(size.pairs)},
                                             {"updates", integer(size.updates)},
                                             {"train_examples", integer(100)},
                                             {"test_examples", integer(20)}});
    for (const Windows* windows : {&corpus.train, &corpus.valid, &corpus.test}) {
      for (std::int64_t i = 0; i < windows->size(); ++i) {
        check_updates(read_window(*windows, i), static_cast<std::size_t>(size.pairs),
                      static_cast<std::size_t>(size.updates));
      }
    }
  }
}

TEST(MqarUpdates, ChanceAndWordsSayThem) {
  const Corpus corpus = mqar(12, {{"vocabulary", integer(24)},
                                  {"pairs", integer(2)},
                                  {"updates", integer(1)},
                                  {"train_examples", integer(50000)},
                                  {"power", 1.0}});
  EXPECT_NEAR(corpus.chance->nll, std::log(2.0), 1e-3);
  EXPECT_EQ(corpus.chance->by,
            "guessing among the last values of the keys, by the place of the query");
  EXPECT_EQ(corpus.description,
            "multi-query associative recall; 2 pairs in 12 tokens, vocabulary 24; second "
            "values: 1");
}

TEST(MqarUpdates, RefusedWhereTheyDoNotFit) {
  EXPECT_EQ(error_of([] {
              mqar(64, {{"updates", integer(5)}});
            }),
            "mqar: data.updates = 5, must be at most data.pairs (4) and leave two tokens of "
            "model.context (64) for each query");
  EXPECT_EQ(error_of([] {
              mqar(46, {{"pairs", integer(8)}, {"updates", integer(8)}});
            }),
            "mqar: data.updates = 8, must be at most data.pairs (8) and leave two tokens of "
            "model.context (46) for each query");
}

TEST(Mqar, RefusesSettingsThatDoNotFit) {
  EXPECT_EQ(error_of([] {
              mqar(64, {{"length", integer(128)}});
            }),
            "mqar: data.length = 128, must be 0 or equal to model.context (64)");
  EXPECT_EQ(error_of([] { mqar(63, {}); }), "mqar: model.context = 63, must be even");
  EXPECT_EQ(error_of([] {
              mqar(64, {{"pairs", integer(17)}});
            }),
            "mqar: data.pairs = 17, must be at most a quarter of model.context (64)");
  constexpr auto kMany = std::int64_t{1} << 62;  // four times that is 0
  EXPECT_EQ(error_of([&] {
              mqar(64, {{"pairs", kMany}});
            }),
            "mqar: data.pairs = 4611686018427387904, must be at most a quarter of model.context "
            "(64)");
  EXPECT_EQ(error_of([] {
              mqar(64, {{"vocabulary", integer(64)}});
            }),
            "mqar: data.vocabulary = 64, must be greater than model.context (64)");
  EXPECT_EQ(error_of([] {
              mqar(64, {{"length", integer(64)}, {"pairs", integer(16)}});
            }),
            "nothing was thrown");
}

}  // namespace
}  // namespace nas
