#include "nn/transformer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "core/error.hpp"
#include "nn/attention.hpp"
#include "nn/mixer.hpp"
#include "ops/embedding.hpp"
#include "ops/layer_norm.hpp"
#include "ops/parameter.hpp"
#include "ops/product.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {

namespace {

constexpr double kLayerNormEpsilon = 1e-5;

// Dropout sites: one for the embedding sum, then a fixed number per layer, so that what two
// mechanisms share is dropped alike.
enum Site : std::uint64_t { kMixerSite, kHiddenSite, kOutputSite, kSitesPerLayer };
constexpr std::uint64_t kEmbeddingSite = 0;

class LayerNorm {
 public:
  LayerNorm(const ParameterScope& scope, std::int64_t width)
      : mode_(scope.mode()),
        weight_(scope.add("weight", {width}, Start::constant(1.0), Decay::no)),
        bias_(scope.add("bias", {width}, Start::constant(0.0), Decay::no)) {}

  [[nodiscard]] torch::Tensor operator()(const torch::Tensor& x) const {
    return layer_norm(x, weight_, bias_, kLayerNormEpsilon, mode_);
  }

 private:
  NumericalMode mode_;
  torch::Tensor weight_, bias_;
};

/// The initialiser of the matrices that write to the residual stream: smaller by 1/sqrt(2 layers),
/// the number of writes, in corrected semantics, so that the stream starts at one scale at any
/// depth.
Start residual_start(const Architecture& architecture) {
  const auto start = Start::normal();
  if (architecture.semantics == Semantics::published) return start;
  return Start::normal(start.value / std::sqrt(2.0 * static_cast<double>(architecture.layers)));
}

std::vector<Mechanism> mechanisms_of(const std::vector<Architecture>& architectures) {
  std::vector<Mechanism> mechanisms;
  for (const auto& architecture : architectures) mechanisms.push_back(architecture.mechanism);
  return mechanisms;
}

/// h <- h + mixer(LN(h), h),  h <- h + FFN(LN(h)).
class Block {
 public:
  Block(const std::vector<Architecture>& architectures, const ParameterScope& scope,
        std::int64_t index)
      : Block(architectures.front(), mechanisms_of(architectures), scope, index) {}

  torch::Tensor forward(const torch::Tensor& stream, const Pass& pass) {
    const auto mixed =
        stream + mixer_->forward(mixer_norm_(stream), stream, pass, first_site_ + kMixerSite);
    const auto expanded = expand_(feed_forward_norm_(mixed));
    const auto hidden_masks = masks(pass, kHiddenSite);
    const auto output_masks = masks(pass, kOutputSite);
    if (fused_) {
      return add_dropped(mixed, contract_(dropped_gelu(expanded, hidden_masks)), output_masks);
    }
    // LibTorch rounds elementary functions of most elements by vectors and of the last few
    // otherwise: by a number's place in a tensor.
    const auto activated =
        expanded.device().is_cpu()
            ? for_each_model(models_, [&](auto r) { return at::gelu(expanded[r]); })
            : at::gelu(expanded);
    const auto hidden = dropout(activated, hidden_masks);
    return mixed + dropout(contract_(hidden), output_masks);
  }

 private:
  Block(const Architecture& common, const std::vector<Mechanism>& mechanisms,
        const ParameterScope& scope, std::int64_t index)
      : models_(static_cast<std::int64_t>(mechanisms.size())),
        dropout_(common.dropout),
        fused_(scope.mode() != NumericalMode::reference),
        first_site_(1 + static_cast<std::uint64_t>(index) * kSitesPerLayer),
        mixer_norm_(scope.child("attention_norm"), common.width),
        mixer_(std::make_unique<AttentionLayer>(mechanisms, common.attention_shape(),
                                                common.semantics, scope.child("attention"),
                                                residual_start(common))),
        feed_forward_norm_(scope.child("feed_forward_norm"), common.width),
        expand_(scope.child("feed_forward.expand"), common.width,
                common.width * common.feed_forward),
        contract_(scope.child("feed_forward.contract"), common.width * common.feed_forward,
                  common.width, residual_start(common)) {}

  [[nodiscard]] Masks masks(const Pass& pass, Site site) const {
    return dropout_masks(dropout_, pass, first_site_ + site, models_);
  }

  std::int64_t models_;
  double dropout_;
  bool fused_;
  std::uint64_t first_site_;
  LayerNorm mixer_norm_;
  std::unique_ptr<Mixer> mixer_;
  LayerNorm feed_forward_norm_;
  Linear expand_, contract_;
};

void require_alike(const std::vector<Architecture>& architectures) {
  if (architectures.empty()) throw std::invalid_argument("an array of no models");
  for (const auto& architecture : architectures) {
    require_valid(architecture);
    if (!alike(architecture, architectures.front())) {
      throw std::invalid_argument("models of an array may differ in mechanism alone: " +
                                  to_string(architectures.front().mechanism) + ", " +
                                  to_string(architecture.mechanism));
    }
  }
}

}  // namespace

bool alike(const Architecture& a, const Architecture& b) {
  auto same = a;
  same.mechanism = b.mechanism;
  return same == b && fused_forms(a.mechanism) == fused_forms(b.mechanism);
}

struct TransformerArray::Impl {
  Impl(const std::vector<Architecture>& given, NumericalMode given_mode, torch::Device device)
      : architectures(given), numerical_mode(given_mode), mode(of_operations(given_mode)) {
    require_alike(architectures);
    const auto& common = architectures.front();
    const ParameterScope scope(
        parameters, mode, first_models(static_cast<std::int64_t>(architectures.size())), device);
    embedding = scope.add("embedding.weight", {common.vocabulary, common.width}, Start::normal(),
                          Decay::no);
    positions =
        scope.add("position.weight", {common.context, common.width}, Start::normal(), Decay::no);
    for (std::int64_t i = 0; i < common.layers; ++i) {
      blocks.emplace_back(architectures, scope.child("layers." + std::to_string(i)), i);
    }
    final_norm = std::make_unique<LayerNorm>(scope.child("final_norm"), common.width);
  }

  std::vector<Architecture> architectures;
  NumericalMode numerical_mode;
  NumericalMode mode;  ///< of operations
  std::vector<Parameter> parameters;
  torch::Tensor embedding;
  torch::Tensor positions;
  std::vector<Block> blocks;
  std::unique_ptr<LayerNorm> final_norm;
};

TransformerArray::TransformerArray(const std::vector<Architecture>& architectures,
                                   NumericalMode mode, torch::Device device)
    : impl_(std::make_shared<Impl>(architectures, mode, device)) {}
TransformerArray::~TransformerArray() = default;
TransformerArray::TransformerArray(TransformerArray&&) noexcept = default;
TransformerArray& TransformerArray::operator=(TransformerArray&&) noexcept = default;

void TransformerArray::initialise(const std::vector<StartSeed>& seeds) {
  nn::initialise(impl_->parameters, seeds);
}

void TransformerArray::to(torch::Device device, torch::ScalarType type) {
  move_to(impl_->parameters, device, type);
}

torch::Tensor TransformerArray::features(const torch::Tensor& tokens, const Pass& given) {
  const auto pass = given.on(tokens.device());
  const auto& common = impl_->architectures.front();
  if (tokens.dim() != 3 || tokens.size(0) != num_models() || tokens.size(2) > common.context) {
    throw std::invalid_argument("tokens have " + std::to_string(tokens.dim()) + " dimensions, " +
                                std::to_string(tokens.size(0)) + " models and length " +
                                std::to_string(tokens.size(-1)) +
                                ", must be (R, B, T) with R = " + std::to_string(num_models()) +
                                " and T <= context = " + std::to_string(common.context));
  }
  set_float_products(tokens.device(), impl_->numerical_mode);
  auto stream = dropout(embed(tokens, impl_->embedding, impl_->positions, impl_->mode),
                        dropout_masks(common.dropout, pass, kEmbeddingSite, num_models()));
  for (auto& block : impl_->blocks) stream = block.forward(stream, pass);
  return (*impl_->final_norm)(stream);
}

torch::Tensor TransformerArray::logits(const torch::Tensor& tokens, const Pass& pass) {
  return linear(features(tokens, pass), impl_->embedding, {}, impl_->mode);
}

torch::Tensor TransformerArray::loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                                     const Pass& pass) {
  return linear_cross_entropy(features(tokens, pass), impl_->embedding, targets, impl_->mode);
}

TokenScores TransformerArray::scores(const torch::Tensor& tokens, const torch::Tensor& targets) {
  const at::NoGradGuard no_grad;
  return score_tokens(features(tokens, Pass{}).flatten(1, 2), impl_->embedding, targets.flatten(1),
                      impl_->mode);
}

torch::Tensor TransformerArray::embedding() { return impl_->embedding; }

const std::vector<Parameter>& TransformerArray::parameters() const { return impl_->parameters; }

bool TransformerArray::decays(const Parameter& parameter) const {
  return impl_->architectures.front().semantics == Semantics::published ||
         parameter.decay == Decay::yes;
}

std::int64_t TransformerArray::num_models() const {
  return static_cast<std::int64_t>(impl_->architectures.size());
}

const std::vector<Architecture>& TransformerArray::architectures() const {
  return impl_->architectures;
}

NumericalMode TransformerArray::numerical_mode() const { return impl_->numerical_mode; }

Transformer::Transformer(const Architecture& architecture, NumericalMode mode)
    : array_({architecture}, mode) {}

void Transformer::initialise(std::uint64_t run_seed, std::int64_t replicate) {
  array_.initialise({{run_seed, replicate}});
}

void Transformer::to(torch::Device device, torch::ScalarType type) { array_.to(device, type); }

torch::Tensor Transformer::features(const torch::Tensor& tokens, const Pass& pass) {
  return array_.features(tokens.unsqueeze(0), pass)[0];
}

torch::Tensor Transformer::logits(const torch::Tensor& tokens, const Pass& pass) {
  return array_.logits(tokens.unsqueeze(0), pass)[0];
}

torch::Tensor Transformer::loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                                const Pass& pass) {
  return array_.loss(tokens.unsqueeze(0), targets.unsqueeze(0), pass)[0];
}

TokenScores Transformer::scores(const torch::Tensor& tokens, const torch::Tensor& targets) {
  const auto scores = array_.scores(tokens.unsqueeze(0), targets.unsqueeze(0));
  return {scores.nll[0], scores.correct[0]};
}

torch::Tensor Transformer::embedding() { return array_.embedding()[0]; }

std::vector<std::pair<std::string, torch::Tensor>> Transformer::parameters() const {
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const auto& parameter : array_.parameters()) {
    named.emplace_back(parameter.name, parameter.tensor);
  }
  return named;
}

CausalityReport check_causality(const Architecture& architecture, std::uint64_t seed) {
  constexpr double kTolerance = 1e-9;
  // Usual initial values are so flat that a leak may hide below the tolerance; from here it is
  // above 1e-4.
  constexpr double kSpread = 0.5;
  constexpr std::array<std::int64_t, 4> kPositions{0, 3, 7, 10};
  Architecture small;
  small.mechanism = canonical(architecture.mechanism, architecture.semantics);
  small.semantics = architecture.semantics;
  small.width = 16;
  small.heads = 2;
  small.context = 12;
  small.vocabulary = 13;
  small.feed_forward = 2;
  CausalityReport report;
  // An option may compute otherwise inside the fused kernel.
  for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
    Transformer model(small, mode);
    model.to(at::kCPU, at::kDouble);
    const at::NoGradGuard no_grad;
    const auto generator = make_generator(at::kCPU, seed);
    for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, kSpread, generator);
    const auto tokens =
        at::randint(small.vocabulary, {2, small.context}, generator, at::TensorOptions(at::kLong));
    const auto logits = model.logits(tokens, Pass{});
    for (const auto position : kPositions) {
      auto changed = tokens.clone();
      changed.slice(1, position + 1).add_(1).remainder_(small.vocabulary);
      const auto difference = (model.logits(changed, Pass{}) - logits).slice(1, 0, position + 1);
      report.largest_change =
          std::max(report.largest_change, difference.abs().max().item<double>());
    }
  }
  report.causal = report.largest_change <= kTolerance;
  return report;
}

}  // namespace nas::nn
