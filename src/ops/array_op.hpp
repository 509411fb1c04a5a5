#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

namespace nas::nn {

using Tensors = std::vector<torch::Tensor>;

/// What makes an operation's result again, from what its backward pass keeps, for the backward passes of the operations
/// that read it: on the CPU these do not keep it. LibTorch holds it beside the operation; as a hook it does nothing.
class Again : public torch::autograd::FunctionPreHook {
 public:
  /// That of x. null: there is none.
  static Again* of(const torch::Tensor& x) {
    if (!x.defined() || !x.is_cpu() || !x.grad_fn()) return nullptr;
    const auto& hooks = x.grad_fn()->pre_hooks();
    return hooks.empty() ? nullptr : dynamic_cast<Again*>(hooks.front().get());
  }

  void add_reader() { ++readers_; }
  /// Kept from one of several readers to the next.
  torch::Tensor result() {
    auto x = made_.defined() ? made_ : make().requires_grad_();
    made_ = --readers_ > 0 ? x : torch::Tensor();
    return x;
  }

  Tensors operator()(const Tensors& gradients) override { return gradients; }

 private:
  virtual torch::Tensor make() = 0;

  std::int64_t readers_ = 0;
  torch::Tensor made_;
};

/// One operation of autograd on the tensors of an array of models. Op holds what is no tensor and has the two passes:
///
///   Tensors forward(const Tensors& in, Tensors& saved) const;
///   Tensors backward(const Tensors& saved, const Tensors& by_out) const;
///
/// forward() leaves in `saved` what backward() needs, which gives the gradients w.r.t. each of `in`; both may have
/// undefined tensors. `in` and `by_out` are contiguous, unless Op declares kAnyStrides. Where Op declares
/// kSomeGradients, gradients that are zero may be undefined in by_out. Where it declares kMadeAgain, it has one result,
/// made again where its rows have at least so many numbers, and `saved` begins with `in`. Not for second derivatives.
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
    auto out = ArrayOp::apply(at::TensorList(defined),
                              c10::make_intrusive<Call>(std::move(op), std::move(given)));
    if constexpr (requires { Op::kMadeAgain; }) {
      const auto& node = out[0].grad_fn();
      if (node && out[0].size(-1) >= Op::kMadeAgain)
        node->add_pre_hook(std::make_unique<Made>(*node));
    }
    return out;
  }

  // What LibTorch calls.

  struct Call : torch::CustomClassHolder {
    Op op;
    std::vector<bool> given;
    bool trains = at::GradMode::is_enabled();
    std::vector<std::pair<std::size_t, Again*>> again{};  ///< which of what is saved are not kept
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
    for (std::size_t i = 0; i < saved.size() && call->trains; ++i) {
      auto* again = Again::of(saved[i]);
      if (again == nullptr) continue;
      again->add_reader();
      call->again.emplace_back(i, again);
      saved[i].reset();
    }
    context->save_for_backward(std::move(saved));
    context->saved_data["call"] = at::IValue::make_capsule(call);
    return out;
  }

  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& given) {
    const auto& call = call_of(*context);
    Tensors by_out;
    for (const auto& gradient : given) by_out.push_back(laid_out(gradient));
    auto by_in = call.op.backward(saved_of(*context), by_out);
    Tensors by_defined;
    for (std::size_t i = 0; i < by_in.size(); ++i) {
      if (call.given[i]) by_defined.push_back(std::move(by_in[i]));
    }
    by_defined.emplace_back();  // of the call
    return by_defined;
  }

 private:
  using Context = torch::autograd::AutogradContext;

  class Made final : public Again {
   public:
    explicit Made(torch::autograd::Node& node)
        : context_(static_cast<torch::autograd::CppNode<ArrayOp>&>(node).ctx_) {}

   private:
    torch::Tensor make() override {
      Tensors saved;
      return call_of(context_).op.forward(saved_of(context_), saved)[0];
    }

    Context& context_;
  };

  static const Call& call_of(Context& context) {
    const auto capsule = context.saved_data["call"].toCapsule();
    return static_cast<const Call&>(*capsule);
  }

  static Tensors saved_of(Context& context) {
    auto saved = context.get_saved_variables();
    for (const auto& [i, again] : call_of(context).again) saved[i] = again->result();
    return saved;
  }

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

/// The elements of row r, say a model's, of x (R, ...), contiguous; null where there is none: r < 0, or x is undefined.
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
