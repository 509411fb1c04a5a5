#include "ops/head_gate.hpp"

#include <ATen/Dispatch.h>

#include "kernels/head_gate.hpp"
#include "ops/array_op.hpp"

namespace nas::nn {

namespace {

/// Of x and logits.
struct HeadGateOp {
  GateForm form;
  double factor;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    auto y = unwritten(in[0]);
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "gated_heads", [&] {
      for_rows(in, [&](const auto& gate, auto at, auto logit) {
        kernels::head_gate<scalar_t>(gate, in[0].data_ptr<scalar_t>() + at,
                                     in[1].data_ptr<scalar_t>() + logit,
                                     y.data_ptr<scalar_t>() + at);
      });
    });
    return {y};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    auto by = unwritten(saved);
    AT_DISPATCH_FLOATING_TYPES(by[0].scalar_type(), "gated_heads_backward", [&] {
      for_rows(saved, [&](const auto& gate, auto at, auto logit) {
        kernels::head_gate_backward<scalar_t>(
            gate, saved[0].data_ptr<scalar_t>() + at, saved[1].data_ptr<scalar_t>() + logit,
            by_out[0].data_ptr<scalar_t>() + at, by[0].data_ptr<scalar_t>() + at,
            by[1].data_ptr<scalar_t>() + logit);
      });
    });
    return by;
  }

 private:
  /// Calls run(gate of some rows, their first element, their first logit).
  template <class Run>
  void for_rows(const Tensors& of, const Run& run) const {
    constexpr std::int64_t kElements = std::int64_t{1} << 14U;  // that a thread takes at once
    const auto width = of[0].size(-1);
    const auto logits = of[1].size(-1);
    const auto piece = std::max<std::int64_t>(kElements / width, 1);
    for_pieces(1, of[0].numel() / width, piece, 1, [&](auto, auto first, auto rows) {
      run(kernels::HeadGate{rows, width, logits != width, form == GateForm::silu, factor},
          first * width, first * logits);
    });
  }
};

}  // namespace

torch::Tensor gated_heads(const torch::Tensor& x, const torch::Tensor& logits, GateForm form,
                          double factor) {
  return array_op(HeadGateOp{form, factor}, {x, logits})[0];
}

}  // namespace nas::nn
