#include "nn/attention.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"
#include "ops/model_parts.hpp"

namespace nas::nn {

OptionRegistry<Similarity>& similarities() {
  static OptionRegistry<Similarity> registry("similarity");
  return registry;
}

OptionRegistry<Normalization>& normalizations() {
  static OptionRegistry<Normalization> registry("normalization");
  return registry;
}

OptionRegistry<Gating>& gatings() {
  static OptionRegistry<Gating> registry("gating");
  return registry;
}

OptionRegistry<Temperature>& temperatures() {
  static OptionRegistry<Temperature> registry("temperature");
  return registry;
}

OptionRegistry<Position>& positions() {
  static OptionRegistry<Position> registry("position");
  return registry;
}

OptionRegistry<Pattern>& patterns() {
  static OptionRegistry<Pattern> registry("pattern");
  return registry;
}

OptionRegistry<ScoreDecay>& decays() {
  static OptionRegistry<ScoreDecay> registry("decay");
  return registry;
}

OptionRegistry<VectorNorm>& vector_norms() {
  static OptionRegistry<VectorNorm> registry("vector norm");
  return registry;
}

torch::Tensor hide(const torch::Tensor& scores, const torch::Tensor& visible) {
  return scores.masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity());
}

torch::Tensor softmax_over(const torch::Tensor& scores, const torch::Tensor& kept) {
  return hide(scores, kept).softmax(-1);
}

torch::Tensor largest(const torch::Tensor& scores, const torch::Tensor& visible,
                      const torch::Tensor& counts, std::int64_t most) {
  const at::NoGradGuard no_grad;
  const auto indices = std::get<1>(hide(scores, visible).topk(most));
  const auto taken = at::arange(most, counts.options()).unsqueeze(0).lt(counts.unsqueeze(-1));
  return at::zeros_like(scores, scores.options().dtype(at::kBool))
      .scatter_(-1, indices, taken.expand(indices.sizes()))
      .logical_and_(visible);
}

namespace {

/// Those of the models whose word for biases is among some.
Models biased_models(const std::vector<Mechanism>& mechanisms, const Models& models,
                     std::initializer_list<std::string_view> words) {
  Models biased;
  for (std::size_t r = 0; r < mechanisms.size(); ++r) {
    if (std::find(words.begin(), words.end(), mechanisms[r].bias) != words.end()) {
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
          "an array of models mixes mechanisms with and without a fused "
          "form: " +
          to_string(mechanisms.front()) + ", " + to_string(mechanism));
    }
  }
  return forms;
}

/// same(a, b): whether one module computes a gene for two mechanisms.
auto same_option(const std::string Mechanism::*gene) {
  return [gene](const Mechanism& a, const Mechanism& b) { return a.*gene == b.*gene; };
}

bool same_pattern(const Mechanism& a, const Mechanism& b) {
  const auto pattern = [](const Mechanism& mechanism) {
    return std::tie(mechanism.pattern, mechanism.window, mechanism.globals, mechanism.stride,
                    mechanism.block, mechanism.random, mechanism.buckets, mechanism.rounds);
  };
  return pattern(a) == pattern(b);
}

bool same_position(const Mechanism& a, const Mechanism& b) {
  const auto position = [](const Mechanism& mechanism) {
    return std::tie(mechanism.position, mechanism.rope_base, mechanism.rope_fraction,
                    mechanism.t5_buckets, mechanism.t5_distance, mechanism.cope_positions);
  };
  return position(a) == position(b);
}

/// Of options that are told which keys are visible.
auto same_option_and_pattern(const std::string Mechanism::*gene) {
  return [gene](const Mechanism& a, const Mechanism& b) {
    return a.*gene == b.*gene && same_pattern(a, b);
  };
}

/// Which models a module stands for: those with one option, or each alone; in order of their first
/// model.
///
/// @param same      same(a, b): whether two mechanisms have one option.
/// @param together  together(model): whether its module may stand for others, too.
template <class Same, class Together>
std::vector<Models> grouped_models(const std::vector<Mechanism>& mechanisms, const Same& same,
                                   const Together& together) {
  std::vector<Models> groups;
  for (std::size_t r = 0; r < mechanisms.size(); ++r) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Models& known) {
      return same(mechanisms[static_cast<std::size_t>(known.front())], mechanisms[r]) &&
             together(r);
    });
    if (group == groups.end()) group = groups.insert(groups.end(), Models());
    group->push_back(static_cast<std::int64_t>(r));
  }
  return groups;
}

bool always(std::size_t /*model*/) { return true; }

/// The scope of models given by their place in `scope`.
ParameterScope scope_of(const ParameterScope& scope, const Models& places) {
  Models models;
  for (const auto place : places) {
    models.push_back(scope.models()[static_cast<std::size_t>(place)]);
  }
  return scope.of(std::move(models));
}

torch::Tensor normalised(const VectorNorm& norm, const torch::Tensor& vectors) {
  return norm.normalised(vectors);
}

/// Whether what is known of so many keys of a device may be used again.
bool fits(const torch::Tensor& known, std::int64_t tokens, torch::Device device) {
  return known.defined() && known.size(-1) == tokens && known.device() == device;
}

/// Rows of some models after those of others; undefined: there are none.
torch::Tensor joined_rows(const std::vector<torch::Tensor>& rows) {
  if (rows.empty()) return {};
  return rows.size() == 1 ? rows.front() : at::cat(rows);
}

/// Scores (M, B, H, T, T) with biases b by distance, (M, H, T).
torch::Tensor biased_by_distance(const torch::Tensor& scores, const torch::Tensor& biases) {
  const auto tokens = scores.size(-1);
  // Row i of the matrix b(i - j) is a window into b backwards and then zeros, for later keys.
  const auto backwards =
      at::cat({biases.flip(-1), at::zeros_like(biases).narrow(-1, 0, tokens - 1)}, -1);
  return scores + backwards.unfold(-1, tokens, 1).flip(-2).unsqueeze(1);
}

/// Scores (M, B, H, T, T) with c_i - c_j, c (M, B, H, T) in double.
torch::Tensor decayed(const torch::Tensor& scores, const torch::Tensor& cumulative) {
  const auto differences = cumulative.unsqueeze(-1) - cumulative.unsqueeze(-2);
  return scores + differences.to(scores.scalar_type());
}

}  // namespace

ShortConvolution::ShortConvolution(const ParameterScope& scope, std::int64_t channels,
                                   std::int64_t taps)
    : weight_(scope.add("weight", {channels, taps}, Start::newest_tap(), Decay::no)) {}

torch::Tensor ShortConvolution::operator()(const torch::Tensor& z) const {
  return model_by_model(
      [](const torch::Tensor& part, const torch::Tensor& weight) {
        const auto taps = weight.size(2);
        const auto tokens = part.size(2);
        const auto padded = at::constant_pad_nd(part, {0, 0, taps - 1, 0});
        const auto by_channel = weight.unsqueeze(1).unsqueeze(1);  // (M, 1, 1, channels, K)
        auto sum = padded.narrow(2, 0, tokens) * by_channel.select(-1, 0);
        for (std::int64_t a = 1; a < taps; ++a) {
          sum = sum + padded.narrow(2, a, tokens) * by_channel.select(-1, a);
        }
        return sum;
      },
      z, weight_);
}

torch::Tensor ShortConvolution::newest(const torch::Tensor& latest) const {
  return (latest * weight_.transpose(1, 2).unsqueeze(1)).sum(2, /*keepdim=*/true);
}

void AttentionLayer::make_projections(const std::vector<Mechanism>& mechanisms,
                                      const AttentionShape& shape, const ParameterScope& scope,
                                      const Start& output_start) {
  const auto biased = biased_models(mechanisms, scope.models(), {"bias"});
  const auto projection = [&](const char* name, std::int64_t out) {
    return Linear::with_biases_of(scope.child(name), shape.width, out, biased);
  };
  q_proj_ = projection("q_proj", shape.width);
  k_proj_ = projection("k_proj", shape.key_width());
  v_proj_ = projection("v_proj", shape.key_width());
  out_proj_ = Linear::with_biases_of(scope.child("out_proj"), shape.width, shape.width,
                                     biased_models(mechanisms, scope.models(), {"bias", "no_bias"}),
                                     output_start);
}

AttentionLayer::AttentionLayer(const std::vector<Mechanism>& mechanisms,
                               const AttentionShape& shape, Semantics semantics,
                               const ParameterScope& scope, const Start& output_start)
    : num_models_(static_cast<std::int64_t>(mechanisms.size())),
      num_heads_(shape.heads),
      num_key_heads_(shape.key_heads()),
      head_width_(shape.head_width()),
      mode_(scope.mode()) {
  const auto forms = mode_ == NumericalMode::reference ? FusedForms{} : common_forms(mechanisms);
  fused_ = forms.attention;
  make_projections(mechanisms, shape, scope, output_start);
  for (const auto& mechanism : mechanisms) dropouts_.push_back(mechanism.attention_dropout);
  const auto mechanism_of = [&](const Models& models) -> const Mechanism& {
    return mechanisms[static_cast<std::size_t>(models.front())];
  };
  const auto context_of = [&](const Models& models) {
    LayerContext context{shape, semantics};
    context.shape.sizes = static_cast<const Sizes&>(mechanism_of(models));
    return context;
  };
  const auto if_fused = [&](bool fused) {
    return [fused = fused || !scope.device().is_cpu()](std::size_t) { return fused; };
  };
  // Beside the fused kernel a similarity computes no scores.
  const auto if_batch_invariant = [&](std::size_t r) {
    return !scope.device().is_cpu() ||
           (fused_ && components().at("similarity", mechanisms[r].similarity).batch_invariant);
  };
  // A module for each group; none where all mechanisms do without.
  const auto make_modules = [&]<class Option>(Groups<Option>& groups,
                                              const OptionRegistry<Option>& registry,
                                              const std::string Mechanism::*gene, const auto& same,
                                              const ParameterScope& of_option) {
    if (std::all_of(mechanisms.begin(), mechanisms.end(),
                    [&](const Mechanism& mechanism) { return mechanism.*gene == "none"; })) {
      return;
    }
    for (auto& models : grouped_models(mechanisms, same, always)) {
      auto option = registry.at(mechanism_of(models).*gene)
                        .make(context_of(models), scope_of(of_option, models));
      groups.push_back({std::move(models), std::move(option)});
    }
  };
  sight_of_.resize(mechanisms.size());
  for (auto& models : grouped_models(mechanisms, same_pattern, always)) {
    for (const auto r : models) sight_of_[static_cast<std::size_t>(r)] = sights_.size();
    auto pattern = patterns()
                       .at(mechanism_of(models).pattern)
                       .make(context_of(models), scope_of(scope, models));
    sights_.push_back({std::move(pattern)});
  }
  starts_.resize(mechanisms.size());
  for (auto& models :
       grouped_models(mechanisms, same_option(&Mechanism::similarity), if_batch_invariant)) {
    auto similarity = similarities()
                          .at(mechanism_of(models).similarity)
                          .make(context_of(models), scope_of(scope, models));
    for (const auto r : models) {
      starts_[static_cast<std::size_t>(r)] = similarity->start_temperature(shape);
    }
    similarities_.push_back({std::move(models), std::move(similarity)});
  }
  for (auto& models : grouped_models(mechanisms, same_option_and_pattern(&Mechanism::normalization),
                                     if_fused(fused_))) {
    auto normalization = normalizations()
                             .at(mechanism_of(models).normalization)
                             .make(context_of(models), scope_of(scope, models));
    normalizations_.push_back({std::move(models), std::move(normalization)});
  }
  for (auto& models :
       grouped_models(mechanisms, same_option(&Mechanism::gating), if_fused(forms.gating))) {
    auto gating =
        gatings().at(mechanism_of(models).gating).make(context_of(models), scope_of(scope, models));
    gates_input_ =
        gates_input_ || components().at("gating", mechanism_of(models).gating).gates_input;
    gates_heads_ = gates_heads_ || gating->gates_heads();
    gatings_.push_back({std::move(models), std::move(gating)});
  }
  if (forms.gating) {
    std::vector<FusedGates::Group> gates;
    for (const auto& [models, gating] : gatings_) gates.push_back({models, *gating->fused()});
    gates_.emplace(gates, num_models_, mode_);
  }
  for (auto& models : grouped_models(mechanisms, same_option_and_pattern(&Mechanism::temperature),
                                     if_fused(forms.temperature))) {
    auto temperature = temperatures()
                           .at(mechanism_of(models).temperature)
                           .make(context_of(models), scope_of(scope, models));
    has_factors_ = has_factors_ || temperature->has_factors();
    for (const auto r : models) {
      if (!temperature->times_start()) starts_[static_cast<std::size_t>(r)] = 1.0;
    }
    temperatures_.push_back({std::move(models), std::move(temperature)});
  }
  if (forms.temperature) {
    std::vector<FusedTemperatures::Group> fused;
    for (const auto& [models, temperature] : temperatures_) {
      fused.push_back({models, *temperature->fused()});
    }
    fused_temperatures_.emplace(fused, starts_, num_heads_, mode_);
  }
  if (mechanisms.front().conv > 0) {
    const auto taps = mechanisms.front().conv;
    convolutions_ = {{scope.child("q_conv"), shape.width, taps},
                     {scope.child("k_conv"), shape.key_width(), taps},
                     {scope.child("v_conv"), shape.key_width(), taps}};
  }
  const auto same_qk_norm = same_option(&Mechanism::qk_norm);
  make_modules(q_norms_, vector_norms(), &Mechanism::qk_norm, same_qk_norm, scope.child("q_norm"));
  make_modules(k_norms_, vector_norms(), &Mechanism::qk_norm, same_qk_norm, scope.child("k_norm"));
  make_modules(positions_, positions(), &Mechanism::position, same_position, scope);
  for (const auto& [models, position] : positions_) {
    maps_places_ = maps_places_ || position->maps();
    biases_scores_ = biases_scores_ || position->biases_scores();
  }
  make_modules(decays_, decays(), &Mechanism::decay, same_option(&Mechanism::decay), scope);
  make_modules(head_norms_, vector_norms(), &Mechanism::head_norm,
               same_option(&Mechanism::head_norm), scope.child("head_norm"));
  if (fused_) set_up_kernel();
}

void AttentionLayer::set_up_kernel() {
  attention_.resize(static_cast<std::size_t>(num_models_));
  // Rows of tensors that some models have are in the order of their groups.
  const auto take_rows = [this](const Models& models, std::int64_t ModelAttention::*row,
                                std::int64_t& next) {
    for (const auto r : models) attention_[static_cast<std::size_t>(r)].*row = next++;
  };
  for (std::int64_t r = 0; r < num_models_; ++r) {
    const auto ranges = sight(r).pattern->ranges().value();
    if (ranges.window == KeyRanges{}.window) continue;
    auto& model = attention_[static_cast<std::size_t>(r)];
    model.window = ranges.window;
    model.globals = ranges.globals;
  }
  std::int64_t num_sinks = 0;
  for (const auto& [models, normalization] : normalizations_) {
    for (const auto r : models) {
      attention_[static_cast<std::size_t>(r)].normalization = *normalization->fused();
    }
    if (auto sinks = normalization->sinks(); sinks.defined()) {
      take_rows(models, &ModelAttention::sinks, num_sinks);
      sinks_.push_back(std::move(sinks));
    }
  }
  std::int64_t num_biases = 0;
  for (const auto& [models, position] : positions_) {
    if (position->biases_scores()) take_rows(models, &ModelAttention::distance_biases, num_biases);
  }
  std::int64_t num_sums = 0;
  for (const auto& [models, decay] : decays_) {
    if (decay->decays_scores()) take_rows(models, &ModelAttention::sums, num_sums);
  }
  std::int64_t num_directions = 0;
  for (const auto& [models, similarity] : similarities_) {
    auto fused = *similarity->fused();
    maps_.push_back({models, std::move(fused.map)});
    for (const auto r : models) {
      attention_[static_cast<std::size_t>(r)].score = fused.score;
    }
    if (fused.direction.defined()) {
      take_rows(models, &ModelAttention::direction, num_directions);
      directions_.push_back(std::move(fused.direction));
    }
  }
}

template <class Option>
std::vector<Models> AttentionLayer::models_of(const Groups<Option>& groups) {
  std::vector<Models> models;
  for (const auto& group : groups) models.push_back(group.models);
  return models;
}

template <class Option, class Apply, class... Inputs>
torch::Tensor AttentionLayer::grouped(const Groups<Option>& groups, const Apply& apply,
                                      const Inputs&... inputs) {
  return grouped_with_place(
      groups,
      [&apply](const Option& option, std::int64_t /*place*/, const auto&... parts) {
        return apply(option, parts...);
      },
      inputs...);
}

template <class Option, class Apply, class... Inputs>
torch::Tensor AttentionLayer::grouped_with_place(const Groups<Option>& groups, const Apply& apply,
                                                 const Inputs&... inputs) {
  const auto models = models_of(groups);
  const auto parts = split_models({inputs...}, models);
  std::vector<torch::Tensor> results;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto of_group = [&]<std::size_t... kInput>(std::index_sequence<kInput...>) {
      return apply(*groups[i].option, groups[i].models.front(), parts[kInput][i]...);
    };
    results.push_back(of_group(std::index_sequence_for<Inputs...>()));
  }
  return join_models(results, models);
}

torch::Tensor AttentionLayer::heads(const torch::Tensor& projected) const {
  return by_head(projected).transpose(2, 3);
}

torch::Tensor AttentionLayer::by_head(const torch::Tensor& projected) const {
  return projected.view({projected.size(0), projected.size(1), projected.size(2), -1, head_width_});
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

torch::Tensor AttentionLayer::placed(const torch::Tensor& vectors,
                                     const Groups<VectorNorm>& norms) const {
  if (norms.empty() && !maps_places_) return vectors;
  auto of_heads = by_head(vectors);
  if (!norms.empty()) of_heads = grouped(norms, normalised, of_heads);
  if (maps_places_) {
    of_heads = grouped(
        positions_,
        [](const Position& position, const torch::Tensor& part) {
          return position.mapped(part, 0);
        },
        of_heads);
  }
  return of_heads.flatten(3);
}

AttentionLayer::Sight& AttentionLayer::sight(std::int64_t model) {
  return sights_[sight_of_[static_cast<std::size_t>(model)]];
}

const torch::Tensor& AttentionLayer::visible(std::int64_t model, std::int64_t tokens,
                                             torch::Device device) {
  auto& own = sight(model);
  if (!fits(own.visible, tokens, device)) own.visible = own.pattern->visible(tokens, device);
  return own.visible;
}

const torch::Tensor& AttentionLayer::seen(std::int64_t model, std::int64_t tokens,
                                          torch::Device device) {
  auto& own = sight(model);
  if (fits(own.seen, tokens, device)) return own.seen;
  if (const auto ranges = own.pattern->ranges()) {
    std::vector<std::int64_t> counts;
    for (std::int64_t i = 0; i < tokens; ++i) counts.push_back(ranges->count(i));
    own.seen = sent(at::tensor(counts, at::TensorOptions(at::kLong)), device);
  } else {
    own.seen = visible(model, tokens, device).sum(-1);
  }
  return own.seen;
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
  const auto factors = grouped(
      temperatures_,
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

torch::Tensor AttentionLayer::factors(const torch::Tensor& input, const torch::Tensor& q) {
  if (!has_factors_) return {};
  const auto tokens = q.size(2);
  std::vector<torch::Tensor> parts;
  for (const auto& [models, temperature] : temperatures_) {
    auto of_group = temperature->factors(seen(models.front(), tokens, q.device()));
    if (!of_group.defined()) {
      of_group = at::ones({std::ssize(models), 1, 1, 1, 1}, q.options());
    }
    parts.push_back(model_by_model(
        [&](const torch::Tensor& part) {
          return part.to(q.scalar_type()).expand({-1, input.size(1), num_heads_, tokens, 1});
        },
        of_group));
  }
  return join_models(parts, models_of(temperatures_));
}

torch::Tensor AttentionLayer::forward(const torch::Tensor& x, const torch::Tensor& residual,
                                      const Pass& pass, std::uint64_t site) {
  const auto gate = [](const Gating& gating, const torch::Tensor& part) {
    return gating.gated_input(part);
  };
  const bool fused_gates = fuses_gates(x);
  const auto logits = fused_gates ? gates_->logits(x) : torch::Tensor();
  const auto input = fused_gates    ? gates_->input(x, logits)
                     : gates_input_ ? grouped(gatings_, gate, x)
                                    : x;
  auto q = q_proj_(input);
  const bool kernel = has_kernel(q);
  // In this order on every compiler: gradients w.r.t. the input are added in the opposite one.
  auto temperature = divisors(input, q, /*inverse=*/kernel);
  auto v = v_proj_(input);
  auto k = k_proj_(input);
  if (!convolutions_.empty()) {
    q = convolutions_[0](q);
    k = convolutions_[1](k);
    v = convolutions_[2](v);
  }
  q = placed(q, q_norms_);
  k = placed(k, k_norms_);
  if (!kernel || !kernel_shares_keys(q.device())) {
    k = for_queries(k);
    v = for_queries(v);
  }
  const auto multiples = factors(input, q);
  if (kernel && multiples.defined()) temperature = temperature * multiples;
  const auto masks = dropout_masks(dropouts_, pass, site);
  auto* const record = record_of(pass, kernel);
  auto of_heads = kernel ? fused_mixed(q, k, v, input, temperature, masks)
                         : mixed(q, k, v, input, temperature, multiples, masks, record);
  if (!head_norms_.empty()) {
    of_heads = grouped(head_norms_, normalised, by_head(of_heads)).flatten(3);
  }
  const auto before_gate = record != nullptr ? of_heads : torch::Tensor();
  if (gates_heads_) {
    of_heads = grouped(
        gatings_,
        [](const Gating& gating, const torch::Tensor& part, const torch::Tensor& gated) {
          return gating.gated_heads(part, gated);
        },
        of_heads, input);
  }
  const auto attended = out_proj_(of_heads);
  if (record != nullptr) record_gate(x, before_gate, attended, *record);
  if (fused_gates) return gates_->increment(attended, input, residual, logits);
  return grouped(
      gatings_,
      [](const Gating& gating, const torch::Tensor& part, const torch::Tensor& gated,
         const torch::Tensor& stream) { return gating.increment(part, gated, stream); },
      attended, input, residual);
}

LayerRecord* AttentionLayer::record_of(const Pass& pass, bool kernel) const {
  if (pass.record == nullptr) return nullptr;
  if (num_models_ != 1 || kernel) {
    throw std::logic_error("attention is recorded of one model, in numerical mode reference");
  }
  return &pass.record->layers.emplace_back();
}

void AttentionLayer::record_maps(const torch::Tensor& scores, const torch::Tensor& weights,
                                 const torch::Tensor& input, LayerRecord& record) {
  record.scores = scores.detach()[0];
  record.weights = weights.detach()[0];
  record.visible = visible(0, scores.size(-1), scores.device());
  if (decays_.empty()) return;
  const auto cumulative = decays_.front().option->cumulative(input);
  if (!cumulative.defined()) return;
  // What lies before the first token is 0: c_0 = log f_0.
  const auto before = at::zeros_like(cumulative[0].narrow(-1, 0, 1));
  record.log_forget = at::diff(cumulative.detach()[0], 1, -1, before);
}

void AttentionLayer::record_gate(const torch::Tensor& x, const torch::Tensor& of_heads,
                                 const torch::Tensor& attended, LayerRecord& record) const {
  const auto gate = gatings_.front().option->gate(x);
  if (!gate.defined()) return;
  record.gate = gate.detach()[0];
  record.gated = (gates_input_ ? x : gates_heads_ ? of_heads : attended).detach()[0];
}

torch::Tensor AttentionLayer::biased(torch::Tensor scores, const torch::Tensor& input) const {
  if (biases_scores_) {
    scores = grouped(
        positions_,
        [](const Position& position, const torch::Tensor& part) {
          if (!position.biases_scores()) return part;
          return model_by_model(biased_by_distance, part,
                                position.distance_biases(part.size(-1), part));
        },
        scores);
  }
  if (!decays_.empty()) {
    scores = grouped(
        decays_,
        [](const ScoreDecay& decay, const torch::Tensor& part, const torch::Tensor& read) {
          return decay.decays_scores() ? model_by_model(decayed, part, decay.cumulative(read))
                                       : part;
        },
        scores, input);
  }
  return scores;
}

torch::Tensor AttentionLayer::mixed(const torch::Tensor& q, const torch::Tensor& k,
                                    const torch::Tensor& v, const torch::Tensor& input,
                                    const torch::Tensor& divisors, const torch::Tensor& factors,
                                    const Masks& masks, LayerRecord* record) {
  const auto raw = grouped(
      similarities_,
      [](const Similarity& similarity, const torch::Tensor& queries, const torch::Tensor& keys) {
        return similarity.scores(queries, keys);
      },
      // In one layout in every array, since products depend on it in the last digit.
      heads(q).contiguous(), heads(k).contiguous());
  auto scores =
      factors.defined()
          ? grouped(
                temperatures_,
                [](const Temperature& temperature, const torch::Tensor& part,
                   const torch::Tensor& divided, const torch::Tensor& multiplied) {
                  return temperature.has_factors() ? part * (multiplied / divided) : part / divided;
                },
                raw, divisors, factors)
          : raw / divisors;
  scores = biased(std::move(scores), input);
  const auto weights = grouped_with_place(
      normalizations_,
      [&](const Normalization& normalization, std::int64_t model, const torch::Tensor& part) {
        return normalization.weights(part, visible(model, q.size(2), q.device()));
      },
      scores);
  if (record != nullptr) record_maps(scores, weights, input, *record);
  return dropout(weights, masks).matmul(heads(v)).transpose(2, 3).flatten(3);
}

bool AttentionLayer::fuses_gates(const torch::Tensor& x) const {
  return gates_ && has_kernels(x.device());
}

bool AttentionLayer::has_kernel(const torch::Tensor& q) const {
  if (!fused_) return false;
  const auto* device = device_operations(q.device());
  if (device == nullptr) return q.device().is_cpu();
  return device->attention_fits(q, num_heads_) &&
         std::none_of(attention_.begin(), attention_.end(), needs_more) &&
         std::all_of(normalizations_.begin(), normalizations_.end(), [&](const auto& group) {
           return device->has_form_of(*group.option->fused());
         });
}

bool AttentionLayer::kernel_shares_keys(torch::Device device) {
  return device_operations(device) == nullptr;
}

torch::Tensor AttentionLayer::distance_biases(const torch::Tensor& q) const {
  if (!biases_scores_) return {};
  std::vector<torch::Tensor> rows;
  for (const auto& [models, position] : positions_) {
    if (position->biases_scores()) rows.push_back(position->distance_biases(q.size(2), q));
  }
  return joined_rows(rows);
}

torch::Tensor AttentionLayer::sums(const torch::Tensor& input) const {
  if (decays_.empty()) return {};
  const auto parts = split_models({input}, models_of(decays_)).front();
  std::vector<torch::Tensor> rows;
  for (std::size_t i = 0; i < decays_.size(); ++i) {
    const auto& decay = *decays_[i].option;
    if (decay.decays_scores()) rows.push_back(decay.cumulative(parts[i]));
  }
  return joined_rows(rows);
}

const torch::Tensor& AttentionLayer::described(const Masks& masks, torch::Device device) {
  auto& described = described_[masks.any_drops() ? 1 : 0];
  if (!described.defined() || described.device() != device) {
    described = device_operations(device)->described(attention_, masks, device);
  }
  return described;
}

torch::Tensor AttentionLayer::fused_mixed(const torch::Tensor& q, const torch::Tensor& k,
                                          const torch::Tensor& v, const torch::Tensor& input,
                                          const torch::Tensor& inverse_temperature,
                                          const Masks& masks) {
  auto [mapped_q, mapped_k] = score_vectors(q, k, maps_, head_width_);
  AttentionTensors tensors{std::move(mapped_q), std::move(mapped_k), v, inverse_temperature};
  tensors.directions = joined_rows(directions_);
  tensors.distance_biases = distance_biases(q);
  tensors.sums = sums(input);
  tensors.sinks = joined_rows(sinks_);
  ArrayAttention models{attention_, masks};
  if (device_operations(q.device()) != nullptr) models.on_device = described(masks, q.device());
  return fused_attention(std::move(models), tensors);
}

}  // namespace nas::nn
