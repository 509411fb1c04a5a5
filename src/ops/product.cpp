#include "ops/product.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>

#include <ATen/Context.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "ops/model_parts.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// (R, rows, columns).
torch::Tensor as_rows(const torch::Tensor& x) { return x.reshape({x.size(0), -1, x.size(-1)}); }

/// The sizes of x with another last one.
std::vector<std::int64_t> with_last(const torch::Tensor& x, std::int64_t last) {
  auto sizes = x.sizes().vec();
  sizes.back() = last;
  return sizes;
}

// On the CPU, x and y (R, ..., n) are contiguous, weights are not.

/// The sizes of a map of each model: y (m, out) from x (m, in).
struct LinearSizes {
  std::int64_t models, m, in, out;

  LinearSizes(const torch::Tensor& x, const torch::Tensor& weight)
      : models(weight.size(0)),
        m(c10::multiply_integers(x.sizes().slice(1, static_cast<std::size_t>(x.dim()) - 2))),
        in(weight.size(2)),
        out(weight.size(1)) {}
};

/// W_r, or its transpose.
template <class Real>
kernels::MatrixView<Real> weight_of(const torch::Tensor& weight, std::int64_t r, bool transposed) {
  const auto* data = weight.data_ptr<Real>() + r * weight.stride(0);
  if (transposed) return {data, weight.stride(2), weight.stride(1)};
  return {data, weight.stride(1), weight.stride(2)};
}

/// Gradients (M, n) w.r.t. the biases of the models that have one, from those w.r.t. y (R, m, n).
torch::Tensor bias_gradient(const torch::Tensor& by_y, std::int64_t m, std::int64_t n,
                            const std::vector<std::int64_t>& rows) {
  const auto biased = std::count_if(rows.begin(), rows.end(), [](auto row) { return row >= 0; });
  auto by_bias = at::empty({biased, n}, by_y.options());
  AT_DISPATCH_FLOATING_TYPES(by_y.scalar_type(), "bias_gradient", [&] {
    at::parallel_for(0, std::ssize(rows), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const auto row = rows[static_cast<std::size_t>(r)];
        if (row < 0) continue;
        add_up_rows(m, n, by_y.data_ptr<scalar_t>() + r * m * n,
                    by_bias.data_ptr<scalar_t>() + row * n);
      }
    });
  });
  return by_bias;
}

class ExactLinear : public torch::autograd::Function<ExactLinear> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               const torch::Tensor& weight,
                               const c10::optional<torch::Tensor>& given_bias,
                               const std::vector<std::int64_t>& bias_rows) {
    const auto x = given.contiguous();
    context->save_for_backward({x, weight});
    const auto bias = given_bias ? given_bias->contiguous() : torch::Tensor();
    if (given_bias) context->saved_data["bias_rows"] = bias_rows;
    auto y = at::empty(with_last(x, weight.size(1)), x.options());
    const LinearSizes size(x, weight);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear", [&] {
      for (std::int64_t r = 0; r < size.models; ++r) {
        const auto row = given_bias ? bias_rows[static_cast<std::size_t>(r)] : -1;
        kernels::Initial<scalar_t> initial;
        if (row >= 0) initial = {bias.data_ptr<scalar_t>() + row * size.out, 0};
        multiply_on_threads<scalar_t>(size.m, size.out, size.in,
                                      {x.data_ptr<scalar_t>() + r * size.m * size.in, size.in, 1},
                                      weight_of<scalar_t>(weight, r, /*transposed=*/true), initial,
                                      y.data_ptr<scalar_t>() + r * size.m * size.out, size.out);
      }
    });
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& x = saved[0];
    const auto& weight = saved[1];
    const auto by_y = gradients[0].contiguous();
    const auto by_x = at::empty(x.sizes(), x.options());
    const auto by_weight = at::empty(weight.sizes(), x.options());
    const LinearSizes size(x, weight);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_backward", [&] {
      for (std::int64_t r = 0; r < size.models; ++r) {
        const auto* of_y = by_y.data_ptr<scalar_t>() + r * size.m * size.out;
        const auto of_x = r * size.m * size.in;
        multiply_on_threads<scalar_t>(size.m, size.in, size.out, {of_y, size.out, 1},
                                      weight_of<scalar_t>(weight, r, /*transposed=*/false), {},
                                      by_x.data_ptr<scalar_t>() + of_x, size.in);
        multiply_on_threads<scalar_t>(size.out, size.in, size.m, {of_y, 1, size.out},
                                      {x.data_ptr<scalar_t>() + of_x, size.in, 1}, {},
                                      by_weight.data_ptr<scalar_t>() + r * size.out * size.in,
                                      size.in);
      }
    });
    const auto rows = context->saved_data.find("bias_rows");
    return {by_x,
            by_weight,
            rows == context->saved_data.end()
                ? torch::Tensor()
                : bias_gradient(by_y, size.m, size.out, rows->second.toIntVector()),
            {}};
  }
};

/// Products of rounded factors for each model, (R, m, n). On the CPU one model after the other: a
/// batched product of bfloat16 numbers guarantees nothing about its members.
torch::Tensor rounded_product(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.device().is_cpu()) return at::bmm(a, b);
  return for_each_model(a.size(0), [&](std::int64_t r) { return multiply_rounded(a[r], b[r]); });
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

/// On the CPU, where LibTorch's sums depend on what else is in a tensor.
class AddBiases : public torch::autograd::Function<AddBiases> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               const torch::Tensor& given_bias,
                               const std::vector<std::int64_t>& bias_rows) {
    context->saved_data["bias_rows"] = bias_rows;
    const auto y = given.contiguous();
    const auto bias = given_bias.contiguous();
    auto sums = at::empty(y.sizes(), y.options());
    const std::int64_t n = y.size(-1);
    const std::int64_t m = y.numel() / (y.size(0) * n);
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "add_biases", [&] {
      at::parallel_for(0, y.size(0) * m, kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto row = bias_rows[static_cast<std::size_t>(i / m)];
          const auto* from = y.data_ptr<scalar_t>() + i * n;
          auto* to = sums.data_ptr<scalar_t>() + i * n;
          if (row < 0) {
            std::copy_n(from, n, to);
          } else {
            std::transform(from, from + n, bias.data_ptr<scalar_t>() + row * n, to, std::plus<>());
          }
        }
      });
    });
    return sums;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto by_sums = gradients[0].contiguous();
    const std::int64_t n = by_sums.size(-1);
    return {by_sums,
            bias_gradient(by_sums, by_sums.numel() / (by_sums.size(0) * n), n,
                          context->saved_data["bias_rows"].toIntVector()),
            {}};
  }

 private:
  /// Rows that a thread takes at once.
  static constexpr std::int64_t kGrain = 256;
};

/// y (R, ..., n) with each model's bias.
torch::Tensor add_biases(const torch::Tensor& y, const Biases& bias) {
  if (!bias.values.defined()) return y;
  if (y.device().is_cpu()) return AddBiases::apply(y, bias.values, bias.rows);
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

class ContiguousGradient : public torch::autograd::Function<ContiguousGradient> {
 public:
  static torch::Tensor forward(AutogradContext* /*context*/, const torch::Tensor& x) { return x; }

  static variable_list backward(AutogradContext* /*context*/, const variable_list& gradients) {
    return {gradients[0].contiguous()};
  }
};

}  // namespace

NumericalMode of_operations(NumericalMode mode) {
  return mode == NumericalMode::tf32 ? NumericalMode::exact : mode;
}

void set_float_products(torch::Device device, NumericalMode mode) {
  if (!device.is_cuda()) return;
  static std::mutex mutex;
  static std::optional<bool> in_tf32;  // unknown: what the environment says
  const bool wanted = mode == NumericalMode::tf32;
  const std::lock_guard lock(mutex);
  if (in_tf32 == wanted) return;
  at::globalContext().setAllowTF32CuBLAS(wanted);
  in_tf32 = wanted;
}

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

torch::Tensor multiply_rounded(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.scalar_type() == at::kBFloat16) return at::mm(a, b);
  auto product = at::empty({a.size(0), b.size(1)}, a.options());
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "multiply_rounded", [&] {
    const auto view = [](const torch::Tensor& matrix) {
      return kernels::MatrixView<scalar_t>{matrix.data_ptr<scalar_t>(), matrix.stride(0),
                                           matrix.stride(1)};
    };
    multiply_on_threads<scalar_t>(a.size(0), b.size(1), a.size(1), view(a), view(b), {},
                                  product.data_ptr<scalar_t>(), b.size(1));
  });
  return product;
}

Biases Biases::of_all(const torch::Tensor& values) {
  Biases biases{values, std::vector<std::int64_t>(static_cast<std::size_t>(values.size(0)))};
  std::iota(biases.rows.begin(), biases.rows.end(), std::int64_t{0});
  return biases;
}

torch::Tensor with_contiguous_gradient(const torch::Tensor& x) {
  return x.requires_grad() ? ContiguousGradient::apply(x) : x;
}

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const Biases& bias,
                     NumericalMode mode) {
  TORCH_CHECK(x.dim() >= 2 && weight.dim() == 3 && x.size(0) == weight.size(0) &&
                  x.size(-1) == weight.size(2),
              "linear: x ", x.sizes(), " does not fit weights ", weight.sizes());
  if (mode == NumericalMode::fast) return add_biases(RoundedLinear::apply(x, weight), bias);
  if (mode == NumericalMode::exact && x.device().is_cpu()) {
    const auto given = bias.values.defined() ? c10::make_optional(bias.values) : c10::nullopt;
    return ExactLinear::apply(x, weight, given, bias.rows);
  }
  return linear_by_operations(x, weight, bias);
}

}  // namespace nas::nn
