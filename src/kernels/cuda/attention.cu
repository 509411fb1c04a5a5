// The backward pass finds the weights in memory, as on the CPU. At 128 tokens and 32 elements a
// head's are 33 KB. Computing products again would cost less than reading those, but additive
// scores and searched thresholds cost many times more, and a threshold has to find exactly the
// forward pass's scores again, or a support changes.

#include <type_traits>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/attention_rows.cuh"
#include "kernels/cuda/attention_scores.cuh"

namespace nas::cuda {

namespace {

/// Whether no element of vectors [begin, end) is so large that AdditiveScore cannot be factored,
/// for the calling thread's share of them.
template <class Real>
__device__ bool are_small(const Tokens<const Real>& vectors, int begin, int end, int width) {
  bool small = true;
  for (int token = begin + warp_index(); token < end; token += kWarps) {
    for (int e = lane_index(); e < width; e += kWarp) {
      small &=
          !(std::abs(vectors[token][e]) > static_cast<Real>(AdditiveScore<Real, true>::kLargest));
    }
  }
  return small;
}

/// Calls run(score) with the model's score; pairs of queries [first_query, end_query), of as many heads
/// as `heads` from the block's on, and keys [first_key, end_key) are meant.
template <bool kOnTensorCores, class Real, class Run>
__device__ void with_score(const Place<Real>& place, const Memory<Real>& memory, int first_query,
                           int end_query, int first_key, int end_key, std::int64_t heads,
                           const Run& run) {
  const Mechanism& mechanism = place.mechanism();
  if (mechanism.score == kernels::Score::distance) return run(DistanceScore<Real>{});
  if (mechanism.score != kernels::Score::additive) {
    return run(LinearScore<Real, kOnTensorCores>{});
  }
  const Real* direction = place.attention.directions + mechanism.direction * place.width;
  for (int e = thread_index(); e < padded(place.width); e += kThreads) {
    memory.direction[e] = e < place.width ? direction[e] : Real{0};
  }
  bool small = are_small(place.of_keys(place.attention.k), first_key, end_key, place.width);
  for (std::int64_t head = 0; head < heads; ++head) {
    small &= are_small(place.next(head).of(place.attention.q), first_query, end_query, place.width);
  }
  if (__syncthreads_or(!small) == 0) {
    run(AdditiveScore<Real, true>{memory.direction});
  } else {
    run(AdditiveScore<Real, false>{memory.direction});
  }
}

template <class Real>
__device__ int end_of(const Place<Real>& place) {
  return place.first + kTile < place.tokens ? place.first + kTile : place.tokens;
}

// Later queries see more keys: blocks with the most work start first.
__device__ int first_query() {
  return (static_cast<int>(gridDim.x) - 1 - static_cast<int>(blockIdx.x)) * kTile;
}

template <class Real, bool kOnTensorCores>
__global__ void forward_kernel(Attention<Real> attention, HeadVectors<Real> output) {
  using Linear = LinearScore<Real, kOnTensorCores>;
  const Place<Real> place{.attention = attention, .first = first_query()};
  const Memory<Real> memory(place.tokens, place.width);
  const bool with_silu = place.mechanism().score == kernels::Score::silu_product;
  with_score<kOnTensorCores>(
      place, memory, place.first, end_of(place), 0, end_of(place), 1, [&](const auto& score) {
        using Products = typename std::decay_t<decltype(score)>::Products;
        load_vectors(score, place.of(attention.q), place, memory);
        for_pairs(score, place.of_keys(attention.k), place, memory, [&](int n, int key, Real sum) {
          memory.left[Products::row(n) * memory.left_stride + key] = with_silu ? silu(sum) : sum;
        });
      });
  weigh(place, memory);
  using Products = typename Linear::Products;
  const auto out = place.of(output);
  for (int begin = 0; begin < place.width; begin += kTile) {
    Real sums[kSums] = {};
    mix_keys(Linear(), place.of_keys(attention.v), begin, place, memory, sums,
             [&](int n, Real weight, Real value) { sums[n] += weight * value; });
#pragma unroll
    for (int n = 0; n < kSums; ++n) {
      const int query = place.first + Products::row(n);
      const int e = begin + Products::column(n);
      if (query < place.tokens && e < place.width) out[query][e] = sums[n];
    }
  }
}

/// How many blocks a multiprocessor shall have at once: in float 4 take 128 registers per thread,
/// which costs by_key_kernel some spills; the compiler would take some more and have 3.
template <class Real>
[[maybe_unused]] constexpr int kBackwardBlocks = sizeof(Real) == sizeof(float) ? 4 : 2;

/// Partial sums (rows, parts, width), which are added in the order of their parts.
template <class Real>
struct Parts {
  Real* data = nullptr;
  std::int64_t rows = 0, parts = 0, width = 0;

  [[nodiscard]] std::int64_t size() const { return rows * parts * width; }
  [[nodiscard]] __device__ Real* of(std::int64_t row, std::int64_t part) const {
    return data + (row * parts + part) * width;
  }
};

/// What the backward kernels leave for each other. A part is of a block; of gradients that all sequences
/// share, of a block of a sequence.
template <class Real>
struct Scratch {
  Real* scores = nullptr;  ///< dL/dr of raw scores (of products, with SiLU), laid out as weights
  Parts<Real> directions;  ///< (M), d
  Parts<Real> distance_biases;  ///< (N, H), T
  Parts<Real> sums;             ///< (N, B, H), T
  Parts<Real> sinks;            ///< (N, H), one number of each warp
  std::int64_t size = 0;

  Scratch(const Attention<Real>& attention, Real* memory) : scores(memory) {
    const auto blocks = padded(attention.tokens) / kTile;
    const auto heads = attention.heads;
    const auto of_head = attention.sequences * blocks;
    directions = {nullptr, attention.num_directions, heads * of_head, attention.width};
    distance_biases = {nullptr, attention.num_distance_biases * heads, of_head, attention.tokens};
    sums = {nullptr, attention.num_sums * attention.sequences * heads, blocks, attention.tokens};
    sinks = {nullptr, attention.num_sinks * heads, of_head * kWarps, 1};
    size = attention_weights_size(attention);
    for (auto* parts : {&directions, &distance_biases, &sums, &sinks}) {
      if (memory != nullptr) parts->data = memory + size;
      size += parts->size();
    }
  }
};

/// The block's parts of the gradients w.r.t. what is added to scores, from those w.r.t. the scores in
/// memory.left.
template <class Real>
__device__ void keep_biases(const Place<Real>& place, const Memory<Real>& memory,
                            const Scratch<Real>& scratch) {
  const Mechanism& mechanism = place.mechanism();
  if (mechanism.distance_biases < 0 && mechanism.sums < 0) return;
  Real* by_query = memory.direction;
  for (int n = 0; n < kRows && mechanism.sums >= 0; ++n) {
    const Real* row = memory.left + row_index(n) * memory.left_stride;
    Real sum = 0;
    for_keys(place.first + kTile, [&](int j) { sum += row[j]; });
    sum = warp_sum(sum);
    if (lane_index() == 0) by_query[row_index(n)] = sum;
  }
  __syncthreads();
  const auto heads = place.attention.heads;
  const auto block = place.first / kTile;
  if (mechanism.distance_biases >= 0) {
    Real* sums = scratch.distance_biases.of(mechanism.distance_biases * heads + place.head % heads,
                                            place.head / heads * gridDim.x + block);
    for (int distance = thread_index(); distance < place.tokens; distance += kThreads) {
      Real sum = 0;
      for (int row = 0; row < kTile; ++row) {
        const int key = place.first + row - distance;
        if (key >= 0) sum += memory.left[row * memory.left_stride + key];
      }
      sums[distance] = sum;
    }
  }
  if (mechanism.sums >= 0) {
    Real* sums = scratch.sums.of(mechanism.sums * place.heads_of_model() + place.head, block);
    for (int token = thread_index(); token < place.tokens; token += kThreads) {
      const int own = token - place.first;
      Real sum = own >= 0 && own < kTile ? by_query[own] : Real{0};
      for (int row = 0; row < kTile && own < kTile; ++row) {
        sum -= memory.left[row * memory.left_stride + token];
      }
      sums[token] = sum;
    }
  }
  __syncthreads();
}

/// What a thread has of the query of each of its sums in by_query_kernel: its share of
/// sum_j gradient_ij r_ij.
template <class Real>
using Dots = Real[kSums];

/// Gradients w.r.t. the raw scores of the block's queries, or of products with SiLU, in memory.left
/// without the temperature and in scratch with it.
template <class Linear, class Real>
__device__ void scores_backward(const Place<Real>& place, const Memory<Real>& memory,
                                const AttentionGradients<Real>& gradients,
                                const Scratch<Real>& scratch, Dots<Real>& dots) {
  using Products = typename Linear::Products;
  const Attention<Real>& attention = place.attention;
  const auto left = [&](int n, int key) -> Real& {
    return memory.left[Products::row(n) * memory.left_stride + key];
  };
  load_vectors(Linear(), place.of(gradients.output), place, memory);
  for_pairs(Linear(), place.of_keys(attention.v), place, memory,
            [&](int n, int key, Real sum) { left(n, key) = sum; });
  const Real by_sink = weigh_backward(place, memory);
  const auto& mechanism = place.mechanism();
  if (mechanism.sinks >= 0 && lane_index() == 0) {
    const auto heads = attention.heads;
    const auto part = (place.head / heads * gridDim.x + place.first / kTile) * kWarps;
    *scratch.sinks.of(mechanism.sinks * heads + place.head % heads, part + warp_index()) = by_sink;
  }
  keep_biases(place, memory, scratch);
  Products::wait();

  if (mechanism.score == kernels::Score::silu_product) {
    load_vectors(Linear(), place.of(attention.q), place, memory);
    for_pairs(Linear(), place.of_keys(attention.k), place, memory, [&](int n, int key, Real c) {
      dots[n] += left(n, key) * silu(c);
      left(n, key) *= silu_slope(c);
    });
  }

  const auto temperature = place.of(attention.inverse_temperature);
  for (int n = 0; n < kRows; ++n) {
    const int query = place.first + row_index(n);
    if (query >= place.tokens) continue;
    const Real factor = *temperature[query];
    const Real* row = memory.left + row_index(n) * memory.left_stride;
    Real* kept = place.rows(scratch.scores) + Place<Real>::row(query);
    for_keys(query + 1, [&](int j) { kept[j] = factor * row[j]; });
  }
}

/// Element e of the block's part of the gradient w.r.t. its model's direction, a sum over warps.
template <class Real>
__device__ void keep_direction(const Place<Real>& place, const Memory<Real>& memory, int e,
                               Real of_warp, const Scratch<Real>& scratch) {
  __syncthreads();  // the tile has been read
  memory.tile[thread_index()] = of_warp;
  __syncthreads();
  if (warp_index() > 0 || e >= place.width) return;
  Real sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += memory.tile[warp * kWarp + lane_index()];
  scratch.directions.of(place.mechanism().direction,
                        place.head * gridDim.x + place.first / kTile)[e] = sum;
}

/// dL/dq of elements [begin, begin + 32) from memory.left, and their share of the dots.
template <class Score, class Real>
__device__ void queries_backward(const Score& score, const Place<Real>& place,
                                 const Memory<Real>& memory, int begin,
                                 const AttentionGradients<Real>& gradients,
                                 const Scratch<Real>& scratch, Dots<Real>& dots) {
  using Products = typename Score::Products;
  const Attention<Real>& attention = place.attention;
  const auto q = place.of(attention.q);
  const auto dq = place.of(gradients.q);
  const auto temperature = place.of(attention.inverse_temperature);
  const bool with_silu = place.mechanism().score == kernels::Score::silu_product;
  Real own[kSums];
  Real factors[kSums];  // the temperature's, 0 for queries that do not exist
#pragma unroll
  for (int n = 0; n < kSums; ++n) {
    const int query = place.first + Products::row(n);
    const int e = begin + Products::column(n);
    own[n] = score.prepare(query < place.tokens && e < place.width ? q[query][e] : Real{0});
    factors[n] = query < place.tokens ? *temperature[query] : Real{0};
  }
  Real sums[kSums] = {};
  Real terms[kSums] = {};  // sum_j gradient_ij term_ij
  mix_keys(score, place.of_keys(attention.k), begin, place, memory, sums,
           [&](int n, Real gradient, Real key) {
             score.add_slope(sums[n], gradient, key, own[n]);
             if constexpr (Score::kSumsTerms) terms[n] += gradient * score.term(key, own[n]);
           });
  Real direction = 0;
#pragma unroll
  for (int n = 0; n < kSums; ++n) {
    const int query = place.first + Products::row(n);
    const int e = begin + Products::column(n);
    if (query < place.tokens && e < place.width) {
      dq[query][e] = factors[n] * score.slope_factor(e) * sums[n];
    }
    if constexpr (Score::kSumsTerms) {
      dots[n] += score.term_factor(e) * terms[n];
      direction += factors[n] * terms[n];
    } else if (!with_silu) {
      dots[n] += own[n] * sums[n];  // sum_j g_ij q_i.k_j = q_i.sum_j g_ij k_j
    }
  }
  if constexpr (Score::kIsAdditive) {
    keep_direction(place, memory, begin + lane_index(), direction, scratch);
  }
}

template <class Real, bool kOnTensorCores>
__global__ void __launch_bounds__(kThreads, kBackwardBlocks<Real>)
    by_query_kernel(Attention<Real> attention, AttentionGradients<Real> gradients,
                    Scratch<Real> scratch) {
  using Linear = LinearScore<Real, kOnTensorCores>;
  const Place<Real> place{.attention = attention, .first = first_query()};
  const Memory<Real> memory(place.tokens, place.width);
  Dots<Real> dots = {};
  scores_backward<Linear>(place, memory, gradients, scratch, dots);
  const auto run = [&](const auto& score) {
    for (int begin = 0; begin < place.width; begin += kTile) {
      queries_backward(score, place, memory, begin, gradients, scratch, dots);
    }
    std::decay_t<decltype(score)>::Products::for_rows(dots, memory.tile, [&](int row, Real dot) {
      const int query = place.first + row;
      if (query >= place.tokens) return;
      gradients.inverse_temperature[place.head_of_all() * place.tokens + query] = dot;
    });
  };
  with_score<kOnTensorCores>(place, memory, place.first, end_of(place), 0, end_of(place), 1, run);
}

/// dL/dk and dL/dv of elements [begin, begin + 32).
template <class Linear, class Score, class Real>
__device__ void keys_backward(const Score& score, const Place<Real>& place,
                              const Memory<Real>& memory, int begin,
                              const AttentionGradients<Real>& gradients,
                              const Scratch<Real>& scratch) {
  using ByKeys = typename Score::Products;
  using ByValues = typename Linear::Products;
  const Attention<Real>& attention = place.attention;
  const auto k = place.of_keys(attention.k);
  const auto of_place = [&](int row, int column, const auto& use) {
    const int key = place.first + row;
    const int e = begin + column;
    if (key < place.tokens && e < place.width) use(key, e);
  };
  DropoutFactors<Real> factors(place.dropout(), place.model);
  Real own[kSums];
#pragma unroll
  for (int n = 0; n < kSums; ++n) {
    own[n] = score.prepare(Real{0});
    of_place(ByKeys::row(n), ByKeys::column(n),
             [&](int key, int e) { own[n] = score.prepare(k[key][e]); });
  }
  Real of_keys[kSums] = {};
  Real of_values[kSums] = {};
#pragma unroll 1
  for (int member = 0; member < static_cast<int>(attention.group()); ++member) {
    const auto head = place.next(member);
    const auto drop = [&](int query, int key, Real weight) {
      const Real factor = factors(head.element(query, key));
      return factor == 0 ? Real{0} : factor * weight;
    };
#pragma unroll 1
    for (int first = place.first; first < place.tokens; first += kTile) {
      if (!place.is_seen(first, place.first)) continue;
      __syncthreads();
      ByKeys::load_left(
          head.rows(scratch.scores), first, head,
          [](int /*query*/, int /*key*/, Real gradient) { return gradient; }, memory.left);
      load_tile(score, head.of(attention.q), first, begin, place.tokens, place.width, memory.tile,
                ByKeys::kStride);
      __syncthreads();
      ByKeys::mix_left(memory.left, memory.tile, of_keys, [&](int n, Real gradient, Real query) {
        score.add_slope(of_keys[n], gradient, query, own[n]);
      });
      __syncthreads();
      ByValues::load_left(head.rows(static_cast<const Real*>(attention.weights)), first, head, drop,
                          memory.left);
      load_tile(Linear(), head.of(gradients.output), first, begin, place.tokens, place.width,
                memory.tile, ByValues::kStride);
      __syncthreads();
      ByValues::mix_left(memory.left, memory.tile, of_values,
                         [&](int n, Real weight, Real output) { of_values[n] += weight * output; });
    }
  }
  const auto dk = place.of_keys(gradients.k);
  const auto dv = place.of_keys(gradients.v);
#pragma unroll
  for (int n = 0; n < kSums; ++n) {
    of_place(ByKeys::row(n), ByKeys::column(n),
             [&](int key, int e) { dk[key][e] = score.slope_factor(e) * of_keys[n]; });
    of_place(ByValues::row(n), ByValues::column(n),
             [&](int key, int e) { dv[key][e] = of_values[n]; });
  }
}

template <class Real, bool kOnTensorCores>
__global__ void __launch_bounds__(kThreads, kBackwardBlocks<Real>)
    by_key_kernel(Attention<Real> attention, AttentionGradients<Real> gradients,
                  Scratch<Real> scratch) {
  const Place<Real> place{.attention = attention,
                          .head = static_cast<std::int64_t>(blockIdx.y) * attention.group(),
                          .first = static_cast<int>(blockIdx.x) * kTile};
  const Memory<Real> memory(kTile, place.width);
  with_score<kOnTensorCores>(place, memory, place.first, place.tokens, place.first, end_of(place),
                             attention.group(), [&](const auto& score) {
                               for (int begin = 0; begin < place.width; begin += kTile) {
                                 keys_backward<LinearScore<Real, kOnTensorCores>>(
                                     score, place, memory, begin, gradients, scratch);
                               }
                             });
}

/// One block per row: sums its parts.
template <class Real, class Sum>
__global__ void add_parts_kernel(Parts<Real> partial, Sum* sums) {
  Real* shared = shared_memory<Real>();
  const std::int64_t row = blockIdx.x;
  for (std::int64_t begin = 0; begin < partial.width; begin += kWarp) {
    const std::int64_t e = begin + lane_index();
    Real sum = 0;
    for (std::int64_t part = warp_index(); part < partial.parts && e < partial.width;
         part += kWarps) {
      sum += partial.of(row, part)[e];
    }
    __syncthreads();
    shared[thread_index()] = sum;
    __syncthreads();
    if (warp_index() > 0 || e >= partial.width) continue;
    for (int warp = 1; warp < kWarps; ++warp) sum += shared[warp * kWarp + lane_index()];
    sums[row * partial.width + e] = static_cast<Sum>(sum);
  }
}

template <class Real>
Grid grid_of(const Attention<Real>& attention) {
  return {padded(attention.tokens) / kTile, attention.sequences * attention.heads,
          attention.models};
}

}  // namespace

template <class Real>
std::int64_t attention_scratch_size(const Attention<Real>& attention) {
  return Scratch<Real>(attention, nullptr).size;
}

template <class Real>
bool attention_fits(std::int64_t tokens, std::int64_t width) {
  return Memory<Real>::bytes(tokens, width) <= most_shared_bytes();
}

namespace {

template <bool kOnTensorCores, class Real>
void forward(const Attention<Real>& attention, HeadVectors<Real> output, Stream stream) {
  launch("attention_forward", forward_kernel<Real, kOnTensorCores>, grid_of(attention),
         Memory<Real>::bytes(attention.tokens, attention.width), stream, attention, output);
}

template <bool kOnTensorCores, class Real>
void backward(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
              Stream stream) {
  const Grid grid = grid_of(attention);
  const Scratch<Real> scratch(attention, gradients.scratch);
  launch("attention_backward, by query", by_query_kernel<Real, kOnTensorCores>, grid,
         Memory<Real>::bytes(attention.tokens, attention.width), stream, attention, gradients,
         scratch);
  launch("attention_backward, by key", by_key_kernel<Real, kOnTensorCores>,
         Grid{grid.x, grid.y / attention.group(), grid.z},
         Memory<Real>::bytes(kTile, attention.width), stream, attention, gradients, scratch);
  const auto add = [&](const Parts<Real>& parts, auto* sums) {
    if (sums == nullptr) return;
    launch("attention_backward, sums", add_parts_kernel<Real, std::decay_t<decltype(*sums)>>,
           Grid{parts.rows}, kThreads * sizeof(Real), stream, parts, sums);
  };
  add(scratch.directions, gradients.directions);
  add(scratch.distance_biases, gradients.distance_biases);
  add(scratch.sums, gradients.sums);
  add(scratch.sinks, gradients.sinks);
}

/// Calls run(std::true_type()) where tensor cores multiply.
template <class Real, class Run>
void with_products(const Attention<Real>& attention, const Run& run) {
  if constexpr (std::is_same_v<Real, float>) {
    if (attention.rounds_factors && has_tensor_cores()) return run(std::true_type());
  }
  run(std::false_type());
}

}  // namespace

template <class Real>
void attention_forward(const Attention<Real>& attention, HeadVectors<Real> output, Stream stream) {
  with_products(attention, [&](auto on_tensor_cores) {
    forward<decltype(on_tensor_cores)::value>(attention, output, stream);
  });
}

template <class Real>
void attention_backward(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                        Stream stream) {
  with_products(attention, [&](auto on_tensor_cores) {
    backward<decltype(on_tensor_cores)::value>(attention, gradients, stream);
  });
}

#define NAS_ATTENTION(Real)                                                           \
  template std::int64_t attention_scratch_size(const Attention<Real>&);               \
  template bool attention_fits<Real>(std::int64_t, std::int64_t);                     \
  template void attention_forward(const Attention<Real>&, HeadVectors<Real>, Stream); \
  template void attention_backward(const Attention<Real>&, const AttentionGradients<Real>&, Stream);
NAS_ATTENTION(float)
NAS_ATTENTION(double)
#undef NAS_ATTENTION

}  // namespace nas::cuda
