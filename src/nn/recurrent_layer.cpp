#include "nn/recurrent_layer.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "genotype/mechanism.hpp"
#include "nn/parts/vector_norm.hpp"
#include "ops/convolution.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

constexpr double kUnitEpsilon = 1e-6;

torch::Tensor with_one(const torch::Tensor& values) {
  return at::cat({values, at::ones_like(values.narrow(-1, 0, 1))}, -1);
}

Models models_with(const ParameterScope& scope, bool has) {
  return has ? scope.models() : Models();
}

}  // namespace

struct RecurrentLayer::Kept final : public Mixer::State {
  [[nodiscard]] std::unique_ptr<State> copy() const override {
    return std::make_unique<Kept>(*this);  // nothing is written into
  }
  [[nodiscard]] std::int64_t numbers() const override {
    std::int64_t sum = 0;
    for (const auto& part : {state, latest[0], latest[1], latest[2], keys, values}) {
      if (part.defined()) sum += part.numel() / part.size(1);
    }
    return sum;
  }

  std::int64_t tokens = 0;                ///< so far
  torch::Tensor state{};                  ///< (1, B, H, f, d), with z (.., d + 1)
  std::array<torch::Tensor, 3> latest{};  ///< inputs of the convolutions, (1, B, K - 1, channels)
  torch::Tensor keys{}, values{};         ///< near, (1, B, H, w, d_k) and (.., d)
};

RecurrentLayer::RecurrentLayer(const MixerContext& context, const ParameterScope& scope)
    : num_heads_(context.shape.heads),
      head_width_(context.shape.head_width()),
      mode_(unrounded(scope.mode())) {
  const auto& layer = context.mechanisms.front();
  key_width_ = layer.integer("key_width") > 0 ? layer.integer("key_width") : head_width_;
  erases_ = components().at("update", layer.word("update")).erases;
  activates_ = erases_ || layer.integer("conv") > 0;
  sums_ = !erases_ && layer.word("feature") != "identity";

  const auto width = context.shape.width, of_values = context.shape.inner();
  auto of_keys = context.shape;
  of_keys.sizes = layer;
  of_keys.width = num_heads_ * key_width_;
  of_keys.of_head = 0;
  const auto biased =
      models_with(scope, layer.word("bias") == "bias" || layer.word("bias") == "qkv");
  q_proj_ = Linear::with_biases_of(scope.child("q_proj"), width, of_keys.width, biased);
  k_proj_ = Linear::with_biases_of(scope.child("k_proj"), width, of_keys.width, biased);
  v_proj_ = Linear::with_biases_of(scope.child("v_proj"), width, of_values, biased);
  out_proj_ = Linear::with_biases_of(
      scope.child("out_proj"), of_values, width,
      models_with(scope, layer.word("bias") == "bias" || layer.word("bias") == "no_bias"),
      context.output_start);
  if (layer.integer("conv") > 0) {
    convolutions_ = {{scope.child("q_conv"), of_keys.width, layer.integer("conv")},
                     {scope.child("k_conv"), of_keys.width, layer.integer("conv")},
                     {scope.child("v_conv"), of_values, layer.integer("conv")}};
  }
  if (layer.word("position") != "none") {
    position_ = positions().at(layer.word("position")).make({of_keys, context.semantics}, scope);
  }
  if (layer.word("feature") != "identity") {
    feature_ = feature_maps()
                   .at(layer.word("feature"))
                   .make({of_keys, context.semantics, context.layer}, scope);
  }
  LayerContext option{context.shape, context.semantics, context.layer};
  option.shape.sizes = of_keys.sizes;
  option.shape.keys = key_width_;
  if (feature_) {
    option.shape.features = components().at("feature", layer.word("feature")).features(of_keys);
  }
  if (layer.word("decay") != "none") {
    by_channel_ = components().at("decay", layer.word("decay"), layer.word("mixer")).by_channel;
    decay_ = state_decays().at(layer.word("decay")).make(option, scope);
  }
  update_ = state_updates().at(layer.word("update")).make(option, scope);
  near_ = sums_ && !decay_ ? layer.integer("near") : 0;
  if (near_ > 0)
    near_logit_ = scope.add("near_logit", {num_heads_}, Start::constant(0.0), Decay::no);
  if (!sums_) head_norm_ = vector_norms().at("rms").make(option, scope.child("head_norm"));
  if (layer.word("gating") != "none")
    gate_ = output_gates().at(layer.word("gating")).make(option, scope);
}

RecurrentLayer::Projected RecurrentLayer::projected(const torch::Tensor& x) const {
  // In this order on every compiler: gradients w.r.t. the input are added in the opposite one.
  auto q = q_proj_(x);
  auto v = v_proj_(x);
  auto k = k_proj_(x);
  return {std::move(q), std::move(k), std::move(v)};
}

RecurrentLayer::Projected RecurrentLayer::whole(const torch::Tensor& x) const {
  const auto of_tokens = projected(x);
  const auto active = [this](const torch::Tensor& z, std::size_t which, bool of_keys) {
    if (!activates_) return z;
    const auto* convolution = convolutions_.empty() ? nullptr : &convolutions_[which];
    if (by_kernels(z, mode_)) {
      return activated_convolution(z,
                                   convolution == nullptr ? torch::Tensor() : convolution->weight(),
                                   erases_ && of_keys ? key_width_ : 0, kUnitEpsilon);
    }
    return activated(convolution == nullptr ? z : (*convolution)(z), of_keys);
  };
  return {active(of_tokens.q, 0, true), active(of_tokens.k, 1, true),
          active(of_tokens.v, 2, false)};
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

torch::Tensor RecurrentLayer::heads(const torch::Tensor& vectors, std::int64_t first) const {
  const auto heads =
      vectors.view({vectors.size(0), vectors.size(1), vectors.size(2), num_heads_, -1});
  return position_ ? position_->mapped(heads, first) : heads;
}

torch::Tensor RecurrentLayer::mapped(const torch::Tensor& heads, bool keys) const {
  if (!feature_) return heads.transpose(2, 3);
  return (keys ? feature_->of_keys(heads) : feature_->of_queries(heads)).transpose(2, 3);
}

NearAndFar RecurrentLayer::near_and_far_of(const Projected& projected, std::int64_t first) const {
  const auto q = heads(projected.q, first), k = heads(projected.k, first);
  return {q.transpose(2, 3), k.transpose(2, 3), mapped(q, /*keys=*/false), mapped(k, /*keys=*/true),
          with_one(by_head(projected.v, num_heads_))};
}

torch::Tensor RecurrentLayer::near_step(const Projected& of_token, Kept& kept) const {
  auto token = near_and_far_of(of_token, kept.tokens);
  const auto joined = [](const torch::Tensor& earlier, const torch::Tensor& own) {
    return earlier.defined() ? at::cat({earlier, own}, 3) : own;
  };
  kept.keys = joined(kept.keys, token.keys);
  kept.values = joined(kept.values, token.values.narrow(-1, 0, head_width_));
  if (kept.keys.size(3) > near_) {
    const auto oldest = mapped(kept.keys.narrow(3, 0, 1).transpose(2, 3), /*keys=*/true);
    const auto added = oldest.transpose(-2, -1).matmul(with_one(kept.values.narrow(3, 0, 1)));
    kept.state = kept.state.defined() ? kept.state + added : added;
    kept.keys = kept.keys.narrow(3, 1, near_).contiguous();
    kept.values = kept.values.narrow(3, 1, near_).contiguous();
  }
  token.keys = kept.keys;
  token.values = with_one(kept.values);
  return near_and_far_of_last(token, near_logit_.sigmoid(), kept.state);
}

Recurrence RecurrentLayer::of_heads(const Projected& projected, std::int64_t first) const {
  Recurrence tokens;
  tokens.queries = mapped(heads(projected.q, first), /*keys=*/false);
  tokens.keys = mapped(heads(projected.k, first), /*keys=*/true);
  tokens.values = by_head(projected.v, num_heads_);
  if (sums_) {  // z is the state of a value that is 1
    tokens.values = with_one(tokens.values);
  } else {
    tokens.queries = tokens.queries * (1.0 / std::sqrt(static_cast<double>(key_width_)));
  }
  return tokens;
}

Recurrence RecurrentLayer::taken_up(const Projected& projected, const torch::Tensor& x,
                                    std::int64_t first) const {
  auto tokens = of_heads(projected, first);
  if (decay_) tokens.log_decays = decay_->logarithms(x);
  tokens.by_channel = by_channel_;
  update_->gate(x, tokens);
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

torch::Tensor RecurrentLayer::normalised(const torch::Tensor& outputs) const {
  auto of_heads = outputs.transpose(2, 3);
  if (sums_) {
    of_heads = of_heads.narrow(-1, 0, head_width_) /
               (of_heads.narrow(-1, head_width_, 1) + (near_ > 0 ? 0.0 : feature_->epsilon()));
  } else {
    of_heads = head_norm_->normalised(of_heads);
  }
  return of_heads.flatten(3);
}

torch::Tensor RecurrentLayer::gated(const torch::Tensor& outputs, const torch::Tensor& x) const {
  if (!gate_) return outputs;
  const auto logits = gate_->logits(x);
  if (by_kernels(x, mode_)) return gated_heads(outputs, logits, gate_->form());
  return model_by_model(
      [form = gate_->form()](const torch::Tensor& part, const torch::Tensor& of_part) {
        return part * (form == GateForm::silu ? at::silu(of_part) : of_part.sigmoid());
      },
      outputs, logits);
}

torch::Tensor RecurrentLayer::read_out(const torch::Tensor& outputs, const torch::Tensor& x) const {
  return out_proj_(gated(normalised(outputs), x));
}

torch::Tensor RecurrentLayer::forward(const torch::Tensor& x, const torch::Tensor& /*residual*/,
                                      const Pass& /*pass*/, std::uint64_t /*site*/) {
  if (near_ > 0) {
    const auto of = near_and_far_of(whole(x), 0);
    const auto outputs = model_by_model(
        [w = near_](const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& of_q,
                    const torch::Tensor& of_k, const torch::Tensor& v, const torch::Tensor& logit) {
          return near_and_far({q, k, of_q, of_k, v}, logit.sigmoid(), w);
        },
        of.queries, of.keys, of.of_queries, of.of_keys, of.values, near_logit_);
    return read_out(outputs, x);
  }
  return read_out(recurred(taken_up(whole(x), x, 0)).outputs, x);
}

torch::Tensor RecurrentLayer::state_after(const torch::Tensor& x) {
  return recurred(taken_up(whole(x), x, 0)).state.narrow(-1, 0, head_width_);
}

torch::Tensor RecurrentLayer::naive(const torch::Tensor& x) const {
  if (x.size(0) != 1) throw std::invalid_argument("the definition is of one model alone");
  const auto of_tokens = whole(x);
  const auto tokens = of_heads(of_tokens, 0);
  const auto queries = heads(of_tokens.q, 0)[0], keys = heads(of_tokens.k, 0)[0];
  const auto& values = tokens.values;
  std::vector<torch::Tensor> outputs;
  for (std::int64_t b = 0; b < x.size(1); ++b) {
    for (std::int64_t h = 0; h < num_heads_; ++h) {
      auto state = at::zeros({tokens.keys.size(-1), values.size(-1)}, values.options());
      for (std::int64_t t = 0; t < x.size(2); ++t) {
        if (const auto of = t - near_; of >= 0) {
          const HeadToken token{x[0][b][of], tokens.keys[0][b][h][of], values[0][b][h][of], h};
          if (decay_) state = decay_->naive(token).unsqueeze(-1) * state;
          state = update_->naive(state, token);
        }
        outputs.push_back(tokens.queries[0][b][h][t].matmul(state));
        const auto first = std::max<std::int64_t>(0, t + 1 - near_);
        if (near_ == 0) continue;
        const auto scores =
            keys[b].select(1, h).narrow(0, first, t + 1 - first).matmul(queries[b][t][h]) /
            std::sqrt(static_cast<double>(key_width_));
        outputs.back() += (near_logit_[0][h].sigmoid() * (scores - scores.max()).exp())
                              .matmul(values[0][b][h].narrow(0, first, t + 1 - first));
      }
    }
  }
  auto read = normalised(at::stack(outputs).view(values.sizes()));
  for (std::int64_t b = 0; gate_ && b < x.size(1); ++b) {
    for (std::int64_t t = 0; t < x.size(2); ++t) {
      read[0][b][t].copy_(gate_->naive(read[0][b][t], x[0][b][t]));
    }
  }
  return out_proj_(read);
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
  if (near_ > 0) {
    const auto outputs = near_step(of_token, kept);
    ++kept.tokens;
    return read_out(outputs, x);
  }
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
