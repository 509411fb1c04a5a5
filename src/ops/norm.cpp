#include "ops/norm.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>

#include "kernels/norm.hpp"
#include "ops/array_op.hpp"
#include "ops/device_operations.hpp"
#include "ops/product.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

/// The rows of an array of models, in chunks of one model each, over which gradients of weights are
/// summed first.
struct Rows {
  std::int64_t models, width, of_model, chunks;

  static constexpr std::int64_t kChunk = 64;

  explicit Rows(const torch::Tensor& x)
      : models(x.size(0)),
        width(x.size(-1)),
        of_model(x.numel() / std::max<std::int64_t>(models * width, 1)),
        chunks((of_model + kChunk - 1) / kChunk) {}

  /// Calls run(model, chunk of all, first row of all, rows).
  template <class Run>
  void for_chunks(const Run& run) const {
    constexpr std::int64_t kGrain = 4;
    for_pieces(models, of_model, kChunk, kGrain,
               [&](std::int64_t model, std::int64_t first, std::int64_t rows) {
                 run(model, model * chunks + first / kChunk, model * of_model + first, rows);
               });
  }

  /// (R, D): the sums over each model's chunks, in their order.
  template <class Real>
  void add_up(const Real* by_chunk, Real* total) const {
    std::fill_n(total, models * width, Real{0});
    at::parallel_for(0, models, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t chunk = begin * chunks; chunk < end * chunks; ++chunk) {
        const auto* from = by_chunk + chunk * width;
        auto* to = total + chunk / chunks * width;
        for (std::int64_t i = 0; i < width; ++i) to[i] += from[i];
      }
    });
  }
};

/// Of x, weight and bias, which is undefined unless the norm is centred.
struct RowNorm {
  static constexpr std::int64_t kMadeAgain = 1;
  double epsilon;
  bool centred;

  /// The kernels of a device; null: the CPU's.
  [[nodiscard]] const DeviceOperations* device(const torch::Tensor& x) const {
    return centred ? device_operations(x.device()) : nullptr;
  }

  Tensors forward(const Tensors& in, Tensors& saved) const {
    const Rows rows(in[0]);
    auto y = unwritten(in[0]);
    const auto moments = at::empty({centred ? 2 : 1, rows.models * rows.of_model}, y.options());
    saved = {in[0], in[1], in[2], moments};
    if (const auto* operations = device(y)) {
      operations->layer_norm(in[0], in[1], in[2], epsilon, y, moments);
      return {y};
    }
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "norm", [&] {
      rows.for_chunks([&](auto model, auto /*chunk*/, auto row, auto count) {
        auto given = rows_of<scalar_t>(saved, model, row, count);
        given.bias = row_of<scalar_t>(in[2], model);
        kernels::norm<scalar_t>(given, epsilon, y.data_ptr<scalar_t>() + row * rows.width,
                                moments_of<scalar_t>(moments, row));
      });
    });
    return {y};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto by_x = unwritten(saved[0]);
    const auto by_weight = unwritten(saved[1]);
    const auto by_bias = centred ? unwritten(saved[1]) : torch::Tensor();
    if (const auto* operations = device(by_x)) {
      operations->layer_norm_backward(saved[0], saved[1], saved[3], {by_out[0], {}},
                                      {by_x, by_weight, by_bias});
      return {by_x, by_weight, by_bias};
    }
    const Rows rows(by_x);
    AT_DISPATCH_FLOATING_TYPES(by_x.scalar_type(), "norm_backward", [&] {
      const auto size = rows.models * rows.chunks * rows.width;
      // Of weights, then of biases.
      const Scratch<scalar_t> by_chunk(centred ? 2 * size : size);
      rows.for_chunks([&](auto model, auto chunk, auto row, auto count) {
        const auto [mean, inverse_deviation] = moments_of<scalar_t>(saved[3], row);
        auto* sums = by_chunk.data() + chunk * rows.width;
        kernels::norm_backward<scalar_t>(
            rows_of<scalar_t>(saved, model, row, count), {mean, inverse_deviation},
            {by_out[0].data_ptr<scalar_t>() + row * rows.width,
             by_x.data_ptr<scalar_t>() + row * rows.width, sums, centred ? sums + size : nullptr});
      });
      rows.add_up(by_chunk.data(), by_weight.data_ptr<scalar_t>());
      if (centred) rows.add_up(by_chunk.data() + size, by_bias.data_ptr<scalar_t>());
    });
    return {by_x, by_weight, by_bias};
  }

 private:
  /// @param of  x and weight.
  template <class Real>
  static kernels::NormRows<Real> rows_of(const Tensors& of, std::int64_t model, std::int64_t row,
                                         std::int64_t count) {
    const auto width = of[0].size(-1);
    return {count, width, of[0].data_ptr<Real>() + row * width, row_of<Real>(of[1], model)};
  }

  /// From a row on. @param moments  (2, rows) means, inverse deviations, or these alone.
  template <class Real>
  static kernels::RowMoments<Real> moments_of(const torch::Tensor& moments, std::int64_t row) {
    const auto last = moments.size(0) - 1;
    return {last > 0 ? row_of<Real>(moments, 0) + row : nullptr, row_of<Real>(moments, last) + row};
  }
};

/// Of x, weight and bias, on a device with kernels: the norm and x.
struct BranchedNorm {
  static constexpr bool kSomeGradients = true;
  double epsilon;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    return {RowNorm{epsilon, /*centred=*/true}.forward(in, saved)[0], in[0]};
  }
  static Tensors backward(const Tensors& saved, const Tensors& by_out) {
    const auto by_y = by_out[0].defined() ? by_out[0] : at::zeros_like(saved[0]);
    const LayerNormGradients by{unwritten(saved[0]), unwritten(saved[1]), unwritten(saved[1])};
    device_operations(by_y.device())
        ->layer_norm_backward(saved[0], saved[1], saved[3], {by_y, by_out[1]}, by);
    return {by.x, by.weight, by.bias};
  }
};

/// (R, D) as (R, 1, ..., D), to go with x.
torch::Tensor beside(const torch::Tensor& x, const torch::Tensor& parameter) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
  sizes.front() = parameter.size(0);
  sizes.back() = parameter.size(1);
  return parameter.view(sizes);
}

torch::Tensor rms_norm_by_operations(const torch::Tensor& x, const torch::Tensor& weight,
                                     double epsilon) {
  const auto scale = (x.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt();
  return x * scale * beside(x, weight);
}

void require_fitting(const torch::Tensor& x, const torch::Tensor& weight,
                     const torch::Tensor& bias) {
  TORCH_CHECK(x.dim() >= 2 && weight.sizes() == at::IntArrayRef({x.size(0), x.size(-1)}) &&
                  bias.sizes() == weight.sizes(),
              "layer_norm of ", x.sizes(), " has weight ", weight.sizes(), " and bias ",
              bias.sizes(), ", must both be (first, last) of those sizes");
}

}  // namespace

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias, double epsilon, NumericalMode mode) {
  require_fitting(x, weight, bias);
  if (mode != NumericalMode::reference && has_kernels(x.device())) {
    return array_op(RowNorm{epsilon, /*centred=*/true}, {x, weight, bias})[0];
  }
  return at::layer_norm(x, {x.size(-1)}, {}, {}, epsilon) * beside(x, weight) + beside(x, bias);
}

std::pair<torch::Tensor, torch::Tensor> layer_norm_branch(const torch::Tensor& x,
                                                          const torch::Tensor& weight,
                                                          const torch::Tensor& bias, double epsilon,
                                                          NumericalMode mode) {
  if (mode == NumericalMode::reference || device_operations(x.device()) == nullptr) {
    return {layer_norm(x, weight, bias, epsilon, mode), x};
  }
  require_fitting(x, weight, bias);
  const auto both = array_op(BranchedNorm{epsilon}, {x, weight, bias});
  return {both[0], both[1]};
}

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon,
                       NumericalMode mode) {
  TORCH_CHECK(x.dim() >= 2 && weight.sizes() == at::IntArrayRef({x.size(0), x.size(-1)}),
              "rms_norm of ", x.sizes(), " has weight ", weight.sizes(),
              ", must be (first, last) of those sizes");
  if (x.device().is_cpu() && mode != NumericalMode::reference) {
    return array_op(RowNorm{epsilon, /*centred=*/false}, {x, weight, {}})[0];
  }
  if (!x.device().is_cpu()) return rms_norm_by_operations(x, weight, epsilon);
  // LibTorch's sums depend on the shape of what is summed, and on whether gradients of one model's part are added first.
  return for_each_model(x.size(0), [&](std::int64_t r) {
    const auto model = x.slice(0, r, r + 1);
    return rms_norm_by_operations(model, weight.slice(0, r, r + 1), epsilon).squeeze(0);
  });
}

}  // namespace nas::nn
