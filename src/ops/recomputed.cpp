#include "ops/recomputed.hpp"

#include <algorithm>
#include <utility>

#include "ops/array_op.hpp"

namespace nas::nn {

namespace {

bool asks_for_gradient(const torch::Tensor& x) { return x.defined() && x.requires_grad(); }

struct Recomputed {
  static constexpr bool kAnyStrides = true;
  static constexpr bool kSomeGradients = true;
  PartOfModel part;

  // LibTorch calls it with gradients off, so that no operation of the part keeps anything.
  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    return part(in);
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    Tensors in;
    for (const auto& x : saved) {
      in.push_back(x.defined() ? x.detach().requires_grad_(x.requires_grad()) : x);
    }
    Tensors roots;
    Tensors by_roots;
    {
      const at::AutoGradMode with_gradients(true);
      auto out = part(in);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (!by_out[i].defined() || !asks_for_gradient(out[i])) continue;
        roots.push_back(std::move(out[i]));
        by_roots.push_back(by_out[i]);
      }
    }
    if (!roots.empty()) torch::autograd::backward(roots, by_roots);
    Tensors by_in;
    for (const auto& x : in) by_in.push_back(x.defined() ? x.grad() : x);
    return by_in;
  }
};

}  // namespace

std::vector<torch::Tensor> recomputed(const PartOfModel& part,
                                      const std::vector<torch::Tensor>& inputs) {
  if (!at::GradMode::is_enabled() || std::none_of(inputs.begin(), inputs.end(), asks_for_gradient))
    return part(inputs);
  return array_op(Recomputed{part}, inputs);
}

}  // namespace nas::nn
