// Statistics of attention maps, on planted maps whose statistics are known.

#include "instruments/attention_statistics.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "instruments/state_statistics.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

constexpr std::int64_t kSequences = 3;
constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kTokens = 40;
constexpr double kTolerance = 1e-12;

const at::TensorOptions kReals{at::kDouble};

torch::Tensor random(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, make_generator(at::kCPU, seed), kReals);
}

torch::Tensor lower(std::int64_t tokens = kTokens) {
  return at::ones({tokens, tokens}, at::TensorOptions(at::kBool)).tril();
}

/// One map for all sequences and heads.
torch::Tensor for_all(const torch::Tensor& map) {
  return map.to(at::kDouble).expand({kSequences, kHeads, map.size(0), map.size(1)});
}

/// 1 at key i - back, for the queries that have it.
torch::Tensor looking_back(std::int64_t back, std::int64_t tokens = kTokens) {
  return at::eye(tokens, kReals).roll(-back, 1).tril();
}

torch::Tensor even_weights(const torch::Tensor& visible) {
  return visible.to(at::kDouble) / visible.sum(-1, /*keepdim=*/true);
}

torch::Tensor random_softmax(std::uint64_t seed, double sink = -1e9) {
  const auto scores =
      random({kSequences, kHeads, kTokens, kTokens}, seed).masked_fill(lower().logical_not(), -1e9);
  const auto extra = at::full({kSequences, kHeads, kTokens, 1}, sink, kReals);
  return at::cat({scores, extra}, -1).softmax(-1).narrow(-1, 0, kTokens);
}

/// All of a statistic's numbers, one per sequence and head, are this one.
void expect_all(const torch::Tensor& found, double expected, double tolerance = kTolerance) {
  ASSERT_EQ(found.sizes(), at::IntArrayRef({kSequences, kHeads}));
  const auto flat = found.contiguous();
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(flat.data_ptr<double>()[i]));
    } else {
      EXPECT_NEAR(flat.data_ptr<double>()[i], expected, tolerance);
    }
  }
}

/// Mean over the queries that count of a function of n_i = i + 1.
template <class Function>
double mean_over_keys(const Function& function) {
  double sum = 0.0;
  for (std::int64_t i = kFirstQuery; i < kTokens; ++i) sum += function(static_cast<double>(i + 1));
  return sum / static_cast<double>(kTokens - kFirstQuery);
}

TEST(MapStatistics, OfThePreviousToken) {
  const auto found = map_statistics(for_all(looking_back(1)), lower());
  expect_all(found.at("row_mass"), 1.0);
  expect_all(found.at("light_rows"), 0.0);
  expect_all(found.at("entropy"), 0.0);
  expect_all(found.at("entropy_ratio"), 0.0);
  expect_all(found.at("effective_keys"), 1.0);
  expect_all(found.at("sink_mass"), 0.0);
  expect_all(found.at("mean_distance"), 1.0);
  expect_all(found.at("within_8"), 1.0);
  expect_all(found.at("distance_slope"), std::nan(""));  // one point makes no line
}

TEST(MapStatistics, OfUniformAttention) {
  const auto found = map_statistics(for_all(even_weights(lower())), lower());
  expect_all(found.at("row_mass"), 1.0);
  expect_all(found.at("entropy_ratio"), 1.0);
  expect_all(found.at("entropy"), mean_over_keys([](double n) { return std::log(n); }));
  expect_all(found.at("effective_keys"), mean_over_keys([](double n) { return n; }), 1e-10);
  expect_all(found.at("sink_mass"), mean_over_keys([](double n) { return 1.0 / n; }));
  // Every row has mass 1, so the shares are means over rows.
  expect_all(found.at("mean_distance"), mean_over_keys([](double n) { return (n - 1.0) / 2.0; }),
             1e-10);
  expect_all(found.at("within_8"), mean_over_keys([](double n) { return 8.0 / n; }));
  expect_all(found.at("within_32"),
             mean_over_keys([](double n) { return std::min(1.0, 32.0 / n); }));
  expect_all(found.at("within_128"), 1.0);
}

TEST(MapStatistics, CountVisibleKeysAlone) {
  const auto window = lower().logical_and(at::ones_like(lower()).tril(-4).logical_not());
  const auto found = map_statistics(for_all(even_weights(window)), window);
  expect_all(found.at("entropy_ratio"), 1.0);
  expect_all(found.at("effective_keys"), 4.0);
  expect_all(found.at("mean_distance"), 1.5);
  const auto per_head = window.expand({kSequences, kHeads, kTokens, kTokens});
  expect_all(map_statistics(for_all(even_weights(window)), per_head).at("entropy_ratio"), 1.0);
}

TEST(MapStatistics, OfASinkOutsideTheSequence) {
  const auto found = map_statistics(random_softmax(1, /*sink=*/50.0), lower());
  expect_all(found.at("row_mass"), 0.0, 1e-15);
  expect_all(found.at("light_rows"), 1.0);
  // What is left of a row is normalised before its entropy is taken.
  const auto without = map_statistics(random_softmax(1), lower());
  EXPECT_TRUE(at::allclose(found.at("entropy"), without.at("entropy"), 0.0, 1e-9));
}

TEST(MapStatistics, OfASinkAtTheFirstToken) {
  auto map = 0.6 * looking_back(2);
  map.select(1, 0) += 0.4;
  const auto found = map_statistics(for_all(map), lower());
  expect_all(found.at("sink_mass"), 0.4);
  const auto rate =
      sink_rate(at::stack({found.at("sink_mass").select(1, 0), at::full({kSequences}, 0.3, kReals),
                           at::full({kSequences}, 0.31, kReals), at::zeros({kSequences}, kReals)},
                          1));
  EXPECT_TRUE(at::equal(rate, at::full({kSequences}, 0.5, kReals))) << "0.3 itself is none";
}

TEST(MapStatistics, TakeTheSizeOfNegativeWeights) {
  const auto map = random_softmax(2);
  const auto sign = random({kTokens}, 3).sign();
  const auto plain = map_statistics(map, lower());
  const auto found = map_statistics(map * sign, lower());
  for (const auto* name : {"entropy", "effective_keys", "mean_distance", "within_8"}) {
    EXPECT_TRUE(at::allclose(found.at(name), plain.at(name), 0.0, kTolerance)) << name;
  }
  EXPECT_TRUE(
      at::allclose(found.at("row_mass"), mean_over_queries((map * sign).sum(-1)), 0.0, kTolerance));
}

TEST(MapStatistics, LeaveTheFirstQueriesOut) {
  const auto map = random_softmax(4);
  auto other = map.clone();
  other.slice(2, 0, kFirstQuery) = random_softmax(5).slice(2, 0, kFirstQuery);
  const auto a = map_statistics(map, lower());
  const auto b = map_statistics(other, lower());
  for (const auto& [name, values] : a) EXPECT_TRUE(at::equal(values, b.at(name))) << name;
  other.select(2, kFirstQuery) = random_softmax(5).select(2, kFirstQuery);
  EXPECT_FALSE(at::equal(a.at("entropy"), map_statistics(other, lower()).at("entropy")));
}

TEST(MapStatistics, OfRowsWithoutWeights) {
  auto map = looking_back(1).clone();
  map.select(0, 20) = 0.0;
  const auto found = map_statistics(for_all(map), lower());
  expect_all(found.at("entropy"), 0.0);  // of the other rows
  expect_all(found.at("row_mass"), 31.0 / 32.0);
  expect_all(found.at("light_rows"), 1.0 / 32.0);
  const auto nothing = map_statistics(for_all(at::zeros_like(map)), lower());
  for (const auto* name : {"entropy", "entropy_ratio", "mean_distance", "within_8"}) {
    SCOPED_TRACE(name);
    expect_all(nothing.at(name), std::nan(""));
  }
  expect_all(nothing.at("light_rows"), 1.0);
}

TEST(MapStatistics, RefuseOtherShapes) {
  try {
    map_statistics(at::zeros({2, kTokens, kTokens}), lower());
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "maps of the shape (2, 40, 40), must be (B, H, T, T) with T > 8");
  }
  EXPECT_THROW(map_statistics(at::zeros({1, 1, 9, 10}), lower()), std::invalid_argument);
  EXPECT_THROW(map_statistics(at::zeros({1, 1, 8, 8}), lower(8)), std::invalid_argument);
}

TEST(DistanceProfile, IsTheMeanAlongDiagonals) {
  const auto map = random({kSequences, kHeads, kTokens, kTokens}, 6).tril();
  const auto found = distance_profile(map);
  ASSERT_EQ(found.sizes(), at::IntArrayRef({kSequences, kHeads, kTokens}));
  for (const std::int64_t n : {0, 1, 7, 8, 9, 39}) {
    double sum = 0.0;
    std::int64_t queries = 0;
    for (std::int64_t i = std::max(n, kFirstQuery); i < kTokens; ++i, ++queries) {
      sum += std::abs(map[2][1][i][i - n].item<double>());
    }
    EXPECT_NEAR(found[2][1][n].item<double>(), sum / static_cast<double>(queries), kTolerance) << n;
  }
}

TEST(DistanceProfile, SlopeIsThatOfAPowerLaw) {
  const auto place = at::arange(kTokens, kReals);
  const auto apart = (place.unsqueeze(1) - place.unsqueeze(0)).clamp_min(1.0);
  const auto found = map_statistics(for_all(apart.pow(-1.5).tril()), lower());
  expect_all(found.at("distance_slope"), -1.5, 1e-10);
}

TEST(ScoreStatistics, AreThoseOfVisibleKeys) {
  const auto place = at::arange(kTokens, kReals);
  // s_ij = 2 j where visible, else huge: n consecutive even numbers have variance (n^2 - 1) / 3.
  const auto scores =
      (2.0 * place).expand({kTokens, kTokens}).masked_fill(lower().logical_not(), 1e30);
  const auto found = score_statistics(for_all(scores), lower());
  expect_all(found.at("score_sd"),
             mean_over_keys([](double n) { return std::sqrt((n * n - 1.0) / 3.0); }), 1e-10);
  expect_all(found.at("score_maximum"), 78.0);
  const auto negative = score_statistics(for_all(at::full({kTokens, kTokens}, -3.0)), lower());
  expect_all(negative.at("score_maximum"), -3.0);
  expect_all(negative.at("score_sd"), 0.0);
}

TEST(GateStatistics, CountOpenAndShutGates) {
  auto gates = at::full({kSequences, kHeads, kTokens, 4}, 0.5, kReals);
  gates.select(-1, 0) = 0.05;
  gates.select(-1, 1) = 0.95;
  gates.slice(2, 0, kFirstQuery) = 0.0;  // left out
  const auto found = gate_statistics(gates);
  expect_all(found.at("gate_mean"), 0.5);
  expect_all(found.at("gate_sd"), std::sqrt(2.0 * 0.45 * 0.45 / 4.0));
  expect_all(found.at("gate_shut"), 0.25);
  expect_all(found.at("gate_open"), 0.25);
}

TEST(GateStatistics, CorrelateWithTheSizeOfTheOutput) {
  const auto outputs = random({kSequences, kHeads, kTokens, 5}, 7);
  expect_all(gate_output_correlation(outputs.abs() * 0.1, outputs), 1.0, 1e-9);
  expect_all(gate_output_correlation(1.0 - outputs.abs() * 0.1, outputs), -1.0, 1e-9);
  const auto of_head = at::full({kSequences, kHeads, kTokens, 1}, 0.5, kReals);
  expect_all(gate_output_correlation(of_head, outputs), std::nan(""));
}

TEST(MemoryStatistics, OfAHalf) {
  const auto found =
      memory_statistics(at::full({kSequences, kHeads, kTokens}, std::log(0.5), kReals));
  expect_all(found.at("half_life"), 1.0);
  expect_all(found.at("forget_mean"), 0.5);
  // 1 + 1/2 + ... over n_i keys.
  expect_all(found.at("memory_length"),
             mean_over_keys([](double n) { return 2.0 * (1.0 - std::pow(0.5, n)); }), 1e-10);
}

TEST(MemoryStatistics, OfOneTokenThatForgetsAll) {
  auto logs = at::zeros({kSequences, kHeads, kTokens}, kReals);
  logs.select(-1, 20) = -1e4;
  const auto found = memory_statistics(logs);
  // f_t belongs to what lies before t: token 20 itself is kept.
  const double kept = mean_over_keys([](double n) { return n <= 20.0 ? n : n - 20.0; });
  expect_all(found.at("memory_length"), kept, 1e-10);
  const auto nothing = memory_statistics(at::zeros({kSequences, kHeads, kTokens}, kReals));
  EXPECT_TRUE(nothing.at("half_life").isinf().all().item<bool>());
  expect_all(nothing.at("memory_length"), mean_over_keys([](double n) { return n; }), 1e-10);
}

TEST(DecayStatistics, OfTwoChannels) {
  auto alpha = at::full({kSequences, kHeads, kTokens, 2}, 0.5, kReals);
  alpha.select(-1, 1) = 0.75;
  alpha.slice(2, 0, kFirstQuery) = 0.1;  // of queries that do not count
  const auto found = decay_statistics(alpha.log());
  expect_all(found.at("memory_length"), (2.0 + 4.0) / 2.0);
  expect_all(found.at("half_life"), (1.0 + std::log(2.0) / -std::log(0.75)) / 2.0);
  expect_all(found.at("forget_mean"), 0.625);
  const auto nothing = decay_statistics(at::zeros({kSequences, kHeads, kTokens, 1}, kReals));
  EXPECT_TRUE(nothing.at("half_life").isposinf().all().item<bool>());
  EXPECT_TRUE(nothing.at("memory_length").isposinf().all().item<bool>());
}

TEST(UpdateStatistics, OfAGateThatOpensHalfTheTime) {
  auto gates = at::zeros({kSequences, kHeads, kTokens, 1}, kReals);
  gates.slice(2, kFirstQuery, kTokens, 2) = 1.0;
  const auto found = update_statistics("beta", gates);
  expect_all(found.at("beta_mean"), 0.5);
  expect_all(found.at("beta_sd"), 0.5);
}

TEST(StateStatistics, OfDirectionsThatAreUsedAlike) {
  const auto of = [](const torch::Tensor& state) {
    return state_statistics(state.expand({kSequences, kHeads, state.size(0), state.size(1)}))
        .at("state_used");
  };
  expect_all(of(3.0 * at::eye(6, kReals)), 1.0);
  expect_all(of(at::ones({6, 4}, kReals)), 1.0 / 6.0, 1e-9);
  const auto half = at::diag(at::tensor({2.0, -2.0, 0.0, 0.0}, kReals));
  expect_all(of(half), 0.5);
  // Shares 4/5 and 1/5 of the squares.
  const auto uneven = at::diag(at::tensor({2.0, 1.0}, kReals));
  expect_all(of(uneven), std::exp(-0.8 * std::log(0.8) - 0.2 * std::log(0.2)) / 2.0);
  expect_all(of(at::zeros({4, 4}, kReals)), std::numeric_limits<double>::quiet_NaN());
}

TEST(RepeatedTokensTest, RepeatAfterARandomPeriod) {
  const auto drawn = repeated_tokens(50, 128, 1000, 1);
  ASSERT_EQ(drawn.tokens.sizes(), at::IntArrayRef({50, 128}));
  EXPECT_GE(drawn.periods.min().item<std::int64_t>(), 32);
  EXPECT_LE(drawn.periods.max().item<std::int64_t>(), 64);
  EXPECT_GT(drawn.periods.max().item<std::int64_t>() - drawn.periods.min().item<std::int64_t>(),
            20);
  for (std::int64_t b = 0; b < 50; ++b) {
    const auto period = drawn.periods[b].item<std::int64_t>();
    const auto& row = drawn.tokens[b];
    EXPECT_TRUE(at::equal(row.slice(0, period), row.slice(0, 0, 128 - period)));
    EXPECT_GT(std::get<0>(at::_unique(row)).numel(), period * 8 / 10) << "random within a period";
  }
  EXPECT_GE(drawn.tokens.min().item<std::int64_t>(), 0);
  EXPECT_LT(drawn.tokens.max().item<std::int64_t>(), 1000);
  EXPECT_TRUE(at::equal(repeated_tokens(50, 128, 1000, 1).tokens, drawn.tokens));
  EXPECT_FALSE(at::equal(repeated_tokens(50, 128, 1000, 2).tokens, drawn.tokens));
}

TEST(RepeatedTokensTest, RefuseSizesThatLeaveNothing) {
  try {
    repeated_tokens(1, 15, 10, 1);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "1 repeated sequences of 15 tokens from 10, must be at least 1 of 16 from 1");
  }
  EXPECT_THROW(repeated_tokens(0, 16, 10, 1), std::invalid_argument);
  EXPECT_THROW(repeated_tokens(1, 16, 0, 1), std::invalid_argument);
}

/// A, B, ... of a small alphabet as token ids.
torch::Tensor text(const std::string& letters) {
  auto tokens = at::empty({1, static_cast<std::int64_t>(letters.size())}, at::kLong);
  for (std::size_t t = 0; t < letters.size(); ++t) {
    tokens.data_ptr<std::int64_t>()[t] = letters[t] - 'A';
  }
  return tokens;
}

/// Keys of a query.
std::vector<std::int64_t> keys_of(const torch::Tensor& keys, std::int64_t query) {
  std::vector<std::int64_t> found;
  for (std::int64_t j = 0; j < keys.size(2); ++j) {
    if (keys[0][query][j].item<bool>()) found.push_back(j);
  }
  return found;
}

TEST(KeysOfKnownHeads, AreWhatTheirNamesSay) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  const auto tokens = text("ABCABBA");
  EXPECT_THAT(keys_of(previous_keys(tokens), 4), ElementsAre(3));
  EXPECT_THAT(keys_of(previous_keys(tokens), 0), IsEmpty());
  EXPECT_THAT(keys_of(duplicate_keys(tokens), 6), ElementsAre(0, 3));
  EXPECT_THAT(keys_of(duplicate_keys(tokens), 2), IsEmpty());
  EXPECT_THAT(keys_of(induction_keys(tokens), 6), ElementsAre(1, 4));  // what followed A
  EXPECT_THAT(keys_of(induction_keys(tokens), 4), ElementsAre(2));     // what followed B
  EXPECT_THAT(keys_of(induction_keys(tokens), 5), ElementsAre(2, 5));  // B follows B: itself
  EXPECT_THAT(keys_of(induction_keys(tokens), 1), IsEmpty());
}

/// Heads by hand, on tokens that repeat: head h of all sequences looks at these keys alone.
torch::Tensor heads_at(const std::vector<torch::Tensor>& keys) {
  auto maps = at::stack(at::TensorList(keys), 1).to(at::kDouble);
  return maps / maps.sum(-1, /*keepdim=*/true).clamp_min(1.0);
}

TEST(HeadScores, OfHeadsByHand) {
  const auto drawn = repeated_tokens(kSequences, 64, 100000, 3);
  const auto maps = heads_at(
      {previous_keys(drawn.tokens), duplicate_keys(drawn.tokens), induction_keys(drawn.tokens)});
  const auto found = head_scores(maps, drawn.tokens);
  const std::vector<const char*> names{"previous_token", "duplicate_token", "induction"};
  for (std::size_t h = 0; h < names.size(); ++h) {
    const auto& scores = found.at(names[h]);
    ASSERT_EQ(scores.sizes(), at::IntArrayRef({kSequences, 3}));
    for (std::int64_t other = 0; other < 3; ++other) {
      const auto score = scores.select(1, other);
      const double expected = static_cast<std::int64_t>(h) == other ? 1.0 : 0.0;
      EXPECT_TRUE(at::allclose(score, at::full_like(score, expected), 0.0, kTolerance))
          << names[h] << " of head " << other << ": " << score;
    }
  }
}

TEST(HeadScores, OfAHeadThatLooksHalfTheTime) {
  const auto drawn = repeated_tokens(kSequences, 64, 100000, 3);
  const auto rest = at::zeros({kSequences, 64, 64}, kReals);
  rest.select(2, 0) = 0.75;
  const auto maps = (0.25 * previous_keys(drawn.tokens).to(at::kDouble) + rest).unsqueeze(1);
  const auto score = head_scores(maps, drawn.tokens).at("previous_token");
  EXPECT_TRUE(at::allclose(score, at::full_like(score, 0.25), 0.0, kTolerance));
}

TEST(HeadScores, AreUnknownWhereNothingRepeats) {
  const auto tokens = at::arange(64, at::kLong).expand({kSequences, 64});
  const auto maps = even_weights(lower(64)).expand({kSequences, kHeads, 64, 64});
  const auto found = head_scores(maps, tokens);
  expect_all(found.at("induction"), std::nan(""));
  expect_all(found.at("duplicate_token"), std::nan(""));
  EXPECT_FALSE(found.at("previous_token").isnan().any().item<bool>());
}

TEST(InContextScore, ComparesThePairsOfBothCopies) {
  const std::vector<std::int64_t> of{5, 7};
  const auto periods = at::tensor(of, at::kLong);
  auto nll = at::full({2, 16}, 1e6, kReals);  // what must not be read
  for (std::int64_t b = 0; b < 2; ++b) {
    const auto period = of[static_cast<std::size_t>(b)];
    nll[b].slice(0, 0, period - 1) = 3.0;
    nll[b].slice(0, period, 2 * period - 1) = 1.0 - static_cast<double>(b);
  }
  const auto found = in_context_score(nll, periods);
  EXPECT_NEAR(found[0].item<double>(), 2.0, kTolerance);
  EXPECT_NEAR(found[1].item<double>(), 3.0, kTolerance);
  EXPECT_TRUE(std::isnan(in_context_score(at::ones({1, 8}, kReals),
                                          at::tensor(std::vector<std::int64_t>{7}, at::kLong))
                             .item<double>()));
}

TEST(InContextScore, EndsWithTheSequence) {
  auto nll = at::full({1, 16}, 2.0, kReals);
  nll[0].slice(0, 8) = 1.0;
  nll[0][15] = 1e6;  // of a token beyond the drawn ones
  EXPECT_NEAR(
      in_context_score(nll, at::tensor(std::vector<std::int64_t>{8}, at::kLong)).item<double>(),
      1.0, kTolerance);
  auto longer = at::full({1, 12}, 2.0, kReals);
  longer[0].slice(0, 8, 11) = 0.5;
  longer[0][11] = 1e6;
  EXPECT_NEAR(
      in_context_score(longer, at::tensor(std::vector<std::int64_t>{8}, at::kLong)).item<double>(),
      1.5, kTolerance);
}

}  // namespace
}  // namespace nas::nn
