#include <algorithm>

#include <torch/autograd.h>

#include "nn/attention.hpp"

namespace nas::nn {
namespace {

// The (B, H, T, T, d) tensor of tanh's never exists: rows of queries are done a few at a time, over
// the keys up to the last of them, and again in the backward pass. On the CPU a piece should stay
// in the cache; on another device a piece should be worth its launches.
std::int64_t rows_at_once(const torch::Tensor& q) {
  const std::int64_t elements =
      q.device().is_cpu() ? std::int64_t{1} << 19U : std::int64_t{1} << 26U;
  return std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, q.numel()));
}

/// tanh(q_i + k_j) of one model for queries [begin, end) and keys [0, end): (B, H, end - begin,
/// end, d).
torch::Tensor activations(const torch::Tensor& q, const torch::Tensor& k, std::int64_t begin,
                          std::int64_t end) {
  return q.slice(2, begin, end).unsqueeze(3).add(k.slice(2, 0, end).unsqueeze(2)).tanh_();
}

torch::Tensor block(const torch::Tensor& square, std::int64_t begin, std::int64_t end) {
  return square.slice(2, begin, end).slice(3, 0, end);
}

/// s_ij = v.tanh(q_i + k_j) for j <= i, of one model; q, k (B, H, T, d), v (d).
class AdditiveScores : public torch::autograd::Function<AdditiveScores> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& q,
                               const torch::Tensor& k, const torch::Tensor& v) {
    context->save_for_backward({q, k, v});
    const std::int64_t tokens = q.size(2);
    const std::int64_t rows = rows_at_once(q);
    auto scores = at::zeros({q.size(0), q.size(1), tokens, tokens}, q.options());
    for (std::int64_t begin = 0; begin < tokens; begin += rows) {
      const auto end = std::min(begin + rows, tokens);
      block(scores, begin, end).copy_(activations(q, k, begin, end).matmul(v));
    }
    return scores;
  }

  // With t = tanh(q_i + k_j) and u = g_ij (1 - t^2):
  // dv = sum_ij g_ij t,  dq_i = v sum_j u,  dk_j = v sum_i u.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& q = saved[0];
    const auto& k = saved[1];
    const auto& v = saved[2];
    const std::int64_t tokens = q.size(2);
    const std::int64_t rows = rows_at_once(q);
    auto dq = at::empty_like(q, at::MemoryFormat::Contiguous);
    auto dk = at::zeros_like(k, at::MemoryFormat::Contiguous);
    auto dv = at::zeros_like(v);
    for (std::int64_t begin = 0; begin < tokens; begin += rows) {
      const auto end = std::min(begin + rows, tokens);
      auto t = activations(q, k, begin, end);
      const auto g = block(gradients[0], begin, end).contiguous();
      dv.add_(g.view({1, -1}).mm(t.view({-1, v.size(0)})).view(-1));
      const auto u = t.square_().neg_().add_(1.0).mul_(g.unsqueeze(-1));
      dq.slice(2, begin, end).copy_(u.sum(3));
      dk.slice(2, 0, end).add_(u.sum(2));
    }
    return {dq.mul_(v), dk.mul_(v), dv};
  }
};

class Additive final : public Similarity {
 public:
  Additive(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())) {
    const auto d = context.shape.head_width();
    // N(0, 0.02) starts it flat.
    const auto start =
        context.semantics == Semantics::published ? Start::normal() : Start::xavier_uniform();
    weight_ = scope.add("attn_fc.weight", {d, 2 * d}, start, Decay::yes);
    bias_ = scope.add("attn_fc.bias", {d}, Start::constant(0.0), Decay::no);
    v_ = scope.add("attn_v.weight", {1, d}, start, Decay::yes);
  }

  torch::Tensor scores(const torch::Tensor& q, const torch::Tensor& k) const override {
    const auto terms = pair_terms(q, k, weight_, bias_, mode_);
    if (q.size(3) != k.size(3)) {  // in decoding, a query that sees every key
      return for_each_model(q.size(0), [&](std::int64_t m) {
        return (terms[0][m].unsqueeze(3) + terms[1][m].unsqueeze(2)).tanh().matmul(v_[m].view(-1));
      });
    }
    return for_each_model(q.size(0), [&](std::int64_t m) {
      return AdditiveScores::apply(terms[0][m], terms[1][m], v_[m].view(-1));
    });
  }
  std::optional<FusedSimilarity> fused() const override {
    return FusedSimilarity{.score = kernels::Score::additive,
                           .map = {.kind = VectorMap::Kind::pair, .weight = weight_, .bias = bias_},
                           .direction = v_};
  }
  // As many queries as keys are taken for those of the same tokens.
  bool treats_heads_alike() const override { return false; }
  double start_temperature(const AttentionShape& /*shape*/) const override { return 1.0; }

 private:
  NumericalMode mode_;
  torch::Tensor weight_;  // (M, d, 2 d): W_q beside W_k
  torch::Tensor bias_;    // (M, d)
  torch::Tensor v_;       // (M, 1, d)
};

NAS_REGISTER_SIMILARITY(
    Additive, .key = "additive",
    .summary =
        "s = v.tanh(W_q q + W_k k + b), shared by the heads (Bahdanau et al. 2015, "
        "arXiv:1409.0473)",
    .voids = {"qk_norm"},
    .parameters =
        [](const AttentionShape& shape) {
          const auto d = shape.head_width();
          return 2 * d * d + 2 * d;
        },
    .flops =
        [](const AttentionShape& shape) {
          // All pairs, as for every similarity; what the blocks leave out depends on the batch.
          return 4.0 * static_cast<double>(shape.inner()) *
                 (shape.at_each_token(shape.head_width()) + shape.pairs());
        },
    .batch_invariant = true);

}  // namespace
}  // namespace nas::nn
