#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "genotype/architecture.hpp"
#include "nn/feed_forward.hpp"
#include "nn/mixer.hpp"
#include "nn/norm.hpp"
#include "ops/dropout.hpp"
#include "ops/parameter.hpp"

namespace nas::nn {

/// The dropout site of the embedding sum; those of layers follow, a fixed number for each, so that
/// what two models share is dropped alike.
inline constexpr std::uint64_t kEmbeddingSite = 0;

/// The mixer of layer `index` of each of some models, which are alike there; under its own name in the scope.
std::unique_ptr<Mixer> make_mixer(const std::vector<Architecture>& architectures,
                                  const ParameterScope& scope, std::int64_t index);

/// One layer of each model of an array: a mixer M and a feed-forward layer F, of which one may be
/// missing, with its norms.
///
///   pre        h <- h + M(n_1(h), h)         h <- h + F(n_2(h))
///   post       h <- n_1(h + M(h, h))         h <- n_2(h + F(h))
///   sandwich   h <- h + n_2(M(n_1(h), h))    h <- h + n_4(F(n_3(h)))
///   parallel   h <- h + M(n(h), h) + F(n(h)), parallel_norms with n_1 and n_2
///
/// @see Xiong et al. (2020), arXiv:2002.04745 (pre, post); Kim et al. (2025), arXiv:2502.02732
/// (sandwich); Chowdhery et al. (2022), PaLM, arXiv:2204.02311 (parallel).
class Block {
 public:
  /// @param architectures  of the R models of the scope, which are alike.
  /// @param index  of the layer, from 0.
  /// @throws InputError if a gene of the first has a word that is not known.
  Block(const std::vector<Architecture>& architectures, const ParameterScope& scope,
        std::int64_t index);

  /// @param stream  h, (R, B, T, D).   @return the stream behind the layer.
  torch::Tensor forward(const torch::Tensor& stream, const Pass& pass);

  /// Whether the mixers read the rows of value embeddings of a pass.
  [[nodiscard]] bool reads_values() const { return reads_values_; }

  /// @return the state of the mixer before the first token; nothing if there is no mixer.
  [[nodiscard]] std::unique_ptr<Mixer::State> start(std::int64_t room) const;
  /// The stream of the next token of one model behind the layer, without dropout.
  ///
  /// @param stream  (1, B, 1, D).   @param state  of the mixer, if there is one.
  torch::Tensor step(const torch::Tensor& stream, const Pass& pass, Mixer::State* state);

 private:
  /// Of one part of the layer; each may be missing.
  struct Norms {
    std::unique_ptr<Norm> input;      ///< of what the part reads
    std::unique_ptr<Norm> increment;  ///< of what it adds to the stream
    std::unique_ptr<Norm> sum;        ///< of the stream after that
  };

  /// Makes a part and its norms, in the order of their parameters.
  template <class MakePart>
  Norms make_norms(const Architecture& common, const ParameterScope& scope, const std::string& part,
                   const MakePart& make_part) const;
  static torch::Tensor normalised(const std::unique_ptr<Norm>& norm, const torch::Tensor& x);
  static Biased normalised(const std::unique_ptr<Norm>& norm, const Biased& x);
  static NormBranch branch(const std::unique_ptr<Norm>& norm, const torch::Tensor& stream);
  /// The stream behind the layer. @param mix  mix(x, h) is what the mixer adds.
  template <class Mix>
  torch::Tensor passed(const torch::Tensor& stream, const Pass& pass, const Mix& mix) const;
  template <class Mix>
  torch::Tensor with_mixer(const torch::Tensor& stream, const Mix& mix) const;
  [[nodiscard]] torch::Tensor with_feed_forward(const torch::Tensor& stream,
                                                const Pass& pass) const;
  [[nodiscard]] Biased fed_forward(const torch::Tensor& x, const Pass& pass) const;
  /// h + dropout(increment).
  [[nodiscard]] torch::Tensor added(const torch::Tensor& stream, const Biased& increment,
                                    const Pass& pass) const;
  /// @param site  within the layer.
  [[nodiscard]] Masks masks(const Pass& pass, std::uint64_t site) const;

  std::int64_t models_;
  double dropout_;
  bool fused_;
  std::uint64_t first_site_;
  std::unique_ptr<Norm> shared_norm_;  ///< of a parallel block: there are no others
  bool parallel_ = false;              ///< with norms of their own
  Norms mixer_norms_;
  std::unique_ptr<Mixer> mixer_;
  bool reads_values_ = false;
  Norms feed_forward_norms_;
  std::unique_ptr<FeedForward> feed_forward_;
};

}  // namespace nas::nn
