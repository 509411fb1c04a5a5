#include <algorithm>
#include <memory>
#include <vector>

#include "genotype/layer_rules.hpp"
#include "nn/attention.hpp"
#include "nn/parts/state_options.hpp"

namespace nas::nn {
namespace {

constexpr std::int64_t kChunk = 32;  // keys that fade together

/// Each entry n of a key fades by alpha_tn in (0, 1] at each token t: with P_i = sum_{t <= i} log alpha_t
///
///   q_i.k_j = sum_n q_in k_jn e^(P_in - P_jn)
///
/// alpha is that of the states of recurrent layers, by decay_form. P is summed in double, and no
/// exponent is positive: keys fade to the end of their chunk, and queries from there; within a chunk
/// the differences are formed.
/// @see recurrent/decay/channel.cpp; PaTH and Wall attention of flash-linear-attention.
class Channel final : public ScoreDecay {
 public:
  Channel(const LayerContext& context, const ParameterScope& scope)
      : decay_(state_decays().at("channel").make(context, scope)) {}

  bool changes_keys() const override { return true; }

  torch::Tensor passed(const torch::Tensor& keys, const torch::Tensor& x) const override {
    return model_by_model([](const torch::Tensor& k,
                             const torch::Tensor& logarithms) { return k * logarithms.exp(); },
                          keys, decay_->logarithms(x));
  }

  torch::Tensor products(const torch::Tensor& q, const torch::Tensor& k,
                         const torch::Tensor& x) const override {
    return model_by_model(faded_products, q, k, decay_->logarithms(x));
  }

 private:
  static torch::Tensor faded_products(const torch::Tensor& q, const torch::Tensor& k,
                                      const torch::Tensor& logarithms) {
    const auto tokens = q.size(3);
    const auto sums = logarithms.to(at::kDouble).cumsum(3);
    const auto fading = [&](const torch::Tensor& exponents) {
      return exponents.to(q.scalar_type()).exp();
    };
    std::vector<torch::Tensor> columns;
    for (std::int64_t first = 0; first < tokens; first += kChunk) {
      const auto size = std::min(kChunk, tokens - first), end = first + size;
      const auto of_chunk = [&](const torch::Tensor& all) { return all.narrow(3, first, size); };
      const auto inside = of_chunk(sums);
      const auto later = (inside.unsqueeze(4) - inside.unsqueeze(3)).clamp_max(0.0);
      auto column = (of_chunk(q).unsqueeze(4) * of_chunk(k).unsqueeze(3) * fading(later)).sum(-1);
      if (end < tokens) {
        const auto last = sums.narrow(3, end - 1, 1);
        const auto queries = q.slice(3, end) * fading(sums.slice(3, end) - last);
        const auto keys = of_chunk(k) * fading(last - inside);
        column = at::cat({column, queries.matmul(keys.transpose(-2, -1))}, 3);
      }
      columns.push_back(at::constant_pad_nd(column, {0, 0, first, 0}));
    }
    return at::cat(columns, -1);
  }

  std::unique_ptr<StateDecay> decay_;
};

const Component& of_states() { return components().at("decay", "channel", "recurrent"); }

/// Of products of queries with keys of each head, rotated at most.
void apply_rules(LayerRules& rules) {
  of_states().apply_rules(rules);
  const auto& layer = rules.layer();
  const auto is = [&](const char* gene, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), layer.word(gene)) != words.end();
  };
  const auto groups = layer.integer("kv_heads");
  const bool fits = is("position", {"none", "rope"}) && is("similarity", {"dot", "silu_dot"}) &&
                    is("maps", {"single"}) && (groups == 0 || groups == rules.heads()) &&
                    layer.integer("kv_rank") == 0 &&
                    (layer.word("pattern") != "lsh" || layer.integer("buckets") < 2);
  if (!fits) rules.set_default("decay");
}

NAS_REGISTER_DECAY(
    Channel, .key = "channel",
    .summary =
        "q_i.k_j = sum_n q_in k_jn prod_{t=j+1..i} alpha_tn, alpha of decay_form as of "
        "recurrent layers: attention that fades entries of keys",
    .parameters = [](const AttentionShape& shape) { return of_states().parameters(shape); },
    .flops =
        [](const AttentionShape& shape) {  // sums, exponents and factors of q and k
          return of_states().flops(shape) + shape.at_each_token(7 * shape.inner());
        },
    .apply_rules = apply_rules);

}  // namespace
}  // namespace nas::nn
