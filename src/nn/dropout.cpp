#include "nn/dropout.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "core/seed.hpp"
#include "kernels/elementwise.hpp"
#include "nn/torch_compat.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Elements that a thread takes at once.
constexpr std::int64_t kGrain = std::int64_t{1} << 15U;

void keep_mask(AutogradContext* context, const kernels::Dropout& mask) {
  context->saved_data["key"] = static_cast<std::int64_t>(mask.key);
  context->saved_data["threshold"] = static_cast<std::int64_t>(mask.threshold);
  context->saved_data["scale"] = mask.scale;
}

kernels::Dropout kept_mask(AutogradContext* context) {
  return {static_cast<std::uint64_t>(context->saved_data["key"].toInt()),
          static_cast<std::uint32_t>(context->saved_data["threshold"].toInt()),
          context->saved_data["scale"].toDouble()};
}

/// A map of one or two tensors of one shape on the CPU, element by element:
/// map(in..., out, first, size).
template <class Map, class... In>
torch::Tensor mapped(const Map& map, const torch::Tensor& x, const In&... others) {
  const auto in = x.contiguous();
  auto out = at::empty_like(in);
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "mapped", [&] {
    at::parallel_for(0, in.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      map(in.data_ptr<scalar_t>() + begin, others.template data_ptr<scalar_t>() + begin...,
          out.data_ptr<scalar_t>() + begin, begin, end - begin);
    });
  });
  return out;
}

torch::Tensor dropped(const torch::Tensor& x, const kernels::Dropout& mask) {
  if (!x.device().is_cpu()) {
    const double share = 1.0 - 1.0 / mask.scale;
    const auto kept = at::empty_like(x, at::MemoryFormat::Contiguous)
                          .bernoulli_(1.0 - share, make_generator(x.device(), mask.key));
    return kept.mul_(x).mul_(mask.scale);
  }
  return mapped([&](const auto* in, auto* out, std::int64_t first,
                    std::int64_t size) { kernels::drop(in, out, first, size, mask); },
                x);
}

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const kernels::Dropout& mask) {
    keep_mask(context, mask);
    return dropped(x, mask);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {dropped(gradients[0], kept_mask(context)), {}};
  }
};

class AddDropped : public torch::autograd::Function<AddDropped> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& residual,
                               const torch::Tensor& x, const kernels::Dropout& mask) {
    TORCH_CHECK(residual.sizes() == x.sizes(), "dropout of ", x.sizes(), " cannot be added to ",
                residual.sizes());
    keep_mask(context, mask);
    return mapped(
        [&](const auto* in, const auto* stream, auto* out, std::int64_t first, std::int64_t size) {
          kernels::add_dropped(in, stream, out, first, size, mask);
        },
        x, residual.contiguous());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto mask = kept_mask(context);
    return {gradients[0], mask.drops() ? dropped(gradients[0], mask) : gradients[0], {}};
  }
};

class DroppedGelu : public torch::autograd::Function<DroppedGelu> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const kernels::Dropout& mask) {
    keep_mask(context, mask);
    context->save_for_backward({x});
    return mapped([&](const auto* in, auto* out, std::int64_t first,
                      std::int64_t size) { kernels::gelu(in, out, first, size, mask); },
                  x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto x = context->get_saved_variables()[0];
    const auto mask = kept_mask(context);
    return {mapped(
                [&](const auto* in, const auto* gradient, auto* out, std::int64_t first,
                    std::int64_t size) {
                  kernels::gelu_backward(in, gradient, out, first, size, mask);
                },
                x, gradients[0].contiguous()),
            {}};
  }
};

}  // namespace

kernels::Dropout dropout_mask(double p, const Pass& pass, std::uint64_t site) {
  if (!pass.training || p == 0.0) return {};
  return kernels::Dropout::of(mix64(mix64(pass.seed) ^ site), p);
}

torch::Tensor dropout(const torch::Tensor& x, double p, const Pass& pass, std::uint64_t site) {
  const auto mask = dropout_mask(p, pass, site);
  return mask.drops() ? Dropout::apply(x, mask) : x;
}

torch::Tensor add_dropped(const torch::Tensor& residual, const torch::Tensor& x, double p,
                          const Pass& pass, std::uint64_t site) {
  const auto mask = dropout_mask(p, pass, site);
  if (!x.device().is_cpu() || !mask.drops()) return residual + dropout(x, p, pass, site);
  return AddDropped::apply(residual, x, mask);
}

torch::Tensor dropped_gelu(const torch::Tensor& x, double p, const Pass& pass, std::uint64_t site) {
  if (!x.device().is_cpu()) return dropout(at::gelu(x), p, pass, site);
  return DroppedGelu::apply(x, dropout_mask(p, pass, site));
}

}  // namespace nas::nn
