#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "core/registry.hpp"
#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"
#include "kernels/normalization.hpp"
#include "nn/mixer.hpp"
#include "ops/dropout.hpp"
#include "ops/fused_attention.hpp"
#include "ops/gate.hpp"
#include "ops/parameter.hpp"
#include "ops/temperature.hpp"

namespace nas::nn {

// Conventions. Tensors are row-major. M models, B batch, T tokens, D width, H heads, d = D / H;
// h (M, B, T, D) residual stream, x = LayerNorm(h); q, k, v (M, B, H, T, d); scores and weights
// (M, B, H, T, T), first queries i, then keys j; key j is visible to query i if j <= i.
//
// An array of R models may mix mechanisms. An option's module stands for the M models of the array
// that have the option: all parameters have a leading dimension of M. On the CPU, where no result
// may depend on the array, M is 1 for an option that has no fused form, and for a similarity that
// is not batch-invariant (nas::Component::placeless).

/// What the options of one attention layer are built from.
struct LayerContext {
  AttentionShape shape;
  Semantics semantics = Semantics::corrected;
};

// A similarity and a normalization may also say how they are computed inside the fused kernel of
// numerical modes exact and fast (ops/fused_attention.hpp); where one of the two has no such form,
// a layer is computed by the operations below in every mode. Likewise for gatings (ops/gate.hpp)
// and temperatures (ops/temperature.hpp).

/// Scores every key for every query.
class Similarity {
 public:
  virtual ~Similarity() = default;
  /// @param q, k  (M, B, H, T, d).
  /// @return  scores (M, B, H, T, T); those of hidden keys may hold any finite value.
  [[nodiscard]] virtual torch::Tensor scores(const torch::Tensor& q,
                                             const torch::Tensor& k) const = 0;
  /// The same in the fused kernel, for as long as the module lives; nothing: it has no such form.
  [[nodiscard]] virtual std::optional<FusedSimilarity> fused() const { return std::nullopt; }
  /// @return T0, the divisor that gives the scores a suitable scale at the start (corrected).
  [[nodiscard]] virtual double start_temperature(const AttentionShape& shape) const = 0;
};

/// Turns scores into weights.
class Normalization {
 public:
  virtual ~Normalization() = default;
  /// @param scores   (M, B, H, T, T), finite.
  /// @param visible  (T, T) bool, true on and below the diagonal.
  /// @return weights (M, B, H, T, T), exactly 0 for hidden keys, never NaN.
  [[nodiscard]] virtual torch::Tensor weights(const torch::Tensor& scores,
                                              const torch::Tensor& visible) const = 0;
  /// The same for one row in the fused kernel; nothing: it has no such form.
  [[nodiscard]] virtual std::optional<kernels::RowNormalization> fused() const {
    return std::nullopt;
  }
};

/// Divides scores by a temperature.
class Temperature {
 public:
  virtual ~Temperature() = default;
  /// @param x  (M, B, T, D), what q, k and v are projected from.
  /// @return the divisors, positive and finite: a tensor that expands to (M, B, H, T, 1), one
  /// number per query.
  [[nodiscard]] virtual torch::Tensor divisors(const torch::Tensor& x) const = 0;
  /// Whether the scores are divided by T0 of the model's similarity as well.
  [[nodiscard]] virtual bool times_start() const { return false; }
  /// The same divisors for arrays of various temperatures, beside a fused kernel; nothing: they are
  /// not of that form.
  [[nodiscard]] virtual std::optional<FusedTemperature> fused() const { return std::nullopt; }
};

/// Gates what goes into attention and what comes out.
class Gating {
 public:
  virtual ~Gating() = default;
  /// @param x  (M, B, T, D), LayerNorm of the residual stream.
  /// @return  what q, k and v are projected from, (M, B, T, D).
  [[nodiscard]] virtual torch::Tensor gated_input(const torch::Tensor& x) const { return x; }
  /// @param attended  (M, B, T, D), attention after its output projection.
  /// @param x         (M, B, T, D), gated_input's result.
  /// @param residual  (M, B, T, D), h.
  /// @return  what is added to h, (B, T, D).
  [[nodiscard]] virtual torch::Tensor increment(const torch::Tensor& attended,
                                                const torch::Tensor& /*x*/,
                                                const torch::Tensor& /*residual*/) const {
    return attended;
  }
  /// The same as a gate, for arrays of various ones; nothing: it is not of that form.
  [[nodiscard]] virtual std::optional<FusedGate> fused() const { return std::nullopt; }
};

/// Which parts of a mechanism have fused forms, for numerical modes exact and fast.
struct FusedForms {
  bool attention = false;  ///< similarity and normalization
  bool gating = false;
  bool temperature = false;  ///< which is so beside a fused attention only

  friend bool operator==(const FusedForms&, const FusedForms&) = default;
};
FusedForms fused_forms(const Mechanism& mechanism);

template <class Option>
using OptionRegistry =
    Registry<std::unique_ptr<Option>(const LayerContext&, const ParameterScope&)>;

/// The modules behind the component registry's descriptions, by key.
OptionRegistry<Similarity>& similarities();
OptionRegistry<Normalization>& normalizations();
OptionRegistry<Gating>& gatings();
OptionRegistry<Temperature>& temperatures();

/// Whether a module has its own form for the fused kernel.
template <class Module, class Option>
constexpr bool has_fused_form() {
  if constexpr (requires { &Option::fused; }) {
    return !std::is_same_v<decltype(&Module::fused), decltype(&Option::fused)>;
  }
  return false;
}

/// Whether a module gates the input of attention.
template <class Module, class Option>
constexpr bool gates_input() {
  if constexpr (requires { &Option::gated_input; }) {
    return !std::is_same_v<decltype(&Module::gated_input), decltype(&Option::gated_input)>;
  }
  return false;
}

/// Registers an option's Torch-free description and its module. For the macros below.
///
/// @tparam Module  constructible from (LayerContext, ParameterScope), or from nothing.
template <class Module, class Option>
bool register_option(OptionRegistry<Option>& registry, Component component, const char* file) {
  registry.add(
      {.key = component.key, .summary = component.summary, .file = file},
      [](const LayerContext& context, const ParameterScope& scope) -> std::unique_ptr<Option> {
        if constexpr (std::is_constructible_v<Module, const LayerContext&, const ParameterScope&>) {
          return std::make_unique<Module>(context, scope);
        } else {
          return std::make_unique<Module>();
        }
      });
  component.fused = has_fused_form<Module, Option>();
  component.gates_input = gates_input<Module, Option>();
  return components().add(std::move(component));
}

// NAS_REGISTER_SIMILARITY(Class, .key = "dot", .summary = "q.k", .flops = ...): the arguments after
// the class are designated initialisers of nas::Component, without its gene.
#define NAS_REGISTER_OPTION(registry, gene_name, Class, ...)                   \
  [[maybe_unused]] const bool kRegistered = ::nas::nn::register_option<Class>( \
      registry, ::nas::Component{.gene = gene_name, __VA_ARGS__}, __FILE__)
#define NAS_REGISTER_SIMILARITY(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::similarities(), "similarity", Class, __VA_ARGS__)
#define NAS_REGISTER_NORMALIZATION(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::normalizations(), "normalization", Class, __VA_ARGS__)
#define NAS_REGISTER_GATING(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::gatings(), "gating", Class, __VA_ARGS__)
#define NAS_REGISTER_TEMPERATURE(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::temperatures(), "temperature", Class, __VA_ARGS__)

/// @return scores with -inf for the keys that `visible` (bool, broadcastable) does not mark.
torch::Tensor hide(const torch::Tensor& scores, const torch::Tensor& visible);

/// @return softmax over the entries of each row that `kept` (bool, broadcastable, at least one per
/// row) marks; exactly 0 elsewhere.
torch::Tensor softmax_over(const torch::Tensor& scores, const torch::Tensor& kept);

/// Marks the largest visible scores of each row.
///
/// @param visible  (T, T) bool.   @param counts  (T) int64 >= 1, how many of row i, on the scores'
/// device.
/// @param most     the largest of `counts`.
/// @return  bool, as the scores: min(counts[i], visible keys of i) entries of row i.
torch::Tensor largest(const torch::Tensor& scores, const torch::Tensor& visible,
                      const torch::Tensor& counts, std::int64_t most);

/// One causal multi-head attention layer of each model of an array, of any mechanisms.
///
///   x <- gated_input(x),  q, k, v = x W_q', x W_k', x W_v' (+ b),
///   w = dropout(normalization(similarity(q, k) / temperature)),  increment(w v W_o' + b_o, x, h)
class AttentionLayer final : public Mixer {
 public:
  /// @param mechanisms    of the R models of the scope.
  /// @param output_start  initial values of the output projection's matrix.
  /// @throws InputError if a key of a mechanism is unknown.
  AttentionLayer(const std::vector<Mechanism>& mechanisms, const AttentionShape& shape,
                 Semantics semantics, const ParameterScope& scope,
                 Start output_start = Start::normal());

  /// @param site  of the weights' dropout.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                        std::uint64_t site) override;

 private:
  /// Models of the array that have one option, and its module.
  template <class Option>
  struct Group {
    Models models;
    std::unique_ptr<Option> option;
  };
  template <class Option>
  using Groups = std::vector<Group<Option>>;
  template <class Option>
  static std::vector<Models> models_of(const Groups<Option>& groups);

  /// Applies each group's option to its models' part of the inputs.
  /// @param apply  apply(option, parts of the inputs...) gives (M, ...).   @return (R, ...).
  template <class Option, class Apply, class... Inputs>
  static torch::Tensor grouped(const Groups<Option>& groups, const Apply& apply,
                               const Inputs&... inputs);
  /// (R, B, T, H d) as (R, B, H, T, d).
  [[nodiscard]] torch::Tensor heads(const torch::Tensor& projected) const;
  /// (R, B, H, T, 1), of the temperatures; or their inverses, for the fused kernel.
  torch::Tensor divisors(const torch::Tensor& input, const torch::Tensor& q, bool inverse);
  /// starts_ as (R, 1, 1, 1, 1), of another tensor's device and type.
  const torch::Tensor& starts(const torch::Tensor& like);
  /// (R, B, T, D), the weighted values of all heads; q, k, v likewise.
  torch::Tensor mixed(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                      const torch::Tensor& divisors, const Masks& masks);
  /// The same by the fused kernel.
  torch::Tensor fused_mixed(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            const torch::Tensor& inverse_temperature, const Masks& masks);
  /// Reads what the fused kernel does for each model off the modules.
  void set_up_kernel();
  /// Whether gates are computed for all models together where x is.
  [[nodiscard]] bool fuses_gates(const torch::Tensor& x) const;
  /// Whether there is a fused kernel for all models where q is.
  [[nodiscard]] bool has_kernel(const torch::Tensor& q) const;
  /// The models as the kernels of a device read them.
  const torch::Tensor& described(const Masks& masks, torch::Device device);
  const torch::Tensor& visible(std::int64_t tokens, torch::Device device);

  std::int64_t num_models_;
  std::int64_t num_heads_;
  std::vector<double> dropouts_;  ///< of the weights, by model
  NumericalMode mode_;
  bool gates_input_ = false;  ///< any gating does
  bool fused_ = false;        ///< all models have a form for fused kernels, and may use it
  Linear q_proj_, k_proj_, v_proj_, out_proj_;
  Groups<Similarity> similarities_;
  std::vector<ModelAttention> attention_;  ///< in the fused kernel
  std::vector<MappedModels> maps_;         ///< of q and k there
  std::vector<torch::Tensor> directions_;  ///< of similarities that have some
  Groups<Normalization> normalizations_;
  Groups<Gating> gatings_;
  Groups<Temperature> temperatures_;
  std::optional<FusedGates> gates_;                      ///< where all have a form
  std::optional<FusedTemperatures> fused_temperatures_;  ///< likewise
  std::vector<double> starts_;  ///< what temperatures are multiplied by: T0 of each model, or 1
  torch::Tensor starts_there_;  ///< of the last device and type
  torch::Tensor visible_;       ///< of the last (T, device)
  std::array<torch::Tensor, 2> described_;  ///< of the last device, without and with dropout
};

}  // namespace nas::nn
