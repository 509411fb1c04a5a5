#include "ops/rms_norm.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <torch/autograd.h>

#include "kernels/rms_norm.hpp"
#include "ops/product.hpp"
#include "ops/row_chunks.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               const torch::Tensor& given_weight, double epsilon) {
    const auto x = given.contiguous();
    const auto weight = given_weight.contiguous();
    const RowChunks chunks(x);
    auto y = at::empty(x.sizes(), x.options());
    const auto inverse_scale = at::empty({chunks.models * chunks.model_rows}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm", [&] {
      chunks.for_each(
          [&](std::int64_t /*chunk*/, std::int64_t model, std::int64_t row, std::int64_t rows) {
            kernels::rms_norm<scalar_t>(rows_of<scalar_t>(x, weight, chunks, model, row, rows),
                                        epsilon, y.data_ptr<scalar_t>() + row * chunks.width,
                                        inverse_scale.data_ptr<scalar_t>() + row);
          });
    });
    context->save_for_backward({x, weight, inverse_scale});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& x = saved[0];
    const auto& weight = saved[1];
    const auto& inverse_scale = saved[2];
    const auto by_y = gradients[0].contiguous();
    const auto by_x = at::empty(x.sizes(), x.options());
    const auto by_weight = at::empty(weight.sizes(), x.options());
    const RowChunks chunks(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm_backward", [&] {
      const Scratch<scalar_t> by_chunk(chunks.models * chunks.of_model * chunks.width);
      chunks.for_each([&](std::int64_t chunk, std::int64_t model, std::int64_t row,
                          std::int64_t rows) {
        kernels::rms_norm_backward<scalar_t>(rows_of<scalar_t>(x, weight, chunks, model, row, rows),
                                             inverse_scale.data_ptr<scalar_t>() + row,
                                             {by_y.data_ptr<scalar_t>() + row * chunks.width,
                                              by_x.data_ptr<scalar_t>() + row * chunks.width,
                                              by_chunk.data() + chunk * chunks.width});
      });
      add_up_chunks(by_chunk.data(), chunks, by_weight.data_ptr<scalar_t>());
    });
    return {by_x, by_weight, {}};
  }
};

torch::Tensor by_operations(const torch::Tensor& x, const torch::Tensor& weight, double epsilon) {
  const auto scale = (x.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt();
  return x * scale * beside(x, weight);
}

}  // namespace

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon,
                       NumericalMode mode) {
  TORCH_CHECK(x.dim() >= 2 && weight.sizes() == at::IntArrayRef({x.size(0), x.size(-1)}),
              "rms_norm of ", x.sizes(), " has weight ", weight.sizes(),
              ", must be (first, last) of those sizes");
  if (!x.device().is_cpu()) return by_operations(x, weight, epsilon);
  if (mode != NumericalMode::reference) return RmsNorm::apply(x, weight, epsilon);
  // The order of LibTorch's sums depends on the shape of what is summed.
  return for_each_model(x.size(0), [&](std::int64_t r) {
    const auto model = x.slice(0, r, r + 1);
    return by_operations(model, weight.slice(0, r, r + 1), epsilon).squeeze(0);
  });
}

}  // namespace nas::nn
