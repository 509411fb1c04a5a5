#include "cuda/batches.hpp"
#include "ops/cuda_operations.hpp"

namespace nas::nn {

namespace {

std::uint64_t* bits_of(const torch::Tensor& seeds) {
  return reinterpret_cast<std::uint64_t*>(seeds.data_ptr<std::int64_t>());
}

}  // namespace

void CudaOperations::begin_step(const StepTables& tables, const StepNumbers& current) const {
  const auto& [seeds, rates] = tables.numbers;
  cuda::begin_step({.seeds = bits_of(seeds),
                    .rates = rates.data_ptr<double>(),
                    .row = tables.row.data_ptr<std::int64_t>(),
                    .models = current.seeds.size(0),
                    .current_seeds = bits_of(current.seeds),
                    .current_rates = current.learning_rates.data_ptr<double>()},
                   StreamOf(current.seeds));
}

void CudaOperations::read_batches(const DeviceWindows& windows, const DeviceOrders& orders,
                                  const torch::Tensor& input, const torch::Tensor& target) const {
  cuda::read_batches(
      {.tokens = windows.tokens.data_ptr<std::int32_t>(),
       .num_tokens = windows.tokens.numel(),
       .starts = windows.starts.data_ptr<std::int64_t>(),
       .num_windows = windows.starts.numel(),
       .length = windows.length,
       .last_target = windows.last_target,
       .targets = windows.targets.defined() ? windows.targets.data_ptr<std::int32_t>() : nullptr},
      {.permutations = orders.permutations.data_ptr<std::int32_t>(),
       .offsets = orders.offsets.data_ptr<std::int64_t>(),
       .steps = orders.steps.data_ptr<std::int64_t>(),
       .models = input.size(0),
       .batch_size = input.size(1)},
      input.data_ptr<std::int64_t>(), target.data_ptr<std::int64_t>(), StreamOf(input));
}

void CudaOperations::advance(const torch::Tensor& counters) const {
  cuda::advance(counters.data_ptr<std::int64_t>(), counters.numel(), StreamOf(counters));
}

std::unique_ptr<DeviceGraph> CudaOperations::graph(torch::Device device) const {
  return new_graph(device);
}

}  // namespace nas::nn
