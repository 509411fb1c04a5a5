#include <cstdint>
#include <vector>

#include "nn/attention_layer.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

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

torch::Tensor AttentionLayer::visible_to_each(const Models& models, const torch::Tensor& keys) {
  std::vector<torch::Tensor> of_models;
  for (const auto r : models) {
    auto one = visible({r}, keys);
    while (one.dim() < 5) one = one.unsqueeze(0);
    of_models.push_back(one.expand({-1, -1, num_heads_, -1, -1}));
  }
  return of_models.size() == 1 ? of_models.front() : at::cat(of_models);
}

torch::Tensor AttentionLayer::contextual(const torch::Tensor& scores, const torch::Tensor& q,
                                         const torch::Tensor& k) {
  if (!reads_scores_) return scores;
  return positions_.apply_to_groups(
      [&](const auto& group, const torch::Tensor& part, const torch::Tensor& queries) {
        if (!group.option->reads_scores()) return part;
        return part + group.option->added(part, queries, visible_to_each(group.models, k));
      },
      scores, q);
}

torch::Tensor AttentionLayer::biased(torch::Tensor scores, const torch::Tensor& input) const {
  if (biases_scores_) {
    scores = positions_.apply(
        [](const Position& position, const torch::Tensor& part) {
          if (!position.biases_scores()) return part;
          return model_by_model(biased_by_distance, part,
                                position.distance_biases(part.size(-1), part));
        },
        scores);
  }
  if (!decays_.empty()) {
    scores = decays_.apply(
        [](const ScoreDecay& decay, const torch::Tensor& part, const torch::Tensor& read) {
          return decay.decays_scores() ? model_by_model(decayed, part, decay.cumulative(read))
                                       : part;
        },
        scores, input);
  }
  return scores;
}

torch::Tensor AttentionLayer::similarities(const Similarity& similarity,
                                           const torch::Tensor& queries,
                                           const torch::Tensor& keys) const {
  const auto sharing = queries.size(2) / keys.size(2);
  if (sharing == 1) return similarity.scores(queries, keys);
  if (similarity.treats_heads_alike()) {  // of all query heads that read one key head at once
    const auto together = queries.reshape({queries.size(0), queries.size(1), keys.size(2),
                                           sharing * queries.size(3), queries.size(4)});
    return similarity.scores(together, keys)
        .reshape({queries.size(0), queries.size(1), queries.size(2), queries.size(3), -1});
  }
  const auto repeated = keys.unsqueeze(3).expand({-1, -1, -1, sharing, -1, -1}).flatten(2, 3);
  return similarity.scores(queries, repeated);
}

torch::Tensor AttentionLayer::raw_scores(const torch::Tensor& queries,
                                         const torch::Tensor& keys) const {
  return similarities_.apply(
      [this](const Similarity& similarity, const torch::Tensor& q, const torch::Tensor& k) {
        return similarities(similarity, q, k);
      },
      queries, keys);
}

torch::Tensor AttentionLayer::changed_scores(const torch::Tensor& queries,
                                             const torch::Tensor& keys,
                                             const torch::Tensor& input) const {
  if (scores_products_) {
    const auto products =
        passing([](const Passage& passage, const torch::Tensor& q, const torch::Tensor& k,
                   const torch::Tensor& x) { return passage.products(q, k, x); },
                queries, keys, input);
    return similarities_.apply(
        [](const Similarity& similarity, const torch::Tensor& of_pairs) {
          return similarity.of_products(of_pairs);
        },
        products);
  }
  const auto tokens = keys.size(3);
  auto seen = keys.narrow(3, 0, 0);
  std::vector<torch::Tensor> rows;
  for (std::int64_t t = 0; t < tokens; ++t) {
    // Both readers of `seen` give one gradient: of more, the order of the sum is another in an array.
    if (t > 0) seen = passed(with_contiguous_gradient(seen), input.narrow(2, t, 1));
    seen = with_contiguous_gradient(at::cat({seen, keys.narrow(3, t, 1)}, 3));
    const auto row =
        raw_scores(queries.narrow(3, t, 1).contiguous(), with_contiguous_gradient(seen));
    rows.push_back(at::constant_pad_nd(row, {0, tokens - 1 - t}));
  }
  return at::cat(rows, 3);
}

torch::Tensor AttentionLayer::passed(const torch::Tensor& keys, const torch::Tensor& x) const {
  return passing([](const Passage& passage, const torch::Tensor& k,
                    const torch::Tensor& token) { return passage.passed(k, token); },
                 keys, x);
}

torch::Tensor AttentionLayer::scores(const torch::Tensor& queries, const torch::Tensor& keys,
                                     const torch::Tensor& divisors, const torch::Tensor& factors,
                                     const torch::Tensor& input) const {
  const auto raw = input.defined() && changes_keys_ ? changed_scores(queries, keys, input)
                                                    : raw_scores(queries, keys);
  if (!factors.defined()) return capped(raw / divisors);
  return capped(temperatures_.apply(
      [](const Temperature& temperature, const torch::Tensor& part, const torch::Tensor& divided,
         const torch::Tensor& multiplied) {
        return temperature.has_factors() ? part * (multiplied / divided) : part / divided;
      },
      raw, divisors, factors));
}

torch::Tensor AttentionLayer::capped(const torch::Tensor& scores) const {
  if (soft_cap_ == 0.0) return scores;
  return model_by_model(
      [this](const torch::Tensor& part) { return (part / soft_cap_).tanh() * soft_cap_; }, scores);
}

}  // namespace nas::nn
