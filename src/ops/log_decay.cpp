#include "ops/log_decay.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/Dispatch.h>

#include "kernels/log_decay.hpp"
#include "ops/array_op.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

constexpr std::int64_t kDecayRows = 64;  // over which gradients of a model are summed first

/// Of x, bias and logarithms of rates, which are undefined where there is one rate.
struct LogDecayOp {
  double sign, rate, least;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    auto y = unwritten(in[0]);
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "log_decay", [&] {
      const auto rates = rates_of<scalar_t>(in);
      for_rows(in, [&](const auto& decay, auto model, auto at, auto /*part*/) {
        kernels::log_decay<scalar_t>(decay, in[0].data_ptr<scalar_t>() + at,
                                     row_of<scalar_t>(in[1], model),
                                     rates.data() + model * heads(in), y.data_ptr<scalar_t>() + at);
      });
    });
    return {y};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto by = unwritten(saved);
    const auto columns = saved[0].size(-1);
    const auto parts = parts_of(saved);
    AT_DISPATCH_FLOATING_TYPES(by[0].scalar_type(), "log_decay_backward", [&] {
      const auto rates = rates_of<scalar_t>(saved);
      const Scratch<scalar_t> sums(2 * saved[0].size(0) * parts * columns);
      for_rows(saved, [&](const auto& decay, auto model, auto at, auto part) {
        auto* of_part = sums.data() + 2 * (model * parts + part) * columns;
        kernels::log_decay_backward<scalar_t>(
            decay, saved[0].data_ptr<scalar_t>() + at, row_of<scalar_t>(saved[1], model),
            rates.data() + model * heads(saved), by_out[0].data_ptr<scalar_t>() + at,
            by[0].data_ptr<scalar_t>() + at, of_part, of_part + columns);
      });
      for (std::int64_t r = 0; r < saved[0].size(0); ++r) {
        add_up<scalar_t>(sums.data() + 2 * r * parts * columns, parts,
                         rates.data() + r * heads(saved), r, by);
      }
    });
    return by;
  }

 private:
  static std::int64_t heads(const Tensors& in) { return in[2].defined() ? in[2].size(1) : 1; }
  static std::int64_t rows_of_model(const Tensors& in) {
    return in[0].numel() / (in[0].size(0) * in[0].size(-1));
  }
  static std::int64_t parts_of(const Tensors& in) {
    return (rows_of_model(in) + kDecayRows - 1) / kDecayRows;
  }

  template <class Real>
  [[nodiscard]] std::vector<Real> rates_of(const Tensors& in) const {
    std::vector<Real> rates(static_cast<std::size_t>(in[0].size(0) * heads(in)),
                            static_cast<Real>(rate));
    if (in[2].defined()) {
      const auto* logarithms = in[2].data_ptr<Real>();
      std::transform(logarithms, logarithms + rates.size(), rates.begin(),
                     [](Real x) { return std::exp(x); });
    }
    return rates;
  }

  /// Calls run(decay of some rows, model, their first element, which part of the model).
  template <class Run>
  void for_rows(const Tensors& in, const Run& run) const {
    const auto columns = in[0].size(-1);
    const auto rows = rows_of_model(in);
    for_pieces(in[0].size(0), rows, kDecayRows, 4, [&](auto model, auto first, auto count) {
      run(kernels::LogDecay{count, columns, columns / heads(in), sign, least}, model,
          (model * rows + first) * columns, first / kDecayRows);
    });
  }

  /// Writes a model's gradients w.r.t. bias and logarithms, the sums of its parts in their order.
  template <class Real>
  static void add_up(const Real* sums, std::int64_t parts, const Real* rates, std::int64_t model,
                     const Tensors& by) {
    const auto columns = by[1].size(1);
    auto* by_bias = row_of<Real>(by[1], model);
    auto* by_rates = row_of<Real>(by[2], model);
    std::fill_n(by_bias, columns, Real{0});
    std::vector<Real> by_column(static_cast<std::size_t>(columns));
    for (std::int64_t part = 0; part < parts; ++part, sums += 2 * columns) {
      for (std::int64_t i = 0; i < columns; ++i) {
        by_bias[i] += sums[i];
        by_column[static_cast<std::size_t>(i)] += sums[columns + i];
      }
    }
    if (by_rates == nullptr) return;
    const auto heads = by[2].size(1);
    const auto group = columns / heads;
    for (std::int64_t h = 0; h < heads; ++h) {
      Real sum = 0;
      for (std::int64_t i = 0; i < group; ++i) {
        sum += by_column[static_cast<std::size_t>(h * group + i)];
      }
      by_rates[h] = sum * rates[h];
    }
  }
};

}  // namespace

torch::Tensor softplus_decay(const torch::Tensor& x, const torch::Tensor& bias,
                             const torch::Tensor& log_rates, double least) {
  return array_op(LogDecayOp{1.0, 1.0, least}, {x, bias, log_rates})[0];
}

torch::Tensor sigmoid_decay(const torch::Tensor& x, const torch::Tensor& bias, double tau,
                            double least) {
  return array_op(LogDecayOp{-1.0, 1.0 / tau, least}, {x, bias, {}})[0];
}

}  // namespace nas::nn
