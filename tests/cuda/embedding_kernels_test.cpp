
#include <gtest/gtest.h>

#include "cuda/embedding.hpp"
#include "cuda/kernel_memory.hpp"

namespace nas::cuda {
namespace {

constexpr std::int64_t kVocabulary = 40;

/// Tokens of which one is a quarter of all; number 39 does not occur.
Array<std::int64_t> some_tokens(std::int64_t count, std::uint64_t seed) {
  RandomEngine random(seed);
  Array<std::int64_t> tokens(static_cast<std::size_t>(count));
  for (auto& token : tokens) {
    token = random.below(4) == 0 ? 7 : random.below(kVocabulary - 1);
  }
  return tokens;
}

template <class Real>
void expect_sums_over_tokens(std::int64_t models, std::int64_t num_tokens, std::int64_t width) {
  const auto tokens = some_tokens(models * num_tokens, 1);
  const auto by_rows = random_numbers<Real>(models * num_tokens * width, 2);
  Array<Real> expected(static_cast<std::size_t>(models * kVocabulary * width), 0);
  for (std::int64_t n = 0; n < models * num_tokens; ++n) {
    const auto row = n / num_tokens * kVocabulary + tokens[static_cast<std::size_t>(n)];
    for (std::int64_t e = 0; e < width; ++e) {
      expected[static_cast<std::size_t>(row * width + e)] +=
          by_rows[static_cast<std::size_t>(n * width + e)];
    }
  }
  in_both_orders([&] {
    Array<Real> ours(expected.size(), 0);
    embedding_backward({tokens.data(), models, num_tokens, kVocabulary, width}, by_rows.data(),
                       ours.data(), AtOnce());
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
  const auto tokens = some_tokens(3 * 200, 3);
  const auto by_rows = random_numbers<float>(3 * size, 4);
  Array<float> together(3 * kVocabulary * 9, 0);
  embedding_backward({tokens.data(), 3, 200, kVocabulary, 9}, by_rows.data(), together.data(),
                     AtOnce());
  Array<float> alone(kVocabulary * 9, 0);
  embedding_backward({tokens.data() + 200, 1, 200, kVocabulary, 9}, by_rows.data() + size,
                     alone.data(), AtOnce());
  EXPECT_EQ(alone, Array<float>(together.begin() + kVocabulary * 9,
                                together.begin() + 2 * kVocabulary * 9));
}

TEST(EmbeddingKernels, LeaveRowsThatDoNotOccur) {
  const Array<std::int64_t> tokens{2, 2};
  const Array<float> by_rows{1, 2, 3, 4};
  Array<float> by_matrix(6, -1);
  embedding_backward({tokens.data(), 1, 2, 3, 2}, by_rows.data(), by_matrix.data(), AtOnce());
  EXPECT_EQ(by_matrix, (Array<float>{-1, -1, -1, -1, 4, 6}));
}

}  // namespace
}  // namespace nas::cuda
