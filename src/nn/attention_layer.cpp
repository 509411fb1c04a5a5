#include "nn/attention_layer.hpp"

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "genotype/layer_rules.hpp"
#include "genotype/mechanism_name.hpp"
#include "nn/parts/hashed_keys.hpp"
#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"
#include "ops/model_parts.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// Those of the models whose word for biases is among some.
Models biased_models(const std::vector<Mechanism>& mechanisms, const Models& models,
                     std::initializer_list<std::string_view> words) {
  Models biased;
  for (std::size_t r = 0; r < mechanisms.size(); ++r) {
    if (std::find(words.begin(), words.end(), mechanisms[r].word("bias")) != words.end()) {
      biased.push_back(models[r]);
    }
  }
  return biased;
}

/// What is computed in fused forms. @throws std::invalid_argument where only some models have one:
/// such a model would change how the others are computed.
FusedForms common_forms(const std::vector<Mechanism>& mechanisms) {
  const auto forms = fused_forms(mechanisms.front());
  for (const auto& mechanism : mechanisms) {
    if (fused_forms(mechanism) != forms) {
      throw std::invalid_argument(
          "an array of models mixes mechanisms with and without a fused form: " +
          to_string(mechanisms.front()) + ", " + to_string(mechanism));
    }
  }
  return forms;
}

torch::Tensor normalised(const VectorNorm& norm, const torch::Tensor& vectors) {
  return norm.normalised(vectors);
}

/// Whether what is known of so many keys of a device may be used again.
bool fits(const torch::Tensor& known, std::int64_t tokens, torch::Device device) {
  return known.defined() && known.size(-1) == tokens && known.device() == device;
}

}  // namespace

void AttentionLayer::make_projections(const std::vector<Mechanism>& mechanisms,
                                      const AttentionShape& shape, const ParameterScope& scope,
                                      const Start& output_start) {
  const auto biased = biased_models(mechanisms, scope.models(), {"bias", "qkv"});
  const auto projection = [&](const char* name, std::int64_t out) {
    return Linear::with_biases_of(scope.child(name), shape.width, out, biased);
  };
  q_proj_ = projection("q_proj", shape.inner());
  if (!reads_keys_ && !shares_ && !latent_)
    k_proj_ = projection("k_proj", num_key_heads_ * head_width_);
  if (!shares_ && !latent_) v_proj_ = projection("v_proj", num_key_heads_ * head_width_);
  out_proj_ = Linear::with_biases_of(scope.child("out_proj"), shape.inner(), shape.width,
                                     biased_models(mechanisms, scope.models(), {"bias", "no_bias"}),
                                     output_start);
  if (mechanisms.front().integer("value_embedding") == 1) {
    value_shares_ = scope.add("value_shares", {num_key_heads_}, Start::constant(0.0), Decay::no);
  }
}

AttentionLayer::AttentionLayer(const std::vector<Mechanism>& mechanisms,
                               const AttentionShape& shape, Semantics semantics,
                               const ParameterScope& scope, const Start& output_start,
                               std::int64_t layer)
    : num_models_(static_cast<std::int64_t>(mechanisms.size())),
      num_heads_(shape.heads),
      num_key_heads_(shape.key_heads()),
      head_width_(shape.head_width()),
      map_width_(mechanisms.front().word("maps") == "single" ? head_width_ : head_width_ / 2),
      mode_(scope.mode()),
      shares_(mechanisms.front().word("keys") == "shared"),
      gives_(gives_keys(mechanisms.front())),
      excludes_values_(mechanisms.front().integer("value_exclusion") == 1),
      soft_cap_(static_cast<double>(mechanisms.front().integer("soft_cap"))) {
  const auto forms = mode_ == NumericalMode::reference ? FusedForms{} : common_forms(mechanisms);
  fused_ = forms.attention;
  const OptionMaker options(mechanisms, shape, semantics, scope, layer);
  if (const auto rank = mechanisms.front().integer("kv_rank"); rank > 0) {
    latent_.emplace(LayerContext{shape, semantics, layer}, scope, rank,
                    mechanisms.front().word("position") == "rope");
    map_width_ += latent_->rotated_width();
  }
  auto scored = shape;
  scored.of_head = map_width_;
  const OptionMaker of_scores(mechanisms, scored, semantics, scope, layer);
  auto placed = scored;
  if (latent_) placed.of_head = latent_->rotated_width();
  const OptionMaker of_places(mechanisms, placed, semantics, scope, layer);
  patterns_ = options.make(patterns(), {"pattern"});
  sights_.resize(patterns_.size());
  reads_keys_ = patterns_.any(&Pattern::reads_keys);
  reads_queries_ = patterns_.any(&Pattern::reads_queries);
  if (reads_keys_) num_key_heads_ = num_heads_;
  make_parts(shape);
  make_projections(mechanisms, shape, scope, output_start);
  make_convolutions(reads_keys_ ? 0 : mechanisms.front().integer("conv"), shape, scope);
  make_options(options, of_scores, of_places, scope, forms);
  for (std::size_t r = 0; r < mechanisms.size(); ++r) {
    const auto& mechanism = mechanisms[r];
    const auto model = static_cast<std::int64_t>(r);
    dropouts_.push_back(mechanism.real("attention_dropout"));
    starts_.push_back(temperatures_.of(model).times_start()
                          ? similarities_.of(model).start_temperature(scored)
                          : 1.0);
    gates_input_ |= components().at("gating", mechanism.word("gating")).gates_input;
  }
  gates_heads_ = gatings_.any(&Gating::gates_heads);
  has_factors_ = temperatures_.any(&Temperature::has_factors);
  maps_places_ = positions_.any(&Position::maps);
  biases_scores_ = positions_.any(&Position::biases_scores);
  reads_scores_ = positions_.any(&Position::reads_scores);
  changes_keys_ = positions_.any(&Position::changes_keys) || decays_.any(&ScoreDecay::changes_keys);
  scores_products_ = std::all_of(similarities_.begin(), similarities_.end(), [](const auto& group) {
    return group.option->of_products(at::empty({0})).defined();
  });
  absorbs_keys_ = latent_ && scores_products_ && !reads_scores_;
  if (forms.gating) {
    std::vector<FusedGates::Group> gates;
    for (const auto& [models, gating] : gatings_) gates.push_back({models, *gating->fused()});
    gates_.emplace(gates, num_models_, mode_);
  }
  if (forms.temperature) {
    std::vector<FusedTemperatures::Group> fused;
    for (const auto& [models, temperature] : temperatures_) {
      fused.push_back({models, *temperature->fused()});
    }
    fused_temperatures_.emplace(fused, starts_, num_heads_, mode_);
  }
  if (fused_) set_up_kernel();
}

void AttentionLayer::make_parts(const AttentionShape& shape) {
  const auto readers = num_heads_ / num_key_heads_;  // of one head of keys
  std::array<Part, 2> sides{Part{}, Part{.full = true}};
  for (std::int64_t h = 0; h < num_heads_; ++h) {
    auto& side = sides.at(shape.sizes.integer("full_groups") > 0 && shape.is_full(h / readers));
    side.heads.push_back(h);
    if (h % readers == 0) side.groups.push_back(h / readers);
  }
  for (auto& side : sides) {
    if (!side.heads.empty()) parts_.push_back(std::move(side));
  }
  if (parts_.size() == 1) parts_.front() = {.full = parts_.front().full};
}

torch::Tensor AttentionLayer::of(const std::vector<std::int64_t>& heads,
                                 const torch::Tensor& tensor, std::int64_t dim) {
  return heads.empty() || !tensor.defined()
             ? tensor
             : tensor.index_select(dim, index_on(tensor.device(), heads));
}

torch::Tensor AttentionLayer::joined(const std::vector<torch::Tensor>& parts,
                                     std::int64_t dim) const {
  if (parts.size() == 1) return parts.front();
  std::vector<std::int64_t> places(static_cast<std::size_t>(num_heads_));
  std::int64_t place = 0;
  for (const auto& part : parts_) {
    for (const auto h : part.heads) places[static_cast<std::size_t>(h)] = place++;
  }
  return of(places, at::cat(parts, dim), dim);
}

Masks AttentionLayer::masks(const Pass& pass, std::uint64_t site, std::size_t part) const {
  return dropout_masks(dropouts_, pass, site + (std::uint64_t{part} << 32U));
}

void AttentionLayer::make_options(const OptionMaker& options, const OptionMaker& of_scores,
                                  const OptionMaker& of_places, const ParameterScope& scope,
                                  const FusedForms& forms) {
  const bool on_device = !scope.device().is_cpu();
  const auto if_fused = [on_device](bool fused) {
    return [shares = fused || on_device](const Mechanism&) { return shares; };
  };
  // Beside the fused kernel a similarity computes no scores.
  const auto if_batch_invariant = [&](const Mechanism& mechanism) {
    return on_device ||
           (fused_ && components().at("similarity", mechanism.word("similarity")).batch_invariant);
  };
  similarities_ = of_scores.make(nn::similarities(), {"similarity"}, if_batch_invariant);
  normalizations_ = options.make(normalizations(), {"normalization", "pattern"}, if_fused(fused_));
  gatings_ = options.make(gatings(), {"gating"}, if_fused(forms.gating));
  temperatures_ =
      of_scores.make(temperatures(), {"temperature", "pattern"}, if_fused(forms.temperature));
  q_norms_ = of_scores.make_if_any(vector_norms(), "qk_norm", scope.child("q_norm"));
  if (!shares_) k_norms_ = of_scores.make_if_any(vector_norms(), "qk_norm", scope.child("k_norm"));
  positions_ = of_places.make_if_any(positions(), "position", scope);
  decays_ = options.make_if_any(decays(), "decay", scope);
  head_norms_ = options.make_if_any(vector_norms(), "head_norm", scope.child("head_norm"));
  if (map_width_ < head_width_) head_maps_ = options.make(head_maps(), {"maps"});
}

void AttentionLayer::make_convolutions(std::int64_t taps, const AttentionShape& shape,
                                       const ParameterScope& scope) {
  if (taps == 0) return;
  convolutions_ = {{scope.child("q_conv"), shape.inner(), taps},
                   {scope.child("k_conv"), shape.key_width(), taps},
                   {scope.child("v_conv"), shape.key_width(), taps}};
}

torch::Tensor AttentionLayer::heads(const torch::Tensor& projected) const {
  return by_head(projected).transpose(2, 3);
}

torch::Tensor AttentionLayer::scored_heads(const torch::Tensor& vectors) const {
  return in_parts(vectors, map_width_ * static_cast<std::int64_t>(num_maps())).transpose(2, 3);
}

torch::Tensor AttentionLayer::in_parts(const torch::Tensor& vectors, std::int64_t width) {
  return vectors.view({vectors.size(0), vectors.size(1), vectors.size(2), -1, width});
}

torch::Tensor AttentionLayer::by_head(const torch::Tensor& projected) const {
  return in_parts(projected, head_width_);
}

torch::Tensor AttentionLayer::for_queries(const torch::Tensor& keys) const {
  if (num_key_heads_ == num_heads_) return keys;
  return model_by_model(
      [this](const torch::Tensor& part) {
        return by_head(part)
            .unsqueeze(4)
            .expand({-1, -1, -1, -1, num_heads_ / num_key_heads_, -1})
            .flatten(3);
      },
      keys);
}

torch::Tensor AttentionLayer::keys_of(const torch::Tensor& queries) const {
  return model_by_model(
      [this](const torch::Tensor& part) { return unit_keys(by_head(part)).flatten(3); }, queries);
}

torch::Tensor AttentionLayer::placed(const torch::Tensor& vectors,
                                     const OptionSet<VectorNorm>& norms, std::int64_t first) const {
  if (norms.empty() && !maps_places_) return vectors;
  auto of_maps = in_parts(vectors, map_width_);
  if (!norms.empty()) of_maps = norms.apply(normalised, of_maps);
  if (maps_places_) {
    of_maps = positions_.apply(
        [first](const Position& position, const torch::Tensor& part) {
          return position.mapped(part, first);
        },
        of_maps);
  }
  return of_maps.flatten(3);
}

torch::Tensor AttentionLayer::beside_rotated(const torch::Tensor& vectors,
                                             const torch::Tensor& rotated,
                                             std::int64_t first) const {
  const auto turned =
      positions_.apply([first](const Position& position,
                               const torch::Tensor& part) { return position.mapped(part, first); },
                       in_parts(rotated, latent_->rotated_width()));
  return model_by_model(
      [this](const torch::Tensor& part, const torch::Tensor& beside) {
        const auto of_all = beside.expand({-1, -1, -1, num_heads_, -1});
        return at::cat({by_head(part), of_all}, -1).flatten(3);
      },
      vectors, turned);
}

torch::Tensor AttentionLayer::of_map(const torch::Tensor& vectors, std::size_t map) const {
  if (num_maps() == 1) return vectors;
  return vectors.narrow(-1, static_cast<std::int64_t>(map) * map_width_, map_width_);
}

torch::Tensor AttentionLayer::combined(const std::vector<torch::Tensor>& maps) const {
  return maps.size() == 1 ? maps.front() : head_maps_.front().combined({maps[0], maps[1]});
}

torch::Tensor AttentionLayer::normed_heads(const torch::Tensor& of_heads) const {
  if (!head_maps_.empty()) return head_maps_.front().normalised(by_head(of_heads)).flatten(3);
  if (head_norms_.empty()) return of_heads;
  return head_norms_.apply(normalised, by_head(of_heads)).flatten(3);
}

torch::Tensor AttentionLayer::visible(const Models& models, const torch::Tensor& keys) {
  if (reads_queries_) {
    return std::ssize(models) == num_models_
               ? chosen_
               : chosen_.index_select(0, index_on(keys.device(), models));
  }
  const auto model = models.front();
  if (reads_keys_) {
    const auto of_models = std::ssize(models) == num_models_
                               ? keys
                               : keys.index_select(0, index_on(keys.device(), models));
    return patterns_.of(model).visible(scored_heads(of_models), 0);
  }
  auto& known = sights_[patterns_.group_of(model)].visible;
  if (!fits(known, keys.size(2), keys.device())) {
    known = patterns_.of(model).visible(scored_heads(keys), 0);
  }
  return known;
}

torch::Tensor AttentionLayer::seen(const Models& models, const torch::Tensor& keys) {
  if (reads_keys_ || reads_queries_) return visible(models, keys).sum(-1);
  const auto model = models.front();
  auto& known = sights_[patterns_.group_of(model)].seen;
  if (fits(known, keys.size(2), keys.device())) return known;
  const auto ranges = patterns_.of(model).ranges();
  if (ranges && parts_.size() == 1 && !parts_.front().full) {
    std::vector<std::int64_t> counts;
    for (std::int64_t i = 0; i < keys.size(2); ++i) counts.push_back(ranges->count(i));
    known = sent(at::tensor(counts, at::TensorOptions(at::kLong)), keys.device());
  } else {
    known = visible(models, keys).sum(-1);
  }
  return known;
}

const torch::Tensor& AttentionLayer::starts(const torch::Tensor& like) {
  const auto& known = starts_there_;
  if (!known.defined() || known.device() != like.device() ||
      known.scalar_type() != like.scalar_type()) {
    starts_there_ = sent(at::tensor(starts_, at::TensorOptions(like.scalar_type())), like.device())
                        .view({-1, 1, 1, 1, 1});
  }
  return starts_there_;
}

torch::Tensor AttentionLayer::divisors(const torch::Tensor& input, const torch::Tensor& q,
                                       bool inverse) {
  if (inverse && fused_temperatures_ && input.device().is_cpu()) {
    return fused_temperatures_->inverses(input);
  }
  const auto factors = temperatures_.apply(
      [&](const Temperature& temperature, const torch::Tensor& part) {
        auto divisors = temperature.divisors(part);
        // A constant on the host: as a number it is passed with a kernel's launch.
        if (divisors.device() != q.device()) {
          divisors = at::full({}, divisors.item<double>(), q.options());
        }
        return divisors.to(q.scalar_type())
            .expand({part.size(0), part.size(1), num_heads_, part.size(2), 1});
      },
      input);
  const auto divisors = factors * starts(factors);
  return inverse ? divisors.reciprocal() : divisors;
}

torch::Tensor AttentionLayer::factors(
    const torch::Tensor& input, const torch::Tensor& like,
    const std::function<torch::Tensor(const Models&)>& seen) const {
  if (!has_factors_) return {};
  std::vector<torch::Tensor> parts;
  for (const auto& [models, temperature] : temperatures_) {
    auto of_group = temperature->factors(seen(models));
    if (!of_group.defined()) {
      of_group = at::ones({std::ssize(models), 1, 1, 1, 1}, like.options());
    }
    parts.push_back(model_by_model(
        [&](const torch::Tensor& part) {
          return part.to(like.scalar_type())
              .expand({-1, input.size(1), num_heads_, input.size(2), 1});
        },
        of_group));
  }
  return join_models(parts, temperatures_.models());
}

std::vector<torch::Tensor> AttentionLayer::projections(const torch::Tensor& input) const {
  const bool at_once =
      mode_ != NumericalMode::reference && device_operations(input.device()) != nullptr;
  if (reads_keys_ || shares_ || latent_ || !at_once) return {q_proj_(input)};
  return Linear::of_one(input, {&q_proj_, &v_proj_, &k_proj_});
}

torch::Tensor AttentionLayer::forward(const torch::Tensor& x, const torch::Tensor& residual,
                                      const Pass& pass, std::uint64_t site) {
  const auto gate = [](const Gating& gating, const torch::Tensor& part) {
    return gating.gated_input(part);
  };
  const bool fused_gates = fuses_gates(x);
  const auto logits = fused_gates ? gates_->logits(x) : torch::Tensor();
  const auto input = fused_gates    ? gates_->input(x, logits)
                     : gates_input_ ? gatings_.apply(gate, x)
                                    : x;
  const auto projected = projections(input);
  const bool at_once = projected.size() > 1;
  auto q = projected[0];
  const bool kernel = has_kernel(q);
  // In this order on every compiler: gradients w.r.t. the input are added in the opposite one.
  auto temperature = divisors(input, q, /*inverse=*/kernel);
  if (shares_ && (pass.shared == nullptr || pass.shared->empty()))
    throw std::logic_error("shared keys: no earlier layer has left any");
  const auto latents = latent_ ? latent_->compressed(input) : torch::Tensor();
  auto v = at_once   ? projected[1]
           : shares_ ? pass.shared->front().values
           : latent_ ? latent_->values(latents)
                     : v_proj_(input);
  auto k = at_once       ? projected[2]
           : shares_     ? pass.shared->front().keys
           : reads_keys_ ? torch::Tensor()
           : latent_     ? latent_->keys(latents)
                         : k_proj_(input);
  if (!convolutions_.empty()) {
    q = convolutions_[0](q);
    k = convolutions_[1](k);
    v = convolutions_[2](v);
  }
  v = with_rows(v, pass);
  if (latent_ && latent_->rotated_width() > 0) {
    q = beside_rotated(q, latent_->queries_to_rotate(input), 0);
    k = beside_rotated(k, latent_->keys_to_rotate(input), 0);
  } else {
    q = placed(q, q_norms_, 0);
    k = reads_keys_ ? keys_of(q) : shares_ ? k : placed(k, k_norms_, 0);
  }
  if (gives_ && pass.shared != nullptr) *pass.shared = {{k, v}};
  if (!kernel) {
    k = for_queries(k);
    v = for_queries(v);
  }
  if (reads_queries_) {
    chosen_ =
        patterns_.apply([](const Pattern& pattern, const torch::Tensor& queries,
                           const torch::Tensor& keys) { return pattern.chosen(queries, keys); },
                        heads(q), heads(k));
  }
  const auto multiples = factors(input, q, [&](const Models& models) { return seen(models, k); });
  if (kernel && multiples.defined()) temperature = temperature * multiples;
  auto of_heads = kernel ? fused_mixed(q, k, v, input, temperature, pass, site)
                         : mixed(q, k, v, input, temperature, multiples, pass, site);
  of_heads = normed_heads(without_own(of_heads, v));
  if (gates_heads_) {
    of_heads =
        gatings_.apply([](const Gating& gating, const torch::Tensor& part,
                          const torch::Tensor& gated) { return gating.gated_heads(part, gated); },
                       of_heads, input);
  }
  const auto attended = out_proj_(of_heads);
  if (fused_gates) return gates_->increment(attended, input, residual, logits);
  return gatings_.apply(
      [](const Gating& gating, const torch::Tensor& part, const torch::Tensor& gated,
         const torch::Tensor& stream) { return gating.increment(part, gated, stream); },
      attended, input, residual);
}

torch::Tensor AttentionLayer::with_rows(const torch::Tensor& v, const Pass& pass) const {
  if (!value_shares_.defined()) return v;
  if (!pass.value_rows.defined()) throw std::logic_error("value embeddings: a pass without rows");
  return model_by_model(
      [this](const torch::Tensor& values, const torch::Tensor& rows, const torch::Tensor& shares) {
        const auto of_heads = by_head(rows.narrow(-1, 0, values.size(3)));
        const auto added = (of_heads * shares.view({-1, 1, 1, num_key_heads_, 1})).flatten(3);
        return values + added.to(values.scalar_type());
      },
      v, pass.value_rows, value_shares_);
}

torch::Tensor AttentionLayer::without_own(const torch::Tensor& mixed,
                                          const torch::Tensor& v) const {
  if (!excludes_values_) return mixed;
  constexpr double kEpsilon = 1e-6;
  return model_by_model(
      [this](const torch::Tensor& part, const torch::Tensor& values) {
        const auto outputs = by_head(part);
        const auto own = by_head(values);
        const auto along = (outputs * own).sum(-1, /*keepdim=*/true) /
                           (own.square().sum(-1, /*keepdim=*/true) + kEpsilon);
        return (outputs - along * own).flatten(3);
      },
      mixed, v.size(3) == mixed.size(3) ? v : for_queries(v));
}

torch::Tensor AttentionLayer::mixed(const torch::Tensor& q, const torch::Tensor& k,
                                    const torch::Tensor& v, const torch::Tensor& input,
                                    const torch::Tensor& divisors, const torch::Tensor& factors,
                                    const Pass& pass, std::uint64_t site) {
  std::vector<torch::Tensor> of_maps;
  for (std::size_t map = 0; map < num_maps(); ++map) {
    // In one layout in every array, since products depend on it in the last digit.
    const auto queries = of_map(scored_heads(q), map).contiguous();
    const auto keys = of_map(scored_heads(k), map).contiguous();
    const auto all =
        biased(contextual(scores(queries, keys, divisors, factors, input), queries, k), input);
    of_maps.push_back(normalizations_.apply_to_groups(
        [&](const auto& group, const torch::Tensor& part) {
          return group.option->weights(part, visible(group.models, k));
        },
        all));
  }
  const auto weights = combined(of_maps);
  std::vector<torch::Tensor> dropped;
  for (const auto& part : parts_)
    dropped.push_back(dropout(of(part.heads, weights, 2), masks(pass, site, dropped.size())));
  return joined(dropped, 2).matmul(heads(v)).transpose(2, 3).flatten(3);
}

}  // namespace nas::nn
