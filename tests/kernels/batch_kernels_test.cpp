#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/batches.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

constexpr std::int64_t kModels = 2;
constexpr std::int64_t kBatch = 3;

/// Windows over a stream of tokens, and how they are read: the plain form of read_batches().
struct PlainWindows {
  std::int64_t length = 150;
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> starts{0, 150, 300, 450, 600};
  std::int32_t last_target = -1;
  std::vector<std::int32_t> targets;

  PlainWindows() : tokens(151 + 4 * 150) { std::iota(tokens.begin(), tokens.end(), 1000); }

  void read(std::int64_t i, std::int64_t offset, std::int64_t* input, std::int64_t* target) const {
    const auto begin = starts[static_cast<std::size_t>(i)] + offset;
    const auto token = [&](std::int64_t t, std::int64_t behind) -> std::int64_t {
      return t < std::ssize(tokens) ? tokens[static_cast<std::size_t>(t)] : behind;
    };
    for (std::int64_t t = 0; t < length; ++t) {
      input[t] = token(begin + t, 0);
      target[t] = token(begin + t + 1, kNotScored);
      if (last_target >= 0 && t + 1 == length) target[t] = last_target;
      if (!targets.empty()) target[t] = targets[static_cast<std::size_t>(i * length + t)];
    }
  }
};

/// Windows where kernels find them.
struct KernelWindows {
  explicit KernelWindows(const PlainWindows& windows)
      : tokens(windows.tokens.begin(), windows.tokens.end()),
        starts(windows.starts.begin(), windows.starts.end()),
        targets(windows.targets.begin(), windows.targets.end()),
        all{tokens.data(),
            std::ssize(tokens),
            starts.data(),
            std::ssize(windows.starts),
            windows.length,
            windows.last_target,
            targets.empty() ? nullptr : targets.data()} {}

  Array<std::int32_t> tokens;
  Array<std::int64_t> starts;
  Array<std::int32_t> targets;
  Windows all;
};

/// Permutations and offsets of epochs 2 and 1 of either model.
struct TwoEpochs {
  Array<std::int32_t> permutations{1, 0, 4, 3, 2, 2, 4, 1, 0, 3,   // model 0
                                   1, 2, 0, 4, 3, 0, 1, 4, 3, 2};  // model 1
  Array<std::int64_t> offsets{19, 0, 7, 3};

  [[nodiscard]] std::size_t slot(std::int64_t model, std::int64_t place) const {
    return static_cast<std::size_t>(model * 2 + place / 5 % 2);
  }
};

void expect_batches_of_the_reader(const PlainWindows& windows) {
  const TwoEpochs epochs;
  // Places 12 to 14, in epoch 2 with the window that ends behind the stream, and 9 to 11, in both.
  const Array<std::int64_t> steps{4, 3};
  Array<std::int64_t> input(static_cast<std::size_t>(kModels * kBatch * windows.length));
  auto target = input;
  const KernelWindows there(windows);
  read_batches(there.all,
               {epochs.permutations.data(), epochs.offsets.data(), steps.data(), kModels, kBatch},
               input.data(), target.data(), AtOnce());
  auto expected_input = input;
  auto expected_target = target;
  for (std::int64_t r = 0; r < kModels; ++r) {
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const std::int64_t place = steps[static_cast<std::size_t>(r)] * kBatch + b;
      const std::size_t slot = epochs.slot(r, place);
      const auto out = static_cast<std::ptrdiff_t>((r * kBatch + b) * windows.length);
      windows.read(epochs.permutations[slot * 5 + static_cast<std::size_t>(place % 5)],
                   epochs.offsets[slot], expected_input.data() + out, expected_target.data() + out);
    }
  }
  EXPECT_EQ(input, expected_input);
  EXPECT_EQ(target, expected_target);
}

TEST(BatchKernels, ReadAcrossEpochsAndTheEndOfTheStream) {
  expect_batches_of_the_reader(PlainWindows());
}

TEST(BatchKernels, ReadAFixedLastTarget) {
  PlainWindows windows;
  windows.last_target = 7;
  expect_batches_of_the_reader(windows);
}

TEST(BatchKernels, ReadExplicitTargets) {
  PlainWindows windows;
  windows.last_target = 7;  // explicit ones have the last word
  for (std::int32_t i = 0; i < 5 * 150; ++i) {
    windows.targets.push_back(i % 3 == 0 ? static_cast<std::int32_t>(kNotScored) : i);
  }
  expect_batches_of_the_reader(windows);
}

TEST(BatchKernels, BeginAStepByCopyingItsRow) {
  Array<std::uint64_t> seeds{1, 2, 3, 4, 5, 6};
  Array<double> rates{0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  Array<std::int64_t> row{0};
  Array<std::uint64_t> current_seeds(2);
  Array<double> current_rates(2);
  const StepTables tables{seeds.data(),         rates.data(),        row.data(), 2,
                          current_seeds.data(), current_rates.data()};
  for (std::size_t step = 0; step < 3; ++step) {
    begin_step(tables, AtOnce());
    EXPECT_EQ(current_seeds, (Array<std::uint64_t>{seeds[2 * step], seeds[2 * step + 1]}));
    EXPECT_EQ(current_rates, (Array<double>{rates[2 * step], rates[2 * step + 1]}));
    advance(row.data(), 1, AtOnce());
  }
  EXPECT_EQ(row[0], 3);
}

}  // namespace
}  // namespace nas::cuda
