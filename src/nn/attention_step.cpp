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
  KeptState(const KeyRanges& ranges, std::int64_t room)
      : keys(ranges, room), values(ranges, room), forgotten(ranges, room) {}
  KeptState(const KeptState& other)
      : State(other),
        tokens(other.tokens),
        keys(other.keys.copy()),
        values(other.values.copy()),
        forgotten(other.forgotten.copy()),
        latest(other.latest) {}
  KeptState& operator=(const KeptState&) = delete;
  ~KeptState() override = default;

  [[nodiscard]] std::unique_ptr<State> copy() const override {
    return std::make_unique<KeptState>(*this);
  }
  [[nodiscard]] std::int64_t numbers() const override {
    auto sum = keys.numbers() + values.numbers() + forgotten.numbers();
    for (const auto& inputs : latest) {
      if (inputs.defined()) sum += inputs.size(2) * inputs.size(3);
    }
    return sum;
  }

  std::int64_t tokens = 0;  ///< so far
  KeptRows keys, values;
  /// c_i - c_j of each head since token j. Sums since a kept token are small where they matter; c
  /// itself is not, and would need double precision.
  KeptRows forgotten;
  std::array<torch::Tensor, 3> latest{};  ///< inputs of the convolutions, (1, B, K - 1, channels)
};

std::unique_ptr<Mixer::State> AttentionLayer::start(std::int64_t room) const {
  const auto ranges = patterns_.front().ranges();
  return std::make_unique<KeptState>(ranges.value_or(KeyRanges{}), room);
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
      q_proj_(input), reads_keys_ ? torch::Tensor() : k_proj_(input), v_proj_(input)};
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    projected.at(i) = convolutions_[i].next(projected.at(i), state.latest.at(i));
  }
  projected[2] = with_rows(projected[2], pass);
  const auto place = state.tokens++;
  const auto q = newest_vectors(projected[0], q_norms_, place);
  state.keys.put(place, reads_keys_ ? unit_keys(q) : newest_vectors(projected[1], k_norms_, place));
  state.values.put(place, heads(projected[2]));
  if (!decays_.empty()) {
    const auto growth = decays_.front().cumulative(input).unsqueeze(-1).to(q.scalar_type());
    const auto before = state.forgotten.rows();
    if (before.defined()) before.add_(growth);
    state.forgotten.put(place, at::zeros_like(growth));
  }
  const auto shown = newest_shown(state, q.device());
  const auto divided = divisors(input, q, /*inverse=*/false);
  const auto multiples = factors(input, q, [&](const Models&) { return shown.sum(-1); });
  const auto all = newest_biased(scores(q, state.keys.rows(), divided, multiples), state);
  const auto weights = newest_weights(all, shown, state);
  const auto batch = x.size(1);
  // Of all query heads that read one key head at once.
  auto of_heads =
      weights.reshape({1, batch, num_key_heads_, num_heads_ / num_key_heads_, weights.size(-1)})
          .matmul(state.values.rows())
          .reshape({1, batch, 1, num_heads_ * head_width_});
  of_heads = without_own(of_heads, projected[2]);
  if (!head_norms_.empty()) {
    of_heads = head_norms_.front().normalised(by_head(of_heads)).flatten(3);
  }
  if (gates_heads_) of_heads = gating.gated_heads(of_heads, input);
  return gating.increment(out_proj_(of_heads), input, residual);
}

torch::Tensor AttentionLayer::newest_vectors(const torch::Tensor& projected,
                                             const OptionSet<VectorNorm>& norms,
                                             std::int64_t place) const {
  auto vectors = by_head(projected);
  if (!norms.empty()) vectors = norms.front().normalised(vectors);
  if (maps_places_) vectors = positions_.front().mapped(vectors, place);
  return vectors.transpose(2, 3);
}

torch::Tensor AttentionLayer::newest_biased(torch::Tensor scores, const KeptState& state) const {
  if (biases_scores_) {
    const auto newest = state.tokens - 1;
    const auto distances = newest - state.keys.places(newest);
    // As many as a power of two, so that positions make their tables seldom.
    const auto tokens = std::bit_ceil(static_cast<std::uint64_t>(state.tokens));
    const auto biases =
        positions_.front().distance_biases(static_cast<std::int64_t>(tokens), scores);
    scores = scores + biases.index_select(2, distances).unsqueeze(1).unsqueeze(3);
  }
  if (!decays_.empty()) scores = scores + state.forgotten.rows().transpose(3, 4);
  return scores;
}

torch::Tensor AttentionLayer::newest_weights(const torch::Tensor& scores,
                                             const torch::Tensor& shown,
                                             const KeptState& state) const {
  const auto& normalization = normalizations_.front();
  if (!normalization.reads_order()) return normalization.weights(scores, shown);
  const auto order = state.keys.places(state.tokens - 1).argsort();
  const auto weights =
      normalization.weights(scores.index_select(-1, order), shown.index_select(-1, order));
  return weights.index_select(-1, order.argsort());
}

torch::Tensor AttentionLayer::newest_shown(const KeptState& state, torch::Device device) const {
  const auto& pattern = patterns_.front();
  // Of ranges, what is not seen is not kept.
  if (pattern.ranges()) {
    return at::ones({1, state.keys.rows().size(3)}, at::TensorOptions(at::kBool).device(device));
  }
  return pattern.visible(state.keys.rows(), state.tokens - 1);
}

}  // namespace nas::nn
