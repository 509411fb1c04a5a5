#include <algorithm>
#include <cmath>
#include <cstddef>

#include <gtest/gtest.h>

#include "kernels/cuda/output_layer.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

/// To so many bits behind the point, ties to even.
double rounded(float x, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(x), &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits + 1)), exponent - bits - 1);
}

int bits_behind_the_point(Factors factors) { return factors == Factors::bfloat16 ? 7 : 10; }

struct Sizes {
  std::int64_t models, tokens, vocabulary, width;
};

/// Random matrices and targets; of every eleventh token nothing is asked.
struct Layer {
  Sizes sizes;
  Factors factors;
  Array<float> features, embedding, weights;
  Array<std::int64_t> targets;
  Array<double> nll;
  Array<float> by_features, by_embedding;

  Layer(const Sizes& given, Factors kind, double largest = 0.5)
      : sizes(given),
        factors(kind),
        features(random_numbers<float>(given.models * given.tokens * given.width, 1, largest)),
        embedding(random_numbers<float>(given.models * given.vocabulary * given.width, 2, largest)),
        nll(unwritten<double>(given.models * given.tokens)),
        by_features(unwritten<float>(given.models * given.tokens * given.width)),
        by_embedding(unwritten<float>(given.models * given.vocabulary * given.width)) {
    for (std::int64_t model = 0; model < given.models; ++model) {
      weights.push_back(1.0F / static_cast<float>(given.tokens + model));
    }
    for (std::int64_t i = 0; i < given.models * given.tokens; ++i) {
      targets.push_back(i % 11 == 5 ? -100 : i * 331 % given.vocabulary);
    }
  }

  void run(std::int64_t most_scratch_bytes = 1 << 24) {
    OutputLoss loss{.models = sizes.models,
                    .tokens = sizes.tokens,
                    .vocabulary = sizes.vocabulary,
                    .width = sizes.width,
                    .factors = factors,
                    .most_scratch_bytes = most_scratch_bytes,
                    .features = features.data(),
                    .embedding = embedding.data(),
                    .targets = targets.data(),
                    .weights = weights.data(),
                    .nll = nll.data(),
                    .by_features = by_features.data(),
                    .by_embedding = by_embedding.data()};
    auto scratch = unwritten<double>(output_loss_scratch_bytes(loss) / 8 + 2);
    loss.scratch = scratch.data();
    output_loss(loss, AtOnce());
  }
};

/// What it should be, from rounded factors in double.
struct Expected {
  std::vector<double> nll, by_features, by_embedding;

  explicit Expected(const Layer& layer)
      : nll(layer.nll.size()),
        by_features(layer.by_features.size()),
        by_embedding(layer.by_embedding.size()) {
    const auto [models, tokens, vocabulary, width] = layer.sizes;
    const auto at = [&, w = width](const Array<float>& matrix, std::int64_t row, std::int64_t e) {
      return rounded(matrix[static_cast<std::size_t>(row * w + e)],
                     bits_behind_the_point(layer.factors));
    };
    for (std::int64_t i = 0; i < models * tokens; ++i) {
      const auto target = layer.targets[static_cast<std::size_t>(i)];
      if (target < 0) continue;
      const auto model = i / tokens;
      std::vector<double> shares(static_cast<std::size_t>(vocabulary));
      for (std::int64_t v = 0; v < vocabulary; ++v) {
        auto& logit = shares[static_cast<std::size_t>(v)];
        for (std::int64_t e = 0; e < width; ++e) {
          logit += at(layer.features, i, e) * at(layer.embedding, model * vocabulary + v, e);
        }
      }
      const double top = *std::max_element(shares.begin(), shares.end());
      double sum = 0;
      for (const double logit : shares) sum += std::exp(logit - top);
      nll[static_cast<std::size_t>(i)] =
          std::log(sum) + top - shares[static_cast<std::size_t>(target)];
      for (std::int64_t v = 0; v < vocabulary; ++v) {
        const double share = std::exp(shares[static_cast<std::size_t>(v)] - top) / sum;
        const double gradient =
            static_cast<double>(layer.weights[static_cast<std::size_t>(model)]) *
            (share - (v == target ? 1 : 0));
        const auto word = model * vocabulary + v;
        for (std::int64_t e = 0; e < width; ++e) {
          by_features[static_cast<std::size_t>(i * width + e)] +=
              gradient * at(layer.embedding, word, e);
          by_embedding[static_cast<std::size_t>(word * width + e)] +=
              gradient * at(layer.features, i, e);
        }
      }
    }
  }
};

template <class Numbers>
double difference(const Numbers& ours, const std::vector<double>& expected) {
  double squares = 0;
  double all = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    squares += std::pow(static_cast<double>(ours[i]) - expected[i], 2);
    all += expected[i] * expected[i];
  }
  return std::sqrt(squares / all);  // NaN where something was not written
}

class OutputLayerKernels : public testing::TestWithParam<Factors> {};

void expect_agreement(const Sizes& sizes, Factors factors, double largest = 0.5) {
  Layer layer(sizes, factors, largest);
  layer.run();
  const Expected expected(layer);
  EXPECT_LT(difference(layer.nll, expected.nll), 5e-6);
  // Shares are rounded once more before they are multiplied.
  const double tolerance = std::ldexp(1.0, -bits_behind_the_point(factors) - 1);
  EXPECT_LT(difference(layer.by_features, expected.by_features), tolerance);
  EXPECT_LT(difference(layer.by_embedding, expected.by_embedding), tolerance);
  EXPECT_EQ(layer.nll[5], 0.0);
  EXPECT_EQ(layer.by_features[static_cast<std::size_t>(5 * sizes.width)], 0.0F);
}

TEST_P(OutputLayerKernels, AgreeWithTheFormulas) {
  if (!output_loss_fits(128)) GTEST_SKIP() << "no tensor cores";
  expect_agreement({2, 21, 150, 128}, GetParam());
}

TEST_P(OutputLayerKernels, TakeSizesThatAreNoMultiplesOfTiles) {
  if (!output_loss_fits(32)) GTEST_SKIP() << "no tensor cores";
  expect_agreement({1, 131, 3, 32}, GetParam());
  expect_agreement({1, 128, 129, 64}, GetParam());
  expect_agreement({3, 13, 67, 32}, GetParam());
}

TEST_P(OutputLayerKernels, FindLargerLogitsOnTheWay) {
  if (!output_loss_fits(32)) GTEST_SKIP() << "no tensor cores";
  expect_agreement({1, 17, 260, 32}, GetParam(), 4.0);
}

TEST_P(OutputLayerKernels, GiveAModelTheSameBitsWhateverIsBesideIt) {
  if (!output_loss_fits(32)) GTEST_SKIP() << "no tensor cores";
  Layer together({2, 19, 150, 32}, GetParam());
  Layer alone({1, 19, 150, 32}, GetParam());
  const auto last = [](auto& of_two, auto& of_one) {
    std::copy(of_two.end() - static_cast<std::ptrdiff_t>(of_one.size()), of_two.end(),
              of_one.begin());
  };
  last(together.features, alone.features);
  last(together.embedding, alone.embedding);
  last(together.weights, alone.weights);
  last(together.targets, alone.targets);
  together.run();
  alone.run();
  const auto same = [](const auto& of_two, const auto& of_one) {
    return std::equal(of_one.begin(), of_one.end(),
                      of_two.end() - static_cast<std::ptrdiff_t>(of_one.size()));
  };
  EXPECT_TRUE(same(together.nll, alone.nll));
  EXPECT_TRUE(same(together.by_features, alone.by_features));
  EXPECT_TRUE(same(together.by_embedding, alone.by_embedding));
}

TEST_P(OutputLayerKernels, TakeModelsInGroupsWhereScratchIsScarce) {
  if (!output_loss_fits(32)) GTEST_SKIP() << "no tensor cores";
  const Sizes sizes{3, 19, 150, 32};
  const OutputLoss three{.models = 3, .tokens = 19, .vocabulary = 150, .width = 32};
  auto two_at_once = three;
  two_at_once.most_scratch_bytes = output_loss_scratch_bytes(three.of_models(0, 2)) + 100;
  EXPECT_EQ(output_loss_scratch_bytes(two_at_once),
            output_loss_scratch_bytes(three.of_models(0, 2)));
  Layer whole(sizes, GetParam());
  whole.run();
  for (const std::int64_t most : {std::int64_t{1}, two_at_once.most_scratch_bytes}) {
    Layer in_groups(sizes, GetParam());
    in_groups.run(most);
    EXPECT_EQ(in_groups.nll, whole.nll);
    EXPECT_EQ(in_groups.by_features, whole.by_features);
    EXPECT_EQ(in_groups.by_embedding, whole.by_embedding);
  }
}

TEST_P(OutputLayerKernels, PassNaNOn) {
  if (!output_loss_fits(32)) GTEST_SKIP() << "no tensor cores";
  Layer layer({1, 3, 70, 32}, GetParam());
  layer.features[32] = std::numeric_limits<float>::quiet_NaN();
  layer.run();
  EXPECT_FALSE(std::isnan(layer.nll[0]));
  EXPECT_TRUE(std::isnan(layer.nll[1]));
  EXPECT_TRUE(std::isnan(layer.by_features[32]));
  EXPECT_TRUE(std::isnan(layer.by_embedding[0]));
}

INSTANTIATE_TEST_SUITE_P(Factors, OutputLayerKernels,
                         testing::Values(Factors::bfloat16, Factors::tf32), [](const auto& of) {
                           return of.param == Factors::bfloat16 ? "Bfloat16" : "Tf32";
                         });

TEST(OutputLayerKernels, RefuseOtherWidths) {
  EXPECT_FALSE(output_loss_fits(48));
  EXPECT_THROW(output_loss({.models = 1, .width = 48}, AtOnce()), std::invalid_argument);
}

}  // namespace
}  // namespace nas::cuda
