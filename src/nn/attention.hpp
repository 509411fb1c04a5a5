#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"
#include "kernels/normalization.hpp"
#include "nn/attention_record.hpp"
#include "nn/mixer.hpp"
#include "ops/dropout.hpp"
#include "ops/fused_attention.hpp"
#include "ops/gate.hpp"
#include "ops/parameter.hpp"
#include "ops/temperature.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

// Conventions. Tensors are row-major. M models, B batch, T tokens, D width, H heads, d = D / H, G
// heads of keys and values; h (M, B, T, D) residual stream, x = LayerNorm(h); q, k, v (M, B, H, T,
// d); scores and weights (M, B, H, T, T), first queries i, then keys j; key j is visible to query i
// if j <= i and the pattern shows it.
//
// An array of R models may mix mechanisms. An option's module stands for the M models of the array
// that have the option and its sizes: all parameters have a leading dimension of M. On the CPU,
// where no result may depend on the array, M is 1 for a similarity, normalization, gating or
// temperature that has no fused form, and for a similarity that is not batch-invariant
// (nas::Component::batch_invariant). The other options' modules stand for several models there,
// too, and compute model by model (ops/product.hpp) what is not batch-invariant.

/// What the options of one attention layer are built from.
struct LayerContext {
  AttentionShape shape;  ///< with the sizes of the option's models
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
  /// Whether queries of several heads may be scored as several queries of the key head that they
  /// read: scores() does the same in every head, and with any number of queries. In decoding, where
  /// each head has one query, keys then need not be repeated.
  [[nodiscard]] virtual bool treats_heads_alike() const { return true; }
  /// @return T0, the divisor that gives the scores a suitable scale at the start (corrected): by
  /// default a dot product's, sqrt(d).
  [[nodiscard]] virtual double start_temperature(const AttentionShape& shape) const {
    return std::sqrt(static_cast<double>(shape.head_width()));
  }
};

/// Turns scores into weights.
class Normalization {
 public:
  virtual ~Normalization() = default;
  /// @param scores   (M, B, H, T, T), finite.
  /// @param visible  bool, (T, T) or one matrix a head, (H, T, T): what the pattern shows, never a
  /// later key and always the query's own. Where a count n of keys matters, it is of visible ones.
  /// In decoding there is one row, (1, n), of the keys that are kept.
  /// @return weights (M, B, H, T, T), exactly 0 for hidden keys, never NaN.
  [[nodiscard]] virtual torch::Tensor weights(const torch::Tensor& scores,
                                              const torch::Tensor& visible) const = 0;
  /// The same for one row in the fused kernel; nothing: it has no such form.
  [[nodiscard]] virtual std::optional<kernels::RowNormalization> fused() const {
    return std::nullopt;
  }
  /// What kernels::sink() reads besides: (M, H), for as long as the module lives; undefined: nothing.
  [[nodiscard]] virtual torch::Tensor sinks() const { return {}; }
};

/// Divides scores by a temperature, or multiplies them by its inverse.
class Temperature {
 public:
  virtual ~Temperature() = default;
  /// @param x  (M, B, T, D), what q, k and v are projected from.
  /// @return the divisors, positive and finite: a tensor that expands to (M, B, H, T, 1), one
  /// number per query.
  [[nodiscard]] virtual torch::Tensor divisors(const torch::Tensor& x) const = 0;
  /// Whether the scores are divided by T0 of the model's similarity as well.
  [[nodiscard]] virtual bool times_start() const { return false; }
  /// Whether there are factors.
  [[nodiscard]] virtual bool has_factors() const { return false; }
  /// What the divided scores are multiplied by besides: any finite numbers, also 0, so that no
  /// divisor need be infinite.
  ///
  /// @param seen  (T) int64, or (H, T): how many keys each query sees, at least 1.
  /// @return M models' tensor that expands to (M, B, H, T, 1); undefined: nothing.
  [[nodiscard]] virtual torch::Tensor factors(const torch::Tensor& /*seen*/) const { return {}; }
  /// The same divisors, without factors, for arrays of various temperatures, beside a fused kernel;
  /// nothing: they are not of that form.
  [[nodiscard]] virtual std::optional<FusedTemperature> fused() const { return std::nullopt; }
};

/// Gates what goes into attention, what heads put out and what comes out.
class Gating {
 public:
  virtual ~Gating() = default;
  /// @param x  (M, B, T, D), LayerNorm of the residual stream.
  /// @return  what q, k and v are projected from, (M, B, T, D).
  [[nodiscard]] virtual torch::Tensor gated_input(const torch::Tensor& x) const { return x; }
  /// Whether gated_heads() changes anything.
  [[nodiscard]] virtual bool gates_heads() const { return false; }
  /// @param mixed  (M, B, T, D), the weighted values of all heads.
  /// @param x      (M, B, T, D), gated_input's result.
  /// @return  what the output projection reads, (M, B, T, D).
  [[nodiscard]] virtual torch::Tensor gated_heads(const torch::Tensor& mixed,
                                                  const torch::Tensor& /*x*/) const {
    return mixed;
  }
  /// @param attended  (M, B, T, D), attention after its output projection.
  /// @param x         (M, B, T, D), gated_input's result.
  /// @param residual  (M, B, T, D), h.
  /// @return  what is added to h, (B, T, D).
  [[nodiscard]] virtual torch::Tensor increment(const torch::Tensor& attended,
                                                const torch::Tensor& /*x*/,
                                                const torch::Tensor& /*residual*/) const {
    return attended;
  }
  /// The gate's values, for who looks into a model.
  /// @param x  (M, B, T, D), LayerNorm of the residual stream.
  /// @return  (M, B, T, D), or (M, B, T, H) of a gate of whole heads, in [0, 1]; undefined: no gate.
  [[nodiscard]] virtual torch::Tensor gate(const torch::Tensor& /*x*/) const { return {}; }
  /// The same as a gate, for arrays of various ones, but for gated_heads(), which is called beside
  /// it; nothing: it is not of that form.
  [[nodiscard]] virtual std::optional<FusedGate> fused() const { return std::nullopt; }
};

// The options below have no fused() of their own: their descriptions say .fused = true where the
// fused kernel computes what they ask for, or where they ask nothing of it.

/// Lets scores know where keys are: maps queries and keys by their place, or adds to the scores a
/// number that depends on the distance of key and query.
class Position {
 public:
  virtual ~Position() = default;
  /// Whether mapped() changes anything.
  [[nodiscard]] virtual bool maps() const { return false; }
  /// @param vectors  queries or keys, (M, B, T, heads, d), of H or of G heads.
  /// @param first    the place of the first of them; 0 but in decoding.
  /// @return the same with the place of each, t = first .. first + T - 1, put in.
  [[nodiscard]] virtual torch::Tensor mapped(const torch::Tensor& vectors,
                                             std::int64_t /*first*/) const {
    return vectors;
  }
  /// Whether there are biases.
  [[nodiscard]] virtual bool biases_scores() const { return false; }
  /// @param like  of whose device and type the result is.
  /// @return what is added to the score of a key n tokens back, after the temperature: (M, H, T), n
  /// = 0 .. T - 1; undefined: nothing.
  [[nodiscard]] virtual torch::Tensor distance_biases(std::int64_t /*tokens*/,
                                                      const torch::Tensor& /*like*/) const {
    return {};
  }
};

/// Visible keys as ranges: of query i, the newest `window` up to its own, and the first `globals` of
/// the sequence.
struct KeyRanges {
  std::int64_t window = std::numeric_limits<std::int64_t>::max();
  std::int64_t globals = 0;

  /// n_i, of query i from 0.
  [[nodiscard]] std::int64_t count(std::int64_t query) const {
    const auto newest = std::min(query + 1, window);
    return newest + std::min(globals, query + 1 - newest);
  }
};

/// Says which keys a query sees.
class Pattern {
 public:
  virtual ~Pattern() = default;
  /// @return bool, (T, T) or one matrix a head, (H, T, T): never a later key, always the query's
  /// own; a query's row does not depend on T.
  [[nodiscard]] virtual torch::Tensor visible(std::int64_t tokens, torch::Device device) const = 0;
  /// The same as ranges; nothing: it is not of that form, and has none in the fused kernel.
  [[nodiscard]] virtual std::optional<KeyRanges> ranges() const { return std::nullopt; }
};

/// Lowers scores by what lies between key and query.
class ScoreDecay {
 public:
  virtual ~ScoreDecay() = default;
  /// Whether it lowers any.
  [[nodiscard]] virtual bool decays_scores() const { return false; }
  /// @param x  (M, B, T, D), what q, k and v are projected from.
  /// @return c (M, B, H, T), float64: s_ij + (c_i - c_j) is the decayed score, after the
  /// temperature; undefined: nothing decays. What c grows by at a token depends on that token alone,
  /// so that c of a single token is its growth. Sums over many tokens are large and their differences
  /// are not, so that these are taken in double.
  [[nodiscard]] virtual torch::Tensor cumulative(const torch::Tensor& /*x*/) const { return {}; }
};

/// Normalises the vectors of heads.
class VectorNorm {
 public:
  virtual ~VectorNorm() = default;
  /// @param vectors  (M, B, T, heads, d).
  [[nodiscard]] virtual torch::Tensor normalised(const torch::Tensor& vectors) const = 0;
};

template <class Option>
using OptionRegistry =
    Registry<std::unique_ptr<Option>(const LayerContext&, const ParameterScope&)>;

/// The modules behind the component registry's descriptions, by key.
OptionRegistry<Similarity>& similarities();
OptionRegistry<Normalization>& normalizations();
OptionRegistry<Gating>& gatings();
OptionRegistry<Temperature>& temperatures();
OptionRegistry<Position>& positions();
OptionRegistry<Pattern>& patterns();
OptionRegistry<ScoreDecay>& decays();
/// Of genes qk_norm and head_norm.
OptionRegistry<VectorNorm>& vector_norms();

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

/// Registers an option's module. @tparam Module  constructible from (LayerContext, ParameterScope),
/// or from nothing.
template <class Module, class Option>
void register_module(OptionRegistry<Option>& registry, const Component& component,
                     const char* file) {
  registry.add(
      {.key = component.key, .summary = component.summary, .file = file},
      [](const LayerContext& context, const ParameterScope& scope) -> std::unique_ptr<Option> {
        if constexpr (std::is_constructible_v<Module, const LayerContext&, const ParameterScope&>) {
          return std::make_unique<Module>(context, scope);
        } else {
          return std::make_unique<Module>();
        }
      });
}

/// Registers an option's Torch-free description and its module. For the macros below.
template <class Module, class Option>
bool register_option(OptionRegistry<Option>& registry, Component component, const char* file) {
  register_module<Module>(registry, component, file);
  if constexpr (requires { &Option::fused; }) component.fused = has_fused_form<Module, Option>();
  component.gates_input = gates_input<Module, Option>();
  return components().add(std::move(component));
}

/// The same of a norm of vectors, an option of two genes.
///
/// @param component  of head_norm: parameters and operations of one norm of vectors that are D wide
/// together. qk_norm has two, of D and of G d.
template <class Module>
bool register_vector_norm(Component component, const char* file) {
  register_module<Module>(vector_norms(), component, file);
  auto of_keys = component;
  of_keys.gene = "qk_norm";
  of_keys.parameters = [one = component.parameters](AttentionShape shape) {
    shape.width = shape.score_width() * shape.heads;
    return 2 * one(shape);
  };
  of_keys.flops = [one = component.flops](const AttentionShape& shape) {
    return one(shape) *
           (1.0 + static_cast<double>(shape.key_width()) / static_cast<double>(shape.width));
  };
  return components().add(std::move(component)) && components().add(std::move(of_keys));
}

// NAS_REGISTER_SIMILARITY(Class, .key = "dot", .summary = "q.k", .flops = ...): the arguments after
// the class are designated initialisers of nas::Component, without its gene.
#define NAS_REGISTER_OPTION(registry, gene_name, Class, ...)                            \
  [[maybe_unused]] const bool k##Class##Registered = ::nas::nn::register_option<Class>( \
      registry, ::nas::Component{.gene = gene_name, __VA_ARGS__}, __FILE__)
#define NAS_REGISTER_SIMILARITY(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::similarities(), "similarity", Class, __VA_ARGS__)
#define NAS_REGISTER_NORMALIZATION(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::normalizations(), "normalization", Class, __VA_ARGS__)
#define NAS_REGISTER_GATING(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::gatings(), "gating", Class, __VA_ARGS__)
#define NAS_REGISTER_TEMPERATURE(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::temperatures(), "temperature", Class, __VA_ARGS__)
#define NAS_REGISTER_POSITION(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::positions(), "position", Class, __VA_ARGS__)
#define NAS_REGISTER_PATTERN(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::patterns(), "pattern", Class, __VA_ARGS__)
#define NAS_REGISTER_DECAY(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::decays(), "decay", Class, __VA_ARGS__)
#define NAS_REGISTER_VECTOR_NORM(Class, ...)                                                 \
  [[maybe_unused]] const bool k##Class##Registered = ::nas::nn::register_vector_norm<Class>( \
      ::nas::Component{.gene = "head_norm", __VA_ARGS__}, __FILE__)

/// @return scores with -inf for the keys that `visible` (bool, broadcastable) does not mark.
torch::Tensor hide(const torch::Tensor& scores, const torch::Tensor& visible);

/// @return softmax over the entries of each row that `kept` (bool, broadcastable, at least one per
/// row) marks; exactly 0 elsewhere.
torch::Tensor softmax_over(const torch::Tensor& scores, const torch::Tensor& kept);

/// Marks the largest visible scores of each row.
///
/// @param visible  (T, T) or (H, T, T) bool.   @param counts  (T) or (H, T) int64 >= 1, how many of
/// row i, on the scores' device.
/// @param most     the largest of `counts`.
/// @return  bool, as the scores: min(counts[i], visible keys of i) entries of row i.
torch::Tensor largest(const torch::Tensor& scores, const torch::Tensor& visible,
                      const torch::Tensor& counts, std::int64_t most);

/// y_t = sum_a w_a z_{t - K + 1 + a} for each channel: a causal convolution of K taps, of which the
/// last is the present; zero before the start.
/// @see So et al. (2021), Primer, arXiv:2109.08668.
class ShortConvolution {
 public:
  ShortConvolution(const ParameterScope& scope, std::int64_t channels, std::int64_t taps);

  /// @param z  (M, B, T, channels).   @return the same sizes.
  [[nodiscard]] torch::Tensor operator()(const torch::Tensor& z) const;
  /// @param latest  (M, B, K, channels), the newest last.   @return y of the newest, (M, B, 1,
  /// channels).
  [[nodiscard]] torch::Tensor newest(const torch::Tensor& latest) const;
  [[nodiscard]] std::int64_t taps() const { return weight_.size(2); }

 private:
  torch::Tensor weight_;  // (M, channels, K)
};

/// One causal multi-head attention layer of each model of an array, of any mechanisms.
///
///   x <- gated_input(x),  q, k, v = x W_q', x W_k', x W_v' (+ b),  convolved; q, k normalised, mapped
///   s_ij = similarity(q_i, k_j) / temperature + b(i - j) + c_i - c_j
///   w = dropout(normalization(s)) over visible keys,  o = gated_heads(head_norm(w v), x)
///   increment(o W_o' + b_o, x, h)
///
/// Query head h reads key head floor(h G / H). What a mechanism has not is neither a parameter nor
/// an operation.
/// @see Ainslie et al. (2023), arXiv:2305.13245, section 2.2.
class AttentionLayer final : public Mixer {
 public:
  /// @param mechanisms    of the R models of the scope, of one MixerKind::shape_key.
  /// @param shape         of the layer, with its own heads; its sizes are the mechanisms'.
  /// @param output_start  initial values of the output projection's matrix.
  /// @throws InputError if a key of a mechanism is unknown.
  AttentionLayer(const std::vector<Mechanism>& mechanisms, const AttentionShape& shape,
                 Semantics semantics, const ParameterScope& scope,
                 const Start& output_start = Start::normal());

  /// @param site  of the weights' dropout.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                        std::uint64_t site) override;
  /// Keeps keys, normalised and mapped by position, and values, of G heads; of windows those that
  /// are still seen, min(t, window + globals); what each head forgot since each of them; and the
  /// last K - 1 inputs of the convolutions.
  [[nodiscard]] std::unique_ptr<State> start(std::int64_t room) const override;
  /// By the operations of numerical mode `reference` in every mode. @throws std::invalid_argument
  /// for an array of several models.
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& residual, State& state) override;

 private:
  struct KeptState;

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

  /// What the queries of some models see.
  struct Sight {
    std::unique_ptr<Pattern> pattern;
    torch::Tensor visible{};  ///< of the last (T, device)
    torch::Tensor seen{};     ///< numbers of visible keys, likewise
  };

  void make_projections(const std::vector<Mechanism>& mechanisms, const AttentionShape& shape,
                        const ParameterScope& scope, const Start& output_start);
  /// Applies each group's option to its models' part of the inputs.
  /// @param apply  apply(option, parts of the inputs...) gives (M, ...).   @return (R, ...).
  template <class Option, class Apply, class... Inputs>
  static torch::Tensor grouped(const Groups<Option>& groups, const Apply& apply,
                               const Inputs&... inputs);
  /// The same with the place of the group's first model before the parts.
  template <class Option, class Apply, class... Inputs>
  static torch::Tensor grouped_with_place(const Groups<Option>& groups, const Apply& apply,
                                          const Inputs&... inputs);
  /// (R, B, T, heads d) as (R, B, heads, T, d).
  [[nodiscard]] torch::Tensor heads(const torch::Tensor& projected) const;
  /// (R, B, T, heads d) as (R, B, T, heads, d).
  [[nodiscard]] torch::Tensor by_head(const torch::Tensor& projected) const;
  /// (R, B, T, G d) as (R, B, T, H d): each key head as often as query heads read it.
  [[nodiscard]] torch::Tensor for_queries(const torch::Tensor& keys) const;
  /// Normalised and mapped by position. @param vectors  (R, B, T, heads d), queries or keys.
  [[nodiscard]] torch::Tensor placed(const torch::Tensor& vectors,
                                     const Groups<VectorNorm>& norms) const;
  /// (R, B, H, T, 1), of the temperatures; or their inverses, for the fused kernel.
  torch::Tensor divisors(const torch::Tensor& input, const torch::Tensor& q, bool inverse);
  /// (R, B, H, T, 1), what scores are multiplied by besides; undefined: nothing.
  torch::Tensor factors(const torch::Tensor& input, const torch::Tensor& q);
  /// starts_ as (R, 1, 1, 1, 1), of another tensor's device and type.
  const torch::Tensor& starts(const torch::Tensor& like);
  /// (R, B, T, D), the weighted values of all heads; q, k, v likewise.
  /// @param input  (R, B, T, D), what q, k and v were projected from.
  /// @param factors  undefined: none.
  /// @param record   receives scores, weights and what they depend on; may be nullptr.
  torch::Tensor mixed(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                      const torch::Tensor& input, const torch::Tensor& divisors,
                      const torch::Tensor& factors, const Masks& masks, LayerRecord* record);
  /// The same by the fused kernel. @param k, v  (R, B, T, G d), or H d where they are repeated.
  torch::Tensor fused_mixed(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            const torch::Tensor& input, const torch::Tensor& inverse_temperature,
                            const Masks& masks);
  /// (N, H, T), biases by distance of the models that have some; undefined: none has.
  [[nodiscard]] torch::Tensor distance_biases(const torch::Tensor& q) const;
  /// (N, B, H, T), sums of the models whose scores decay; undefined: none do.
  [[nodiscard]] torch::Tensor sums(const torch::Tensor& input) const;
  /// Scores with the biases of positions and decays.
  [[nodiscard]] torch::Tensor biased(torch::Tensor scores, const torch::Tensor& input) const;
  /// A new layer of a pass's record; nullptr where nobody asks.
  /// @throws std::logic_error unless this is one model, computed by operations.
  [[nodiscard]] LayerRecord* record_of(const Pass& pass, bool kernel) const;
  void record_maps(const torch::Tensor& scores, const torch::Tensor& weights,
                   const torch::Tensor& input, LayerRecord& record);
  /// @param of_heads, attended  what gates of heads and gates of outputs multiply.
  void record_gate(const torch::Tensor& x, const torch::Tensor& of_heads,
                   const torch::Tensor& attended, LayerRecord& record) const;
  /// Reads what the fused kernel does for each model off the modules.
  void set_up_kernel();
  /// Whether gates are computed for all models together where x is.
  [[nodiscard]] bool fuses_gates(const torch::Tensor& x) const;
  /// Whether there is a fused kernel for all models where q is.
  [[nodiscard]] bool has_kernel(const torch::Tensor& q) const;
  /// Whether the fused kernel there lets heads share keys.
  [[nodiscard]] static bool kernel_shares_keys(torch::Device device);
  /// The models as the kernels of a device read them.
  const torch::Tensor& described(const Masks& masks, torch::Device device);
  /// What the queries of a model see, by its place in the array.
  const torch::Tensor& visible(std::int64_t model, std::int64_t tokens, torch::Device device);
  const torch::Tensor& seen(std::int64_t model, std::int64_t tokens, torch::Device device);
  Sight& sight(std::int64_t model);
  // In attention_step.cpp, of the newest token of one model.
  /// Queries or keys of the token at a place as (1, B, heads, 1, d), normalised and mapped.
  [[nodiscard]] torch::Tensor newest_vectors(const torch::Tensor& projected,
                                             const Groups<VectorNorm>& norms,
                                             std::int64_t place) const;
  /// Scores of all kept keys, (1, B, H, 1, n), divided by the temperature. @param q  (1, B, H, 1, d).
  torch::Tensor newest_scores(const torch::Tensor& q, const torch::Tensor& input,
                              const torch::Tensor& shown, const KeptState& state);
  /// The same with the biases of positions and decays.
  [[nodiscard]] torch::Tensor newest_biased(torch::Tensor scores, const KeptState& state) const;
  /// Which of the kept keys the newest token sees, (1, n) or (H, 1, n) bool.
  [[nodiscard]] torch::Tensor newest_shown(const KeptState& state, torch::Device device) const;

  std::int64_t num_models_;
  std::int64_t num_heads_;
  std::int64_t num_key_heads_;
  std::int64_t head_width_;
  std::vector<double> dropouts_;  ///< of the weights, by model
  NumericalMode mode_;
  bool gates_input_ = false;  ///< any gating does
  bool gates_heads_ = false;  ///< likewise
  bool has_factors_ = false;  ///< any temperature has
  bool fused_ = false;        ///< all models have a form for fused kernels, and may use it
  Linear q_proj_, k_proj_, v_proj_, out_proj_;
  Groups<Similarity> similarities_;
  std::vector<ModelAttention> attention_;  ///< in the fused kernel
  std::vector<MappedModels> maps_;         ///< of q and k there
  std::vector<torch::Tensor> directions_;  ///< of similarities that have some
  std::vector<torch::Tensor> sinks_;       ///< of normalizations likewise
  Groups<Normalization> normalizations_;
  Groups<Gating> gatings_;
  Groups<Temperature> temperatures_;
  std::vector<ShortConvolution> convolutions_;  ///< of q, k and v; or none
  Groups<VectorNorm> q_norms_, k_norms_, head_norms_;
  Groups<Position> positions_;
  bool maps_places_ = false;    ///< any position does
  bool biases_scores_ = false;  ///< likewise
  Groups<ScoreDecay> decays_;
  std::vector<Sight> sights_;
  std::vector<std::size_t> sight_of_;                    ///< by model
  std::optional<FusedGates> gates_;                      ///< where all have a form
  std::optional<FusedTemperatures> fused_temperatures_;  ///< likewise
  std::vector<double> starts_;  ///< what temperatures are multiplied by: T0 of each model, or 1
  torch::Tensor starts_there_;  ///< of the last device and type
  std::array<torch::Tensor, 2> described_;  ///< of the last device, without and with dropout
};

}  // namespace nn
}  // namespace nas
