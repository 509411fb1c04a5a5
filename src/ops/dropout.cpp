#include "ops/dropout.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "kernels/elementwise.hpp"
#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"
#include "ops/kept.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A map of one or two tensors of one shape (R, ...) on the CPU, element by element:
/// map(in..., out, first, size, mask), elements counted within a model.
template <class Map, class... In>
torch::Tensor mapped(const Map& map, const Masks& masks, const torch::Tensor& x,
                     const In&... others) {
  const auto in = x.contiguous();
  auto out = at::empty(in.sizes(), in.options());
  const auto models = static_cast<std::int64_t>(masks.of_models.size());
  TORCH_CHECK(in.size(0) == models, models, " masks do not fit ", x.sizes());
  const std::int64_t elements = in.numel() / models;
  constexpr std::int64_t kGrain = std::int64_t{1} << 15U;  // elements that a thread takes at once
  const std::int64_t pieces = (elements + kGrain - 1) / kGrain;
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "mapped", [&] {
    at::parallel_for(0, models * pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t piece = begin; piece < end; ++piece) {
        const std::int64_t model = piece / pieces;
        const std::int64_t first = piece % pieces * kGrain;
        const std::int64_t at = model * elements + first;
        map(in.data_ptr<scalar_t>() + at, others.template data_ptr<scalar_t>() + at...,
            out.data_ptr<scalar_t>() + at, first, std::min(kGrain, elements - first),
            masks.of_models[static_cast<std::size_t>(model)]);
      }
    });
  });
  return out;
}

torch::Tensor dropped(const torch::Tensor& x, const Masks& masks) {
  if (const auto* device = device_operations(x.device())) {
    return device->dropped(x.contiguous(), masks);
  }
  if (!x.device().is_cpu()) {
    auto kept = at::empty_like(x, at::MemoryFormat::Contiguous);
    for (std::size_t r = 0; r < masks.of_models.size(); ++r) {
      const auto& mask = masks.of_models[r];
      kept[static_cast<std::int64_t>(r)]
          .bernoulli_(1.0 / mask.scale, make_generator(x.device(), mask.key))
          .mul_(mask.scale);
    }
    return kept.mul_(x);
  }
  return mapped([](const auto* in, auto* out, std::int64_t first, std::int64_t size,
                   const auto& mask) { kernels::drop(in, out, first, size, mask); },
                masks, x);
}

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const Masks& masks) {
    keep(context, make_kept(masks));
    return dropped(x, masks);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {dropped(gradients[0], kept<Masks>(context)), {}};
  }
};

class AddDropped : public torch::autograd::Function<AddDropped> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& residual,
                               const torch::Tensor& x, const Masks& masks) {
    TORCH_CHECK(residual.sizes() == x.sizes(), "dropout of ", x.sizes(), " cannot be added to ",
                residual.sizes());
    keep(context, make_kept(masks));
    if (const auto* device = device_operations(x.device())) {
      return device->add_dropped(residual.contiguous(), x.contiguous(), masks);
    }
    return mapped(
        [](const auto* in, const auto* stream, auto* out, std::int64_t first, std::int64_t size,
           const auto& mask) { kernels::add_dropped(in, stream, out, first, size, mask); },
        masks, x, residual.contiguous());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0], dropped(gradients[0], kept<Masks>(context)), {}};
  }
};

class DroppedGelu : public torch::autograd::Function<DroppedGelu> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               const Masks& masks) {
    const auto x = given.contiguous();
    keep(context, make_kept(masks));
    context->save_for_backward({x});
    if (const auto* device = device_operations(x.device())) return device->dropped_gelu(x, masks);
    return mapped([](const auto* in, auto* out, std::int64_t first, std::int64_t size,
                     const auto& mask) { kernels::gelu(in, out, first, size, mask); },
                  masks, x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& masks = kept<Masks>(context);
    const auto x = context->get_saved_variables()[0];
    const auto gradient = gradients[0].contiguous();
    if (const auto* device = device_operations(x.device())) {
      return {device->dropped_gelu_backward(x, gradient, masks), {}};
    }
    return {
        mapped(
            [](const auto* in, const auto* by_out, auto* out, std::int64_t first, std::int64_t size,
               const auto& mask) { kernels::gelu_backward(in, by_out, out, first, size, mask); },
            masks, x, gradient),
        {}};
  }
};

/// On the CPU.
class DroppedSwiglu : public torch::autograd::Function<DroppedSwiglu> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given_gate,
                               const torch::Tensor& given, const Masks& masks) {
    const auto gate = given_gate.contiguous();
    const auto x = given.contiguous();
    TORCH_CHECK(gate.sizes() == x.sizes(), "a gate of ", gate.sizes(), " cannot be that of ",
                x.sizes());
    keep(context, make_kept(masks));
    context->save_for_backward({gate, x});
    return gated(gate, x, masks);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& masks = kept<Masks>(context);
    const auto saved = context->get_saved_variables();
    const auto gradient = gradients[0].contiguous();
    const auto by_gate = mapped(
        [](const auto* gate, const auto* in, const auto* by_out, auto* out, std::int64_t first,
           std::int64_t size, const auto& mask) {
          kernels::swiglu_backward(gate, in, by_out, out, first, size, mask);
        },
        masks, saved[0], saved[1], gradient);
    return {by_gate, gated(saved[0], gradient, masks), {}};
  }

 private:
  static torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& x,
                             const Masks& masks) {
    return mapped(
        [](const auto* opened, const auto* in, auto* out, std::int64_t first, std::int64_t size,
           const auto& mask) { kernels::swiglu(opened, in, out, first, size, mask); },
        masks, gate, x);
  }
};

}  // namespace

Pass Pass::on(torch::Device device) const {
  if (!training || device_seeds.defined() || device_operations(device) == nullptr) return *this;
  auto pass = *this;
  const std::vector<std::int64_t> bits(seeds.begin(), seeds.end());
  pass.device_seeds = sent(at::tensor(bits, at::TensorOptions(at::kLong)), device);
  return pass;
}

bool Masks::any_drops() const {
  return std::any_of(of_models.begin(), of_models.end(),
                     [](const auto& mask) { return mask.drops(); });
}

Masks dropout_masks(const std::vector<double>& shares, const Pass& pass, std::uint64_t site) {
  Masks masks{std::vector<kernels::Dropout>(shares.size())};
  if (!pass.training) return masks;
  masks.seeds = pass.device_seeds;
  masks.site = site;
  const bool on_device = pass.seeds.empty() && masks.seeds.defined();
  const auto seeds = on_device ? masks.seeds.size(0) : static_cast<std::int64_t>(pass.seeds.size());
  TORCH_CHECK(seeds == static_cast<std::int64_t>(shares.size()), "a pass of ", shares.size(),
              " models has ", seeds, " seeds");
  for (std::size_t r = 0; r < shares.size(); ++r) {
    if (shares[r] == 0.0) continue;
    const auto key = on_device ? 0 : kernels::dropout_key(pass.seeds[r], site);
    masks.of_models[r] = kernels::Dropout::of(key, shares[r]);
  }
  return masks;
}

Masks dropout_masks(double p, const Pass& pass, std::uint64_t site, std::int64_t models) {
  return dropout_masks(std::vector<double>(static_cast<std::size_t>(models), p), pass, site);
}

torch::Tensor dropout(const torch::Tensor& x, const Masks& masks) {
  if (!masks.any_drops()) return x;
  return Dropout::apply(x, masks);
}

torch::Tensor add_dropped(const torch::Tensor& residual, const torch::Tensor& x,
                          const Masks& masks) {
  if (!masks.any_drops()) return residual + x;
  if (!has_kernels(x.device())) return residual + dropout(x, masks);
  return AddDropped::apply(residual, x, masks);
}

torch::Tensor dropped_gelu(const torch::Tensor& x, const Masks& masks) {
  if (!has_kernels(x.device())) return dropout(at::gelu(x), masks);
  return DroppedGelu::apply(x, masks);
}

torch::Tensor dropped_swiglu(const torch::Tensor& gate, const torch::Tensor& x,
                             const Masks& masks) {
  if (!x.device().is_cpu()) return dropout(at::silu(gate) * x, masks);
  return DroppedSwiglu::apply(gate, x, masks);
}

}  // namespace nas::nn
