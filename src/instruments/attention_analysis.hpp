#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "nn/transformer.hpp"

namespace nas::nn {

/// Statistics by name, each as [head][sequence]; NaN where one is not defined. What they are:
/// instruments/attention_statistics.hpp.
using HeadValues = std::map<std::string, std::vector<std::vector<double>>>;

/// The values of the gate of a layer.
struct GateAnalysis {
  /// gate_mean, gate_sd, gate_shut, gate_open, and gate_output, the correlation of gates with the
  /// size of what they multiply. Of a gate of all D channels, head h has those from h D / H on.
  HeadValues statistics;
  /// [head][bin]: shares of the values in kGateBins equal parts of [0, 1], over all sequences.
  std::vector<std::vector<double>> histogram;
};
inline constexpr std::int64_t kGateBins = 20;

/// [head][query][key <= query]: weights.
using HeadMaps = std::vector<std::vector<std::vector<double>>>;

/// What one layer that has maps does: of attention, or of a state.
struct LayerAnalysis {
  std::int64_t layer = 0;  ///< its place in the model, from 0
  /// map_statistics and head_scores of repeated tokens; of attention score_statistics, of forget gates
  /// memory_statistics; of recurrent layers those of instruments/state_statistics.hpp.
  HeadValues statistics;
  /// [head][n]: a(n) (distance_profile), a mean over sequences.
  std::vector<std::vector<double>> profile;
  std::optional<GateAnalysis> gate{};
  HeadMaps example;  ///< of the first sequence, of its first kExampleTokens
};
inline constexpr std::int64_t kExampleTokens = 128;

/// What the mixers of a model do on some sequences.
struct AttentionAnalysis {
  std::vector<LayerAnalysis> layers;  ///< those that have maps
  /// By sequence: nll, mean over its targets; in_context_score, of repeated tokens; sink_rate, over
  /// the heads of all layers that attend.
  std::map<std::string, std::vector<double>> model;
};

/// Looks into a trained model: its maps on held-out sequences, and on as many sequences of random
/// tokens that repeat themselves. Cost: two forward passes over each in numerical mode reference,
/// and T^2 float64 numbers per head of a few sequences at a time.
///
/// @param model       of numerical mode reference, on the CPU.
/// @param tokens      (B, T) int64, 2 kFirstQuery <= T <= context.
/// @param targets     (B, T) int64, below 0 where nothing is asked.
/// @param token_seed  of the repeated tokens.
/// @throws std::logic_error for a model of another numerical mode, std::invalid_argument for other
/// sizes.
AttentionAnalysis analyse_attention(Transformer& model, const torch::Tensor& tokens,
                                    const torch::Tensor& targets, std::uint64_t token_seed);

/// The maps of one sequence.
struct LayerMaps {
  std::int64_t layer = 0;  ///< its place in the model, from 0
  HeadMaps heads{};
};
/// Of the layers that have maps, in the model's order. Cost: a forward pass of numerical mode reference.
/// @param ids  at least one; no more than the context of a model of learned positions.
std::vector<LayerMaps> attention_maps(Transformer& model, const std::vector<std::int64_t>& ids);

}  // namespace nas::nn
