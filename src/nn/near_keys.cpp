#include "nn/near_keys.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace nas::nn {

namespace {

/// gamma e^(q.k / sqrt(d_k) - c). @param hidden  where a query does not see a key.
torch::Tensor weights(const torch::Tensor& queries, const torch::Tensor& keys,
                      const torch::Tensor& gamma, const torch::Tensor& hidden) {
  auto scores =
      queries.matmul(keys.transpose(-2, -1)) / std::sqrt(static_cast<double>(keys.size(-1)));
  if (hidden.defined())
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  auto sizes = std::vector<std::int64_t>(static_cast<std::size_t>(scores.dim()), 1);
  sizes[0] = gamma.size(0), sizes[2] = gamma.size(1);
  return gamma.view(sizes) * (scores - scores.amax(-1, /*keepdim=*/true)).exp();
}

/// (M, B, H, N, w, n) of N chunks.
torch::Tensor chunked(const torch::Tensor& x, std::int64_t w) {
  const auto chunks = (x.size(3) + w - 1) / w;
  return at::constant_pad_nd(x, {0, 0, 0, chunks * w - x.size(3)}).unflatten(3, {chunks, w});
}

/// Of each chunk what is so many before it; zeros where there is none.
torch::Tensor before(const torch::Tensor& chunks, std::int64_t count) {
  const auto left = std::max<std::int64_t>(0, chunks.size(3) - count);
  return at::constant_pad_nd(chunks.narrow(3, 0, left), {0, 0, 0, 0, chunks.size(3) - left, 0});
}

}  // namespace

torch::Tensor near_and_far(const NearAndFar& sequence, const torch::Tensor& gamma, std::int64_t w) {
  const auto tokens = sequence.values.size(3);
  w = std::min(w, tokens);
  const auto queries = chunked(sequence.queries, w), keys = chunked(sequence.keys, w);
  const auto of_queries = chunked(sequence.of_queries, w), of_keys = chunked(sequence.of_keys, w);
  const auto values = chunked(sequence.values, w);
  const auto last = before(values, 1);
  // Token i sees i+1 .. of the chunk before, of which the first has none, and .. i of its own.
  const auto ones = at::ones({w, w}, gamma.options().dtype(at::kBool));
  auto hidden = at::cat({ones.tril(), ones.triu(1)}, -1).repeat({queries.size(3), 1, 1});
  hidden[0].narrow(-1, 0, w).fill_(true);
  const auto near = weights(queries, at::cat({before(keys, 1), keys}, -2), gamma, hidden)
                        .matmul(at::cat({last, values}, -2));
  const auto states = before(of_keys.transpose(-2, -1).matmul(values).cumsum(3), 2);
  const auto far = of_queries.matmul(before(of_keys, 1).transpose(-2, -1)).tril().matmul(last) +
                   of_queries.matmul(states);
  return (near + far).flatten(3, 4).narrow(3, 0, tokens);
}

torch::Tensor near_and_far_of_last(const NearAndFar& token, const torch::Tensor& gamma,
                                   const torch::Tensor& state) {
  const auto near = weights(token.queries, token.keys, gamma, {}).matmul(token.values);
  return state.defined() ? near + token.of_queries.matmul(state) : near;
}

}  // namespace nas::nn
