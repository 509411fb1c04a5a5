#include "nn/joint_linear.hpp"

#include <ATen/Dispatch.h>
#include <torch/autograd.h>

#include "nn/new_tensor.hpp"
#include "nn/product.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The sizes of the maps of one model: (m, out) from (m, in), twice.
struct Sizes {
  std::int64_t models, in, out, m;

  Sizes(const torch::Tensor& x, const torch::Tensor& weight)
      : models(weight.size(0)),
        in(weight.size(2) / 2),
        out(weight.size(1)),
        m(x.numel() / (models * in)) {}

  /// The sizes of a result.
  [[nodiscard]] std::vector<std::int64_t> of_result(const torch::Tensor& x) const {
    auto sizes = x.sizes().vec();
    sizes.back() = sizes.back() / in * out;
    return sizes;
  }
};

class JointLinear : public torch::autograd::Function<JointLinear> {
 public:
  static variable_list forward(AutogradContext* context, const torch::Tensor& a,
                               const torch::Tensor& b, const torch::Tensor& given_weight,
                               const torch::Tensor& given_bias) {
    const std::array<torch::Tensor, 2> in{a.contiguous(), b.contiguous()};
    const auto weight = given_weight.contiguous();
    const auto bias = given_bias.contiguous();
    const Sizes size(a, weight);
    variable_list out;
    for (const auto& x : in) out.push_back(new_tensor(size.of_result(x), x));
    AT_DISPATCH_FLOATING_TYPES(weight.scalar_type(), "joint_linear", [&] {
      for (std::int64_t r = 0; r < size.models; ++r) {
        const auto* w = weight.data_ptr<scalar_t>() + r * size.out * 2 * size.in;
        for (std::size_t i = 0; i < 2; ++i, w += size.in) {
          kernels::Initial<scalar_t> initial;
          if (i == 0) initial = {bias.data_ptr<scalar_t>() + r * size.out, 0};
          multiply_on_threads<scalar_t>(
              size.m, size.out, size.in,
              {in[i].data_ptr<scalar_t>() + r * size.m * size.in, size.in, 1}, {w, 1, 2 * size.in},
              initial, out[i].data_ptr<scalar_t>() + r * size.m * size.out, size.out);
        }
      }
    });
    context->save_for_backward({in[0], in[1], weight});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const auto saved = context->get_saved_variables();
    const auto& weight = saved[2];
    const std::array<torch::Tensor, 2> by_out{outer[0].contiguous(), outer[1].contiguous()};
    const Sizes size(saved[0], weight);
    variable_list by_in;
    for (const auto& x : {saved[0], saved[1]}) by_in.push_back(new_tensor(x.sizes(), x));
    const auto by_weight = new_tensor(weight.sizes(), weight);
    const auto by_bias = new_tensor({size.models, size.out}, weight);
    AT_DISPATCH_FLOATING_TYPES(weight.scalar_type(), "joint_linear_backward", [&] {
      for (std::int64_t r = 0; r < size.models; ++r) {
        const auto of_in = r * size.m * size.in;
        const auto of_out = r * size.m * size.out;
        for (std::size_t i = 0; i < 2; ++i) {
          const auto of_weight =
              r * size.out * 2 * size.in + static_cast<std::int64_t>(i) * size.in;
          const auto* g = by_out[i].data_ptr<scalar_t>() + of_out;
          multiply_on_threads<scalar_t>(size.m, size.in, size.out, {g, size.out, 1},
                                        {weight.data_ptr<scalar_t>() + of_weight, 2 * size.in, 1},
                                        {}, by_in[i].data_ptr<scalar_t>() + of_in, size.in);
          multiply_on_threads<scalar_t>(size.out, size.in, size.m, {g, 1, size.out},
                                        {saved[i].data_ptr<scalar_t>() + of_in, size.in, 1}, {},
                                        by_weight.data_ptr<scalar_t>() + of_weight, 2 * size.in);
        }
        add_up_rows(size.m, size.out, by_out[0].data_ptr<scalar_t>() + of_out,
                    by_bias.data_ptr<scalar_t>() + r * size.out);
      }
    });
    return {by_in[0], by_in[1], by_weight, by_bias};
  }
};

}  // namespace

std::array<torch::Tensor, 2> joint_linear(const torch::Tensor& a, const torch::Tensor& b,
                                          const torch::Tensor& weight, const torch::Tensor& bias,
                                          NumericalMode mode) {
  TORCH_CHECK(weight.dim() == 3 && a.sizes() == b.sizes() && a.size(0) == weight.size(0) &&
                  a.size(-1) % (weight.size(2) / 2) == 0 &&
                  bias.sizes() == weight.sizes().slice(0, 2),
              "joint_linear: ", a.sizes(), " and ", b.sizes(), " do not fit weights ",
              weight.sizes(), " and bias ", bias.sizes());
  if (mode == NumericalMode::exact && a.device().is_cpu()) {
    auto terms = JointLinear::apply(a, b, weight, bias);
    return {std::move(terms[0]), std::move(terms[1])};
  }
  const auto term = [&](const torch::Tensor& x, std::int64_t half, const Biases& of_term) {
    const auto in = weight.size(2) / 2;
    const auto vectors = x.unflatten(-1, {x.size(-1) / in, in});
    return linear(vectors, weight.narrow(2, half * in, in), of_term, mode).flatten(-2);
  };
  return {term(a, 0, Biases::of_all(bias)), term(b, 1, {})};
}

}  // namespace nas::nn
