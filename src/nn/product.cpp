#include "nn/product.hpp"

#include <algorithm>
#include <numeric>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "nn/model_parts.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Real>
kernels::MatrixView<Real> view(const torch::Tensor& x, std::int64_t model) {
  return {x.data_ptr<Real>() + model * x.stride(0), x.stride(1), x.stride(2)};
}

/// (R, rows, columns).
torch::Tensor as_rows(const torch::Tensor& x) { return x.reshape({x.size(0), -1, x.size(-1)}); }

/// The sizes of x with another last one.
std::vector<std::int64_t> with_last(const torch::Tensor& x, std::int64_t last) {
  auto sizes = x.sizes().vec();
  sizes.back() = last;
  return sizes;
}

/// c_r = bias_r + a_r b_r for each model, a (R, m, k), b (R, k, n), c (R, m, n), rows of c
/// contiguous.
void multiply(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& c,
              const torch::Tensor& biases = {}, const std::vector<std::int64_t>& rows = {}) {
  const std::int64_t m = a.size(1);
  const std::int64_t k = b.size(1);
  const std::int64_t n = b.size(2);
  if (k == 0) {  // a sum of nothing
    c.zero_();
    return;
  }
  const auto packed = at::empty({kernels::packed_size(k, n)}, b.options());
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "multiply", [&] {
    for (std::int64_t r = 0; r < a.size(0); ++r) {
      kernels::pack(view<scalar_t>(b, r), k, n, packed.data_ptr<scalar_t>());
      kernels::Initial<scalar_t> initial;
      const auto row = rows.empty() ? -1 : rows[static_cast<std::size_t>(r)];
      if (row >= 0) initial = {biases.data_ptr<scalar_t>() + row * n, 0};
      multiply_on_threads<scalar_t>(m, n, k, view<scalar_t>(a, r), packed.data_ptr<scalar_t>(),
                                    initial, c.data_ptr<scalar_t>() + r * c.stride(0), c.stride(1));
    }
  });
}

/// a_r b_r, (R, m, n).
torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b) {
  auto c = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  multiply(a, b, c);
  return c;
}

/// Sums over the rows of the models that have a bias: x (R, m, n) -> (M, n), with one result for
/// any number of threads.
torch::Tensor bias_gradient(const torch::Tensor& x, const std::vector<std::int64_t>& rows) {
  const auto in = x.contiguous();
  const std::int64_t m = in.size(1);
  const std::int64_t n = in.size(2);
  const auto biased = std::count_if(rows.begin(), rows.end(), [](auto row) { return row >= 0; });
  auto sums = at::empty({biased, n}, in.options());
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "bias_gradient", [&] {
    at::parallel_for(0, in.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const auto row = rows[static_cast<std::size_t>(r)];
        if (row < 0) continue;
        sum_of_rows(m, n, in.data_ptr<scalar_t>() + r * m * n, sums.data_ptr<scalar_t>() + row * n);
      }
    });
  });
  return sums;
}

// Functions of autograd take no undefined tensors: no bias is an empty one.

class ExactLinear : public torch::autograd::Function<ExactLinear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const std::vector<std::int64_t>& bias_rows) {
    context->save_for_backward({x, weight});
    if (bias.numel() > 0) context->saved_data["bias_rows"] = bias_rows;
    auto y = at::empty(with_last(x, weight.size(1)), x.options());
    if (bias.numel() > 0) {
      multiply(as_rows(x), weight.transpose(1, 2), as_rows(y), bias.contiguous(), bias_rows);
    } else {
      multiply(as_rows(x), weight.transpose(1, 2), as_rows(y));
    }
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto gradient = as_rows(gradients[0]);
    const auto rows = context->saved_data.find("bias_rows");
    return {product(gradient, saved[1]).view(saved[0].sizes()),
            product(gradient.transpose(1, 2), as_rows(saved[0])),
            rows == context->saved_data.end() ? torch::Tensor()
                                              : bias_gradient(gradient, rows->second.toIntVector()),
            {}};
  }
};

/// Products of rounded factors for each model, (R, m, n). On the CPU one model after the other: a
/// batched product of bfloat16 numbers promises nothing about its members.
torch::Tensor rounded_product(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.device().is_cpu()) return at::bmm(a, b);
  return for_each_model(a.size(0), [&](std::int64_t r) { return at::mm(a[r], b[r]); });
}

class RoundedLinear : public torch::autograd::Function<RoundedLinear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight) {
    const auto rows = rounded_factor(as_rows(x));
    const auto rounded = rounded_factor(weight);
    context->save_for_backward({rows, rounded});
    return rounded_product(rows, rounded.transpose(1, 2))
        .to(x.scalar_type())
        .view(with_last(x, weight.size(1)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto type = gradients[0].scalar_type();
    const auto rounded = rounded_factor(as_rows(gradients[0]));
    return {
        rounded_product(rounded, saved[1]).to(type).view(with_last(gradients[0], saved[1].size(2))),
        rounded_product(rounded.transpose(1, 2), saved[0]).to(type)};
  }
};

/// y (R, ..., n) with each model's bias.
torch::Tensor add_biases(const torch::Tensor& y, const Biases& bias) {
  if (!bias.values.defined()) return y;
  std::vector<std::int64_t> biased;
  for (std::size_t r = 0; r < bias.rows.size(); ++r) {
    if (bias.rows[r] >= 0) biased.push_back(static_cast<std::int64_t>(r));
  }
  auto all = bias.values;
  if (biased.size() < bias.rows.size()) {
    all = at::zeros({y.size(0), y.size(-1)}, y.options())
              .index_copy(0, index_on(y.device(), biased), bias.values);
  }
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(y.dim()), 1);
  sizes.front() = y.size(0);
  sizes.back() = y.size(-1);
  return y + all.view(sizes);
}

torch::Tensor linear_by_operations(const torch::Tensor& x, const torch::Tensor& weight,
                                   const Biases& bias) {
  if (!x.device().is_cpu()) {
    return add_biases(as_rows(x).bmm(weight.transpose(1, 2)).view(with_last(x, weight.size(1))),
                      bias);
  }
  return for_each_model(x.size(0), [&](std::int64_t r) {
    const auto row = bias.values.defined() ? bias.rows[static_cast<std::size_t>(r)] : -1;
    return row < 0 ? at::linear(x[r], weight[r]) : at::linear(x[r], weight[r], bias.values[row]);
  });
}

}  // namespace

NumericalMode unrounded(NumericalMode mode) {
  return mode == NumericalMode::fast ? NumericalMode::exact : mode;
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

Biases Biases::of_all(const torch::Tensor& values) {
  Biases biases{values, std::vector<std::int64_t>(static_cast<std::size_t>(values.size(0)))};
  std::iota(biases.rows.begin(), biases.rows.end(), std::int64_t{0});
  return biases;
}

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const Biases& bias,
                     NumericalMode mode) {
  TORCH_CHECK(x.dim() >= 2 && weight.dim() == 3 && x.size(0) == weight.size(0) &&
                  x.size(-1) == weight.size(2),
              "linear: x ", x.sizes(), " does not fit weights ", weight.sizes());
  if (mode == NumericalMode::fast) return add_biases(RoundedLinear::apply(x, weight), bias);
  if (mode == NumericalMode::exact && x.device().is_cpu()) {
    const auto given = bias.values.defined() ? bias.values : at::empty({0}, x.options());
    return ExactLinear::apply(x, weight, given, bias.rows);
  }
  return linear_by_operations(x, weight, bias);
}

}  // namespace nas::nn
