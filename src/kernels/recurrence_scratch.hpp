#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/product.hpp"
#include "kernels/recurrence.hpp"

namespace nas::kernels {

/// Rows one after the other, padded.
template <class Real>
struct PaddedMatrix {
  Real* data = nullptr;
  std::int64_t row = 0;

  [[nodiscard]] Real* at(std::int64_t i) const { return data + i * row; }
  [[nodiscard]] MatrixView<std::remove_const_t<Real>> view() const { return {data, row, 1}; }
  [[nodiscard]] MatrixView<std::remove_const_t<Real>> transposed() const { return {data, 1, row}; }
};

/// The matrices of a chunk of C tokens, in memory that the caller has.
template <class Real>
struct RecurrenceScratch {
  using Matrix = PaddedMatrix<Real>;

  RecurrenceScratch(const RecurrenceShape& shape, Real* memory) : memory_(memory) {
    const auto tokens = shape.chunk, features = shape.features, width = shape.width;
    for (auto* x : {&queries, &keys, &erased, &queries_within, &keys_within, &erased_within,
                    &queries_start, &keys_end, &erased_start, &sums, &from_start, &to_end,
                    &from_middle, &to_middle, &by_queries, &by_keys, &by_erased, &part}) {
      *x = take(tokens, features);
    }
    for (auto* x : {&scores, &erasing, &between, &by_scores, &by_erasing})
      *x = take(tokens, tokens);
    for (auto* x : {&outputs, &by_updates, &minus}) *x = take(tokens, width);
    keys_across = take(features, tokens);
    updates_across = take(width, tokens);
    state_across = take(width, features);
    by_state = take(features, width);
    token_sums = take(1, tokens);
    over = take(1, features);
    behind = take(1, features);
  }

  [[nodiscard]] std::int64_t size() const { return size_; }

  Matrix queries, keys, erased;                       // as given
  Matrix queries_within, keys_within, erased_within;  // with the decays from and to the middle
  Matrix queries_start, keys_end;                     // with those from the start, to the end
  Matrix erased_start;                                // likewise, negative
  Matrix sums, from_start, to_end, from_middle, to_middle;  // logarithms and factors of decays
  Matrix by_queries, by_keys, by_erased, part;
  Matrix scores, erasing, between;  // A, W, and e^(L_i - L_j)
  Matrix by_scores, by_erasing;
  Matrix outputs;  // or gradients w.r.t. them
  Matrix by_updates, minus;
  Matrix keys_across, updates_across, state_across;  // transposed
  Matrix by_state;
  Matrix token_sums;    // of decays of the whole state
  Matrix over, behind;  // e^(L_C), and the sums of S . dS behind the chunk

 private:
  Matrix take(std::int64_t rows, std::int64_t columns) {
    const auto row = (columns + kRecurrencePadding - 1) / kRecurrencePadding * kRecurrencePadding;
    const Matrix made{memory_ == nullptr ? nullptr : memory_ + size_, row};
    size_ += rows * row;
    return made;
  }

  Real* memory_;
  std::int64_t size_ = 0;
};

}  // namespace nas::kernels
