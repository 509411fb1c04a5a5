#include "ops/dropout.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>

#include "kernels/elementwise.hpp"
#include "ops/array_op.hpp"
#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {

namespace {

using kernels::Map;

/// A map of tensors of one shape (R, ...), element by element, counted within a model; by kernels.
torch::Tensor mapped(Map map, const Tensors& given, const Masks& masks) {
  const auto models = std::ssize(masks.of_models);
  TORCH_CHECK(given[0].size(0) == models, models, " masks do not fit ", given[0].sizes());
  Tensors in;
  for (const auto& x : given) in.push_back(x.contiguous());
  auto out = unwritten(in[0]);
  if (const auto* device = device_operations(out.device())) {
    device->map(map, in, {}, out, masks);
    return out;
  }
  constexpr std::int64_t kPiece = std::int64_t{1} << 15U;
  const std::int64_t elements = out.numel() / models;
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "mapped", [&] {
    for_pieces(models, elements, kPiece, 1, [&](auto model, auto first, auto size) {
      const auto mask = masks.of(static_cast<std::size_t>(model), out);
      const std::int64_t at = model * elements + first;
      kernels::MapInputs<scalar_t> inputs{};
      for (std::size_t i = 0; i < in.size(); ++i) inputs[i] = in[i].data_ptr<scalar_t>() + at;
      kernels::map_elements<scalar_t>(map, inputs, out.data_ptr<scalar_t>() + at, first, size,
                                      mask);
    });
  });
  return out;
}

torch::Tensor dropped(const torch::Tensor& x, const Masks& masks) {
  if (has_kernels(x.device())) return mapped(Map::drop, {x}, masks);
  auto kept = at::empty_like(x, at::MemoryFormat::Contiguous);
  for (std::size_t r = 0; r < masks.of_models.size(); ++r) {
    const auto& mask = masks.of_models[r];
    kept[static_cast<std::int64_t>(r)]
        .bernoulli_(
            1.0 / mask.scale,
            make_generator(x.device(), mask.key + static_cast<std::uint64_t>(masks.first_sequence)))
        .mul_(mask.scale);
  }
  return kept.mul_(x);
}

struct Dropout {
  static constexpr bool kAnyStrides = true;
  Masks masks;

  Tensors forward(const Tensors& in, Tensors& /*saved*/) const { return {dropped(in[0], masks)}; }
  Tensors backward(const Tensors& /*saved*/, const Tensors& by_out) const {
    return {dropped(by_out[0], masks)};
  }
};

/// Of a residual and x.
struct AddDropped {
  static constexpr bool kAnyStrides = true;
  Masks masks;

  Tensors forward(const Tensors& in, Tensors& /*saved*/) const {
    return {mapped(Map::add_dropped, {in[1], in[0]}, masks)};
  }
  Tensors backward(const Tensors& /*saved*/, const Tensors& by_out) const {
    return {by_out[0], dropped(by_out[0], masks)};
  }
};

/// Of hidden values: where rows are shorter, the products beside them cost too little.
constexpr std::int64_t kHiddenMadeAgain = 1024;

struct DroppedGelu {
  static constexpr std::int64_t kMadeAgain = kHiddenMadeAgain;
  Masks masks;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    return {mapped(Map::gelu, in, masks)};
  }
  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    return {mapped(Map::gelu_backward, {saved[0], by_out[0]}, masks)};
  }
};

/// The gradients w.r.t. x, which `like` is, and its bias, by a map of one of them.
Tensors with_bias_gradient(Map map, const Tensors& in, const torch::Tensor& bias,
                           const torch::Tensor& like, const Masks& masks) {
  const auto by_x = unwritten(like);
  const auto by_bias = at::empty({like.size(0), like.size(-1)}, bias.options());
  device_operations(by_x.device())
      ->map(map, in, {map == Map::drop ? torch::Tensor() : bias, by_bias}, by_x, masks);
  return {by_x, by_bias};
}

/// Of x and its bias, on a device.
struct BiasedGelu {
  Masks masks;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    auto out = unwritten(in[0]);
    device_operations(out.device())->map(Map::gelu, {in[0]}, {in[1], {}}, out, masks);
    return {out};
  }
  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    return with_bias_gradient(Map::gelu_backward, {saved[0], by_out[0]}, saved[1], saved[0], masks);
  }
};

/// Of a residual, x and its bias, on a device.
struct AddBiasedDropped {
  Masks masks;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    // Of x the sizes and type alone.
    saved = {in[1].new_empty({0}), in[2]};
    auto out = unwritten(in[0]);
    device_operations(out.device())->map(Map::add_dropped, {in[1], in[0]}, {in[2], {}}, out, masks);
    return {out};
  }
  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto like = at::empty(by_out[0].sizes(), saved[0].options());
    auto by = with_bias_gradient(Map::drop, by_out, saved[1], like, masks);
    return {by_out[0], by[0], by[1]};
  }
};

/// Of a gate and x.
struct DroppedSwiglu {
  static constexpr std::int64_t kMadeAgain = kHiddenMadeAgain;
  Masks masks;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    return {mapped(Map::swiglu, in, masks)};
  }
  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    return {mapped(Map::swiglu_backward, {saved[0], saved[1], by_out[0]}, masks),
            mapped(Map::swiglu, {saved[0], by_out[0]}, masks)};
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

kernels::Dropout Masks::of(std::size_t model, const torch::Tensor& x) const {
  const auto sequences = x.dim() > 1 ? x.size(1) : 1;
  return of(model, x.numel() / std::max<std::int64_t>(1, x.size(0) * sequences));
}

kernels::Dropout Masks::of(std::size_t model, std::int64_t elements) const {
  auto mask = of_models[model];
  mask.first = first_sequence * elements;
  return mask;
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
  masks.first_sequence = pass.first_sequence;
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
  return array_op(Dropout{masks}, {x})[0];
}

torch::Tensor add_dropped(const torch::Tensor& residual, const Biased& given, const Masks& masks) {
  const auto& x = given.values;
  TORCH_CHECK(residual.sizes() == x.sizes(), "dropout of ", x.sizes(), " cannot be added to ",
              residual.sizes());
  if (given.bias.defined()) {
    return array_op(AddBiasedDropped{masks}, {residual, x, given.bias})[0];
  }
  if (!masks.any_drops()) return residual + x;
  if (!has_kernels(x.device())) return residual + dropout(x, masks);
  return array_op(AddDropped{masks}, {residual, x})[0];
}

torch::Tensor dropped_gelu(const Biased& given, const Masks& masks) {
  const auto& x = given.values;
  if (given.bias.defined()) return array_op(BiasedGelu{masks}, {x, given.bias})[0];
  if (!has_kernels(x.device())) return dropout(at::gelu(x), masks);
  return array_op(DroppedGelu{masks}, {x})[0];
}

torch::Tensor dropped_swiglu(const torch::Tensor& gate, const torch::Tensor& x,
                             const Masks& masks) {
  if (!x.device().is_cpu() || device_operations(x.device()) != nullptr) {
    return dropout(at::silu(gate) * x, masks);
  }
  TORCH_CHECK(gate.sizes() == x.sizes(), "a gate of ", gate.sizes(), " cannot be that of ",
              x.sizes());
  return array_op(DroppedSwiglu{masks}, {gate, x})[0];
}

}  // namespace nas::nn
