#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "nn/attention_layer.hpp"
#include "nn/parts/hashed_keys.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// Rows of the tokens that are still seen: the first ones of the sequence in their order, and behind
/// them the newest ones in a ring, each in the place of the one that has just left the window. What
/// reads them does not ask for an order.
class KeptRows {
 public:
  /// @param room  tokens for which memory is set apart at once.
  KeptRows(const KeyRanges& ranges, std::int64_t room)
      : ranges_(ranges), capacity_(ranges.count(std::max<std::int64_t>(room, 1) - 1)) {}

  /// Puts others in place of the rows.
  void replace(const torch::Tensor& changed) { rows().copy_(changed); }
  /// Writes the row of the token at the next place. @param row  (1, B, heads, 1, width).
  void put(std::int64_t place, const torch::Tensor& row) {
    const auto slot = slot_of(place);
    if (!memory_.defined()) memory_ = memory_like(row);
    if (slot >= capacity_) {  // twice as much, so that few rows are moved again
      capacity_ = ranges_.count(2 * slot + 1);
      const auto before = rows();
      memory_ = memory_like(row);
      memory_.narrow(3, 0, size_).copy_(before);
    }
    memory_.narrow(3, slot, 1).copy_(row);
    size_ = ranges_.count(place);
  }

  /// @return (1, B, heads, n, width), undefined before the first row.
  [[nodiscard]] torch::Tensor rows() const {
    return memory_.defined() ? memory_.narrow(3, 0, size_) : torch::Tensor();
  }
  /// @return the places in the sequence of the n rows, (n) int64.
  [[nodiscard]] torch::Tensor places(std::int64_t newest) const {
    const auto slots = at::arange(size_, memory_.options().dtype(at::kLong));
    // Around the ring, from the newest backwards.
    const auto distances = (slot_of(newest) - slots).remainder(ranges_.window);
    return at::where(slots.lt(ranges_.globals), slots, newest - distances);
  }
  /// @return numbers that are kept of each sequence.
  [[nodiscard]] std::int64_t numbers() const {
    return memory_.defined() ? memory_.size(2) * size_ * memory_.size(4) : 0;
  }
  [[nodiscard]] KeptRows copy() const {
    auto copy = *this;
    if (memory_.defined()) copy.memory_ = memory_.clone();
    return copy;
  }

 private:
  [[nodiscard]] std::int64_t slot_of(std::int64_t place) const {
    return place < ranges_.globals ? place
                                   : ranges_.globals + (place - ranges_.globals) % ranges_.window;
  }
  [[nodiscard]] torch::Tensor memory_like(const torch::Tensor& row) const {
    return at::empty({row.size(0), row.size(1), row.size(2), capacity_, row.size(4)},
                     row.options());
  }

  KeyRanges ranges_;
  std::int64_t capacity_;
  std::int64_t size_ = 0;
  torch::Tensor memory_{};  // (1, B, heads, capacity, width)
};

}  // namespace

struct AttentionLayer::KeptState final : public Mixer::State {
  /// Of a part of the heads.
  struct Rows {
    KeptRows keys, values;
  };

  /// @param ranges  of each part.
  KeptState(const std::vector<KeyRanges>& ranges, std::int64_t room)
      : forgotten(ranges.empty() ? KeyRanges{} : ranges.front(), room) {
    for (const auto& one : ranges) parts.push_back({{one, room}, {one, room}});
  }
  KeptState(const KeptState& other)
      : State(other),
        tokens(other.tokens),
        forgotten(other.forgotten.copy()),
        latest(other.latest) {
    for (const auto& part : other.parts) parts.push_back({part.keys.copy(), part.values.copy()});
  }
  KeptState& operator=(const KeptState&) = delete;
  ~KeptState() override = default;

  [[nodiscard]] std::unique_ptr<State> copy() const override {
    return std::make_unique<KeptState>(*this);
  }
  [[nodiscard]] std::int64_t numbers() const override {
    auto sum = forgotten.numbers();
    for (const auto& part : parts) sum += part.keys.numbers() + part.values.numbers();
    for (const auto& inputs : latest) {
      if (inputs.defined()) sum += inputs.size(2) * inputs.size(3);
    }
    return sum;
  }

  std::int64_t tokens = 0;    ///< so far
  std::vector<Rows> parts{};  ///< none where keys are an earlier layer's
  /// c_i - c_j of each head since token j. Sums since a kept token are small where they matter; c
  /// itself is not, and would need double precision.
  KeptRows forgotten;
  std::array<torch::Tensor, 3> latest{};  ///< inputs of the convolutions, (1, B, K - 1, channels)
};

std::unique_ptr<Mixer::State> AttentionLayer::start(std::int64_t room) const {
  std::vector<KeyRanges> ranges;
  for (const auto& part : parts_) {
    if (!shares_)
      ranges.push_back(part.full ? KeyRanges{} : patterns_.front().ranges().value_or(KeyRanges{}));
  }
  return std::make_unique<KeptState>(ranges, room);
}

torch::Tensor AttentionLayer::step(const torch::Tensor& x, const torch::Tensor& residual,
                                   const Pass& pass, State& given) {
  if (num_models_ != 1) {
    throw std::invalid_argument("a step of " + std::to_string(num_models_) +
                                " models: only one model goes on token by token");
  }
  const at::NoGradGuard no_grad;
  auto& state = dynamic_cast<KeptState&>(given);
  const auto& gating = gatings_.front();
  const auto input = gating.gated_input(x);
  std::array<torch::Tensor, 3> projected{
      q_proj_(input), reads_keys_ || shares_ || latent_ ? torch::Tensor() : k_proj_(input),
      shares_   ? torch::Tensor()
      : latent_ ? latent_->values(latent_->compressed(input))
                : v_proj_(input)};
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    projected.at(i) = convolutions_[i].next(projected.at(i), state.latest.at(i));
  }
  projected[2] = with_rows(projected[2], pass);
  const auto place = state.tokens++;
  const auto q = latent_ ? take_up_latent(projected[0], input, place, state)
                         : heads(placed(projected[0], q_norms_, place));
  if (!shares_ && !latent_) {
    auto k = reads_keys_ ? unit_keys(q) : heads(placed(projected[1], k_norms_, place));
    if (changes_keys_) {  // each head sees them otherwise
      k = k.repeat_interleave(num_heads_ / num_key_heads_, 2);
      auto& kept = state.parts.front().keys;
      if (place > 0) kept.replace(passed(kept.rows(), input));
    }
    const auto v = heads(projected[2]);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      state.parts[p].keys.put(place, of(parts_[p].groups, k, 2));
      state.parts[p].values.put(place, of(parts_[p].groups, v, 2));
    }
  }
  if (decays_.any(&ScoreDecay::decays_scores)) {
    const auto growth = decays_.front().cumulative(input).unsqueeze(-1).to(q.scalar_type());
    const auto before = state.forgotten.rows();
    if (before.defined()) before.add_(growth);
    state.forgotten.put(place, at::zeros_like(growth));
  }
  auto keys = kept(state, pass);
  if (gives_ && pass.shared != nullptr) *pass.shared = keys;
  const auto divided = divisors(input, q, /*inverse=*/false);
  // What a part has fewer keys than another is hidden.
  std::int64_t most = 0;
  for (const auto& part : keys) most = std::max(most, part.keys.size(3));
  std::vector<torch::Tensor> seen;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    auto shown = newest_shown(parts_[p], keys[p], place, q);
    if (parts_.size() > 1) {
      shown = at::constant_pad_nd(shown, {0, most - shown.size(-1)})
                  .expand({std::ssize(parts_[p].heads), 1, most});
    }
    seen.push_back(std::move(shown));
  }
  auto shown = joined(seen, 0);
  const auto multiples = factors(input, q, [&](const Models&) { return shown.sum(-1); });
  std::vector<torch::Tensor> orders;
  for (auto& part : keys) {
    if (!normalizations_.front().reads_order()) break;
    orders.push_back(part.places.argsort());
    part.values = part.values.index_select(3, orders.back());
    if (parts_.size() == 1) shown = shown.index_select(-1, orders.back());
  }
  std::vector<torch::Tensor> of_maps;
  for (std::size_t map = 0; map < num_maps(); ++map) {
    std::vector<torch::Tensor> scored;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto& part = parts_[p];
      auto own = newest_biased(part,
                               scores(of(part.heads, of_map(q, map), 2), of_map(keys[p].keys, map),
                                      of(part.heads, divided, 2), of(part.heads, multiples, 2)),
                               keys[p].places, state, of(part.heads, of_map(q, map), 2), seen[p]);
      if (!orders.empty()) own = own.index_select(-1, orders[p]);
      scored.push_back(parts_.size() == 1 ? own
                                          : at::constant_pad_nd(own, {0, most - own.size(-1)}));
    }
    of_maps.push_back(normalizations_.front().weights(joined(scored, 2), shown));
  }
  const auto weights = combined(of_maps);
  const auto batch = x.size(1);
  std::vector<torch::Tensor> weighted;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const auto& values = keys[p].values;
    const auto own = of(parts_[p].heads, weights, 2).narrow(-1, 0, values.size(3));
    // Of all query heads that read one key head at once.
    weighted.push_back(
        own.reshape({1, batch, values.size(2), own.size(2) / values.size(2), values.size(3)})
            .matmul(values)
            .reshape({1, batch, -1, values.size(4)}));
  }
  auto of_heads = joined(weighted, 2);
  if (latent_) of_heads = latent_->expanded(of_heads.unsqueeze(3));
  of_heads = of_heads.reshape({1, batch, 1, num_heads_ * head_width_});
  of_heads = normed_heads(without_own(of_heads, projected[2]));
  if (gates_heads_) of_heads = gating.gated_heads(of_heads, input);
  return gating.increment(out_proj_(of_heads), input, residual);
}

torch::Tensor AttentionLayer::take_up_latent(const torch::Tensor& queries,
                                             const torch::Tensor& input, std::int64_t place,
                                             KeptState& state) const {
  const auto rotated = latent_->rotated_width();
  const auto turned = [&](const torch::Tensor& projected) {
    return positions_.front()
        .mapped(projected.view({1, projected.size(1), 1, -1, rotated}), place)
        .transpose(2, 3);
  };
  auto row = latent_->compressed(input).unsqueeze(2);
  auto q = heads(queries);
  if (absorbs_keys_) q = latent_->absorbed(q);
  if (rotated > 0) {
    row = at::cat({row, turned(latent_->keys_to_rotate(input))}, -1);
    q = at::cat({q, turned(latent_->queries_to_rotate(input))}, -1);
  }
  state.parts.front().keys.put(place, row);
  return q;
}

std::vector<SharedKeys> AttentionLayer::kept(const KeptState& state, const Pass& pass) const {
  if (shares_) {
    if (pass.shared == nullptr || pass.shared->size() != parts_.size())
      throw std::logic_error("shared keys: no earlier layer has left any");
    return *pass.shared;
  }
  const bool asks = biases_scores_ || reads_scores_ || pass.shared != nullptr ||
                    normalizations_.front().reads_order();
  std::vector<SharedKeys> kept;
  for (const auto& part : state.parts) {
    kept.push_back({part.keys.rows(), part.values.rows(),
                    asks ? part.keys.places(state.tokens - 1) : torch::Tensor()});
  }
  if (latent_) {
    auto& rows = kept.front().keys;  // (1, B, 1, n, r + rotated)
    kept.front().values = rows.narrow(-1, 0, latent_->rank());
    if (!absorbs_keys_) {
      rows = at::cat({heads(latent_->keys(kept.front().values.squeeze(2))),
                      rows.narrow(-1, latent_->rank(), latent_->rotated_width())
                          .expand({-1, -1, num_heads_, -1, -1})},
                     -1);
    }
  }
  return kept;
}

torch::Tensor AttentionLayer::newest_biased(const Part& part, torch::Tensor scores,
                                            const torch::Tensor& places, const KeptState& state,
                                            const torch::Tensor& q,
                                            const torch::Tensor& shown) const {
  if (reads_scores_) {
    const auto order = places.argsort();
    const auto n = order.size(0);
    const auto added = positions_.front().added(scores.index_select(-1, order), q,
                                                shown.narrow(-1, 0, n).index_select(-1, order));
    scores = scores + added.index_select(-1, order.argsort());
  }
  if (biases_scores_) {
    // As many as a power of two, so that positions make their tables seldom.
    const auto tokens = std::bit_ceil(static_cast<std::uint64_t>(state.tokens));
    const auto biases =
        positions_.front().distance_biases(static_cast<std::int64_t>(tokens), scores);
    scores = scores + of(part.heads, biases.index_select(2, state.tokens - 1 - places), 1)
                          .unsqueeze(1)
                          .unsqueeze(3);
  }
  if (decays_.any(&ScoreDecay::decays_scores))
    scores = scores + state.forgotten.rows().transpose(3, 4);
  return scores;
}

torch::Tensor AttentionLayer::newest_shown(const Part& part, const SharedKeys& keys,
                                           std::int64_t newest, const torch::Tensor& q) const {
  const auto& pattern = patterns_.front();
  const auto ranges = part.full ? KeyRanges{} : pattern.ranges();
  if (reads_queries_) return pattern.chosen(q, keys.keys);
  if (!ranges) return pattern.visible(keys.keys, newest);
  // Of a layer's own, what is not seen is not kept.
  if (!shares_) {
    const auto bits = at::TensorOptions(at::kBool).device(keys.keys.device());
    return at::ones({1, keys.keys.size(3)}, bits);
  }
  return (newest - keys.places)
      .lt(ranges->window)
      .logical_or(keys.places.lt(ranges->globals))
      .unsqueeze(0);
}

}  // namespace nas::nn
