#include "nn/layer_norm.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "kernels/layer_norm.hpp"
#include "nn/device_operations.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows of one model that are done at once; gradients of weights are summed over each chunk first.
constexpr std::int64_t kChunkRows = 64;

/// The rows of an array of models, in chunks.
struct Chunks {
  explicit Chunks(const torch::Tensor& x)
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

/// (R, D): the sums over each model's chunks, in their order.
torch::Tensor sum_over_chunks(const torch::Tensor& sums, const Chunks& chunks) {
  auto total = at::zeros({chunks.models, chunks.width}, sums.options());
  AT_DISPATCH_FLOATING_TYPES(sums.scalar_type(), "sum_over_chunks", [&] {
    at::parallel_for(0, chunks.models, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t chunk = begin * chunks.of_model; chunk < end * chunks.of_model; ++chunk) {
        const auto* from = sums.data_ptr<scalar_t>() + chunk * chunks.width;
        auto* to = total.data_ptr<scalar_t>() + chunk / chunks.of_model * chunks.width;
        for (std::int64_t i = 0; i < chunks.width; ++i) to[i] += from[i];
      }
    });
  });
  return total;
}

class LayerNorm : public torch::autograd::Function<LayerNorm> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               const torch::Tensor& given_weight, const torch::Tensor& given_bias,
                               double epsilon) {
    const auto x = given.contiguous();
    const auto weight = given_weight.contiguous();
    const auto bias = given_bias.contiguous();
    const Chunks chunks(x);
    auto y = at::empty_like(x);
    const auto means = at::empty({chunks.models * chunks.model_rows}, x.options());
    const auto inverse_deviations = at::empty_like(means);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", [&] {
      chunks.for_each(
          [&](std::int64_t /*chunk*/, std::int64_t model, std::int64_t row, std::int64_t rows) {
            kernels::layer_norm<scalar_t>(
                {rows, chunks.width, x.data_ptr<scalar_t>() + row * chunks.width,
                 weight.data_ptr<scalar_t>() + model * chunks.width},
                bias.data_ptr<scalar_t>() + model * chunks.width, epsilon,
                y.data_ptr<scalar_t>() + row * chunks.width,
                {means.data_ptr<scalar_t>() + row, inverse_deviations.data_ptr<scalar_t>() + row});
          });
    });
    context->save_for_backward({x, weight, means, inverse_deviations});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& x = saved[0];
    const auto gradient = gradients[0].contiguous();
    const Chunks chunks(x);
    const auto by_x = at::empty_like(x);
    const auto by_weight = at::empty({chunks.models * chunks.of_model, chunks.width}, x.options());
    const auto by_bias = at::empty_like(by_weight);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm_backward", [&] {
      chunks.for_each(
          [&](std::int64_t chunk, std::int64_t model, std::int64_t row, std::int64_t rows) {
            kernels::layer_norm_backward<scalar_t>(
                {rows, chunks.width, x.data_ptr<scalar_t>() + row * chunks.width,
                 saved[1].data_ptr<scalar_t>() + model * chunks.width},
                {saved[2].data_ptr<scalar_t>() + row, saved[3].data_ptr<scalar_t>() + row},
                {gradient.data_ptr<scalar_t>() + row * chunks.width,
                 by_x.data_ptr<scalar_t>() + row * chunks.width,
                 by_weight.data_ptr<scalar_t>() + chunk * chunks.width,
                 by_bias.data_ptr<scalar_t>() + chunk * chunks.width});
          });
    });
    return {by_x, sum_over_chunks(by_weight, chunks), sum_over_chunks(by_bias, chunks), {}};
  }
};

/// (R, D) as (R, 1, ..., D), to go with x.
torch::Tensor beside(const torch::Tensor& x, const torch::Tensor& parameter) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
  sizes.front() = parameter.size(0);
  sizes.back() = parameter.size(1);
  return parameter.view(sizes);
}

}  // namespace

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias, double epsilon, NumericalMode mode) {
  TORCH_CHECK(x.dim() >= 2 && weight.sizes() == at::IntArrayRef({x.size(0), x.size(-1)}) &&
                  bias.sizes() == weight.sizes(),
              "layer_norm of ", x.sizes(), " has weight ", weight.sizes(), " and bias ",
              bias.sizes(), ", must both be (first, last) of those sizes");
  const auto* device = device_operations(x.device());
  if (mode != NumericalMode::reference && device != nullptr) {
    return device->layer_norm(x, weight, bias, epsilon);
  }
  if (mode == NumericalMode::reference || !x.device().is_cpu()) {
    return at::layer_norm(x, {x.size(-1)}, {}, {}, epsilon) * beside(x, weight) + beside(x, bias);
  }
  return LayerNorm::apply(x, weight, bias, epsilon);
}

}  // namespace nas::nn
