#include "nn/block.hpp"

#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "genotype/costs.hpp"
#include "genotype/mixer_kind.hpp"
#include "nn/mixers.hpp"
#include "nn/parts/smear.hpp"

namespace nas::nn {

namespace {

/// Dropout sites of a layer.
enum Site : std::uint64_t { kMixerSite, kHiddenSite, kOutputSite, kSitesPerLayer };

/// The initialiser of the matrices that write to the residual stream: smaller by 1/sqrt(2 layers),
/// the number of writes, in corrected semantics, so that the stream starts at one scale at any
/// depth.
Start residual_start(const Architecture& architecture) {
  const auto start = Start::normal();
  if (architecture.semantics == Semantics::published) return start;
  return Start::normal(start.value / std::sqrt(2.0 * static_cast<double>(architecture.layers)));
}

/// Of layer i of each model.
std::vector<Mechanism> mechanisms_of(const std::vector<Architecture>& architectures,
                                     std::int64_t layer) {
  std::vector<Mechanism> mechanisms;
  for (const auto& architecture : architectures) mechanisms.push_back(architecture.layer(layer));
  return mechanisms;
}

const std::string& scope_name(const Mechanism& layer) {
  const auto& mixer = layer.word("mixer");
  const auto& name = mixer_kinds().at(mixer).scope;
  return name.empty() ? mixer : name;
}

}  // namespace

std::unique_ptr<Mixer> make_mixer(const std::vector<Architecture>& architectures,
                                  const ParameterScope& scope, std::int64_t index) {
  const auto& common = architectures.front();
  const auto& layer = common.layer(index);
  const auto own = scope.child(scope_name(layer));
  auto mixer = mixers()
                   .at(layer.word("mixer"))
                   .make({mechanisms_of(architectures, index), attention_shape(common, layer),
                          common.semantics, index, residual_start(common)},
                         own);
  if (layer.integer("smear") == 0) return mixer;
  return std::make_unique<SmearedMixer>(std::move(mixer), common.width, own.child("smear"));
}

Block::Block(const std::vector<Architecture>& architectures, const ParameterScope& scope,
             std::int64_t index)
    : models_(static_cast<std::int64_t>(architectures.size())),
      dropout_(architectures.front().dropout),
      fused_(scope.mode() != NumericalMode::reference),
      first_site_(kEmbeddingSite + 1 + static_cast<std::uint64_t>(index) * kSitesPerLayer) {
  const auto& common = architectures.front();
  const auto& layer = common.layer(index);
  const auto& form = common.genes.word("block");
  parallel_ = form == "parallel_norms";
  if (form == "parallel") {
    shared_norm_ = make_norm(common, scope.child("norm"));
  } else if (form != "sequential" && !parallel_) {
    throw InputError("block = " + form + ", must be sequential, parallel or parallel_norms");
  }
  if (layer.word("mixer") != "none") {
    reads_values_ = layer.integer("value_embedding") == 1;
    mixer_norms_ = make_norms(common, scope, scope_name(layer),
                              [&] { mixer_ = make_mixer(architectures, scope, index); });
  }
  if (layer.word("ffn") != "none") {
    feed_forward_norms_ = make_norms(common, scope, "feed_forward", [&] {
      feed_forward_ = feed_forwards()
                          .at(layer.word("ffn"))
                          .make({common.width, hidden_width(common, layer), residual_start(common)},
                                scope.child("feed_forward"));
    });
  }
}

template <class MakePart>
Block::Norms Block::make_norms(const Architecture& common, const ParameterScope& scope,
                               const std::string& part, const MakePart& make_part) const {
  Norms made;
  const auto& place = common.genes.word("norm_place");
  if (shared_norm_) {
    make_part();
    return made;
  }
  if (place != "pre" && place != "post" && place != "sandwich") {
    throw InputError("norm_place = " + place + ", must be pre, post or sandwich");
  }
  if (place != "post") made.input = make_norm(common, scope.child(part + "_norm"));
  make_part();
  if (place == "post") made.sum = make_norm(common, scope.child(part + "_norm"));
  if (place == "sandwich") made.increment = make_norm(common, scope.child(part + "_norm_out"));
  return made;
}

torch::Tensor Block::forward(const torch::Tensor& stream, const Pass& pass) {
  return passed(stream, pass, [&](const torch::Tensor& x, const torch::Tensor& residual) {
    auto increment = mixer_->forward(x, residual, pass, first_site_ + kMixerSite);
    if (pass.mixed) pass.mixed(x, residual, increment);
    return increment;
  });
}

std::unique_ptr<Mixer::State> Block::start(std::int64_t room) const {
  return mixer_ ? mixer_->start(room) : nullptr;
}

torch::Tensor Block::step(const torch::Tensor& stream, const Pass& pass, Mixer::State* state) {
  return passed(stream, pass, [&](const torch::Tensor& x, const torch::Tensor& residual) {
    return mixer_->step(x, residual, pass, *state);
  });
}

template <class Mix>
torch::Tensor Block::passed(const torch::Tensor& stream, const Pass& pass, const Mix& mix) const {
  if (shared_norm_) {
    const auto [x, h] = shared_norm_->branch(stream);
    const auto mixed = mixer_ ? h + mix(x, h) : h;
    return feed_forward_ ? added(mixed, fed_forward(x, pass), pass) : mixed;
  }
  const auto mixed = mixer_ ? with_mixer(stream, mix) : stream;
  if (parallel_ && feed_forward_) {
    return added(mixed, fed_forward(normalised(feed_forward_norms_.input, stream), pass), pass);
  }
  return feed_forward_ ? with_feed_forward(mixed, pass) : mixed;
}

torch::Tensor Block::normalised(const std::unique_ptr<Norm>& norm, const torch::Tensor& x) {
  return norm ? norm->normalised(x) : x;
}

Biased Block::normalised(const std::unique_ptr<Norm>& norm, const Biased& x) {
  return norm ? Biased(norm->normalised(with_bias(x))) : x;
}

NormBranch Block::branch(const std::unique_ptr<Norm>& norm, const torch::Tensor& stream) {
  return norm ? norm->branch(stream) : NormBranch{stream, stream};
}

template <class Mix>
torch::Tensor Block::with_mixer(const torch::Tensor& stream, const Mix& mix) const {
  const auto [x, h] = branch(mixer_norms_.input, stream);
  const torch::Tensor increment = mix(x, h);
  return normalised(mixer_norms_.sum, h + normalised(mixer_norms_.increment, increment));
}

torch::Tensor Block::with_feed_forward(const torch::Tensor& stream, const Pass& pass) const {
  const auto [x, h] = branch(feed_forward_norms_.input, stream);
  const auto increment = fed_forward(x, pass);
  return normalised(feed_forward_norms_.sum,
                    added(h, normalised(feed_forward_norms_.increment, increment), pass));
}

Biased Block::fed_forward(const torch::Tensor& x, const Pass& pass) const {
  return feed_forward_->before_bias(x, masks(pass, kHiddenSite));
}

torch::Tensor Block::added(const torch::Tensor& stream, const Biased& increment,
                           const Pass& pass) const {
  const auto output_masks = masks(pass, kOutputSite);
  return fused_ ? add_dropped(stream, increment, output_masks)
                : stream + dropout(with_bias(increment), output_masks);
}

Masks Block::masks(const Pass& pass, std::uint64_t site) const {
  return dropout_masks(dropout_, pass, first_site_ + site, models_);
}

}  // namespace nas::nn
