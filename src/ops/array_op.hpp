#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

namespace nas::nn {

using Tensors = std::vector<torch::Tensor>;

/// One operation of autograd on the tensors of an array of models. Op holds what is no tensor and
/// has the two passes:
///
///   Tensors forward(const Tensors& in, Tensors& saved) const;
///   Tensors backward(const Tensors& saved, const Tensors& by_out) const;
///
/// forward() leaves in `saved` what backward() needs, which gives the gradients w.r.t. each of `in`;
/// both may have undefined tensors. `in` and `by_out` are contiguous, unless Op declares kAnyStrides.
/// Where Op declares kSomeGradients, gradients that are zero may be undefined in by_out. Not for
/// second derivatives.
template <class Op>
class ArrayOp : public torch::autograd::Function<ArrayOp<Op>> {
 public:
  static Tensors run(Op op, const Tensors& in) {
    Tensors defined;  // LibTorch takes no others
    std::vector<bool> given;
    for (const auto& x : in) {
      given.push_back(x.defined());
      if (x.defined()) defined.push_back(x);
    }
    return ArrayOp::apply(at::TensorList(defined),
                          c10::make_intrusive<Call>(std::move(op), std::move(given)));
  }

  // What LibTorch calls.

  struct Call : torch::CustomClassHolder {
    Op op;
    std::vector<bool> given;
    Call(Op operation, std::vector<bool> defined)
        : op(std::move(operation)), given(std::move(defined)) {}
  };

  static Tensors forward(torch::autograd::AutogradContext* context, at::TensorList defined,
                         const c10::intrusive_ptr<Call>& call) {
    if constexpr (requires { Op::kSomeGradients; }) context->set_materialize_grads(false);
    Tensors in;
    auto next = defined.begin();
    for (const bool is_given : call->given)
      in.push_back(is_given ? laid_out(*next++) : torch::Tensor());
    Tensors saved;
    auto out = call->op.forward(in, saved);
    context->save_for_backward(std::move(saved));
    context->saved_data["call"] = at::IValue::make_capsule(call);
    return out;
  }

  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& given) {
    const auto capsule = context->saved_data["call"].toCapsule();
    const auto& call = static_cast<const Call&>(*capsule);
    Tensors by_out;
    for (const auto& gradient : given) by_out.push_back(laid_out(gradient));
    auto by_in = call.op.backward(context->get_saved_variables(), by_out);
    Tensors by_defined;
    for (std::size_t i = 0; i < by_in.size(); ++i) {
      if (call.given[i]) by_defined.push_back(std::move(by_in[i]));
    }
    by_defined.emplace_back();  // of the call
    return by_defined;
  }

 private:
  static torch::Tensor laid_out(const torch::Tensor& x) {
    if constexpr (requires { Op::kAnyStrides; }) return x;
    return x.defined() ? x.contiguous() : x;
  }
};

/// Runs one, by autograd where that is asked for.
template <class Op>
Tensors array_op(Op op, const Tensors& in) {
  return ArrayOp<Op>::run(std::move(op), in);
}

/// An unwritten tensor of the same sizes, contiguous; undefined for an undefined one.
inline torch::Tensor unwritten(const torch::Tensor& x) {
  return x.defined() ? at::empty(x.sizes(), x.options()) : x;
}

inline Tensors unwritten(const Tensors& all) {
  Tensors made;
  for (const auto& x : all) made.push_back(unwritten(x));
  return made;
}

/// The elements of row r, say a model's, of x (R, ...), contiguous; null where there is none: r < 0, or x
/// is undefined.
template <class Real>
Real* row_of(const torch::Tensor& x, std::int64_t r) {
  if (r < 0 || !x.defined()) return nullptr;
  return x.data_ptr<std::remove_const_t<Real>>() + r * (x.numel() / x.size(0));
}

/// Calls run(model, first, size) on LibTorch's threads for pieces [first, first + size) of the elements,
/// or rows, of each model: neither threads nor other models decide where one begins.
template <class Run>
void for_pieces(std::int64_t models, std::int64_t elements, std::int64_t piece, std::int64_t grain,
                const Run& run) {
  const std::int64_t pieces = (elements + piece - 1) / piece;
  at::parallel_for(0, models * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % pieces * piece;
      run(i / pieces, first, std::min(piece, elements - first));
    }
  });
}

}  // namespace nas::nn
