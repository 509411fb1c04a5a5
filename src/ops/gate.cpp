#include "ops/gate.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"
#include "ops/kept.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Pointers to an element of each tensor; null where there is none.
template <class Pointer>
kernels::GatedTerms<Pointer> at_element(const GatedTensors& tensors, std::int64_t element) {
  kernels::GatedTerms<Pointer> pointers{};
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t].defined()) continue;
    pointers[t] = tensors[t].data_ptr<std::remove_const_t<Pointer>>() + element;
  }
  return pointers;
}

/// Calls run(sum, first element in the array, first of its logits, how many) for pieces of the
/// models, on LibTorch's threads.
template <class Run>
void for_pieces(const GatedSums& sums, std::int64_t elements, const Run& run) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 14U;
  const auto models = static_cast<std::int64_t>(sums.of_models.size());
  const std::int64_t pieces = (elements + kGrain - 1) / kGrain;
  at::parallel_for(0, models * pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t model = piece / pieces;
      const std::int64_t first = piece % pieces * kGrain;
      const auto& sum = sums.of_models[static_cast<std::size_t>(model)];
      run(sum, model * elements + first, sum.row * elements + first,
          std::min(kGrain, elements - first));
    }
  });
}

std::int64_t elements_of_model(const torch::Tensor& x) { return x.numel() / x.size(0); }

void sum_terms(const GatedSums& sums, const GatedTensors& terms, const torch::Tensor& logits,
               const torch::Tensor& out) {
  if (const auto* device = device_operations(out.device())) {
    device->gated_sum(sums, terms, logits, out);
    return;
  }
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "gated_sum", [&] {
    const auto* gates = logits.defined() ? logits.data_ptr<scalar_t>() : nullptr;
    for_pieces(sums, elements_of_model(out), [&](const auto& sum, auto at, auto row, auto size) {
      kernels::gated_sum<scalar_t>(sum, sum.is_gated() ? gates + row : nullptr,
                                   at_element<const scalar_t>(terms, at),
                                   out.data_ptr<scalar_t>() + at, size);
    });
  });
}

void sum_terms_backward(const GatedSums& sums, const GatedTensors& terms,
                        const torch::Tensor& logits, const torch::Tensor& by_sum,
                        const GatedTensors& by_terms, const torch::Tensor& by_logits) {
  if (const auto* device = device_operations(by_sum.device())) {
    device->gated_sum_backward(sums, terms, logits, by_sum, by_terms, by_logits);
    return;
  }
  AT_DISPATCH_FLOATING_TYPES(by_sum.scalar_type(), "gated_sum_backward", [&] {
    const auto* gates = logits.defined() ? logits.data_ptr<scalar_t>() : nullptr;
    auto* by_gates = by_logits.defined() ? by_logits.data_ptr<scalar_t>() : nullptr;
    for_pieces(sums, elements_of_model(by_sum), [&](const auto& sum, auto at, auto row, auto size) {
      const bool has_row = sum.row >= 0 && gates != nullptr;
      kernels::gated_sum_backward<scalar_t>(
          sum, has_row ? gates + row : nullptr, at_element<const scalar_t>(terms, at),
          by_sum.data_ptr<scalar_t>() + at, has_row ? by_gates + row : nullptr,
          at_element<scalar_t>(by_terms, at), size);
    });
  });
}

class GatedSum : public torch::autograd::Function<GatedSum> {
 public:
  /// @param given  the terms that are read, and the logits if any sum is gated.
  static torch::Tensor forward(AutogradContext* context, at::TensorList given,
                               const GatedSums& sums) {
    variable_list inputs;
    for (const auto& input : given) inputs.push_back(input.contiguous());
    auto out = at::empty(inputs.front().sizes(), inputs.front().options());
    const auto [terms, logits] = in_places(sums, inputs);
    sum_terms(sums, terms, logits, out);
    context->save_for_backward(std::move(inputs));
    keep(context, make_kept(sums));
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& sums = kept<GatedSums>(context);
    const auto inputs = context->get_saved_variables();
    variable_list by_inputs;
    for (const auto& input : inputs) by_inputs.push_back(at::empty(input.sizes(), input.options()));
    const auto [terms, logits] = in_places(sums, inputs);
    const auto [by_terms, by_logits] = in_places(sums, by_inputs);
    sum_terms_backward(sums, terms, logits, gradients[0].contiguous(), by_terms, by_logits);
    by_inputs.emplace_back();
    return by_inputs;
  }

 private:
  struct Places {
    GatedTensors terms;
    torch::Tensor logits;
  };

  static Places in_places(const GatedSums& sums, const variable_list& given) {
    Places places;
    auto next = given.begin();
    for (std::size_t t = 0; t < places.terms.size(); ++t) {
      if (sums.reads(t)) places.terms[t] = *next++;
    }
    if (sums.is_gated()) places.logits = *next;
    return places;
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
  std::vector<torch::Tensor> read;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (sums.reads(t)) read.push_back(terms[t]);
  }
  for (const auto& term : read) {
    TORCH_CHECK(term.sizes() == read.front().sizes() &&
                    term.size(0) == static_cast<std::int64_t>(sums.of_models.size()),
                "a gated sum of ", sums.of_models.size(), " models has terms ",
                read.front().sizes(), " and ", term.sizes());
  }
  if (sums.is_gated()) {
    TORCH_CHECK(logits.defined() && logits.sizes().slice(1) == read.front().sizes().slice(1),
                "logits of a gated sum do not fit its terms ", read.front().sizes());
    read.push_back(logits);
  }
  return GatedSum::apply(at::TensorList(read), sums);
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
