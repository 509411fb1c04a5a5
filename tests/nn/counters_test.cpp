// What a training step asks of the machine, counted: unlike its time, these numbers are the same in
// every run, so that a regression of one percent shows. The limits are a little above what is
// needed; whoever lowers the need lowers the limit. What LibTorch's products take beside their
// results is not in them: oneDNN and OpenBLAS choose workspaces by the processor.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/types.h>
#include <torch/version.h>

#include "genotype/architecture.hpp"
#include "genotype/mechanism_name.hpp"
#include "instruments/environment.hpp"
#include "nn/transformer.hpp"
#include "ops/cpu_products.hpp"
#include "ops/memory.hpp"
#include "training/optimizer.hpp"

namespace nas {
namespace {

/// What is heard of LibTorch's operations while a step is counted.
struct Heard {
  const nn::MemoryScope* memory = nullptr;
  std::int64_t operations = 0;
  std::int64_t workspaces = 0;  ///< bytes that products asked for beside their results
  std::int64_t largest = 0;     ///< of them
};
Heard heard;

/// A product that is at work.
struct Product final : at::ObserverContext {
  std::int64_t before = heard.memory->requested_bytes();
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& operation) {
  ++heard.operations;
  const std::string_view name = operation.name();
  if (name != "aten::mm" && name != "aten::addmm" && name != "aten::bmm") return nullptr;
  return std::make_unique<Product>();
}

void end(const at::RecordFunction& operation, at::ObserverContext* begun) {
  if (begun == nullptr) return;
  const auto asked = heard.memory->requested_bytes() - static_cast<Product*>(begun)->before;
  const auto result = static_cast<std::int64_t>(operation.outputs()[0].toTensor().nbytes());
  heard.workspaces += asked - result;
  heard.largest = std::max(heard.largest, asked - result);
}

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

Architecture published_size(const std::string& mechanism) {
  return {.stack = {parse_mechanism(mechanism, Semantics::corrected)},
          .semantics = Semantics::corrected,
          .vocabulary = 10000};
}

Counters count_step(const std::vector<Architecture>& architectures, NumericalMode mode) {
  at::set_num_threads(1);
  const nn::MemoryScope memory;
  nn::TransformerArray models(architectures, mode);
  models.initialise(std::vector<nn::StartSeed>(architectures.size()));
  Optimizer optimizer(models.parameters(), models.num_models(),
                      [&models](const nn::Parameter& p) { return models.decays(p); });
  const auto size = models.num_models();
  const auto context = architectures.front().context;
  const auto tokens = at::arange(8 * context, at::TensorOptions(at::kLong))
                          .view({8, context})
                          .expand({size, 8, context})
                          .remainder(architectures.front().vocabulary)
                          .contiguous();
  const auto targets = tokens.flip(2);
  const auto step = [&](std::uint64_t seed) {
    const nn::Pass pass{.training = true,
                        .seeds = std::vector<std::uint64_t>(architectures.size(), seed)};
    models.loss(tokens, targets, pass).sum().backward();
    optimizer.step(
        std::vector<ModelStep>(architectures.size(), {.step = static_cast<std::int64_t>(seed)}));
  };
  step(1);
  step(2);
  heard = {.memory = &memory};
  const auto callback = at::addGlobalCallback(
      at::RecordFunctionCallback(begin, end)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  Counters counters;
  const auto requested = memory.requested_bytes();
  const auto faults = page_faults();
  step(3);
  counters.page_faults = page_faults() - faults;
  counters.requested_bytes = memory.requested_bytes() - requested - heard.workspaces;
  counters.operations = heard.operations;
  counters.peak_bytes = memory.peak_bytes() - heard.largest;
  at::removeCallback(callback);
  return counters;
}

constexpr std::int64_t kMegabyte = 1'000'000;

void expect_at_most(const std::string& mechanism, NumericalMode mode, const Counters& limit) {
  const auto counted = count_step({published_size(mechanism)}, mode);
  const auto here = nn::environment();
  const auto name = mechanism + " " + std::string(to_string(mode)) + ", " + here.processor +
                    " by " + here.instruction_set + "; known: AMD EPYC by AVX-512, AVX2 and SSE2";
  EXPECT_LE(counted.peak_bytes, limit.peak_bytes) << name;
  EXPECT_LE(counted.requested_bytes, limit.requested_bytes) << name;
  // Other versions dispatch other parts of their operations.
  if (std::string(TORCH_VERSION).starts_with("1.13")) {
    EXPECT_LE(counted.operations, limit.operations) << name;
  }
  EXPECT_LE(counted.page_faults, limit.page_faults) << name;
  ::testing::Test::RecordProperty(
      name, std::to_string(counted.peak_bytes) + " " + std::to_string(counted.requested_bytes) +
                " " + std::to_string(counted.operations) + " " +
                std::to_string(counted.page_faults) + " " + std::to_string(heard.workspaces));
}

TEST(Counters, AStepAsksForNoMoreThanItDid) {
  const auto limit = [](std::int64_t peak_megabytes, std::int64_t requested_megabytes,
                        std::int64_t operations) {
    return Counters{peak_megabytes * kMegabyte, requested_megabytes * kMegabyte, operations, 200};
  };
  nn::use_cpu_products(NumericalMode::exact, {});  // on every processor
  expect_at_most("dot|softmax|none|fixed|bias|0.1", NumericalMode::exact, limit(73, 107, 345));
  const auto own = nn::use_cpu_products(NumericalMode::fast, {nn::CpuProducts::By::pairs});
  expect_at_most("dot|softmax|none|fixed|bias|0.1", NumericalMode::fast, limit(66, 144, 360));
  nn::use_cpu_products(NumericalMode::fast, own);
  expect_at_most("dot|softmax|none|fixed|bias|0.1", NumericalMode::reference,
                 limit(174, 321, 5300));
  expect_at_most("additive|sparsemax|highway|per_query|bias|0.1", NumericalMode::exact,
                 limit(78, 130, 472));
  expect_at_most("cosine|sigmoid_norm|output_gate|learned|bias|0.1", NumericalMode::exact,
                 limit(76, 121, 416));
}

/// An array is worth its while where operations cost more to start than to do: there must be hardly
/// more for eight models than for one.
TEST(Counters, AnArrayOfEightDispatchesHardlyMoreOperationsThanAModel) {
  const auto operations = [](const std::vector<std::string>& mechanisms) {
    std::vector<Architecture> architectures;
    for (const auto& mechanism : mechanisms) {
      auto architecture = published_size(mechanism);
      architecture.width = 32;
      architecture.context = 32;
      architecture.vocabulary = 64;
      architectures.push_back(architecture);
    }
    return static_cast<double>(count_step(architectures, NumericalMode::exact).operations);
  };
  const std::vector<std::string> mixed{"dot|softmax|none|fixed|bias|0.1",
                                       "additive|sparsemax|output_gate|learned|no_bias|0",
                                       "silu_dot|relu_norm|highway|fixed|bias|0.2",
                                       "cosine|sigmoid_norm|output_gate|per_query|no_bias|0.1",
                                       "dot|softmax|highway|per_query|bias|0",
                                       "dot|sparsemax|output_gate|per_query|bias|0.3",
                                       "additive|softmax|none|learned|bias|0.1",
                                       "cosine|sparsemax|highway|fixed|no_bias|0.1"};
  double mean = 0.0;
  for (const auto& mechanism : mixed) {
    const double one = operations({mechanism});
    mean += one / static_cast<double>(mixed.size());
    EXPECT_LE(operations(std::vector<std::string>(8, mechanism)), 1.1 * one) << mechanism;
  }
  // Modules of different options are different operations, but a layer has few of them.
  EXPECT_LE(operations(mixed), 1.3 * mean);
}

}  // namespace
}  // namespace nas
