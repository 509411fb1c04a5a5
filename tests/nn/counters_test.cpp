// What a training step asks of the machine, counted: unlike its time, these numbers are the same in
// every run, so that a regression of one percent shows. The limits are a little above what is
// needed; whoever lowers the need lowers the limit.

#include <atomic>
#include <string>

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/types.h>
#include <torch/version.h>

#include "genotype/architecture.hpp"
#include "nn/memory.hpp"
#include "training/optimizer.hpp"

namespace nas {
namespace {

std::atomic<std::int64_t> num_operations{0};

std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Of one step of the published model at a batch of 8 x 128 tokens, after two that warm up.
struct Counters {
  std::int64_t peak_bytes = 0;
  std::int64_t requested_bytes = 0;
  std::int64_t operations = 0;  ///< that LibTorch dispatches, backward ones included
  std::int64_t page_faults = 0;
};

Counters count_step(const std::string& mechanism, NumericalMode mode) {
  at::set_num_threads(1);
  Architecture architecture;
  architecture.semantics = Semantics::corrected;
  architecture.mechanism = parse_mechanism(mechanism, Semantics::corrected);
  architecture.vocabulary = 10000;
  const nn::MemoryScope memory;
  nn::Transformer model(architecture, mode);
  model.initialise(1, 0);
  Optimizer optimizer(model, {});
  const auto tokens = at::arange(8 * 128, at::TensorOptions(at::kLong)).view({8, 128});
  const auto targets = tokens.flip(1);
  const auto step = [&](std::uint64_t seed) {
    model.loss(tokens, targets, {.training = true, .seed = seed}).backward();
    optimizer.step();
  };
  step(1);
  step(2);
  num_operations = 0;
  const auto callback = at::addGlobalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction&)
                                     -> std::unique_ptr<at::ObserverContext> {
        ++num_operations;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  Counters counters;
  const auto requested = memory.requested_bytes();
  const auto faults = page_faults();
  step(3);
  counters.page_faults = page_faults() - faults;
  counters.requested_bytes = memory.requested_bytes() - requested;
  counters.operations = num_operations;
  counters.peak_bytes = memory.peak_bytes();
  at::removeCallback(callback);
  return counters;
}

constexpr std::int64_t kMegabyte = 1'000'000;

void expect_at_most(const std::string& mechanism, NumericalMode mode, const Counters& limit) {
  const auto counted = count_step(mechanism, mode);
  const auto name = mechanism + " " + std::string(to_string(mode));
  EXPECT_LE(counted.peak_bytes, limit.peak_bytes) << name;
  EXPECT_LE(counted.requested_bytes, limit.requested_bytes) << name;
  // Other versions dispatch other parts of their operations.
  if (std::string(TORCH_VERSION).starts_with("1.13")) {
    EXPECT_LE(counted.operations, limit.operations) << name;
  }
  EXPECT_LE(counted.page_faults, limit.page_faults) << name;
  ::testing::Test::RecordProperty(name, std::to_string(counted.peak_bytes) + " " +
                                            std::to_string(counted.requested_bytes) + " " +
                                            std::to_string(counted.operations) + " " +
                                            std::to_string(counted.page_faults));
}

TEST(Counters, AStepAsksForNoMoreThanItDid) {
  const auto limit = [](std::int64_t peak_megabytes, std::int64_t requested_megabytes,
                        std::int64_t operations) {
    return Counters{peak_megabytes * kMegabyte, requested_megabytes * kMegabyte, operations, 200};
  };
  expect_at_most("dot|softmax|none|fixed|bias|0.1", NumericalMode::exact, limit(83, 127, 2260));
  expect_at_most("dot|softmax|none|fixed|bias|0.1", NumericalMode::fast, limit(70, 143, 2620));
  expect_at_most("dot|softmax|none|fixed|bias|0.1", NumericalMode::reference,
                 limit(178, 304, 6070));
  expect_at_most("additive|sparsemax|highway|per_query|bias|0.1", NumericalMode::exact,
                 limit(91, 147, 3400));
  expect_at_most("cosine|sigmoid_norm|output_gate|learned|bias|0.1", NumericalMode::exact,
                 limit(91, 156, 2790));
}

}  // namespace
}  // namespace nas
