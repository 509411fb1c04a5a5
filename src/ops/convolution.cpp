#include "ops/convolution.hpp"

#include <ATen/Dispatch.h>

#include "kernels/convolution.hpp"
#include "ops/array_op.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

/// Of z (R, B, T, channels) and weight (R, K, channels) or none.
struct ActivatedConvolution {
  std::int64_t width;
  double epsilon;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    auto y = unwritten(in[0]);
    const auto shape = shape_of(in);
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "activated_convolution", [&] {
      for_sequences(in[0], [&](auto model, auto i) {
        kernels::activated_convolution<scalar_t>(shape, sequence<scalar_t>(in[0], i),
                                                 row_of<scalar_t>(in[1], model),
                                                 sequence<scalar_t>(y, i));
      });
    });
    return {y};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto& z = saved[0];
    const auto& weight = saved[1];
    const auto shape = shape_of(saved);
    const auto by_z = unwritten(z);
    const auto by_weights =
        weight.defined()  // of each sequence
            ? at::empty({z.size(0), z.size(1), shape.taps * shape.channels}, z.options())
            : torch::Tensor();
    const auto by_weight = unwritten(weight);
    AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "activated_convolution_backward", [&] {
      for_sequences(z, [&](auto model, auto i) {
        const Scratch<scalar_t> scratch(kernels::convolution_scratch(shape));
        kernels::activated_convolution_backward<scalar_t>(
            shape, sequence<scalar_t>(z, i), row_of<scalar_t>(weight, model),
            sequence<scalar_t>(by_out[0], i), sequence<scalar_t>(by_z, i),
            weight.defined() ? sequence<scalar_t>(by_weights, i) : nullptr, scratch.data());
      });
      if (weight.defined()) add_up<scalar_t>(by_weights, by_weight);
    });
    return {by_z, by_weight};
  }

 private:
  [[nodiscard]] kernels::ConvolutionShape shape_of(const Tensors& in) const {
    return {in[0].size(2), in[0].size(3), in[1].defined() ? in[1].size(1) : 1, width, epsilon};
  }

  /// Of x (R, B, ...).
  template <class Real>
  static Real* sequence(const torch::Tensor& x, std::int64_t i) {
    return x.data_ptr<Real>() + i * (x.numel() / (x.size(0) * x.size(1)));
  }

  /// Calls run(model, i) for all sequences of all models.
  template <class Run>
  static void for_sequences(const torch::Tensor& z, const Run& run) {
    const auto batch = z.size(1);
    at::parallel_for(0, z.size(0) * batch, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) run(i / batch, i);
    });
  }

  /// The sums over each model's sequences, in their order.
  template <class Real>
  static void add_up(const torch::Tensor& parts, const torch::Tensor& sums) {
    const auto size = parts.size(2);
    for (std::int64_t i = 0; i < parts.size(0) * parts.size(1); ++i) {
      auto* to = row_of<Real>(sums, i / parts.size(1));
      const auto* from = sequence<Real>(parts, i);
      if (i % parts.size(1) == 0) std::fill_n(to, size, Real{0});
      for (std::int64_t j = 0; j < size; ++j) to[j] += from[j];
    }
  }
};

}  // namespace

torch::Tensor activated_convolution(const torch::Tensor& z, const torch::Tensor& weight,
                                    std::int64_t width, double epsilon) {
  return array_op(ActivatedConvolution{width, epsilon},
                  {z, weight.defined() ? weight.transpose(1, 2) : weight})[0];
}

}  // namespace nas::nn
