#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "nn/attention.hpp"
#include "nn/mixer.hpp"
#include "nn/parts/convolution.hpp"
#include "nn/parts/head_maps.hpp"
#include "nn/parts/latent.hpp"
#include "nn/parts/option_set.hpp"
#include "ops/dropout.hpp"
#include "ops/fused_attention.hpp"
#include "ops/gate.hpp"
#include "ops/parameter.hpp"
#include "ops/temperature.hpp"

namespace nas::nn {

/// One causal multi-head attention layer of each model of an array, of any mechanisms.
///
///   x <- gated_input(x),  q, k, v = x W_q', x W_k', x W_v' (+ b),  convolved; q, k normalised, mapped
///   s_ij = similarity(q_i, k_j) / temperature + b(i - j) + c_i - c_j
///   w = dropout(normalization(s)) over visible keys,  o = gated_heads(head_norm(w v), x)
///   of HeadMaps s and w of each half of q and k, and w of both; k and v may come from a Latent
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
  /// @param layer         from 0.
  /// @throws InputError if a key of a mechanism is unknown.
  AttentionLayer(const std::vector<Mechanism>& mechanisms, const AttentionShape& shape,
                 Semantics semantics, const ParameterScope& scope,
                 const Start& output_start = Start::normal(), std::int64_t layer = 0);

  /// @param site  of the weights' dropout.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                        std::uint64_t site) override;
  /// Keeps keys, normalised and mapped by position, and values, of G heads; of windows those that
  /// are still seen, min(t, window + globals), a Latent in place of both; what each head forgot since each of them; and the
  /// last K - 1 inputs of the convolutions.
  [[nodiscard]] std::unique_ptr<State> start(std::int64_t room) const override;
  /// By the operations of numerical mode `reference` in every mode. @throws std::invalid_argument
  /// for an array of several models.
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                     State& state) override;

 private:
  struct KeptState;

  /// Heads that see alike: all of them, but beside full_groups those that see all keys, and those of the window.
  struct Part {
    bool full = false;                            ///< they see all keys, whatever the pattern
    std::vector<std::int64_t> heads{}, groups{};  ///< of queries, and of keys; none where it is all
    std::vector<ModelAttention> attention{};      ///< in the fused kernel
    std::array<torch::Tensor, 2> described{};     ///< of the last device, without and with dropout
  };

  /// What is known of a pattern's keys.
  struct Sight {
    torch::Tensor visible{};  ///< of the last (T, device)
    torch::Tensor seen{};     ///< numbers of visible keys, likewise
  };

  void make_parts(const AttentionShape& shape);
  /// Those of the heads of a part, along a dimension. @param tensor  undefined: stays so.
  [[nodiscard]] static torch::Tensor of(const std::vector<std::int64_t>& heads,
                                        const torch::Tensor& tensor, std::int64_t dim);
  /// All heads in their order, of what parts have.
  [[nodiscard]] torch::Tensor joined(const std::vector<torch::Tensor>& parts,
                                     std::int64_t dim) const;
  /// The dropout of the weights of a part.
  [[nodiscard]] Masks masks(const Pass& pass, std::uint64_t site, std::size_t part) const;
  void make_projections(const std::vector<Mechanism>& mechanisms, const AttentionShape& shape,
                        const ParameterScope& scope, const Start& output_start);
  /// @param of_scores  makes those of queries and keys, which are map_width_ wide in a map.
  /// @param of_places  makes positions, of the width that these map.
  void make_options(const OptionMaker& options, const OptionMaker& of_scores,
                    const OptionMaker& of_places, const ParameterScope& scope,
                    const FusedForms& forms);
  void make_convolutions(std::int64_t taps, const AttentionShape& shape,
                         const ParameterScope& scope);
  /// (R, B, T, n width) as (R, B, T, n, width).
  static torch::Tensor in_parts(const torch::Tensor& vectors, std::int64_t width);
  /// (R, B, T, heads d) as (R, B, heads, T, d).
  [[nodiscard]] torch::Tensor heads(const torch::Tensor& projected) const;
  /// The same of queries or keys, as wide as they are scored.
  [[nodiscard]] torch::Tensor scored_heads(const torch::Tensor& vectors) const;
  /// Vectors of a Latent (R, B, T, H d) beside those of it that rotate, (R, B, T, n d / 2), n of H or 1.
  [[nodiscard]] torch::Tensor beside_rotated(const torch::Tensor& vectors,
                                             const torch::Tensor& rotated,
                                             std::int64_t first) const;
  /// (R, B, T, heads d) as (R, B, T, heads, d).
  [[nodiscard]] torch::Tensor by_head(const torch::Tensor& projected) const;
  /// (R, B, T, G d) as (R, B, T, H d): each key head as often as query heads read it.
  [[nodiscard]] torch::Tensor for_queries(const torch::Tensor& keys) const;
  /// Keys that are queries, (R, B, T, H d).
  [[nodiscard]] torch::Tensor keys_of(const torch::Tensor& queries) const;
  /// Normalised and mapped by position. @param vectors  (R, B, T, heads d), queries or keys.
  /// @param first  the place of the first of them.
  [[nodiscard]] torch::Tensor placed(const torch::Tensor& vectors,
                                     const OptionSet<VectorNorm>& norms, std::int64_t first) const;
  /// How many maps of weights a head has.
  [[nodiscard]] std::size_t num_maps() const { return head_maps_.empty() ? 1 : 2; }
  /// The entries of queries or keys (..., d) that one map scores.
  [[nodiscard]] torch::Tensor of_map(const torch::Tensor& vectors, std::size_t map) const;
  /// What takes the place of those of all maps, weights or weighted values of heads.
  [[nodiscard]] torch::Tensor combined(const std::vector<torch::Tensor>& maps) const;
  /// The norms of heads' outputs (R, B, T, D), where models have some.
  [[nodiscard]] torch::Tensor normed_heads(const torch::Tensor& of_heads) const;
  /// (R, B, H, T, 1), of the temperatures; or their inverses, for the fused kernel.
  torch::Tensor divisors(const torch::Tensor& input, const torch::Tensor& q, bool inverse);
  /// (R, B, H, T, 1), what scores are multiplied by besides; undefined: nothing.
  /// @param seen  seen(models): how many keys each query of models of one pattern sees, by their
  /// places in the array.
  [[nodiscard]] torch::Tensor factors(
      const torch::Tensor& input, const torch::Tensor& like,
      const std::function<torch::Tensor(const Models&)>& seen) const;
  /// Scores of queries and keys (R, B, heads, n, d), divided by the temperature, (R, B, H, n, n').
  /// @param keys     of H or of G heads.
  /// @param factors  undefined: none.
  /// @param input    (R, B, T, D) of whole sequences, whose keys may change; undefined: they have.
  [[nodiscard]] torch::Tensor scores(const torch::Tensor& queries, const torch::Tensor& keys,
                                     const torch::Tensor& divisors, const torch::Tensor& factors,
                                     const torch::Tensor& input = {}) const;
  /// What similarities give of queries and keys.
  [[nodiscard]] torch::Tensor raw_scores(const torch::Tensor& queries,
                                         const torch::Tensor& keys) const;
  /// Those of a soft cap, as they are without one.
  [[nodiscard]] torch::Tensor capped(const torch::Tensor& scores) const;
  /// Values (R, B, T, G d) with their heads' shares of the pass's rows, where models have such:
  /// v_g + lambda_g row[g d .. (g + 1) d).
  [[nodiscard]] torch::Tensor with_rows(const torch::Tensor& v, const Pass& pass) const;
  /// The weighted values (R, B, T, D) without their parts along the queries' own values, where models
  /// exclude these. @param v  (R, B, T, G d) or (R, B, T, H d).
  [[nodiscard]] torch::Tensor without_own(const torch::Tensor& mixed, const torch::Tensor& v) const;
  /// The same by a similarity alone, not divided.
  [[nodiscard]] torch::Tensor similarities(const Similarity& similarity,
                                           const torch::Tensor& queries,
                                           const torch::Tensor& keys) const;
  /// apply(passage, parts of inputs...) of what changes keys in the models.
  template <class Apply, class... Inputs>
  [[nodiscard]] torch::Tensor passing(const Apply& apply, const Inputs&... inputs) const {
    return positions_.any(&Position::changes_keys) ? positions_.apply(apply, inputs...)
                                                   : decays_.apply(apply, inputs...);
  }
  /// What similarities give of whole sequences where keys are changed.
  [[nodiscard]] torch::Tensor changed_scores(const torch::Tensor& queries,
                                             const torch::Tensor& keys,
                                             const torch::Tensor& input) const;
  /// Earlier keys (R, B, H, n, d) as one more token sees them.
  [[nodiscard]] torch::Tensor passed(const torch::Tensor& keys, const torch::Tensor& x) const;
  /// starts_ as (R, 1, 1, 1, 1), of another tensor's device and type.
  const torch::Tensor& starts(const torch::Tensor& like);
  /// (R, B, T, D), the weighted values of all heads; q, k, v likewise.
  /// @param input  (R, B, T, D), what q, k and v were projected from.
  /// @param factors  undefined: none.
  torch::Tensor mixed(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                      const torch::Tensor& input, const torch::Tensor& divisors,
                      const torch::Tensor& factors, const Pass& pass, std::uint64_t site);
  /// The same by the fused kernel. @param k, v  (R, B, T, G d), or H d where they are repeated.
  torch::Tensor fused_mixed(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            const torch::Tensor& input, const torch::Tensor& inverse_temperature,
                            const Pass& pass, std::uint64_t site);
  /// Weighted values of one map, (R, B, T, D). @param mapped  its queries and keys as they are scored.
  torch::Tensor one_fused_map(std::array<torch::Tensor, 2> mapped, const torch::Tensor& v,
                              const torch::Tensor& input, const torch::Tensor& inverse_temperature,
                              const Pass& pass, std::uint64_t site);
  /// (N, H, T), biases by distance of the models that have some; undefined: none has.
  [[nodiscard]] torch::Tensor distance_biases(const torch::Tensor& q) const;
  /// (N, B, H, T), sums of the models whose scores decay; undefined: none do.
  [[nodiscard]] torch::Tensor sums(const torch::Tensor& input) const;
  /// Scores with the biases of positions and decays.
  [[nodiscard]] torch::Tensor biased(torch::Tensor scores, const torch::Tensor& input) const;
  /// Scores with what positions add that read them. @param q  (R, B, H, T, d).   @param k  of visible().
  [[nodiscard]] torch::Tensor contextual(const torch::Tensor& scores, const torch::Tensor& q,
                                         const torch::Tensor& k);
  /// Reads what the fused kernel does for each model off the modules.
  void set_up_kernel();
  /// Whether gates are computed for all models together where x is.
  [[nodiscard]] bool fuses_gates(const torch::Tensor& x) const;
  /// Whether there is a fused kernel for all models where q is.
  [[nodiscard]] bool has_kernel(const torch::Tensor& q) const;
  /// Queries, values and keys before convolutions where a device's kernels project them at once;
  /// otherwise queries alone.
  [[nodiscard]] std::vector<torch::Tensor> projections(const torch::Tensor& input) const;
  /// The models as the kernels of a device read them.
  static const torch::Tensor& described(Part& part, const Masks& masks, torch::Device device);
  /// What the queries of models of one pattern see, by their places in the array.
  /// @param keys  (R, B, T, heads d).
  torch::Tensor visible(const Models& models, const torch::Tensor& keys);
  /// The same of models of any patterns, (M, 1 or B, H or 1, T, T).
  torch::Tensor visible_to_each(const Models& models, const torch::Tensor& keys);
  /// How many keys that is.
  torch::Tensor seen(const Models& models, const torch::Tensor& keys);
  // In attention_step.cpp, of the newest token of one model.
  /// Keeps what a Latent makes of a token. @return (1, B, H, 1, n), its queries as kept keys are scored.
  torch::Tensor take_up_latent(const torch::Tensor& queries, const torch::Tensor& input,
                               std::int64_t place, KeptState& state) const;
  /// What is kept of each part: the layer's own, or what an earlier one has left in the pass.
  [[nodiscard]] std::vector<SharedKeys> kept(const KeptState& state, const Pass& pass) const;
  /// Scores of the keys that a part keeps, (1, B, heads, 1, n), with the biases of positions and decays.
  /// @param q, shown  the query and which of them it sees.
  [[nodiscard]] torch::Tensor newest_biased(const Part& part, torch::Tensor scores,
                                            const torch::Tensor& places, const KeptState& state,
                                            const torch::Tensor& q,
                                            const torch::Tensor& shown) const;
  /// Which of the kept keys the newest token sees, (1, n) or (H, 1, n) bool.
  [[nodiscard]] torch::Tensor newest_shown(const Part& part, const SharedKeys& keys,
                                           std::int64_t newest, const torch::Tensor& q) const;

  std::int64_t num_models_;
  std::int64_t num_heads_;
  std::int64_t num_key_heads_;
  std::int64_t head_width_;
  std::int64_t
      map_width_;  ///< entries of a query or a key in a map, those that a Latent rotates included
  std::vector<double> dropouts_;  ///< of the weights, by model
  NumericalMode mode_;
  bool gates_input_ = false;      ///< any gating does
  bool gates_heads_ = false;      ///< likewise
  bool reads_keys_ = false;       ///< all patterns do
  bool absorbs_keys_ = false;     ///< q.k alone is scored, so that latents may be keys
  bool shares_ = false;           ///< keys and values are an earlier layer's
  bool gives_ = false;            ///< later layers may read them
  bool excludes_values_ = false;  ///< all models do
  double soft_cap_ = 0.0;         ///< of all models; 0: none
  bool has_factors_ = false;      ///< any temperature has
  bool fused_ = false;            ///< all models have a form for fused kernels, and may use it
  Linear q_proj_, k_proj_, v_proj_, out_proj_;
  std::optional<Latent> latent_;  ///< in place of k_proj_ and v_proj_
  torch::Tensor value_shares_;    ///< lambda (R, G) of value embeddings; undefined: none
  OptionSet<Similarity> similarities_;
  std::vector<Part> parts_;
  std::vector<MappedModels> maps_;         ///< of q and k there
  std::vector<torch::Tensor> directions_;  ///< of similarities that have some
  std::vector<torch::Tensor> sinks_;       ///< of normalizations likewise
  OptionSet<Normalization> normalizations_;
  OptionSet<Gating> gatings_;
  OptionSet<Temperature> temperatures_;
  std::vector<ShortConvolution> convolutions_;  ///< of q, k and v; or none
  OptionSet<VectorNorm> q_norms_, k_norms_, head_norms_;
  OptionSet<HeadMaps> head_maps_;  ///< none: one map in a head
  OptionSet<Position> positions_;
  bool maps_places_ = false;      ///< any position does
  bool biases_scores_ = false;    ///< likewise
  bool reads_queries_ = false;    ///< all patterns do
  bool reads_scores_ = false;     ///< likewise
  bool changes_keys_ = false;     ///< a position or a decay of each model does
  bool scores_products_ = false;  ///< similarities are of products of queries and keys alone
  OptionSet<ScoreDecay> decays_;
  OptionSet<Pattern> patterns_;
  torch::Tensor chosen_;  ///< what queries of the sequence at hand see where patterns read them
  std::vector<Sight> sights_;                            ///< of each group of patterns
  std::optional<FusedGates> gates_;                      ///< where all have a form
  std::optional<FusedTemperatures> fused_temperatures_;  ///< likewise
  std::vector<double> starts_;  ///< what temperatures are multiplied by: T0 of each model, or 1
  torch::Tensor starts_there_;  ///< of the last device and type
};

}  // namespace nas::nn
