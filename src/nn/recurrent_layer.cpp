#include "nn/recurrent_layer.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "nn/implicit_map.hpp"
#include "nn/parts/gate.hpp"
#include "nn/parts/vector_norm.hpp"
#include "ops/convolution.hpp"
#include "ops/device_copy.hpp"
#include "ops/head_gate.hpp"
#include "ops/log_decay.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

constexpr double kUnitEpsilon = 1e-6;
constexpr double kLeastLogDecay = -5.0;  // e^(5 * 16) is within float32

torch::Tensor softplus_of(const torch::Tensor& x) {
  constexpr double kLinearFrom = 40.0;
  return at::softplus(x, 1.0, kLinearFrom);
}

/// (M, B, T, H n) as (M, B, H, T, n).
torch::Tensor by_head(const torch::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), x.size(2), heads, -1}).transpose(2, 3);
}

/// A parameter of each head, (M, H), beside (M, B, H, T, n).
torch::Tensor beside_heads(const torch::Tensor& x) {
  return x.view({x.size(0), 1, x.size(1), 1, 1});
}

Models models_with(const ParameterScope& scope, bool has) {
  return has ? scope.models() : Models();
}

}  // namespace

torch::Tensor retention_logarithms(std::int64_t heads) {
  std::vector<double> values;
  for (std::int64_t h = 0; h < heads; ++h) {
    values.push_back(std::log1p(-std::pow(2.0, -5.0 - static_cast<double>(h))));
  }
  return at::tensor(values, at::TensorOptions(at::kDouble)).view({1, 1, heads, 1, 1});
}

struct RecurrentLayer::Kept final : public Mixer::State {
  [[nodiscard]] std::unique_ptr<State> copy() const override {
    return std::make_unique<Kept>(*this);  // nothing is written into
  }
  [[nodiscard]] std::int64_t numbers() const override {
    std::int64_t sum = 0;
    for (const auto& part : {state, latest[0], latest[1], latest[2]}) {
      if (part.defined()) sum += part.numel() / part.size(1);
    }
    return sum;
  }

  std::int64_t tokens = 0;                ///< so far
  torch::Tensor state{};                  ///< (1, B, H, f, d), with z (.., d + 1)
  std::array<torch::Tensor, 3> latest{};  ///< inputs of the convolutions, (1, B, K - 1, channels)
};

RecurrentLayer::RecurrentLayer(const MixerContext& context, const ParameterScope& scope)
    : num_heads_(context.shape.heads),
      head_width_(context.shape.head_width()),
      mode_(unrounded(scope.mode())) {
  const auto& layer = context.mechanisms.front();
  key_width_ = layer.integer("key_width") > 0 ? layer.integer("key_width") : head_width_;
  erases_ = layer.word("update") != "add";
  channel_gates_ = layer.word("update") == "delta2";
  reflects_ = layer.integer("neg_eigen") == 1;
  activates_ = erases_ || layer.integer("conv") > 0;
  sums_ = !erases_ && layer.word("feature") != "identity";

  const auto width = context.shape.width;
  auto of_keys = context.shape;
  of_keys.sizes = layer;
  of_keys.width = num_heads_ * key_width_;
  const auto biased = models_with(scope, layer.word("bias") == "bias");
  q_proj_ = Linear::with_biases_of(scope.child("q_proj"), width, of_keys.width, biased);
  k_proj_ = Linear::with_biases_of(scope.child("k_proj"), width, of_keys.width, biased);
  v_proj_ = Linear::with_biases_of(scope.child("v_proj"), width, width, biased);
  out_proj_ = Linear::with_biases_of(scope.child("out_proj"), width, width,
                                     models_with(scope, layer.word("bias") != "none"),
                                     context.output_start);
  if (layer.integer("conv") > 0) {
    convolutions_ = {{scope.child("q_conv"), of_keys.width, layer.integer("conv")},
                     {scope.child("k_conv"), of_keys.width, layer.integer("conv")},
                     {scope.child("v_conv"), width, layer.integer("conv")}};
  }
  const LayerContext option{of_keys, context.semantics};
  if (layer.word("position") != "none")
    position_ = positions().at(layer.word("position")).make(option, scope);
  if (layer.word("feature") != "identity") {
    feature_ = feature_maps().at(layer.word("feature")).make({of_keys, context.layer}, scope);
  }
  make_decay(layer, scope);
  if (erases_) {
    const auto gate = [&](const char* name, std::int64_t outputs) {
      return scope.add(name, {outputs, width}, Start::normal(), Decay::yes);
    };
    erase_ = channel_gates_ ? gate("erase.weight", of_keys.width) : gate("beta.weight", num_heads_);
    if (channel_gates_) write_ = gate("write.weight", width);
  }
  if (!sums_) {
    head_norm_ =
        vector_norms().at("rms").make({context.shape, context.semantics}, scope.child("head_norm"));
  }
  make_gates(layer, context.semantics, scope);
}

void RecurrentLayer::make_decay(const Mechanism& layer, const ParameterScope& scope) {
  const auto width = q_proj_.weight().size(2);
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return scope.add(name, {rows, columns}, Start::normal(), Decay::yes);
  };
  // A of Mamba-2 and the steps that it begins with; log 0, which A from U(0, 16) may have, is left out.
  const auto make_rate = [&] {
    decay_log_rate_ =
        scope.add("decay_log_rate", {num_heads_}, Start::log_of_uniform(1.0, 16.0), Decay::no);
  };
  const auto steps = Start::softplus_of_log_uniform(0.001, 0.1);
  if (layer.word("decay") == "fixed") {
    fixed_decays_ = retention_logarithms(num_heads_);
  } else if (layer.word("decay") == "scalar") {
    decay_ = matrix("decay.weight", num_heads_, width);
    make_rate();
    decay_step_bias_ = scope.add("decay_step_bias", {num_heads_}, steps, Decay::no);
  } else if (layer.word("decay") == "channel") {
    by_channel_ = true;
    auto shape = AttentionShape{.width = num_heads_ * key_width_, .heads = num_heads_};
    shape.sizes = layer;
    const auto features =
        feature_ ? components().at("feature", layer.word("feature")).features(shape) : key_width_;
    decay_ = matrix("decay_down.weight", layer.integer("decay_rank"), width);
    decay_up_ = matrix("decay_up.weight", num_heads_ * features, layer.integer("decay_rank"));
    if (layer.word("decay_form") == "softplus") {
      make_rate();
      decay_step_bias_ = scope.add("decay_step_bias", {num_heads_ * features}, steps, Decay::no);
    } else {
      tau_ = layer.real("decay_tau");
      decay_bias_ =
          scope.add("decay_up.bias", {num_heads_ * features}, Start::constant(0.0), Decay::no);
    }
  } else if (layer.word("decay") != "none") {
    throw std::logic_error("decay " + layer.word("decay") + " of a recurrent layer");
  }
}

void RecurrentLayer::make_gates(const Mechanism& layer, Semantics semantics,
                                const ParameterScope& scope) {
  if (layer.word("gating") == "none") return;
  const auto width = head_width_ * num_heads_;
  // At 0 a gate would start half closed.
  const auto bias = Start::constant(semantics == Semantics::published ? 0.0 : 2.0);
  gates_by_silu_ = layer.word("gating") == "swish_gate";
  const bool low_rank = layer.word("gating") == "sigmoid_gate" && layer.integer("gate_rank") > 0;
  if (gates_by_silu_) {
    gate_ = Linear::with_biases_of(scope.child("head_gate"), width, width, {});
  } else if (low_rank) {
    gate_ = Linear::with_biases_of(scope.child("gate_down"), width, layer.integer("gate_rank"), {});
    gate_up_.emplace(scope.child("gate_up"), layer.integer("gate_rank"), width, Start::normal(),
                     bias);
  } else {
    gate_.emplace(scope.child("head_gate"), width, width, Start::normal(), bias);
  }
}

RecurrentLayer::Projected RecurrentLayer::projected(const torch::Tensor& x) const {
  // In this order on every compiler: gradients w.r.t. the input are added in the opposite one.
  auto q = q_proj_(x);
  auto v = v_proj_(x);
  auto k = k_proj_(x);
  return {std::move(q), std::move(k), std::move(v)};
}

bool RecurrentLayer::by_kernels(const torch::Tensor& x) const {
  return x.device().is_cpu() && mode_ != NumericalMode::reference;
}

Recurrence RecurrentLayer::whole(const torch::Tensor& x) const {
  const auto of_tokens = projected(x);
  const auto active = [this](const torch::Tensor& z, std::size_t which, bool of_keys) {
    if (!activates_) return z;
    const auto* convolution = convolutions_.empty() ? nullptr : &convolutions_[which];
    if (by_kernels(z)) {
      return activated_convolution(z,
                                   convolution == nullptr ? torch::Tensor() : convolution->weight(),
                                   erases_ && of_keys ? key_width_ : 0, kUnitEpsilon);
    }
    return activated(convolution == nullptr ? z : (*convolution)(z), of_keys);
  };
  return taken_up(
      {active(of_tokens.q, 0, true), active(of_tokens.k, 1, true), active(of_tokens.v, 2, false)},
      x, 0);
}

torch::Tensor RecurrentLayer::activated(const torch::Tensor& vectors, bool of_keys) const {
  if (!activates_) return vectors;
  return model_by_model(
      [&](const torch::Tensor& part) {
        const auto active = at::silu(part);
        if (!erases_ || !of_keys) return active;
        const auto heads = active.view({part.size(0), part.size(1), part.size(2), num_heads_, -1});
        return (heads * (heads.square().sum(-1, /*keepdim=*/true) + kUnitEpsilon).rsqrt())
            .flatten(3);
      },
      vectors);
}

torch::Tensor RecurrentLayer::mapped(const torch::Tensor& vectors, bool keys,
                                     std::int64_t first) const {
  auto heads = vectors.view({vectors.size(0), vectors.size(1), vectors.size(2), num_heads_, -1});
  if (position_) heads = position_->mapped(heads, first);
  if (feature_) heads = keys ? feature_->of_keys(heads) : feature_->of_queries(heads);
  return heads.transpose(2, 3);
}

torch::Tensor RecurrentLayer::log_decays(const torch::Tensor& x) const {
  if (fixed_decays_.defined()) {
    if (!decays_there_.defined() || decays_there_.device() != x.device() ||
        decays_there_.scalar_type() != x.scalar_type()) {
      decays_there_ = sent(fixed_decays_.to(x.scalar_type()), x.device());
    }
    return decays_there_.expand({x.size(0), x.size(1), num_heads_, x.size(2), 1});
  }
  if (!decay_.defined()) return {};
  auto logits = linear(x, decay_, {}, mode_);
  if (by_channel_) logits = linear(logits, decay_up_, {}, mode_);
  const auto heads = num_heads_;
  if (by_kernels(x)) {
    const auto least = by_channel_ ? kLeastLogDecay : -std::numeric_limits<double>::infinity();
    return by_head(tau_ ? sigmoid_decay(logits, decay_bias_, *tau_, least)
                        : softplus_decay(logits, decay_step_bias_, decay_log_rate_, least),
                   heads);
  }
  if (tau_) {
    return model_by_model(
        [&](const torch::Tensor& part, const torch::Tensor& bias) {
          const auto shifted = part + bias.unsqueeze(1).unsqueeze(1);
          return by_head((at::log_sigmoid(shifted) / *tau_).clamp_min(kLeastLogDecay), heads);
        },
        logits, decay_bias_);
  }
  return model_by_model(
      [&](const torch::Tensor& part, const torch::Tensor& rate, const torch::Tensor& bias) {
        const auto steps = by_head(softplus_of(part + bias.unsqueeze(1).unsqueeze(1)), heads);
        const auto logarithms = -beside_heads(rate.exp()) * steps;
        return by_channel_ ? logarithms.clamp_min(kLeastLogDecay) : logarithms;
      },
      logits, decay_log_rate_, decay_step_bias_);
}

torch::Tensor RecurrentLayer::opened(const torch::Tensor& x, const torch::Tensor& logits,
                                     double factor) const {
  if (by_kernels(x)) {
    const auto of_tokens = x.transpose(2, 3);  // as they lie
    const auto of_heads = logits.view({x.size(0), x.size(1), x.size(3), x.size(2), -1});
    return gated_heads(of_tokens, of_heads, GateForm::sigmoid, factor).transpose(2, 3);
  }
  return model_by_model(
      [factor](const torch::Tensor& part, const torch::Tensor& of_part) {
        const auto gate = by_head(of_part, part.size(2)).sigmoid();
        return part * (factor == 1.0 ? gate : gate * factor);
      },
      x, logits);
}

void RecurrentLayer::gate_update(const torch::Tensor& x, Recurrence& tokens) const {
  if (!erases_) return;
  const double erasing = reflects_ ? 2.0 : 1.0;
  const auto logits = linear(x, erase_, {}, mode_);
  tokens.erased = opened(tokens.keys, logits, erasing);
  tokens.values = channel_gates_ ? opened(tokens.values, linear(x, write_, {}, mode_), 1.0)
                                 : opened(tokens.values, logits, erasing);
}

Recurrence RecurrentLayer::taken_up(const Projected& projected, const torch::Tensor& x,
                                    std::int64_t first) const {
  Recurrence tokens;
  tokens.queries = mapped(projected.q, /*keys=*/false, first);
  tokens.keys = mapped(projected.k, /*keys=*/true, first);
  tokens.values = by_head(projected.v, num_heads_);
  tokens.log_decays = log_decays(x);
  tokens.by_channel = by_channel_;
  gate_update(x, tokens);
  if (sums_) {  // z is the state of a value that is 1
    tokens.values = at::cat({tokens.values, at::ones_like(tokens.values.narrow(-1, 0, 1))}, -1);
  } else {
    tokens.queries = tokens.queries * (1.0 / std::sqrt(static_cast<double>(key_width_)));
  }
  return tokens;
}

Recurred RecurrentLayer::recurred(const Recurrence& tokens) const {
  if (mode_ != NumericalMode::reference && has_recurrence_kernel(tokens, chunk_)) {
    return recurrence(tokens, chunk_);
  }
  const auto of_models = [&](std::int64_t first, std::int64_t count) {
    const auto part = [&](const torch::Tensor& x) {
      return x.defined() ? x.narrow(0, first, count).contiguous() : x;
    };
    auto result = by_chunks({part(tokens.queries), part(tokens.keys), part(tokens.values),
                             part(tokens.log_decays), part(tokens.erased), tokens.by_channel},
                            chunk_);
    result.outputs = with_contiguous_gradient(result.outputs);
    return result;
  };
  const auto models = tokens.values.size(0);
  if (models == 1 || !tokens.values.device().is_cpu()) return of_models(0, models);
  std::vector<torch::Tensor> outputs, states;
  for (std::int64_t r = 0; r < models; ++r) {
    auto result = of_models(r, 1);
    outputs.push_back(std::move(result.outputs));
    states.push_back(std::move(result.state));
  }
  return {at::cat(outputs), at::cat(states)};
}

torch::Tensor RecurrentLayer::gated(const torch::Tensor& of_heads, const torch::Tensor& x) const {
  if (!gate_) return of_heads;
  auto logits = (*gate_)(x);
  if (gate_up_) logits = (*gate_up_)(logits);
  if (by_kernels(x)) {
    return gated_heads(of_heads, logits, gates_by_silu_ ? GateForm::silu : GateForm::sigmoid);
  }
  return model_by_model(
      [this](const torch::Tensor& part, const torch::Tensor& of_part) {
        return part * (gates_by_silu_ ? at::silu(of_part) : of_part.sigmoid());
      },
      of_heads, logits);
}

torch::Tensor RecurrentLayer::normalised(const torch::Tensor& outputs) const {
  auto of_heads = outputs.transpose(2, 3);
  if (sums_) {
    of_heads = of_heads.narrow(-1, 0, head_width_) /
               (of_heads.narrow(-1, head_width_, 1) + feature_->epsilon());
  } else {
    of_heads = head_norm_->normalised(of_heads);
  }
  return of_heads.flatten(3);
}

torch::Tensor RecurrentLayer::read_out(const torch::Tensor& outputs, const torch::Tensor& x) const {
  return out_proj_(gated(normalised(outputs), x));
}

torch::Tensor RecurrentLayer::forward(const torch::Tensor& x, const torch::Tensor& /*residual*/,
                                      const Pass& /*pass*/, std::uint64_t /*site*/) {
  return read_out(recurred(whole(x)).outputs, x);
}

torch::Tensor RecurrentLayer::state_after(const torch::Tensor& x) {
  return recurred(whole(x)).state.narrow(-1, 0, head_width_);
}

std::unique_ptr<Mixer::State> RecurrentLayer::start(std::int64_t /*room*/) const {
  return std::make_unique<Kept>();
}

torch::Tensor RecurrentLayer::step(const torch::Tensor& x, const torch::Tensor& /*residual*/,
                                   const Pass& /*pass*/, State& state) {
  if (x.size(0) != 1) throw std::invalid_argument("a recurrent layer steps in one model alone");
  auto& kept = dynamic_cast<Kept&>(state);
  auto of_token = projected(x);
  if (!convolutions_.empty()) {
    of_token = {convolutions_[0].next(of_token.q, kept.latest[0]),
                convolutions_[1].next(of_token.k, kept.latest[1]),
                convolutions_[2].next(of_token.v, kept.latest[2])};
  }
  of_token = {activated(of_token.q, true), activated(of_token.k, true),
              activated(of_token.v, false)};
  const auto token = taken_up(of_token, x, kept.tokens);
  if (!kept.state.defined()) {
    kept.state = at::zeros({1, x.size(1), num_heads_, token.keys.size(-1), token.values.size(-1)},
                           x.options());
  }
  auto result = next_token(token, kept.state);
  kept.state = std::move(result.state);
  ++kept.tokens;
  return read_out(result.outputs, x);
}

}  // namespace nas::nn
