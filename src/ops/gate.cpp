#include "ops/gate.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>

#include "ops/array_op.hpp"
#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"

namespace nas::nn {

namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 14U;  // elements that a thread takes at once

/// Pointers to an element of each tensor; null where there is none.
template <class Pointer>
kernels::GatedTerms<Pointer> at_element(const Tensors& terms, std::int64_t element) {
  kernels::GatedTerms<Pointer> pointers{};
  for (std::size_t t = 0; t < pointers.size(); ++t) {
    if (!terms[t].defined()) continue;
    pointers[t] = terms[t].data_ptr<std::remove_const_t<Pointer>>() + element;
  }
  return pointers;
}

/// Of the terms that any model's sum reads, then the logits if one is gated.
struct GatedSumOp {
  static constexpr std::int64_t kMadeAgain = 1;
  GatedSums sums;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    const auto& like =
        *std::find_if(in.begin(), in.end(), [](const auto& x) { return x.defined(); });
    auto out = unwritten(like);
    if (const auto* device = device_operations(out.device())) {
      device->gated_sum(sums, in, out);
      return {out};
    }
    AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "gated_sum", [&] {
      for_sums(out, [&](const auto& sum, auto at, auto row, auto size) {
        const auto* logits = sum.is_gated() ? in.back().data_ptr<scalar_t>() + row : nullptr;
        kernels::gated_sum<scalar_t>(sum, logits, at_element<const scalar_t>(in, at),
                                     out.data_ptr<scalar_t>() + at, size);
      });
    });
    return {out};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    auto by = unwritten(saved);
    const auto& by_sum = by_out[0];
    if (const auto* device = device_operations(by_sum.device())) {
      device->gated_sum_backward(sums, saved, by_sum, by);
      return by;
    }
    AT_DISPATCH_FLOATING_TYPES(by_sum.scalar_type(), "gated_sum_backward", [&] {
      for_sums(by_sum, [&](const auto& sum, auto at, auto row, auto size) {
        const bool has_row = sum.row >= 0 && saved.back().defined();
        const auto logits_of = [&](const Tensors& tensors) {
          return has_row ? tensors.back().template data_ptr<scalar_t>() + row : nullptr;
        };
        kernels::gated_sum_backward<scalar_t>(
            sum, logits_of(saved), at_element<const scalar_t>(saved, at),
            by_sum.data_ptr<scalar_t>() + at, logits_of(by), at_element<scalar_t>(by, at), size);
      });
    });
    return by;
  }

 private:
  /// Calls run(sum, first element in the array, first of its logits, how many).
  template <class Run>
  void for_sums(const torch::Tensor& like, const Run& run) const {
    const std::int64_t elements = like.numel() / like.size(0);
    for_pieces(like.size(0), elements, kPiece, 1, [&](auto model, auto first, auto size) {
      const auto& sum = sums.of_models[static_cast<std::size_t>(model)];
      run(sum, model * elements + first, sum.row * elements + first, size);
    });
  }
};

/// Sends sums to a device whose kernels read them there.
void send(GatedSums& sums, torch::Device device) {
  if (device_operations(device) == nullptr) return;
  if (sums.on_device.defined() && sums.on_device.device() == device) return;
  const auto bytes = static_cast<std::int64_t>(sums.of_models.size() * sizeof(kernels::GatedSum));
  const auto host = at::empty({bytes}, at::TensorOptions(at::kByte));
  std::copy_n(sums.of_models.data(), sums.of_models.size(),
              static_cast<kernels::GatedSum*>(host.data_ptr()));
  sums.on_device = sent(host, device);
}

}  // namespace

bool GatedSums::reads(std::size_t t) const {
  return std::any_of(of_models.begin(), of_models.end(),
                     [t](const auto& sum) { return !sum.factors[t].is_zero(); });
}

bool GatedSums::is_gated() const {
  return std::any_of(of_models.begin(), of_models.end(),
                     [](const auto& sum) { return sum.is_gated(); });
}

bool GatedSums::is_copy() const {
  return std::all_of(of_models.begin(), of_models.end(), [](const kernels::GatedSum& sum) {
    return !sum.is_gated() && sum.factors[0].constant == 1.0F && sum.factors[1].is_zero() &&
           sum.factors[2].is_zero();
  });
}

torch::Tensor gated_sum(const GatedSums& sums, const GatedTensors& terms,
                        const torch::Tensor& logits) {
  if (sums.is_copy()) return terms[0];
  Tensors in(terms.size() + 1);
  const torch::Tensor* first = nullptr;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (!sums.reads(t)) continue;
    in[t] = terms[t];
    if (first == nullptr) first = &terms[t];
    TORCH_CHECK(terms[t].sizes() == first->sizes() && first->size(0) == std::ssize(sums.of_models),
                "a gated sum of ", sums.of_models.size(), " models has terms ", first->sizes(),
                " and ", terms[t].sizes());
  }
  if (sums.is_gated()) {
    TORCH_CHECK(logits.defined() && logits.sizes().slice(1) == first->sizes().slice(1),
                "logits of a gated sum do not fit its terms ", first->sizes());
    in.back() = logits;
  }
  return array_op(GatedSumOp{sums}, in)[0];
}

FusedGates::FusedGates(const std::vector<Group>& groups, std::int64_t models, NumericalMode mode)
    : mode_(mode),
      input_{std::vector<kernels::GatedSum>(static_cast<std::size_t>(models))},
      increment_(input_) {
  std::int32_t rows = 0;
  for (const auto& [of_group, form] : groups) {
    const auto& gate = form.gate;
    const bool has_logits = form.weight.defined();
    const kernels::GatedSum factors{{gate.attended, gate.copied, gate.residual}};
    TORCH_CHECK(has_logits || (gate.input.gated == 0.0F && !factors.is_gated()),
                "a gate that multiplies something has no weight");
    if (has_logits) maps_.push_back({of_group, form.weight, form.bias});
    for (const auto r : of_group) {
      const auto row = has_logits ? rows++ : -1;
      input_.of_models[static_cast<std::size_t>(r)] = {{gate.input}, row};
      increment_.of_models[static_cast<std::size_t>(r)] = {
          {gate.attended, gate.copied, gate.residual}, row};
    }
  }
}

torch::Tensor FusedGates::logits(const torch::Tensor& x) const {
  return maps_.empty() ? torch::Tensor() : partial_linear(x, maps_, mode_);
}

torch::Tensor FusedGates::input(const torch::Tensor& x, const torch::Tensor& logits) {
  send(input_, x.device());
  return gated_sum(input_, {x}, logits);
}

torch::Tensor FusedGates::increment(const torch::Tensor& attended, const torch::Tensor& x,
                                    const torch::Tensor& residual, const torch::Tensor& logits) {
  send(increment_, x.device());
  return gated_sum(increment_, {attended, x, residual}, logits);
}

}  // namespace nas::nn
