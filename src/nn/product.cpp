#include "nn/product.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "kernels/product.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows that a thread multiplies at once.
constexpr std::int64_t kGrain = 64;

template <class Real>
kernels::MatrixView<Real> view(const torch::Tensor& matrix) {
  return {matrix.data_ptr<Real>(), matrix.stride(0), matrix.stride(1)};
}

torch::Tensor as_rows(const torch::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

/// The sizes of x with another last one.
std::vector<std::int64_t> with_last(const torch::Tensor& x, std::int64_t last) {
  auto sizes = x.sizes().vec();
  sizes.back() = last;
  return sizes;
}

/// a b for one use of b.
torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b) {
  auto c = at::empty({a.size(0), b.size(1)}, a.options());
  PackedMatrix(b).multiply(a, c);
  return c;
}

// Functions of autograd take no undefined tensors: no bias is an empty one.

class ExactLinear : public torch::autograd::Function<ExactLinear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight, const torch::Tensor& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.numel() > 0;
    auto y = at::empty(with_last(x, weight.size(0)), x.options());
    PackedMatrix(weight.t())
        .multiply(as_rows(x), as_rows(y), bias.numel() > 0 ? bias : torch::Tensor());
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto gradient = as_rows(gradients[0]);
    return {product(gradient, saved[1]).view(saved[0].sizes()),
            product(gradient.t(), as_rows(saved[0])),
            context->saved_data["bias"].toBool() ? gradient.sum(0) : torch::Tensor()};
  }
};

class RoundedLinear : public torch::autograd::Function<RoundedLinear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight, const torch::Tensor& bias) {
    const auto rows = rounded_factor(as_rows(x));
    const auto rounded = rounded_factor(weight);
    context->save_for_backward({rows, rounded});
    context->saved_data["bias"] = bias.numel() > 0;
    auto y = at::mm(rows, rounded.t()).to(x.scalar_type());
    return (bias.numel() > 0 ? y.add_(bias) : y).view(with_last(x, weight.size(0)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto type = gradients[0].scalar_type();
    const auto gradient = as_rows(gradients[0]);
    const auto rounded = rounded_factor(gradient);
    return {at::mm(rounded, saved[1]).to(type).view(with_last(gradients[0], saved[1].size(1))),
            at::mm(rounded.t(), saved[0]).to(type),
            context->saved_data["bias"].toBool() ? gradient.sum(0) : torch::Tensor()};
  }
};

}  // namespace

PackedMatrix::PackedMatrix(const torch::Tensor& b)
    : k_(b.size(0)),
      n_(b.size(1)),
      packed_(at::empty({kernels::packed_size(k_, n_)}, b.options())) {
  AT_DISPATCH_FLOATING_TYPES(b.scalar_type(), "pack", [&] {
    kernels::pack(view<scalar_t>(b), k_, n_, packed_.data_ptr<scalar_t>());
  });
}

void PackedMatrix::multiply(const torch::Tensor& a, const torch::Tensor& c,
                            const torch::Tensor& initial) const {
  TORCH_CHECK(a.dim() == 2 && a.size(1) == k_ && c.dim() == 2 && c.size(0) == a.size(0) &&
                  c.size(1) == n_ && (n_ == 1 || c.stride(1) == 1),
              "a product of ", a.sizes(), " and (", k_, ", ", n_, ") does not fit ", c.sizes());
  TORCH_CHECK(!initial.defined() || (initial.size(-1) == n_ && initial.stride(-1) == 1),
              "a product of ", n_, " columns is not added to ", initial.sizes());
  if (k_ == 0) {  // a sum of nothing
    if (!initial.defined()) c.zero_();
    if (initial.defined() && !initial.is_same(c)) c.copy_(initial.expand(c.sizes()));
    return;
  }
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "multiply", [&] {
    kernels::Initial<scalar_t> start;
    if (initial.defined()) {
      start = {initial.data_ptr<scalar_t>(), initial.dim() == 1 ? 0 : initial.stride(0)};
    }
    const auto left = view<scalar_t>(a);
    auto* out = c.data_ptr<scalar_t>();
    at::parallel_for(0, a.size(0), kGrain, [&](std::int64_t begin, std::int64_t end) {
      auto from = start;
      if (from.data != nullptr) from.data += begin * from.row;
      kernels::multiply<scalar_t>(
          end - begin, n_, k_, {left.data + begin * left.row, left.row, left.column},
          packed_.data_ptr<scalar_t>(), from, out + begin * c.stride(0), c.stride(0));
    });
  });
}

bool has_bf16_products() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has;
#else
  return false;
#endif
}

torch::Tensor rounded_factor(const torch::Tensor& x) {
  if (x.scalar_type() == at::kDouble) return x;
  const auto rounded = x.to(at::kBFloat16);
  return x.device().is_cpu() && !has_bf16_products() ? rounded.to(at::kFloat) : rounded;
}

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     NumericalMode mode) {
  const bool fused =
      mode == NumericalMode::fast || (mode == NumericalMode::exact && x.device().is_cpu());
  if (!fused) return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
  const auto given_bias = bias.defined() ? bias : at::empty({0}, x.options());
  return mode == NumericalMode::fast ? RoundedLinear::apply(x, weight, given_bias)
                                     : ExactLinear::apply(x, weight, given_bias);
}

}  // namespace nas::nn
