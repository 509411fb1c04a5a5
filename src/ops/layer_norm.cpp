#include "ops/layer_norm.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <torch/autograd.h>

#include "kernels/layer_norm.hpp"
#include "ops/device_operations.hpp"
#include "ops/row_chunks.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// From a row on. @param moments  (2, rows): means, inverse deviations.
template <class Real>
kernels::RowMoments<Real> moments_of(const torch::Tensor& moments, std::int64_t row) {
  auto* first = moments.data_ptr<Real>() + row;
  return {first, first + moments.size(1)};
}

void normalise(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
               double epsilon, const torch::Tensor& y, const torch::Tensor& moments) {
  if (const auto* device = device_operations(x.device())) {
    device->layer_norm(x, weight, bias, epsilon, y, moments);
    return;
  }
  const RowChunks chunks(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", [&] {
    chunks.for_each(
        [&](std::int64_t /*chunk*/, std::int64_t model, std::int64_t row, std::int64_t rows) {
          kernels::layer_norm<scalar_t>(rows_of<scalar_t>(x, weight, chunks, model, row, rows),
                                        bias.data_ptr<scalar_t>() + model * chunks.width, epsilon,
                                        y.data_ptr<scalar_t>() + row * chunks.width,
                                        moments_of<scalar_t>(moments, row));
        });
  });
}

void normalise_backward(const torch::Tensor& x, const torch::Tensor& weight,
                        const torch::Tensor& moments, const torch::Tensor& by_y,
                        const torch::Tensor& by_x, const torch::Tensor& by_weight,
                        const torch::Tensor& by_bias) {
  if (const auto* device = device_operations(x.device())) {
    device->layer_norm_backward(x, weight, moments, by_y, by_x, by_weight, by_bias);
    return;
  }
  const RowChunks chunks(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm_backward", [&] {
    const auto size = chunks.models * chunks.of_model * chunks.width;
    const Scratch<scalar_t> by_chunk(2 * size);  // of weights, then of biases
    chunks.for_each([&](std::int64_t chunk, std::int64_t model, std::int64_t row,
                        std::int64_t rows) {
      const auto [means, inverse_deviations] = moments_of<scalar_t>(moments, row);
      kernels::layer_norm_backward<scalar_t>(
          rows_of<scalar_t>(x, weight, chunks, model, row, rows), {means, inverse_deviations},
          {by_y.data_ptr<scalar_t>() + row * chunks.width,
           by_x.data_ptr<scalar_t>() + row * chunks.width, by_chunk.data() + chunk * chunks.width,
           by_chunk.data() + size + chunk * chunks.width});
    });
    add_up_chunks(by_chunk.data(), chunks, by_weight.data_ptr<scalar_t>());
    add_up_chunks(by_chunk.data() + size, chunks, by_bias.data_ptr<scalar_t>());
  });
}

class LayerNorm : public torch::autograd::Function<LayerNorm> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               const torch::Tensor& given_weight, const torch::Tensor& given_bias,
                               double epsilon) {
    const auto x = given.contiguous();
    const auto weight = given_weight.contiguous();
    const auto bias = given_bias.contiguous();
    const auto rows = x.numel() / std::max<std::int64_t>(x.size(-1), 1);
    auto y = at::empty(x.sizes(), x.options());
    const auto moments = at::empty({2, rows}, x.options());
    normalise(x, weight, bias, epsilon, y, moments);
    context->save_for_backward({x, weight, moments});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& x = saved[0];
    const auto& weight = saved[1];
    const auto by_y = gradients[0].contiguous();
    const auto by_x = at::empty(x.sizes(), x.options());
    const auto by_weight = at::empty(weight.sizes(), x.options());
    const auto by_bias = at::empty(weight.sizes(), x.options());
    normalise_backward(x, weight, saved[2], by_y, by_x, by_weight, by_bias);
    return {by_x, by_weight, by_bias, {}};
  }
};

}  // namespace

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias, double epsilon, NumericalMode mode) {
  TORCH_CHECK(x.dim() >= 2 && weight.sizes() == at::IntArrayRef({x.size(0), x.size(-1)}) &&
                  bias.sizes() == weight.sizes(),
              "layer_norm of ", x.sizes(), " has weight ", weight.sizes(), " and bias ",
              bias.sizes(), ", must both be (first, last) of those sizes");
  if (mode != NumericalMode::reference && has_kernels(x.device())) {
    return LayerNorm::apply(x, weight, bias, epsilon);
  }
  return at::layer_norm(x, {x.size(-1)}, {}, {}, epsilon) * beside(x, weight) + beside(x, bias);
}

}  // namespace nas::nn
