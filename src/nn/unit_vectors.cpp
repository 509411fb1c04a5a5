#include "nn/unit_vectors.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "kernels/unit_vectors.hpp"
#include "nn/new_tensor.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Of two tensors of one size, on the CPU.
class UnitVectors : public torch::autograd::Function<UnitVectors> {
 public:
  static variable_list forward(AutogradContext* context, const torch::Tensor& a,
                               const torch::Tensor& b, std::int64_t width) {
    const auto rows = a.numel() / width;
    const auto inverse_lengths = new_tensor({2, rows}, a);
    variable_list units;
    for (const auto& given : {a, b}) {
      const auto x = given.contiguous();
      auto y = new_tensor(x.sizes(), x);
      AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "unit_vectors", [&] {
        auto* inverse =
            inverse_lengths.data_ptr<scalar_t>() + static_cast<std::int64_t>(units.size()) * rows;
        at::parallel_for(0, rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
          kernels::unit_vectors<scalar_t>(end - begin, width,
                                          x.data_ptr<scalar_t>() + begin * width,
                                          y.data_ptr<scalar_t>() + begin * width, inverse + begin);
        });
      });
      units.push_back(std::move(y));
    }
    context->save_for_backward({units[0], units[1], inverse_lengths});
    return units;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto rows = saved[2].size(1);
    const auto width = saved[0].numel() / rows;
    variable_list by;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto& y = saved[i];
      const auto gradient = gradients[i].contiguous();
      auto by_x = new_tensor(y.sizes(), y);
      AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "unit_vectors_backward", [&] {
        const auto* inverse = saved[2].data_ptr<scalar_t>() + static_cast<std::int64_t>(i) * rows;
        at::parallel_for(0, rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
          const auto first = begin * width;
          kernels::unit_vectors_backward<scalar_t>(
              end - begin, width, y.data_ptr<scalar_t>() + first, inverse + begin,
              gradient.data_ptr<scalar_t>() + first, by_x.data_ptr<scalar_t>() + first);
        });
      });
      by.push_back(std::move(by_x));
    }
    by.emplace_back();
    return by;
  }

 private:
  /// Vectors that a thread takes at once.
  static constexpr std::int64_t kGrain = 1024;
};

}  // namespace

torch::Tensor unit(const torch::Tensor& x) {
  return x / x.norm(2, -1, /*keepdim=*/true).clamp_min(kernels::kShortestLength);
}

std::array<torch::Tensor, 2> unit_vectors(const torch::Tensor& a, const torch::Tensor& b,
                                          std::int64_t width) {
  TORCH_CHECK(a.sizes() == b.sizes() && a.size(-1) % width == 0, "vectors of ", width,
              " numbers do not lie side by side in ", a.sizes(), " and ", b.sizes());
  if (a.device().is_cpu()) {
    auto units = UnitVectors::apply(a, b, width);
    return {std::move(units[0]), std::move(units[1])};
  }
  const auto of_one = [width](const torch::Tensor& x) {
    return unit(x.unflatten(-1, {x.size(-1) / width, width})).flatten(-2);
  };
  return {of_one(a), of_one(b)};
}

}  // namespace nas::nn
