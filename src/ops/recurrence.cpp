#include "ops/recurrence.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>

#include "kernels/recurrence.hpp"
#include "ops/array_op.hpp"
#include "ops/device_operations.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

constexpr std::int64_t kChunk = 16;  // of channels the most: e^(5 * 16 / 2) is far within float32

enum Input : std::size_t { kQueries, kKeys, kValues, kLogDecays, kErased };

/// (R, B, H, T, n) in the memory of (R, B, T, H, n), in which projections lie.
torch::Tensor unwritten_heads(const torch::Tensor& like, std::int64_t width) {
  return at::empty({like.size(0), like.size(1), like.size(3), like.size(2), width}, like.options())
      .transpose(2, 3);
}

torch::Tensor with_rows(const torch::Tensor& x) {
  return !x.defined() || x.stride(-1) == 1 || x.size(-1) == 1 ? x : x.contiguous();
}

/// Of the inputs above, outputs and states.
struct RecurrenceOp {
  static constexpr bool kAnyStrides = true;
  static constexpr bool kSomeGradients = true;
  std::int64_t chunk;
  bool by_channel;
  bool learns_decays;

  Tensors forward(const Tensors& given, Tensors& saved) const {
    Tensors in;
    for (const auto& x : given) in.push_back(with_rows(x));
    const auto shape = shape_of(in);
    const auto sequences = in[kValues].size(0) * in[kValues].size(1) * in[kValues].size(2);
    const auto options = in[kValues].options();
    auto outputs = unwritten_heads(in[kValues], shape.width);
    const auto states =
        at::empty({sequences, shape.chunks() + 1, shape.features, shape.padded_width()}, options);
    const auto updates = at::empty({sequences, shape.tokens, shape.padded_width()}, options);
    if (const auto* device = device_operations(outputs.device())) {
      device->recurrence(shape, in, states, updates, outputs);
    } else {
      AT_DISPATCH_FLOATING_TYPES(outputs.scalar_type(), "recurrence", [&] {
        for_sequences<scalar_t>(in, shape, [&](auto i, auto* scratch) {
          kernels::recurrence<scalar_t>(shape, rows_of<const scalar_t>(in, i),
                                        {row_of<scalar_t>(states, i), row_of<scalar_t>(updates, i)},
                                        rows<scalar_t>(outputs, i), scratch);
        });
      });
    }
    saved = in;
    saved.push_back(states);
    saved.push_back(updates);
    auto sizes = in[kValues].sizes().slice(0, 3).vec();
    sizes.insert(sizes.end(), {shape.features, shape.width});
    return {outputs, states.select(1, shape.chunks()).narrow(-1, 0, shape.width).reshape(sizes)};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const Tensors in(saved.begin(), saved.end() - 2);
    const auto& states = saved[saved.size() - 2];
    const auto& updates = saved.back();
    const auto shape = shape_of(in);
    const auto by_outputs =
        by_out[0].defined() ? with_rows(by_out[0]) : at::zeros_like(in[kValues]);
    const auto by_state =
        by_out[1].defined() ? by_out[1].contiguous().flatten(0, 2) : torch::Tensor();
    Tensors by;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool wanted = in[i].defined() && (i != kLogDecays || learns_decays);
      by.push_back(wanted ? unwritten_heads(in[kValues], in[i].size(-1)) : torch::Tensor());
    }
    if (const auto* device = device_operations(by_outputs.device())) {
      device->recurrence_backward(shape, in, states, updates, by_outputs, by_state, by);
      return by;
    }
    AT_DISPATCH_FLOATING_TYPES(by_outputs.scalar_type(), "recurrence_backward", [&] {
      for_sequences<scalar_t>(in, shape, [&](auto i, auto* scratch) {
        kernels::recurrence_backward<scalar_t>(
            shape, rows_of<const scalar_t>(in, i),
            {row_of<scalar_t>(states, i), row_of<scalar_t>(updates, i)},
            rows<const scalar_t>(by_outputs, i), row_of<scalar_t>(by_state, i),
            rows_of<scalar_t>(by, i), scratch);
      });
    });
    return by;
  }

 private:
  [[nodiscard]] kernels::RecurrenceShape shape_of(const Tensors& in) const {
    return {in[kValues].size(3), in[kKeys].size(-1), in[kValues].size(-1), chunk, by_channel};
  }

  /// Those of sequence i.
  template <class Real>
  static kernels::TokenRows<Real> rows(const torch::Tensor& x, std::int64_t i) {
    if (!x.defined()) return {};
    const auto heads = x.size(2), batch = x.size(1);
    const auto at = i / (heads * batch) * x.stride(0) + i / heads % batch * x.stride(1) +
                    i % heads * x.stride(2);
    return {x.data_ptr<std::remove_const_t<Real>>() + at, x.stride(3)};
  }
  template <class Real>
  static kernels::RecurrenceRows<Real> rows_of(const Tensors& x, std::int64_t i) {
    return {rows<Real>(x[kQueries], i), rows<Real>(x[kKeys], i), rows<Real>(x[kValues], i),
            rows<Real>(x[kLogDecays], i), rows<Real>(x[kErased], i)};
  }

  /// Calls run(i, scratch) for all sequences.
  template <class Real, class Run>
  static void for_sequences(const Tensors& in, const kernels::RecurrenceShape& shape,
                            const Run& run) {
    const auto sequences = in[kValues].size(0) * in[kValues].size(1) * in[kValues].size(2);
    at::parallel_for(0, sequences, 1, [&](std::int64_t begin, std::int64_t end) {
      const Scratch<Real> scratch(kernels::recurrence_scratch(shape));
      for (std::int64_t i = begin; i < end; ++i) run(i, scratch.data());
    });
  }
};

std::int64_t tokens_of_chunk(const Recurrence& sequence, std::int64_t chunk) {
  auto size = chunk > 0 ? chunk : kChunk;
  if (sequence.by_channel) size = std::min(size, kChunk);
  return std::min(size, sequence.values.size(-2));
}

}  // namespace

bool has_recurrence_kernel(const Recurrence& sequence, std::int64_t chunk) {
  const auto& values = sequence.values;
  const auto* device = device_operations(values.device());
  if (device == nullptr) return values.device().is_cpu();
  return device->recurrence_fits({values.size(-2), sequence.keys.size(-1), values.size(-1),
                                  tokens_of_chunk(sequence, chunk), sequence.by_channel},
                                 values.scalar_type());
}

Recurred recurrence(const Recurrence& sequence, std::int64_t chunk) {
  auto result = array_op(
      RecurrenceOp{tokens_of_chunk(sequence, chunk), sequence.by_channel,
                   sequence.log_decays.defined() && sequence.log_decays.requires_grad()},
      {sequence.queries, sequence.keys, sequence.values, sequence.log_decays, sequence.erased});
  return {std::move(result[0]), std::move(result[1])};
}

}  // namespace nas::nn
