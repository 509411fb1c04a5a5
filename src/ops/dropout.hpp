#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

#include "core/visibility.hpp"
#include "kernels/dropout.hpp"
#include "ops/product.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// Keys and values that a layer of attention leaves to later ones: of sequences (R, B, T, G d), rotated; of a step what
/// it keeps, (1, B, heads, n, d), and the n tokens' places in the sequence, for each set of heads that keep the same.
struct SharedKeys {
  torch::Tensor keys, values;
  torch::Tensor places{};  ///< (n) int64, of a step
};

/// What one forward pass of an array draws its dropout from. Masks depend on (seed, site), never on
/// a global generator: the trainer gives the seeds of the step, and the pass is a pure function of
/// parameters, tokens and seeds.
struct Pass {
  bool training = false;             ///< false: no dropout
  std::vector<std::uint64_t> seeds;  ///< one for each model; none are needed without training
  /// The same in the memory of a device with kernels of its own (ops/device_operations.hpp), (R)
  /// int64 of the same bits: read when the kernels run, and in place of `seeds`, which may then be
  /// empty.
  torch::Tensor device_seeds{};
  /// The tokens' rows of the table of value embeddings (nn/transformer.cpp), (R, B, T, D), for
  /// layers that read them.
  torch::Tensor value_rows{};
  /// Where layers share keys: those of the nearest earlier layer with its own, in which layers leave theirs. Whoever
  /// calls layers one by one gives each the same vector, empty before the first.
  std::vector<SharedKeys>* shared = nullptr;
  /// Number of the first sequence in the batch that is computed in parts: a part is masked as in the
  /// whole.
  std::int64_t first_sequence = 0;
  /// Where it is set, called with the residual stream (R, B, T, D) behind 0, 1, ... layers.
  std::function<void(std::int64_t, const torch::Tensor&)> watch{};
  /// Where it is set, called in each layer with what its mixer reads and adds (nn/mixer.hpp): x, h and M(x, h).
  std::function<void(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&)> mixed{};

  /// The same pass for models on a device: its seeds are there, too, where kernels read them.
  [[nodiscard]] Pass on(torch::Device device) const;
};

/// The dropout of one site of an array.
struct Masks {
  std::vector<kernels::Dropout> of_models;
  torch::Tensor seeds{};   ///< of the pass, in the memory of a device: there, keys come from these
  std::uint64_t site = 0;  ///< and this
  std::int64_t first_sequence = 0;  ///< of the pass

  /// A model's mask of x (R, B, ...), with the number of the first element.
  [[nodiscard]] kernels::Dropout of(std::size_t model, const torch::Tensor& x) const;
  /// @param elements  of a sequence.
  [[nodiscard]] kernels::Dropout of(std::size_t model, std::int64_t elements) const;
  [[nodiscard]] bool any_drops() const;
};

/// The masks of one dropout of a pass; they drop nothing if p = 0 or pass.training is false.
///
/// @param p     share that is dropped, in [0, 1).
/// @param site  which dropout of the models this is; equal sites in a pass have equal masks.
Masks dropout_masks(double p, const Pass& pass, std::uint64_t site, std::int64_t models);
/// The same with a share for each model.
Masks dropout_masks(const std::vector<double>& shares, const Pass& pass, std::uint64_t site);

/// Inverted dropout by a counter: y_i = x_i / (1 - p) if kept, else 0.
///
/// The mask is that of kernels/dropout.hpp, which depends on neither threads nor call order. On a
/// device without kernels of its own it comes from a generator of that device, seeded by (seed,
/// site): as reproducible, but another mask, which does not go on from part to part of a batch.
/// Nothing is stored for the backward pass, which draws
/// it again.
///
/// @param x  (R, B, ...), float32 or float64; elements are counted within each model.
/// @return x itself if nothing is dropped.
torch::Tensor dropout(const torch::Tensor& x, const Masks& masks);

/// residual + dropout(x), both of one size: one pass over memory by the kernels.
torch::Tensor add_dropped(const torch::Tensor& residual, const Biased& x, const Masks& masks);

/// dropout(gelu(x)), gelu(x) = x Phi(x) (kernels/elementwise.hpp): one pass over memory by the
/// kernels. Of bfloat16 where x is.
torch::Tensor dropped_gelu(const Biased& x, const Masks& masks);

/// dropout(silu(gate) x), silu(g) = g / (1 + e^-g), both of one size: on the CPU one pass over
/// memory by the kernels.
torch::Tensor dropped_swiglu(const torch::Tensor& gate, const torch::Tensor& x, const Masks& masks);

}  // namespace nn
}  // namespace nas
