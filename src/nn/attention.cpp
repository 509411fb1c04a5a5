#include "nn/attention.hpp"

#include <algorithm>
#include <limits>
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

FusedForms fused_forms(const Mechanism& mechanism) {
  return {.attention = has_fused_form(mechanism),
          .gating = components().at("gating", mechanism.gating).fused,
          .temperature = has_fused_form(mechanism) &&
                         components().at("temperature", mechanism.temperature).fused};
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
  const auto taken = at::arange(most, counts.options()).unsqueeze(0).lt(counts.unsqueeze(1));
  return at::zeros_like(scores, scores.options().dtype(at::kBool))
      .scatter_(-1, indices, taken.expand(indices.sizes()))
      .logical_and_(visible);
}

namespace {

Models biased_models(const std::vector<Mechanism>& mechanisms, const Models& models) {
  Models biased;
  for (std::size_t r = 0; r < mechanisms.size(); ++r) {
    if (mechanisms[r].bias) biased.push_back(models[r]);
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

std::vector<std::string> options_of(const std::vector<Mechanism>& mechanisms,
                                    const std::string Mechanism::*gene) {
  std::vector<std::string> options;
  for (const auto& mechanism : mechanisms) options.push_back(mechanism.*gene);
  return options;
}

/// Which models a module stands for: those with one option, or each alone; in order of their first
/// model.
///
/// @param options   of each model.
/// @param together  together(model): whether its module may stand for others, too.
template <class Together>
std::vector<Models> grouped_models(const std::vector<std::string>& options,
                                   const Together& together) {
  std::vector<Models> groups;
  for (std::size_t r = 0; r < options.size(); ++r) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Models& known) {
      return options[static_cast<std::size_t>(known.front())] == options[r] && together(r);
    });
    if (group == groups.end()) group = groups.insert(groups.end(), Models());
    group->push_back(static_cast<std::int64_t>(r));
  }
  return groups;
}

/// The scope of models given by their place in `scope`.
ParameterScope scope_of(const ParameterScope& scope, const Models& places) {
  Models models;
  for (const auto place : places) {
    models.push_back(scope.models()[static_cast<std::size_t>(place)]);
  }
  return scope.of(std::move(models));
}

}  // namespace

AttentionLayer::AttentionLayer(const std::vector<Mechanism>& mechanisms,
                               const AttentionShape& shape, Semantics semantics,
                               const ParameterScope& scope, Start output_start)
    : num_models_(static_cast<std::int64_t>(mechanisms.size())),
      num_heads_(shape.heads),
      mode_(scope.mode()) {
  const auto forms = mode_ == NumericalMode::reference ? FusedForms{} : common_forms(mechanisms);
  fused_ = forms.attention;
  const auto projection = [&](const char* name) {
    return Linear::with_biases_of(scope.child(name), shape.width, shape.width,
                                  biased_models(mechanisms, scope.models()));
  };
  q_proj_ = projection("q_proj");
  k_proj_ = projection("k_proj");
  v_proj_ = projection("v_proj");
  out_proj_ = Linear(scope.child("out_proj"), shape.width, shape.width, output_start);
  for (const auto& mechanism : mechanisms) dropouts_.push_back(mechanism.attention_dropout);
  const auto mechanism_of = [&](const Models& models) -> const Mechanism& {
    return mechanisms[static_cast<std::size_t>(models.front())];
  };
  const auto if_fused = [&](bool fused) {
    return [fused = fused || !scope.device().is_cpu()](std::size_t) { return fused; };
  };
  // Beside the fused kernel a similarity computes no scores.
  const auto if_placeless = [&](std::size_t r) {
    return !scope.device().is_cpu() ||
           (fused_ && components().at("similarity", mechanisms[r].similarity).placeless);
  };
  const LayerContext context{shape, semantics};
  starts_.resize(mechanisms.size());
  for (auto& models :
       grouped_models(options_of(mechanisms, &Mechanism::similarity), if_placeless)) {
    auto similarity =
        similarities().at(mechanism_of(models).similarity).make(context, scope_of(scope, models));
    for (const auto r : models) {
      starts_[static_cast<std::size_t>(r)] = similarity->start_temperature(shape);
    }
    similarities_.push_back({std::move(models), std::move(similarity)});
  }
  for (auto& models :
       grouped_models(options_of(mechanisms, &Mechanism::normalization), if_fused(fused_))) {
    auto normalization = normalizations()
                             .at(mechanism_of(models).normalization)
                             .make(context, scope_of(scope, models));
    normalizations_.push_back({std::move(models), std::move(normalization)});
  }
  if (fused_) set_up_kernel();
  for (auto& models :
       grouped_models(options_of(mechanisms, &Mechanism::gating), if_fused(forms.gating))) {
    auto gating = gatings().at(mechanism_of(models).gating).make(context, scope_of(scope, models));
    gates_input_ =
        gates_input_ || components().at("gating", mechanism_of(models).gating).gates_input;
    gatings_.push_back({std::move(models), std::move(gating)});
  }
  if (forms.gating) {
    std::vector<FusedGates::Group> gates;
    for (const auto& [models, gating] : gatings_) gates.push_back({models, *gating->fused()});
    gates_.emplace(gates, num_models_, mode_);
  }
  for (auto& models : grouped_models(options_of(mechanisms, &Mechanism::temperature),
                                     if_fused(forms.temperature))) {
    auto temperature =
        temperatures().at(mechanism_of(models).temperature).make(context, scope_of(scope, models));
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
}

void AttentionLayer::set_up_kernel() {
  attention_.resize(static_cast<std::size_t>(num_models_));
  for (const auto& [models, normalization] : normalizations_) {
    for (const auto r : models) {
      attention_[static_cast<std::size_t>(r)].normalization = *normalization->fused();
    }
  }
  std::int64_t num_directions = 0;
  for (const auto& [models, similarity] : similarities_) {
    auto fused = *similarity->fused();
    maps_.push_back({models, std::move(fused.map)});
    for (const auto r : models) {
      auto& model = attention_[static_cast<std::size_t>(r)];
      model.score = fused.score;
      if (fused.direction.defined()) model.direction = num_directions++;
    }
    if (fused.direction.defined()) directions_.push_back(std::move(fused.direction));
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
  const auto models = models_of(groups);
  const auto parts = split_models({inputs...}, models);
  std::vector<torch::Tensor> results;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto of_group = [&]<std::size_t... kInput>(std::index_sequence<kInput...>) {
      return apply(*groups[i].option, parts[kInput][i]...);
    };
    results.push_back(of_group(std::index_sequence_for<Inputs...>()));
  }
  return join_models(results, models);
}

torch::Tensor AttentionLayer::heads(const torch::Tensor& projected) const {
  return projected.view({projected.size(0), projected.size(1), projected.size(2), num_heads_, -1})
      .transpose(2, 3);
}

const torch::Tensor& AttentionLayer::visible(std::int64_t tokens, torch::Device device) {
  if (!visible_.defined() || visible_.size(0) != tokens || visible_.device() != device) {
    visible_ = at::ones({tokens, tokens}, at::TensorOptions(at::kBool).device(device)).tril();
  }
  return visible_;
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
  const auto q = q_proj_(input);
  const bool kernel = has_kernel(q);
  // In this order on every compiler: gradients w.r.t. the input are added in the opposite one.
  const auto temperature = divisors(input, q, /*inverse=*/kernel);
  const auto v = v_proj_(input);
  const auto k = k_proj_(input);
  const auto masks = dropout_masks(dropouts_, pass, site);
  const auto attended = out_proj_(kernel ? fused_mixed(q, k, v, temperature, masks)
                                         : mixed(q, k, v, temperature, masks));
  if (fused_gates) return gates_->increment(attended, input, residual, logits);
  return grouped(
      gatings_,
      [](const Gating& gating, const torch::Tensor& part, const torch::Tensor& gated,
         const torch::Tensor& stream) { return gating.increment(part, gated, stream); },
      attended, input, residual);
}

torch::Tensor AttentionLayer::mixed(const torch::Tensor& q, const torch::Tensor& k,
                                    const torch::Tensor& v, const torch::Tensor& divisors,
                                    const Masks& masks) {
  const auto scores =
      grouped(
          similarities_,
          [](const Similarity& similarity, const torch::Tensor& queries,
             const torch::Tensor& keys) { return similarity.scores(queries, keys); },
          // In one layout in every array, since products depend on it in the last digit.
          heads(q).contiguous(), heads(k).contiguous()) /
      divisors;
  const auto& seen = visible(q.size(2), q.device());
  const auto weights = grouped(
      normalizations_,
      [&seen](const Normalization& normalization, const torch::Tensor& part) {
        return normalization.weights(part, seen);
      },
      scores);
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
         std::all_of(normalizations_.begin(), normalizations_.end(), [&](const auto& group) {
           return device->has_form_of(*group.option->fused());
         });
}

const torch::Tensor& AttentionLayer::described(const Masks& masks, torch::Device device) {
  auto& described = described_[masks.any_drops() ? 1 : 0];
  if (!described.defined() || described.device() != device) {
    described = device_operations(device)->described(attention_, masks, device);
  }
  return described;
}

torch::Tensor AttentionLayer::fused_mixed(const torch::Tensor& q, const torch::Tensor& k,
                                          const torch::Tensor& v,
                                          const torch::Tensor& inverse_temperature,
                                          const Masks& masks) {
  auto [mapped_q, mapped_k] = score_vectors(q, k, maps_, v.size(3) / num_heads_);
  AttentionTensors tensors{std::move(mapped_q), std::move(mapped_k), v, inverse_temperature};
  if (!directions_.empty()) {
    tensors.directions = directions_.size() == 1 ? directions_.front() : at::cat(directions_);
  }
  ArrayAttention models{attention_, masks};
  if (device_operations(q.device()) != nullptr) models.on_device = described(masks, q.device());
  return fused_attention(std::move(models), tensors);
}

}  // namespace nas::nn
