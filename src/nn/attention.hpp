#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "core/visibility.hpp"
#include "genotype/component.hpp"
#include "kernels/normalization.hpp"
#include "nn/parts/gate.hpp"
#include "nn/parts/option.hpp"
#include "nn/parts/vector_norm.hpp"
#include "ops/fused_attention.hpp"
#include "ops/product.hpp"
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
  /// The same of products q.k, (M, B, H, T, T); undefined: scores are no function of these alone.
  [[nodiscard]] virtual torch::Tensor of_products(const torch::Tensor& /*products*/) const {
    return {};
  }
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
  /// @param visible  bool, (T, T), one matrix a head, (H, T, T), or of a pattern that reads keys (M,
  /// B, H, T, T): what the pattern shows, never a later key and always one. Where a count n of keys
  /// matters, it is of visible ones.
  /// In decoding there is one row, (1, n), of the keys that are kept, in any order.
  /// @return weights (M, B, H, T, T), exactly 0 for hidden keys, never NaN.
  [[nodiscard]] virtual torch::Tensor weights(const torch::Tensor& scores,
                                              const torch::Tensor& visible) const = 0;
  /// Whether weights depend on the order of keys: then the kept ones come in that of the sequence.
  [[nodiscard]] virtual bool reads_order() const { return false; }
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
  /// @param seen  (T) int64, (H, T) or (M, B, H, T): how many keys each query sees, at least 1.
  /// @return M models' tensor that expands to (M, B, H, T, 1); undefined: nothing.
  [[nodiscard]] virtual torch::Tensor factors(const torch::Tensor& /*seen*/) const { return {}; }
  /// The same divisors, without factors, for arrays of various temperatures, beside a fused kernel;
  /// nothing: they are not of that form.
  [[nodiscard]] virtual std::optional<FusedTemperature> fused() const { return std::nullopt; }
};

// The options below have no fused() of their own: their descriptions say .fused = true where the
// fused kernel computes what they ask for, or where they ask nothing of it.

/// What tokens do to earlier keys: query i sees key j as A_i A_{i-1} ... A_{j+1} k_j, A_t a map of the
/// entries of each head that x_t makes. Models that have such are in arrays of their own.
class Passage {
 public:
  virtual ~Passage() = default;
  /// Whether they do anything.
  [[nodiscard]] virtual bool changes_keys() const { return false; }
  /// @param keys  (M, B, H, n, d), as the token before sees them.   @param x  (M, B, 1, D), of token t.
  /// @return A_t keys.
  [[nodiscard]] virtual torch::Tensor passed(const torch::Tensor& keys,
                                             const torch::Tensor& /*x*/) const {
    return keys;
  }
  /// Products of whole sequences. @param q, k  (M, B, H, T, d).   @param x  (M, B, T, D), what they
  /// are projected from.
  /// @return q_i.(A_i ... A_{j+1} k_j), (M, B, H, T, T); of later keys any finite value.
  [[nodiscard]] virtual torch::Tensor products(const torch::Tensor& q, const torch::Tensor& k,
                                               const torch::Tensor& /*x*/) const {
    return q.matmul(k.transpose(-2, -1));
  }
};

/// Lets scores know where keys are: maps queries and keys by their place, adds to the scores a
/// number that depends on the distance of key and query or on what is between them, or changes keys.
class Position : public Passage {
 public:
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
  /// Whether what is added depends on the scores.
  [[nodiscard]] virtual bool reads_scores() const { return false; }
  /// @param scores   (M, B, H, n, n'), after the temperature, keys in the order of the sequence.
  /// @param q        (M, B, H, n, d).   @param visible  bool, expands to the scores.
  /// @return what is added to them; to those of hidden keys any finite value.
  [[nodiscard]] virtual torch::Tensor added(const torch::Tensor& scores, const torch::Tensor& /*q*/,
                                            const torch::Tensor& /*visible*/) const {
    return at::zeros_like(scores);
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
  /// Which keys the queries from a place on see: never a later one, always at least one; a query's row
  /// does not depend on later tokens, nor on whether there are any.
  /// @param keys  (M, B, heads, T, d), of which most patterns read T alone.
  /// @return bool, (T - first, T), or one matrix a head, (H, T - first, T); of a pattern that reads
  /// keys (M, B, H, T - first, T).
  [[nodiscard]] virtual torch::Tensor visible(const torch::Tensor& keys,
                                              std::int64_t first) const = 0;
  /// Whether it reads keys. They are unit_keys() of the queries then (nn/parts/hashed_keys.hpp), of as
  /// many heads, and the layer has no projection to keys.
  [[nodiscard]] virtual bool reads_keys() const { return false; }
  /// Whether what it shows depends on queries: chosen() says it then, and visible() does not.
  [[nodiscard]] virtual bool reads_queries() const { return false; }
  /// @param queries  (M, B, H, n, d), the newest n.   @param keys  (M, B, heads, T, d).
  /// @return bool, (M, B, H, n, T).
  [[nodiscard]] virtual torch::Tensor chosen(const torch::Tensor& queries,
                                             const torch::Tensor& keys) const {
    return visible(keys, keys.size(3) - queries.size(3));
  }
  /// The same as ranges; nothing: it is not of that form, and has none in the fused kernel.
  [[nodiscard]] virtual std::optional<KeyRanges> ranges() const { return std::nullopt; }
};

/// Lowers scores by what lies between key and query, or fades keys.
class ScoreDecay : public Passage {
 public:
  /// Whether it lowers any.
  [[nodiscard]] virtual bool decays_scores() const { return false; }
  /// @param x  (M, B, T, D), what q, k and v are projected from.
  /// @return c (M, B, H, T), float64: s_ij + (c_i - c_j) is the decayed score, after the
  /// temperature; undefined: nothing decays. What c grows by at a token depends on that token alone,
  /// so that c of a single token is its growth. Sums over many tokens are large and their differences
  /// are not, so that these are taken in double.
  [[nodiscard]] virtual torch::Tensor cumulative(const torch::Tensor& /*x*/) const { return {}; }
};

/// The modules behind the component registry's descriptions, by key.
OptionRegistry<Similarity>& similarities();
OptionRegistry<Normalization>& normalizations();
OptionRegistry<Temperature>& temperatures();
OptionRegistry<Position>& positions();
OptionRegistry<Pattern>& patterns();
OptionRegistry<ScoreDecay>& decays();

// NAS_REGISTER_SIMILARITY(Class, .key = "dot", .summary = "q.k", .flops = ...): as of NAS_REGISTER_OPTION.
#define NAS_REGISTER_SIMILARITY(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::similarities(), "similarity", Class, __VA_ARGS__)
#define NAS_REGISTER_NORMALIZATION(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::normalizations(), "normalization", Class, __VA_ARGS__)
#define NAS_REGISTER_TEMPERATURE(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::temperatures(), "temperature", Class, __VA_ARGS__)
#define NAS_REGISTER_POSITION(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::positions(), "position", Class, __VA_ARGS__)
#define NAS_REGISTER_PATTERN(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::patterns(), "pattern", Class, __VA_ARGS__)
#define NAS_REGISTER_DECAY(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::decays(), "decay", Class, __VA_ARGS__)

/// @return scores with -inf for the keys that `visible` (bool, broadcastable) does not mark.
torch::Tensor hide(const torch::Tensor& scores, const torch::Tensor& visible);

/// @return softmax over the entries of each row that `kept` (bool, broadcastable, at least one per
/// row) marks; exactly 0 elsewhere.
torch::Tensor softmax_over(const torch::Tensor& scores, const torch::Tensor& kept);

/// Marks the largest visible scores of each row.
///
/// @param visible  as of Normalization::weights().   @param counts  (T), (H, T) or (M, B, H, T) int64
/// >= 1, how many of row i, on the scores' device.
/// @param most     the largest of `counts`.
/// @return  bool, as the scores: min(counts[i], visible keys of i) entries of row i.
torch::Tensor largest(const torch::Tensor& scores, const torch::Tensor& visible,
                      const torch::Tensor& counts, std::int64_t most);

}  // namespace nn
}  // namespace nas
