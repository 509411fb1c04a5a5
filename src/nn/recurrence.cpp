#include "nn/recurrence.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace nas::nn {

namespace {

constexpr std::int64_t kChunk = 32;
constexpr std::int64_t kChannelChunk = 16;  // e^(5 * 16 / 2) is far within float32

/// Rows behind the last one change nothing: neither keys nor decays.
torch::Tensor chunked(const torch::Tensor& x, std::int64_t chunk) {
  if (!x.defined()) return {};
  const auto tokens = x.size(-2);
  const auto chunks = (tokens + chunk - 1) / chunk;
  const auto padded =
      chunks * chunk == tokens ? x : at::constant_pad_nd(x, {0, 0, 0, chunks * chunk - tokens});
  return padded.reshape({-1, chunks, chunk, x.size(-1)});
}

torch::Tensor scaled(const torch::Tensor& x, const torch::Tensor& factors) {
  return factors.defined() ? x * factors : x;
}

torch::Tensor transposed_product(const torch::Tensor& a, const torch::Tensor& b) {
  return a.transpose(-2, -1).matmul(b);
}

/// The chunks (X, N, C, ...) of a sequence, N of them, with their decays put in.
class Chunks {
 public:
  Chunks(const Recurrence& sequence, std::int64_t chunk)
      : queries_(chunked(sequence.queries, chunk)),
        keys_(chunked(sequence.keys, chunk)),
        values_(chunked(sequence.values, chunk)),
        erased_(chunked(sequence.erased, chunk)) {
    if (sequence.log_decays.defined()) decay(chunked(sequence.log_decays, chunk), sequence);
  }

  [[nodiscard]] Recurred recurred() const {
    const auto updates = within();
    auto [before, last] = states(updates);
    const auto weights = lower(queries_, 0);
    if (!before.defined()) return {weights.matmul(updates.own), std::move(last)};
    const auto taken =
        erased_.defined() ? updates.own - updates.erasing.matmul(before) : updates.own;
    return {weights.matmul(taken) + scaled(queries_, from_start_).matmul(before), std::move(last)};
  }

 private:
  /// U = own - erasing S.
  struct Updates {
    torch::Tensor own;      // (X, N, C, d)
    torch::Tensor erasing;  // (X, N, C, f); undefined: 0
  };

  void decay(const torch::Tensor& log_decays, const Recurrence& sequence) {
    const auto sums = log_decays.cumsum(-2);
    const auto last = sums.narrow(-2, sums.size(-2) - 1, 1);
    from_start_ = sums.exp();
    to_end_ = (last - sums).exp();
    over_ = last.exp().transpose(-2, -1);
    if (sequence.by_channel) {
      const auto middle = sums.narrow(-2, sums.size(-2) / 2, 1);
      from_middle_ = (sums - middle).exp();
      to_middle_ = (middle - sums).exp();
    } else {
      const auto later = at::ones({sums.size(-2), sums.size(-2)}, sums.options().dtype(at::kBool))
                             .triu(/*diagonal=*/1);
      between_ = (sums - sums.transpose(-2, -1))
                     .masked_fill(later, -std::numeric_limits<double>::infinity())
                     .exp();
    }
  }

  /// (X, N, C, C): x_i.k_j with the decay from j to i, of j <= i + diagonal alone.
  [[nodiscard]] torch::Tensor lower(const torch::Tensor& x, std::int64_t diagonal) const {
    const auto products =
        scaled(x, from_middle_).matmul(scaled(keys_, to_middle_).transpose(-2, -1));
    return scaled(products, between_).tril(diagonal);
  }

  [[nodiscard]] Updates within() const {
    if (!erased_.defined()) return {values_, {}};
    const bool alone = values_.size(1) == 1;  // which begins with S = 0
    const auto right = alone ? values_ : at::cat({values_, scaled(erased_, from_start_)}, -1);
    const auto solved = at::linalg_solve_triangular(lower(erased_, -1), right, /*upper=*/false,
                                                    /*left=*/true, /*unitriangular=*/true);
    if (alone) return {solved, {}};
    const auto width = values_.size(-1);
    return {solved.narrow(-1, 0, width), solved.narrow(-1, width, erased_.size(-1))};
  }

  /// The states before each chunk, (X, N, f, d), undefined where there is one, which begins with 0; and
  /// behind the last, (X, f, d).
  [[nodiscard]] std::pair<torch::Tensor, torch::Tensor> states(const Updates& updates) const {
    const auto to_end = scaled(keys_, to_end_);
    const auto added = transposed_product(to_end, updates.own);
    const auto count = added.size(1);
    auto state = added.select(1, 0);
    if (count == 1) return {torch::Tensor(), state};
    const auto erasing =
        updates.erasing.defined() ? transposed_product(to_end, updates.erasing) : torch::Tensor();
    std::vector<torch::Tensor> before{at::zeros_like(state)};
    for (std::int64_t i = 1; i < count; ++i) {
      before.push_back(state);
      auto next = over_.defined() ? added.select(1, i) + over_.select(1, i) * state
                                  : added.select(1, i) + state;
      if (erasing.defined()) next = at::baddbmm(next, erasing.select(1, i), state, 1.0, -1.0);
      state = std::move(next);
    }
    return {at::stack(before, 1), state};
  }

  torch::Tensor queries_, keys_, values_, erased_;
  // Factors of decays; undefined: 1. From the chunk's start to a token, from a token to the end, and
  // over the whole chunk, (X, N, 1 or f, 1).
  torch::Tensor from_start_, to_end_, over_;
  torch::Tensor between_;                  // from a token to a later one, (X, N, C, C)
  torch::Tensor from_middle_, to_middle_;  // or as products of these, by channel
};

}  // namespace

Recurred by_chunks(const Recurrence& sequence, std::int64_t chunk) {
  const auto tokens = sequence.values.size(-2);
  auto size = chunk > 0 ? chunk : kChunk;
  if (sequence.by_channel) size = std::min(size, kChannelChunk);
  size = std::min(size, tokens);
  auto [outputs, state] = Chunks(sequence, size).recurred();
  auto sizes = sequence.values.sizes().vec();
  auto of_state = sizes;
  of_state[of_state.size() - 2] = sequence.keys.size(-1);
  const auto whole = outputs.flatten(1, 2).narrow(1, 0, tokens);
  return {whole.reshape(sizes), state.reshape(of_state)};
}

Recurred next_token(const Recurrence& token, const torch::Tensor& state) {
  auto decayed = state;
  if (token.log_decays.defined()) {
    decayed = state * token.log_decays.exp().transpose(-2, -1);
  }
  const auto taken =
      token.erased.defined() ? token.values - token.erased.matmul(decayed) : token.values;
  const auto next = decayed + transposed_product(token.keys, taken);
  return {token.queries.matmul(next), next};
}

}  // namespace nas::nn
