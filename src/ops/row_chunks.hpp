#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "kernels/layer_norm.hpp"

namespace nas::nn {

// Norms of rows on the CPU: some rows of one model at a time, so that neither the number of threads
// nor the other models of an array decide about the order of a sum.

/// Rows of one model that are done at once; gradients of weights are summed over each chunk first.
inline constexpr std::int64_t kChunkRows = 64;

/// The rows (R, ..., D) of an array of models, in chunks of one model each.
struct RowChunks {
  explicit RowChunks(const torch::Tensor& x)
      : models(x.size(0)),
        width(x.size(-1)),
        model_rows(x.numel() / std::max<std::int64_t>(models * width, 1)),
        of_model((model_rows + kChunkRows - 1) / kChunkRows) {}

  /// Calls run(chunk, model, first row in the array, number of rows), on LibTorch's threads.
  template <class Run>
  void for_each(const Run& run) const {
    constexpr std::int64_t kGrain = 4;
    at::parallel_for(0, models * of_model, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const auto model = chunk / of_model;
        const auto row = chunk % of_model * kChunkRows;
        run(chunk, model, model * model_rows + row, std::min(kChunkRows, model_rows - row));
      }
    });
  }

  std::int64_t models;
  std::int64_t width;
  std::int64_t model_rows;
  std::int64_t of_model;  ///< chunks
};

template <class Real>
kernels::LayerNormRows<Real> rows_of(const torch::Tensor& x, const torch::Tensor& weight,
                                     const RowChunks& chunks, std::int64_t model, std::int64_t row,
                                     std::int64_t rows) {
  return {rows, chunks.width, x.data_ptr<Real>() + row * chunks.width,
          weight.data_ptr<Real>() + model * chunks.width};
}

/// (R, D): the sums over each model's chunks, in their order.
template <class Real>
void add_up_chunks(const Real* by_chunk, const RowChunks& chunks, Real* total) {
  std::fill_n(total, chunks.models * chunks.width, Real{0});
  at::parallel_for(0, chunks.models, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin * chunks.of_model; chunk < end * chunks.of_model; ++chunk) {
      const auto* from = by_chunk + chunk * chunks.width;
      auto* to = total + chunk / chunks.of_model * chunks.width;
      for (std::int64_t i = 0; i < chunks.width; ++i) to[i] += from[i];
    }
  });
}

/// (R, D) as (R, 1, ..., D), to go with x.
inline torch::Tensor beside(const torch::Tensor& x, const torch::Tensor& parameter) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
  sizes.front() = parameter.size(0);
  sizes.back() = parameter.size(1);
  return parameter.view(sizes);
}

}  // namespace nas::nn
