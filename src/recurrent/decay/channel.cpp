#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "genotype/layer_rules.hpp"
#include "nn/parts/state_options.hpp"
#include "ops/log_decay.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// b of decay_form bounded, where -log alpha begins at 0.001 .. 0.1 in equal ratios within a head.
std::vector<double> bounded_start(std::int64_t heads, std::int64_t rows) {
  std::vector<double> start;
  for (std::int64_t i = 0; i < heads * rows; ++i) {
    const double share =
        rows > 1 ? static_cast<double>(i % rows) / static_cast<double>(rows - 1) : 0.5;
    start.push_back(-std::log(-kLeastLogDecay / (0.001 * std::pow(100.0, share)) - 1.0));
  }
  return start;
}

/// Of each row of a state, z = W_2 W_1 x of rank decay_rank: alpha = sigmoid(z + b)^(1 / decay_tau) of
/// decay_form gla, e^(-e^A_h softplus(z + b)) of softplus; at least e^-5. Of bounded e^(-5 sigmoid(e^A_h
/// (z + b))), which has a gradient everywhere, A from 0.
/// @see Yang et al. (2023), GLA, arXiv:2312.06635; Kimi Team (2025), arXiv:2510.26692, and released
/// layers of it (kda_safe_gate of transformers' bailing_hybrid).
class Channel final : public StateDecay {
 public:
  Channel(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())),
        heads_(context.shape.heads),
        tau_(context.shape.sizes.real("decay_tau")) {
    const auto rank = context.shape.sizes.integer("decay_rank");
    const auto rows = heads_ * context.shape.state_rows();
    down_ =
        scope.add("decay_down.weight", {rank, context.shape.width}, Start::normal(), Decay::yes);
    up_ = scope.add("decay_up.weight", {rows, rank}, Start::normal(), Decay::yes);
    if (has_form(context.shape, "softplus")) {
      steps_.emplace(scope, heads_, rows);
    } else if (has_form(context.shape, "bounded")) {
      log_rate_ = scope.add("decay_log_rate", {heads_}, Start::constant(0.0), Decay::no);
      bias_ = scope.add("decay_step_bias", {rows},
                        Start::listed(bounded_start(heads_, rows / heads_)), Decay::no);
    } else {
      bias_ = scope.add("decay_up.bias", {rows}, Start::constant(0.0), Decay::no);
    }
  }

  static bool has_form(const AttentionShape& shape, std::string_view form) {
    return shape.sizes.word("decay_form") == form;
  }

  torch::Tensor logarithms(const torch::Tensor& x) const override {
    const auto logits = linear(linear(x, down_, {}, mode_), up_, {}, mode_);
    if (steps_) return steps_->logarithms(logits, kLeastLogDecay, mode_);
    if (log_rate_.defined()) {
      return model_by_model(
          [this](const torch::Tensor& part, const torch::Tensor& rate, const torch::Tensor& bias) {
            const auto steps = by_head(part + bias.unsqueeze(1).unsqueeze(1), heads_);
            return (steps * rate.exp().view({-1, 1, heads_, 1, 1})).sigmoid() * kLeastLogDecay;
          },
          logits, log_rate_, bias_);
    }
    if (by_kernels(x, mode_)) {
      return by_head(sigmoid_decay(logits, bias_, tau_, kLeastLogDecay), heads_);
    }
    return model_by_model(
        [this](const torch::Tensor& part, const torch::Tensor& bias) {
          const auto shifted = part + bias.unsqueeze(1).unsqueeze(1);
          return by_head((at::log_sigmoid(shifted) / tau_).clamp_min(kLeastLogDecay), heads_);
        },
        logits, bias_);
  }

  torch::Tensor naive(const HeadToken& token) const override {
    const auto logits = of_head(up_, token.head, heads_).mv(down_[0].mv(token.x));
    if (steps_) return steps_->naive(logits, token.head, kLeastLogDecay).exp();
    const auto shifted = logits + of_head(bias_, token.head, heads_);
    if (log_rate_.defined()) {
      return ((shifted * log_rate_[0][token.head].exp()).sigmoid() * kLeastLogDecay).exp();
    }
    const auto share = shifted.sigmoid();
    return share.pow(1.0 / tau_).clamp_min(std::exp(kLeastLogDecay));
  }

 private:
  NumericalMode mode_;
  std::int64_t heads_;
  double tau_;
  torch::Tensor down_, up_, bias_;      // (M, rank, D), (M, H f, rank), (M, H f) but of softplus
  torch::Tensor log_rate_;              // (M, H) of bounded
  std::optional<SoftplusSteps> steps_;  // of softplus
};

NAS_REGISTER_STATE_DECAY(
    Channel, .key = "channel",
    .summary =
        "alpha = exp(logsigmoid(W_2 W_1 x + b) / decay_tau) of each channel of a key (Yang et al. "
        "2023, arXiv:2312.06635); decay_form softplus: exp(-e^A_h softplus(W_2 W_1 x + b)) (Kimi "
        "Team 2025, arXiv:2510.26692); bounded: exp(-5 sigmoid(e^A_h (W_2 W_1 x + b)))",
    .parameters =
        [](const AttentionShape& shape) {
          const auto rows = shape.heads * shape.state_rows();
          return shape.sizes.integer("decay_rank") * (shape.width + rows) + rows +
                 (Channel::has_form(shape, "gla") ? 0 : shape.heads);
        },
    .flops =
        [](const AttentionShape& shape) {
          const auto rows = shape.heads * shape.state_rows();
          return shape.at_each_token(2 * shape.sizes.integer("decay_rank") * (shape.width + rows) +
                                     (Channel::has_form(shape, "gla") ? 3 : 4) * rows);
        },
    .sizes = {integer("decay_rank", "rank of the map that makes decays", 16, 1, 3),
              {.name = "decay_tau",
               .default_value = 16.0,
               .help = "divisor of the logarithms of decays",
               .min = 1.0},
              {.name = "decay_form",
               .default_value = "gla",
               .help = "how decays of channels follow from logits",
               .choices = {"gla", "softplus", "bounded"}}},
    .apply_rules =
        [](LayerRules& rules) {
          if (rules.layer().word("decay_form") != "gla") rules.clear({"decay_tau"});
        },
    .by_channel = true);

}  // namespace
}  // namespace nas::nn
