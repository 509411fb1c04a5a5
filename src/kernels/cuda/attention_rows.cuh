// Rows of scores of a block's queries, a warp for each row at a time: from raw scores to what multiplies
// values, and back. Rows have a column for each key; what a query does not see is 0 in the end.
#pragma once

#include <type_traits>

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/row_normalization.cuh"

namespace nas::cuda {

/// Moves count numbers of a row by `distance` columns, which may be fewer; the warp's. Forwards: from
/// row to row + distance, else back.
template <class Real>
__device__ void move_numbers(Real* row, int count, int distance, bool forwards) {
  const int pieces = (count + kWarp - 1) / kWarp;
  for (int piece = 0; piece < pieces; ++piece) {
    const int j = (forwards ? pieces - 1 - piece : piece) * kWarp + lane_index();
    const Real x = j < count ? row[forwards ? j : j + distance] : Real{0};
    __syncwarp();
    if (j < count) row[forwards ? j + distance : j] = x;
    __syncwarp();
  }
}

/// What is added to a query's scores: b[i - j] + c_i - c_j.
template <class Real>
class Biases {
 public:
  __device__ Biases(const Place<Real>& place, int query) : query_(query) {
    const auto& attention = place.attention;
    const auto& mechanism = place.mechanism();
    if (mechanism.distance_biases >= 0) {
      by_distance_ = attention.distance_biases +
                     (mechanism.distance_biases * attention.heads + place.head % attention.heads) *
                         place.tokens;
    }
    if (mechanism.sums >= 0) {
      sums_ =
          attention.sums + (mechanism.sums * place.heads_of_model() + place.head) * place.tokens;
    }
  }
  __device__ Real operator()(int key) const {
    Real sum = by_distance_ == nullptr ? Real{0} : by_distance_[query_ - key];
    if (sums_ != nullptr) sum += static_cast<Real>(sums_[query_] - sums_[key]);
    return sum;
  }

 private:
  int query_;
  const Real* by_distance_ = nullptr;
  const double* sums_ = nullptr;
};

/// The row of a query that sees `seen` to weights, before dropout. @return the normalization's statistic.
template <class Real>
__device__ Real normalize(const Place<Real>& place, int query, const Visible& seen, Real* row) {
  const int distance = seen.begin - seen.globals;
  if (seen.globals > 0) move_numbers(row, seen.globals, distance, /*forwards=*/true);
  const ScoreRow<Real> scores{row + distance, seen.count()};
  const Real factor = *place.of(place.attention.inverse_temperature)[query];
  const Biases<Real> biases(place, query);
  for_keys(scores.visible,
           [&](int j) { scores.scores[j] = factor * scores.scores[j] + biases(seen.key(j)); });
  const Mechanism& mechanism = place.mechanism();
  const Real statistic = with_normalization(mechanism.normalization, [&](auto normalization) {
    if constexpr (std::is_same_v<decltype(normalization), Sink>) {
      const auto& attention = place.attention;
      return normalization.forward_with_sink(
          scores,
          attention.sinks[mechanism.sinks * attention.heads + place.head % attention.heads]);
    } else {
      return normalization.forward(scores, place.tokens);
    }
  });
  __syncwarp();
  if (seen.globals > 0) move_numbers(row, seen.globals, distance, /*forwards=*/false);
  return statistic;
}

/// Scores of the block's queries to what multiplies values.
template <class Real>
__device__ void weigh(const Place<Real>& place, const Memory<Real>& memory) {
  const Attention<Real>& attention = place.attention;
  DropoutFactors<Real> factors(place.dropout(), place.model);
  for (int n = 0; n < kRows; ++n) {
    const int query = place.first + row_index(n);
    const auto seen = place.visible(query);
    Real* row = memory.left + row_index(n) * memory.left_stride;
    if (seen.end > 0) {
      const Real statistic = normalize(place, query, seen, row);
      clear_hidden(row, seen, place.first);
      if (attention.weights != nullptr) {
        Real* kept = place.rows(attention.weights) + Place<Real>::row(query);
        for_keys(seen.end, [&](int j) { kept[j] = row[j]; });
        if (lane_index() == 0) {
          attention.statistics[place.head_of_all() * place.tokens + query] = statistic;
        }
      }
      for_keys(seen.end, [&](int j) {
        const Real factor = factors(place.element(query, j));
        row[j] = factor == 0 ? Real{0} : factor * row[j];
      });
    } else {
      clear_hidden(row, seen, place.first);
    }
  }
}

/// Gradients w.r.t. what multiplies values to gradients w.r.t. the scores, temperature not yet
/// included. @return the warp's share of the gradient w.r.t. its head's sink.
template <class Real>
__device__ Real weigh_backward(const Place<Real>& place, const Memory<Real>& memory) {
  const Attention<Real>& attention = place.attention;
  const Mechanism& mechanism = place.mechanism();
  DropoutFactors<Real> factors(place.dropout(), place.model);
  Real by_sink = 0;
  for (int n = 0; n < kRows; ++n) {
    const int query = place.first + row_index(n);
    const auto seen = place.visible(query);
    Real* row = memory.left + row_index(n) * memory.left_stride;
    clear_hidden(row, seen, place.first);
    if (seen.end == 0) continue;
    for_keys(seen.end, [&](int j) {
      const Real factor = factors(place.element(query, j));
      row[j] = factor == 0 ? Real{0} : factor * row[j];
    });
    // Weights of 0 take no part.
    const GradientRow<Real> gradients{place.rows(attention.weights) + Place<Real>::row(query), row,
                                      seen.end};
    const Real statistic = attention.statistics[place.head_of_all() * place.tokens + query];
    if (mechanism.sinks >= 0) by_sink -= statistic * product_sum(gradients);
    with_normalization(mechanism.normalization,
                       [&](auto normalization) { normalization.backward(gradients, statistic); });
  }
  return by_sink;
}

}  // namespace nas::cuda
