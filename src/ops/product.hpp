#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"
#include "kernels/pairs.hpp"
#include "kernels/product.hpp"
#include "ops/scratch.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// kernels::multiply on LibTorch's threads, with the same result for any number of them.
template <class Real>
void multiply_on_threads(std::int64_t m, std::int64_t n, std::int64_t k,
                         kernels::MatrixView<Real> a, const Real* packed,
                         kernels::Initial<Real> initial, Real* c, std::int64_t c_row) {
  constexpr std::int64_t kGrain = 64;  // rows that a thread multiplies at once
  at::parallel_for(0, m, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels::multiply<Real>(end - begin, n, k, a.at(begin, 0), packed, initial.at(begin, 0),
                            c + begin * c_row, c_row);
  });
}

/// The same with B (k, n) as it is: packed for this product. A sum of nothing (k = 0) is 0.
template <class Real>
void multiply_on_threads(std::int64_t m, std::int64_t n, std::int64_t k,
                         kernels::MatrixView<Real> a, kernels::MatrixView<Real> b,
                         kernels::Initial<Real> initial, Real* c, std::int64_t c_row) {
  if (k == 0) {
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_row, n, Real{0});
    return;
  }
  // A transposed factor is read as seldom as possible.
  const std::int64_t step = a.column == 1 ? std::min(n, kernels::kColumnBlock) : n;
  const Scratch<Real> packed(kernels::packed_size(k, step));
  for (std::int64_t first = 0; first < n; first += step) {
    const std::int64_t columns = std::min(step, n - first);
    kernels::pack(b.at(0, first), k, columns, packed.data());
    multiply_on_threads<Real>(m, columns, k, a, packed.data(), initial.at(0, first), c + first,
                              c_row);
  }
}

/// Pairs of k numbers.
constexpr std::int64_t pairs_of(std::int64_t k) { return (k + 1) / 2; }

/// Elements of a packed (k, n) matrix in pairs of all parts.
inline std::int64_t packed_pairs(std::int64_t k, std::int64_t n, kernels::PairForm form) {
  return form.parts * kernels::packed_size(pairs_of(k), n);
}

/// kernels::multiply_pairs on LibTorch's threads, likewise.
inline void multiply_pairs_on_threads(std::int64_t m, std::int64_t n, std::int64_t pairs,
                                      kernels::LeftPairs a, const float* packed,
                                      kernels::Initial<float> initial, float* c, std::int64_t c_row,
                                      kernels::PairForm form) {
  constexpr std::int64_t kRows = kernels::kPanelRows, kGrain = 2;
  at::parallel_for(0, (m + kRows - 1) / kRows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * kRows;
    kernels::multiply_pairs(std::min(m, end * kRows) - first, n, pairs,
                            a.at(first, form.parts * pairs), packed, initial.at(first, 0),
                            c + first * c_row, c_row, form);
  });
}

/// kernels::round_pairs and kernels::pack_pairs of contiguous rows on LibTorch's threads.
inline void round_pairs_on_threads(std::int64_t m, std::int64_t k, const float* x, std::int64_t row,
                                   float* pairs, kernels::PairForm form) {
  constexpr std::int64_t kGrain = 64;
  at::parallel_for(0, m, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels::round_pairs(end - begin, k, x + begin * row, row,
                         pairs + begin * form.parts * pairs_of(k), form);
  });
}
/// @param rounded  x is rows of pairs.
inline void pack_pairs_on_threads(std::int64_t k, std::int64_t n, const float* x, std::int64_t row,
                                  float* packed, kernels::PairForm form, bool rounded = false) {
  constexpr std::int64_t kGrain = 32;
  at::parallel_for(0, pairs_of(k), kGrain, [&](std::int64_t begin, std::int64_t end) {
    const auto first = 2 * begin, last = std::min(k, 2 * end);
    if (rounded) return kernels::pack_rounded(k, n, x, row, first, last, packed);
    kernels::pack_pairs({x, row, 1}, k, n, first, last, packed, form);
  });
}

/// y (rows, out) = x (rows, in) W' + b of one model, x and y contiguous, on LibTorch's threads.
template <class Real>
struct LinearMap {
  std::int64_t rows, in, out;
  kernels::MatrixView<Real> weight;  ///< W (out, in)

  /// Of the tensors of several models. @param i  which row of `weight` (M, out, in), any strides.
  static LinearMap of(const torch::Tensor& x, const torch::Tensor& weight, std::int64_t i) {
    const auto outer = static_cast<std::size_t>(x.dim()) - 2;
    return {c10::multiply_integers(x.sizes().slice(1, outer)),
            weight.size(2),
            weight.size(1),
            {weight.data_ptr<Real>() + i * weight.stride(0), weight.stride(1), weight.stride(2)}};
  }

  /// @param bias  null: 0.
  void forward(const Real* x, const Real* bias, Real* y) const {
    multiply_on_threads<Real>(rows, out, in, {x, in, 1},
                              kernels::MatrixView<Real>{weight.data, weight.column, weight.row},
                              {bias, 0}, y, out);
  }

  /// Writes gradients. @param by_weight  rows of it are as far apart as those of a contiguous W, or
  /// `by_row`.
  void backward(const Real* x, const Real* by_y, Real* by_x, Real* by_weight,
                std::int64_t by_row = -1) const {
    multiply_on_threads<Real>(rows, in, out, {by_y, out, 1}, weight, {}, by_x, in);
    multiply_on_threads<Real>(out, in, rows, {by_y, 1, out}, kernels::MatrixView<Real>{x, in, 1},
                              {}, by_weight, by_row < 0 ? in : by_row);
  }
};

/// The sums of the columns of x (m, n), in blocks of rows, so that long sums stay accurate.
template <class Real>
void add_up_rows(std::int64_t m, std::int64_t n, const Real* x, Real* sums) {
  constexpr std::int64_t kBlock = 256;
  std::vector<Real> partial(static_cast<std::size_t>(n));
  std::fill_n(sums, n, Real{0});
  for (std::int64_t first = 0; first < m; first += kBlock) {
    std::fill(partial.begin(), partial.end(), Real{0});
    for (std::int64_t i = first; i < std::min(m, first + kBlock); ++i, x += n) {
      for (std::int64_t j = 0; j < n; ++j) partial[static_cast<std::size_t>(j)] += x[j];
    }
    for (std::int64_t j = 0; j < n; ++j) sums[j] += partial[static_cast<std::size_t>(j)];
  }
}

// Products of numerical mode `fast`: factors are rounded to bfloat16 (8 bits of significand), sums
// are float32. On the CPU cpu_products() says how, or that float32's are as fast; GPUs, and
// LibTorch on the CPU, round results to bfloat16 again.

/// Before models compute on a CUDA device: makes LibTorch multiply float32 matrices there as the
/// mode says, in TensorFloat-32 in `tf32` and in no other, whatever the environment says
/// (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE). It is a setting of the process: models of different modes
/// may take turns there, but not at the same time. Nothing for another device.
void set_float_products(torch::Device device, NumericalMode mode);

/// The mode with products of full precision: for what is small or sensitive.
NumericalMode unrounded(NumericalMode mode);

/// x in bfloat16; float64 stays.
torch::Tensor rounded_factor(const torch::Tensor& x);

/// The product (m, n) of two factors on the CPU, any strides: of bfloat16 by LibTorch, else by the
/// kernels, with the same result for any number of threads.
torch::Tensor multiply_rounded(const torch::Tensor& a, const torch::Tensor& b);

/// The biases of an array's models, of which some may have none.
struct Biases {
  torch::Tensor values;            ///< (M, n), of those that have one; undefined: none has
  std::vector<std::int64_t> rows;  ///< of each model: which row of `values`; -1: none

  /// One for each model. @param values  (R, n).
  static Biases of_all(const torch::Tensor& values);
};

/// values + bias of each model of an array, which what reads it has yet to add.
struct Biased {
  torch::Tensor values;  ///< (R, ..., n)
  torch::Tensor bias{};  ///< (R, n); undefined: 0

  // NOLINTNEXTLINE(google-explicit-constructor): where nothing is left to add
  Biased(torch::Tensor given) : values(std::move(given)) {}
  Biased(torch::Tensor given, torch::Tensor of_models)
      : values(std::move(given)), bias(std::move(of_models)) {}
};

/// y_r = x_r W_r' + b_r for each model r of an array, as one operation in the way of a mode;
/// backward likewise. On the CPU, no model's result depends on the others. Not for second
/// derivatives.
///
/// @param x  (R, ..., in).   @param weight  (R, out, in), any strides.   @return (R, ..., out).
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const Biases& bias,
                     NumericalMode mode);

/// linear() of one x for several weights and biases: on devices with kernels of their own, and by
/// products of bfloat16 pairs, as one operation, which adds gradients w.r.t. x while it multiplies.
std::vector<torch::Tensor> linears_of(const torch::Tensor& x,
                                      const std::vector<std::pair<torch::Tensor, Biases>>& maps,
                                      NumericalMode mode);

/// linear() where the next operation adds biases while it reads y: on devices with kernels of their
/// own. There y is bfloat16 in mode `fast`, and x may be. Elsewhere nothing is left to add.
Biased linear_before_bias(const torch::Tensor& x, const torch::Tensor& weight, const Biases& bias,
                          NumericalMode mode);

/// values + bias, of the type that biases have.
torch::Tensor with_bias(const Biased& sum);

/// The result of `one` for each model of an array, (R, ...): one after the other on the CPU, where
/// LibTorch's batched operations may round otherwise than for a model alone.
///
/// @param one  one(r) is that of model r.
template <class One>
torch::Tensor for_each_model(std::int64_t models, const One& one) {
  if (models == 1) return one(0).unsqueeze(0);
  std::vector<torch::Tensor> results;
  for (std::int64_t r = 0; r < models; ++r) results.push_back(one(r));
  return at::stack(results);
}

/// x, the gradient w.r.t. which comes in one layout whatever is done with x: LibTorch's sums depend
/// on the layout in the last digit.
torch::Tensor with_contiguous_gradient(const torch::Tensor& x);

/// apply(tensors...) of the models of an array, all of whose tensors have a leading dimension of
/// models: of each model alone on the CPU, where LibTorch's sums and elementary functions may round
/// otherwise in a larger tensor.
///
/// @param apply  gives a tensor with the same leading dimension.
template <class Apply, class First, class... Others>
torch::Tensor model_by_model(const Apply& apply, const First& first, const Others&... others) {
  if (!first.device().is_cpu()) return apply(first, others...);
  if (first.size(0) == 1) {
    return with_contiguous_gradient(apply(first.contiguous(), others.contiguous()...));
  }
  std::vector<torch::Tensor> results;
  for (std::int64_t r = 0; r < first.size(0); ++r) {
    results.push_back(with_contiguous_gradient(
        apply(first.narrow(0, r, 1).contiguous(), others.narrow(0, r, 1).contiguous()...)));
  }
  return at::cat(results);
}

}  // namespace nn
}  // namespace nas
