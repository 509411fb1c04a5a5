#include "nn/activation.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "kernels/elementwise.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Sigmoid : public torch::autograd::Function<Sigmoid> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x) {
    const auto in = x.contiguous();
    auto out = at::empty_like(in);
    AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "sigmoid", [&] {
      at::parallel_for(0, in.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        kernels::sigmoid(in.data_ptr<scalar_t>() + begin, out.data_ptr<scalar_t>() + begin, 0,
                         end - begin, {});
      });
    });
    context->save_for_backward({out});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto value = context->get_saved_variables()[0];
    const auto gradient = gradients[0].contiguous();
    auto out = at::empty_like(value);
    AT_DISPATCH_FLOATING_TYPES(value.scalar_type(), "sigmoid_backward", [&] {
      at::parallel_for(0, value.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        kernels::sigmoid_backward(value.data_ptr<scalar_t>() + begin,
                                  gradient.data_ptr<scalar_t>() + begin,
                                  out.data_ptr<scalar_t>() + begin, 0, end - begin, {});
      });
    });
    return {out};
  }

 private:
  /// Elements that a thread takes at once.
  static constexpr std::int64_t kGrain = std::int64_t{1} << 15U;
};

class Exp : public torch::autograd::Function<Exp> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x) {
    const auto in = x.contiguous();
    auto out = at::empty_like(in);
    AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "exp", [&] {
      const auto* first = in.data_ptr<scalar_t>();
      std::transform(first, first + in.numel(), out.data_ptr<scalar_t>(),
                     [](scalar_t value) { return std::exp(value); });
    });
    context->save_for_backward({out});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

}  // namespace

torch::Tensor sigmoid(const torch::Tensor& x, NumericalMode mode) {
  const bool own = x.device().is_cpu() && mode != NumericalMode::reference;
  return own ? Sigmoid::apply(x) : at::sigmoid(x);
}

torch::Tensor exp(const torch::Tensor& x, NumericalMode mode) {
  const bool own = x.device().is_cpu() && mode != NumericalMode::reference;
  return own ? Exp::apply(x) : at::exp(x);
}

}  // namespace nas::nn
