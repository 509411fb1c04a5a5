
#include <map>

#include <gtest/gtest.h>

#include "kernels/cuda/embedding.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

constexpr std::int64_t kVocabulary = 40;

/// Tokens of which one is a quarter of all; number 39 does not occur. Those of each model are sorted.
struct Sorted {
  Array<std::int32_t> tokens;
  Array<std::int64_t> places;

  Sorted(std::int64_t models, std::int64_t num_tokens, std::uint64_t seed) {
    RandomEngine random(seed);
    for (std::int64_t model = 0; model < models; ++model) {
      std::multimap<std::int32_t, std::int64_t> sorted;
      for (std::int64_t n = 0; n < num_tokens; ++n) {
        const auto token = random.below(4) == 0 ? 7 : random.below(kVocabulary - 1);
        sorted.emplace(static_cast<std::int32_t>(token), n);
      }
      for (const auto& [token, place] : sorted) {
        tokens.push_back(token);
        places.push_back(place);
      }
    }
  }
};

template <class Real>
void expect_sums_over_tokens(std::int64_t models, std::int64_t num_tokens, std::int64_t width) {
  const Sorted sorted(models, num_tokens, 1);
  const auto by_rows = random_numbers<Real>(models * num_tokens * width, 2);
  Array<Real> expected(static_cast<std::size_t>(models * kVocabulary * width), 0);
  for (std::int64_t n = 0; n < models * num_tokens; ++n) {
    const auto i = static_cast<std::size_t>(n);
    const auto model = n / num_tokens;
    const auto row = model * kVocabulary + sorted.tokens[i];
    const auto from = model * num_tokens + sorted.places[i];
    for (std::int64_t e = 0; e < width; ++e) {
      expected[static_cast<std::size_t>(row * width + e)] +=
          by_rows[static_cast<std::size_t>(from * width + e)];
    }
  }
  in_both_orders([&] {
    Array<Real> ours(expected.size(), 0);
    embedding_backward(
        {sorted.tokens.data(), sorted.places.data(), models, num_tokens, kVocabulary, width},
        by_rows.data(), ours.data(), AtOnce());
    expect_close(ours, expected,
                 std::to_string(num_tokens) + " tokens of " + std::to_string(width));
  });
}

TEST(EmbeddingKernels, SumOverTheOccurrencesOfAToken) {
  expect_sums_over_tokens<float>(2, 333, 24);
  expect_sums_over_tokens<double>(3, 128, 130);
  expect_sums_over_tokens<double>(1, 1, 5);
}

TEST(EmbeddingKernels, GiveAModelTheSameInAnyArray) {
  const std::int64_t size = 200 * 9;
  const Sorted sorted(3, 200, 3);
  const auto by_rows = random_numbers<float>(3 * size, 4);
  Array<float> together(3 * kVocabulary * 9, 0);
  embedding_backward({sorted.tokens.data(), sorted.places.data(), 3, 200, kVocabulary, 9},
                     by_rows.data(), together.data(), AtOnce());
  Array<float> alone(kVocabulary * 9, 0);
  embedding_backward(
      {sorted.tokens.data() + 200, sorted.places.data() + 200, 1, 200, kVocabulary, 9},
      by_rows.data() + size, alone.data(), AtOnce());
  EXPECT_EQ(alone, Array<float>(together.begin() + kVocabulary * 9,
                                together.begin() + 2 * kVocabulary * 9));
}

}  // namespace
}  // namespace nas::cuda
