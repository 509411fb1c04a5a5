#include "kernels/cuda/batches.hpp"
#include "kernels/cuda/launch.cuh"

namespace nas::cuda {

namespace {

/// One block per window of a batch.
__global__ void read_kernel(Windows windows, Orders orders, std::int64_t* input,
                            std::int64_t* target) {
  const std::int64_t model = blockIdx.y;
  const std::int64_t place = orders.steps[model] * orders.batch_size + blockIdx.x;
  const std::int64_t slot = model * 2 + place / windows.num_windows % 2;
  const std::int64_t window =
      orders.permutations[slot * windows.num_windows + place % windows.num_windows];
  const std::int64_t begin = windows.starts[window] + orders.offsets[slot];
  const std::int64_t out = (model * orders.batch_size + blockIdx.x) * windows.length;
  const auto token = [&](std::int64_t position, std::int64_t otherwise) -> std::int64_t {
    return position < windows.num_tokens ? windows.tokens[position] : otherwise;
  };
  for (std::int64_t t = thread_index(); t < windows.length; t += kThreads) {
    input[out + t] = token(begin + t, 0);
    if (windows.targets != nullptr) {
      target[out + t] = windows.targets[window * windows.length + t];
    } else if (windows.last_target >= 0 && t == windows.length - 1) {
      target[out + t] = windows.last_target;
    } else {
      target[out + t] = token(begin + t + 1, kNotScored);
    }
  }
}

__global__ void begin_step_kernel(StepTables tables) {
  const std::int64_t row = *tables.row * tables.models;
  for (std::int64_t r = thread_index(); r < tables.models; r += kThreads) {
    tables.current_seeds[r] = tables.seeds[row + r];
    tables.current_rates[r] = tables.rates[row + r];
  }
}

__global__ void advance_kernel(std::int64_t* counters, std::int64_t count) {
  for (std::int64_t i = thread_index(); i < count; i += kThreads) ++counters[i];
}

}  // namespace

void read_batches(const Windows& windows, const Orders& orders, std::int64_t* input,
                  std::int64_t* target, Stream stream) {
  launch("read_batches", read_kernel, Grid{orders.batch_size, orders.models}, 0, stream, windows,
         orders, input, target);
}

void begin_step(const StepTables& tables, Stream stream) {
  launch("begin_step", begin_step_kernel, Grid{}, 0, stream, tables);
}

void advance(std::int64_t* counters, std::int64_t count, Stream stream) {
  launch("advance", advance_kernel, Grid{}, 0, stream, counters, count);
}

}  // namespace nas::cuda
