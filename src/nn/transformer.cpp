#include "nn/transformer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "core/error.hpp"
#include "nn/attention.hpp"
#include "nn/parameter.hpp"
#include "nn/product.hpp"
#include "nn/torch_compat.hpp"

namespace nas::nn {

namespace {

constexpr double kLayerNormEpsilon = 1e-5;

// Dropout sites: one for the embedding sum, then a fixed number a layer, so that what two
// mechanisms share is dropped alike.
enum Site : std::uint64_t { kAttentionSite, kHiddenSite, kOutputSite, kSitesPerLayer };
constexpr std::uint64_t kEmbeddingSite = 0;

class LayerNorm {
 public:
  LayerNorm(const ParameterScope& scope, std::int64_t width)
      : weight_(scope.add("weight", {width}, Start::constant(1.0), Decay::no)),
        bias_(scope.add("bias", {width}, Start::constant(0.0), Decay::no)) {}

  [[nodiscard]] torch::Tensor operator()(const torch::Tensor& x) const {
    return at::layer_norm(x, weight_.sizes(), weight_, bias_, kLayerNormEpsilon);
  }

 private:
  torch::Tensor weight_, bias_;
};

/// How the matrices that write to the residual stream start: smaller by 1/sqrt(2 layers), the
/// number of writes, in corrected semantics, so that the stream starts at one scale at any depth.
Start residual_start(const Architecture& architecture) {
  const auto start = Start::normal();
  if (architecture.semantics == Semantics::published) return start;
  return Start::normal(start.value / std::sqrt(2.0 * static_cast<double>(architecture.layers)));
}

/// h <- h + attention(LN(h)),  h <- h + FFN(LN(h)).
class Block {
 public:
  Block(const Architecture& architecture, const ParameterScope& scope, std::int64_t index)
      : dropout_(architecture.dropout),
        fused_(scope.mode() != NumericalMode::reference),
        first_site_(1 + static_cast<std::uint64_t>(index) * kSitesPerLayer),
        attention_norm_(scope.child("attention_norm"), architecture.width),
        attention_(architecture.mechanism, architecture.attention_shape(), architecture.semantics,
                   scope.child("attention"), residual_start(architecture)),
        feed_forward_norm_(scope.child("feed_forward_norm"), architecture.width),
        expand_(scope.child("feed_forward.expand"), architecture.width,
                architecture.width * architecture.feed_forward),
        contract_(scope.child("feed_forward.contract"),
                  architecture.width * architecture.feed_forward, architecture.width,
                  residual_start(architecture)) {}

  torch::Tensor forward(const torch::Tensor& stream, const Pass& pass) {
    const auto attended = stream + attention_.forward(attention_norm_(stream), stream, pass,
                                                      first_site_ + kAttentionSite);
    const auto expanded = expand_(feed_forward_norm_(attended));
    const auto hidden_site = first_site_ + kHiddenSite;
    const auto output_site = first_site_ + kOutputSite;
    if (fused_) {
      const auto hidden = dropped_gelu(expanded, dropout_, pass, hidden_site);
      return add_dropped(attended, contract_(hidden), dropout_, pass, output_site);
    }
    const auto hidden = dropout(at::gelu(expanded), dropout_, pass, hidden_site);
    return attended + dropout(contract_(hidden), dropout_, pass, output_site);
  }

 private:
  double dropout_;
  bool fused_;
  std::uint64_t first_site_;
  LayerNorm attention_norm_;
  AttentionLayer attention_;
  LayerNorm feed_forward_norm_;
  Linear expand_, contract_;
};

}  // namespace

struct Transformer::Impl {
  Impl(const Architecture& given, NumericalMode given_mode)
      : architecture(given), mode(given_mode) {
    require_valid(architecture);
    const ParameterScope scope(parameters, mode);
    embedding =
        scope.add("embedding.weight", {given.vocabulary, given.width}, Start::normal(), Decay::no);
    positions =
        scope.add("position.weight", {given.context, given.width}, Start::normal(), Decay::no);
    for (std::int64_t i = 0; i < given.layers; ++i) {
      blocks.emplace_back(architecture, scope.child("layers." + std::to_string(i)), i);
    }
    final_norm = std::make_unique<LayerNorm>(scope.child("final_norm"), given.width);
  }

  Architecture architecture;
  NumericalMode mode;
  std::vector<Parameter> parameters;
  torch::Tensor embedding;
  torch::Tensor positions;
  std::vector<Block> blocks;
  std::unique_ptr<LayerNorm> final_norm;
};

Transformer::Transformer(const Architecture& architecture, NumericalMode mode)
    : impl_(std::make_shared<Impl>(architecture, mode)) {}
Transformer::~Transformer() = default;
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&&) noexcept = default;

void Transformer::initialise(std::uint64_t run_seed, std::int64_t replicate) {
  nn::initialise(impl_->parameters, run_seed, replicate);
}

void Transformer::to(torch::Device device, torch::ScalarType type) {
  move_to(impl_->parameters, device, type);
}

torch::Tensor Transformer::features(const torch::Tensor& tokens, const Pass& pass) {
  const auto& architecture = impl_->architecture;
  if (tokens.dim() != 2 || tokens.size(1) > architecture.context) {
    throw std::invalid_argument(
        "tokens have " + std::to_string(tokens.dim()) + " dimensions and length " +
        std::to_string(tokens.size(-1)) +
        ", must be (B, T) with T <= context = " + std::to_string(architecture.context));
  }
  auto stream = dropout(
      at::embedding(impl_->embedding, tokens) + impl_->positions.slice(0, 0, tokens.size(1)),
      architecture.dropout, pass, kEmbeddingSite);
  for (auto& block : impl_->blocks) stream = block.forward(stream, pass);
  return (*impl_->final_norm)(stream);
}

torch::Tensor Transformer::logits(const torch::Tensor& tokens, const Pass& pass) {
  return linear(features(tokens, pass), impl_->embedding, {}, impl_->mode);
}

torch::Tensor Transformer::loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                                const Pass& pass) {
  return linear_cross_entropy(features(tokens, pass).flatten(0, 1), impl_->embedding,
                              targets.flatten(), impl_->mode);
}

TokenScores Transformer::scores(const torch::Tensor& tokens, const torch::Tensor& targets) {
  const at::NoGradGuard no_grad;
  return score_tokens(features(tokens, Pass{}).flatten(0, 1), impl_->embedding, targets.flatten(),
                      impl_->mode);
}

torch::Tensor Transformer::embedding() { return impl_->embedding; }

std::vector<std::pair<std::string, torch::Tensor>> Transformer::parameters() const {
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const auto& parameter : impl_->parameters) {
    named.emplace_back(parameter.name, parameter.tensor);
  }
  return named;
}

bool Transformer::decays(const std::string& parameter_name) const {
  const auto& parameters = impl_->parameters;
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& p) { return p.name == parameter_name; });
  if (found == parameters.end()) {
    throw std::logic_error("no parameter is called " + parameter_name);
  }
  return impl_->architecture.semantics == Semantics::published || found->decay == Decay::yes;
}

const Architecture& Transformer::architecture() const { return impl_->architecture; }

NumericalMode Transformer::numerical_mode() const { return impl_->mode; }

CausalityReport check_causality(const Architecture& architecture, std::uint64_t seed) {
  constexpr double kTolerance = 1e-9;
  // Usual starts are so flat that a leak may hide below the tolerance; from here it is above 1e-4.
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
