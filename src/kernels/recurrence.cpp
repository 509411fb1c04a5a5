#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrence.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>

#include "kernels/matrix-inl.h"
#include "kernels/recurrence.hpp"
#include "kernels/recurrence_scratch.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// C = A (m, k) B (k, n), or C + A B.
template <class Real>
void product(std::int64_t m, std::int64_t k, MatrixView<Real> a, PaddedMatrix<const Real> b,
             PaddedMatrix<Real> c, bool added = false) {
  multiply_rows<Real>(m, b.row, k, a, b.data, b.row,
                      added ? Initial<Real>{c.data, c.row} : Initial<Real>{}, c.data, c.row);
}

template <class Real>
PaddedMatrix<const Real> read(PaddedMatrix<Real> x) {
  return {x.data, x.row};
}

template <class Real>
void load_rows(TokenRows<const Real> from, std::int64_t first, std::int64_t rows,
               std::int64_t columns, PaddedMatrix<Real> to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(from.data + (first + i) * from.row, columns, to.at(i));
    std::fill(to.at(i) + columns, to.at(i) + to.row, Real{0});
  }
}

template <class Real>
void store_rows(PaddedMatrix<Real> from, std::int64_t rows, std::int64_t columns,
                std::int64_t first, TokenRows<Real> to) {
  if (to.data == nullptr) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(from.at(i), columns, to.data + (first + i) * to.row);
  }
}

/// @param to  (columns, rows), zero behind.
template <class Real>
void transpose(PaddedMatrix<const Real> from, std::int64_t rows, std::int64_t columns,
               PaddedMatrix<Real> to) {
  for (std::int64_t j = 0; j < columns; ++j) {
    Real* HWY_RESTRICT row = to.at(j);
    const Real* HWY_RESTRICT column = from.data + j;
    for (std::int64_t i = 0; i < rows; ++i) row[i] = column[i * from.row];
    std::fill(row + rows, row + to.row, Real{0});
  }
}

/// out[i] = map(in[i]...) over whole vectors; `size` is a multiple of them.
template <class Real, class Map, class... In>
HWY_INLINE void map_vectors(std::int64_t size, const Map& map, Real* out, const In*... in) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < size; i += lanes) {
    hn::StoreU(map(hn::LoadU(d, in + i)...), d, out + i);
  }
}

constexpr auto kMultiplied = [](auto x, auto y) { return hn::Mul(x, y); };
constexpr auto kAddedProduct = [](auto x, auto y, auto sum) { return hn::MulAdd(x, y, sum); };

template <class Real>
void exponentials(std::int64_t size, const Real* x, Real* y) {
  map_vectors(
      size, [](auto v) { return exponential(Wide<Real>(), v); }, y, x);
}

/// One chunk of a sequence after the other.
template <class Real>
class Chunk {
 public:
  using Matrix = PaddedMatrix<Real>;

  Chunk(const RecurrenceShape& shape, const RecurrenceRows<const Real>& of, Real* memory)
      : shape_(shape),
        of_(of),
        decays_(of.log_decays.data != nullptr),
        erases_(of.erased.data != nullptr),
        x_(shape, memory) {
    if (!decays_) {
      x_.queries_start = x_.queries;
      x_.keys_end = x_.keys;
    }
    if (!by_channel()) {
      x_.queries_within = x_.queries;
      x_.keys_within = x_.keys;
      x_.erased_within = x_.erased;
    }
  }

  /// Reads the tokens and computes decays, A and W.
  void begin(std::int64_t number) {
    number_ = number;
    first_ = number * shape_.chunk;
    count_ = std::min(shape_.chunk, shape_.tokens - first_);
    const auto features = shape_.features;
    load_rows(of_.queries, first_, count_, features, x_.queries);
    load_rows(of_.keys, first_, count_, features, x_.keys);
    if (erases_) load_rows(of_.erased, first_, count_, features, x_.erased);
    if (decays_) {
      by_channel() ? decay_channels() : decay_whole();
      multiplied(x_.queries, x_.from_start, x_.queries_start);
      multiplied(x_.keys, x_.to_end, x_.keys_end);
    }
    if (erases_) begin_erasing();
    transpose(read(x_.keys_within), count_, features, x_.keys_across);
    product(count_, features, x_.queries_within.view(), read(x_.keys_across), x_.scores);
    keep_lower(x_.scores, 0);
    if (!erases_) return;
    product(count_, features, x_.erased_within.view(), read(x_.keys_across), x_.erasing);
    keep_lower(x_.erasing, -1);
  }

  void forward(const RecurrenceKept<Real>& kept, const TokenRows<Real>& outputs) {
    const auto features = shape_.features;
    const auto state = state_at(kept.states, number_);
    const auto next = state_at(kept.states, number_ + 1);
    const auto updates = updates_of(kept.updates);
    const bool follows = number_ > 0;
    load_rows(of_.values, first_, count_, shape_.width, updates);
    if (erases_) {
      if (follows) product(count_, features, x_.erased_start.view(), read(state), updates, true);
      substitute(updates);
    }
    if (follows) product(count_, features, x_.queries_start.view(), read(state), x_.outputs);
    product(count_, count_, x_.scores.view(), read(updates), x_.outputs, follows);
    store_rows(x_.outputs, count_, shape_.width, first_, outputs);
    if (follows) decay_state(state, next);
    product(features, count_, x_.keys_end.transposed(), read(updates), next, follows);
  }

  void backward(const RecurrenceKept<const Real>& kept, const TokenRows<const Real>& by_outputs,
                const Real* by_last, const RecurrenceRows<Real>& by) {
    const bool last = number_ + 1 == shape_.chunks();
    if (last && by_last != nullptr) {
      load_rows({by_last, shape_.width}, 0, shape_.features, shape_.width, x_.by_state);
    }
    continues_ = !last || by_last != nullptr;
    const auto state = state_at(kept.states, number_);
    const auto updates = updates_of(kept.updates);
    load_rows(by_outputs, first_, count_, shape_.width, x_.outputs);
    backward_of_updates(by);
    backward_within(updates);
    if (number_ > 0) backward_from_start(state);
    if (continues_) backward_to_end(state, updates);
    store_rows(x_.by_queries, count_, shape_.features, first_, by.queries);
    store_rows(x_.by_keys, count_, shape_.features, first_, by.keys);
    if (erases_) store_rows(x_.by_erased, count_, shape_.features, first_, by.erased);
    if (decays_ && by.log_decays.data != nullptr) backward_of_decays(by.log_decays);
    if (number_ > 0) backward_of_state();
  }

 private:
  [[nodiscard]] bool by_channel() const { return decays_ && shape_.by_channel; }
  [[nodiscard]] std::int64_t size() const { return count_ * x_.queries.row; }

  template <class Value>
  [[nodiscard]] PaddedMatrix<Value> state_at(Value* states, std::int64_t number) const {
    const auto row = x_.by_state.row;
    return {states + number * shape_.features * row, row};
  }
  template <class Value>
  [[nodiscard]] PaddedMatrix<Value> updates_of(Value* updates) const {
    return {updates + first_ * x_.outputs.row, x_.outputs.row};
  }

  void multiplied(Matrix x, Matrix by, Matrix to) const {
    map_vectors(size(), kMultiplied, to.data, x.data, by.data);
  }

  void begin_erasing() {
    if (decays_) {
      map_vectors(
          size(), [](auto e, auto decay) { return hn::Neg(hn::Mul(e, decay)); },
          x_.erased_start.data, x_.erased.data, x_.from_start.data);
    } else {
      map_vectors(
          size(), [](auto e) { return hn::Neg(e); }, x_.erased_start.data, x_.erased.data);
    }
    if (by_channel()) multiplied(x_.erased, x_.from_middle, x_.erased_within);
  }

  void decay_channels() {
    load_rows(of_.log_decays, first_, count_, shape_.features, x_.sums);
    const auto row = x_.sums.row;
    for (std::int64_t i = 1; i < count_; ++i) {
      map_vectors(
          row, [](auto x, auto before) { return hn::Add(x, before); }, x_.sums.at(i), x_.sums.at(i),
          x_.sums.at(i - 1));
    }
    const Real* last = x_.sums.at(count_ - 1);
    const Real* middle = x_.sums.at(count_ / 2);
    const Wide<Real> d;
    const auto power_of_difference = [d](auto a, auto b) { return exponential(d, hn::Sub(a, b)); };
    for (std::int64_t i = 0; i < count_; ++i) {
      const Real* sums = x_.sums.at(i);
      map_vectors(row, power_of_difference, x_.to_end.at(i), last, sums);
      map_vectors(row, power_of_difference, x_.from_middle.at(i), sums, middle);
      map_vectors(row, power_of_difference, x_.to_middle.at(i), middle, sums);
    }
    exponentials(size(), x_.sums.data, x_.from_start.data);
    std::copy_n(x_.from_start.at(count_ - 1), row, x_.over.data);
    multiplied(x_.queries, x_.from_middle, x_.queries_within);
    multiplied(x_.keys, x_.to_middle, x_.keys_within);
  }

  void decay_whole() {
    Real* sums = x_.token_sums.data;
    std::fill_n(sums, x_.token_sums.row, Real{0});
    Real sum = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      sum += of_.log_decays.data[(first_ + i) * of_.log_decays.row];
      sums[i] = sum;
    }
    const Wide<Real> d;
    const auto last = hn::Set(d, sum);
    map_vectors(
        x_.token_sums.row,
        [&](auto x) { return exponential(d, hn::Min(hn::Zero(d), hn::Sub(last, x))); },
        x_.part.data, sums);
    for (std::int64_t i = 0; i < count_; ++i) {
      std::fill_n(x_.to_end.at(i), x_.to_end.row, x_.part.data[i]);
      const auto here = hn::Set(d, sums[i]);
      map_vectors(
          x_.between.row,
          [&](auto x) { return exponential(d, hn::Min(hn::Zero(d), hn::Sub(here, x))); },
          x_.between.at(i), sums);
    }
    exponentials(x_.token_sums.row, sums, x_.part.data);
    for (std::int64_t i = 0; i < count_; ++i) {
      std::fill_n(x_.from_start.at(i), x_.from_start.row, x_.part.data[i]);
    }
    std::fill_n(x_.over.data, x_.over.row, x_.part.data[count_ - 1]);
  }

  /// Puts decays in and zeros where j > i + diagonal.
  void keep_lower(Matrix x, std::int64_t diagonal) const {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const bool weighs = decays_ && !shape_.by_channel;
    for (std::int64_t i = 0; i < count_; ++i) {
      for (std::int64_t j = 0; j < x.row; j += lanes) {
        auto row = hn::LoadU(d, x.at(i) + j);
        if (weighs) row = hn::Mul(row, hn::LoadU(d, x_.between.at(i) + j));
        const auto kept = std::clamp<std::int64_t>(i + diagonal + 1 - j, 0, lanes);
        const auto mask = hn::FirstN(d, static_cast<std::size_t>(kept));
        hn::StoreU(hn::IfThenElseZero(mask, row), d, x.at(i) + j);
      }
    }
  }

  /// x <- (I + W)^-1 x.
  void substitute(Matrix x) const {
    const Wide<Real> d;
    for (std::int64_t j = 0; j < x.row; j += static_cast<std::int64_t>(hn::Lanes(d))) {
      for (std::int64_t i = 1; i < count_; ++i) {
        auto row = hn::LoadU(d, x.at(i) + j);
        const Real* weights = x_.erasing.at(i);
        for (std::int64_t p = 0; p < i; ++p) {
          row = hn::NegMulAdd(hn::Set(d, weights[p]), hn::LoadU(d, x.at(p) + j), row);
        }
        hn::StoreU(row, d, x.at(i) + j);
      }
    }
  }

  /// x <- (I + W')^-1 x.
  void substitute_back(Matrix x) const {
    const Wide<Real> d;
    for (std::int64_t j = 0; j < x.row; j += static_cast<std::int64_t>(hn::Lanes(d))) {
      for (std::int64_t i = count_ - 2; i >= 0; --i) {
        auto row = hn::LoadU(d, x.at(i) + j);
        for (std::int64_t p = i + 1; p < count_; ++p) {
          row = hn::NegMulAdd(hn::Set(d, x_.erasing.at(p)[i]), hn::LoadU(d, x.at(p) + j), row);
        }
        hn::StoreU(row, d, x.at(i) + j);
      }
    }
  }

  /// to = e^(L_C) S.
  void decay_state(PaddedMatrix<const Real> state, Matrix to) const {
    const Wide<Real> d;
    for (std::int64_t i = 0; i < shape_.features; ++i) {
      const auto factor = hn::Set(d, decays_ ? x_.over.data[i] : Real{1});
      map_vectors(
          to.row, [&](auto x) { return hn::Mul(x, factor); }, to.at(i), state.at(i));
    }
  }
  void decay_state(Matrix state, Matrix to) const { decay_state(read(state), to); }

  /// Gradients w.r.t. U, then w.r.t. what it is solved from, which are those w.r.t. values.
  void backward_of_updates(const RecurrenceRows<Real>& by) {
    if (continues_) {
      product(count_, shape_.features, x_.keys_end.view(), read(x_.by_state), x_.by_updates);
    }
    product(count_, count_, x_.scores.transposed(), read(x_.outputs), x_.by_updates, continues_);
    if (erases_) {
      substitute_back(x_.by_updates);
      map_vectors(
          count_ * x_.minus.row, [](auto x) { return hn::Neg(x); }, x_.minus.data,
          x_.by_updates.data);
    }
    store_rows(x_.by_updates, count_, shape_.width, first_, by.values);
  }

  /// Of A and W.
  void backward_within(PaddedMatrix<const Real> updates) {
    const auto width = shape_.width;
    transpose(updates, count_, width, x_.updates_across);
    product(count_, width, x_.outputs.view(), read(x_.updates_across), x_.by_scores);
    keep_lower(x_.by_scores, 0);
    product(count_, count_, x_.by_scores.view(), read(x_.keys_within), x_.by_queries);
    product(count_, count_, x_.by_scores.transposed(), read(x_.queries_within), x_.by_keys);
    if (erases_) {
      product(count_, width, x_.minus.view(), read(x_.updates_across), x_.by_erasing);
      keep_lower(x_.by_erasing, -1);
      product(count_, count_, x_.by_erasing.view(), read(x_.keys_within), x_.by_erased);
      product(count_, count_, x_.by_erasing.transposed(), read(x_.erased_within), x_.by_keys, true);
    }
    if (!by_channel()) return;
    multiplied(x_.by_queries, x_.from_middle, x_.by_queries);
    multiplied(x_.by_keys, x_.to_middle, x_.by_keys);
    if (erases_) multiplied(x_.by_erased, x_.from_middle, x_.by_erased);
  }

  /// to += part, with decays.
  void add_part(Matrix decays, Matrix to) const {
    if (decays_) {
      map_vectors(size(), kAddedProduct, to.data, x_.part.data, decays.data, to.data);
    } else {
      map_vectors(
          size(), [](auto x, auto sum) { return hn::Add(x, sum); }, to.data, x_.part.data, to.data);
    }
  }

  void backward_from_start(PaddedMatrix<const Real> state) {
    const auto width = shape_.width;
    transpose(state, shape_.features, width, x_.state_across);
    product(count_, width, x_.outputs.view(), read(x_.state_across), x_.part);
    add_part(x_.from_start, x_.by_queries);
    if (!erases_) return;
    product(count_, width, x_.minus.view(), read(x_.state_across), x_.part);
    add_part(x_.from_start, x_.by_erased);
  }

  void backward_to_end(PaddedMatrix<const Real> state, PaddedMatrix<const Real> updates) {
    const Wide<Real> d;
    transpose(read(x_.by_state), shape_.features, shape_.width, x_.state_across);
    product(count_, shape_.width, updates.view(), read(x_.state_across), x_.part);
    add_part(x_.to_end, x_.by_keys);
    if (!decays_) return;
    const auto row = x_.behind.row;
    std::fill_n(x_.behind.data, row, Real{0});
    for (std::int64_t i = 0; number_ > 0 && i < shape_.features; ++i) {
      auto sum = hn::Zero(d);
      for (std::int64_t j = 0; j < state.row; j += static_cast<std::int64_t>(hn::Lanes(d))) {
        sum = hn::MulAdd(hn::LoadU(d, state.at(i) + j), hn::LoadU(d, x_.by_state.at(i) + j), sum);
      }
      x_.behind.data[i] = x_.over.data[i] * sum_of(d, sum);
    }
    for (std::int64_t i = 0; i < count_; ++i) {
      map_vectors(row, kAddedProduct, x_.behind.data, x_.part.at(i), x_.keys_end.at(i),
                  x_.behind.data);
    }
  }

  void backward_of_decays(TokenRows<Real> by) {
    const Wide<Real> d;
    const auto row = x_.behind.row;
    if (!continues_) std::fill_n(x_.behind.data, row, Real{0});
    for (std::int64_t i = count_ - 1; i >= 0; --i) {
      Real* sums = x_.behind.data;
      map_vectors(row, kAddedProduct, sums, x_.queries.at(i), x_.by_queries.at(i), sums);
      if (erases_) map_vectors(row, kAddedProduct, sums, x_.erased.at(i), x_.by_erased.at(i), sums);
      map_vectors(
          row, [](auto x, auto y, auto sum) { return hn::NegMulAdd(x, y, sum); }, sums,
          x_.keys.at(i), x_.by_keys.at(i), sums);
      Real* to = by.data + (first_ + i) * by.row;
      if (shape_.by_channel) {
        std::copy_n(sums, shape_.features, to);
        continue;
      }
      auto sum = hn::Zero(d);
      for (std::int64_t j = 0; j < row; j += static_cast<std::int64_t>(hn::Lanes(d))) {
        sum = hn::Add(sum, hn::LoadU(d, sums + j));
      }
      *to = sum_of(d, sum);
    }
  }

  /// W.r.t. the state before the chunk, in place of that behind it.
  void backward_of_state() {
    const auto features = shape_.features;
    if (continues_ && decays_) decay_state(x_.by_state, x_.by_state);
    product(features, count_, x_.queries_start.transposed(), read(x_.outputs), x_.by_state,
            continues_);
    if (!erases_) return;
    product(features, count_, x_.erased_start.transposed(), read(x_.by_updates), x_.by_state, true);
  }

  RecurrenceShape shape_;
  RecurrenceRows<const Real> of_;
  bool decays_, erases_;
  bool continues_ = false;  // whether the state behind the chunk has a gradient
  std::int64_t number_ = 0, first_ = 0, count_ = 0;
  RecurrenceScratch<Real> x_;
};

template <class Real>
void forward_all(const RecurrenceShape& shape, const RecurrenceRows<const Real>& of,
                 const RecurrenceKept<Real>& kept, const TokenRows<Real>& outputs, Real* scratch) {
  Chunk<Real> chunk(shape, of, scratch);
  std::fill_n(kept.states, shape.features * shape.padded_width(), Real{0});
  for (std::int64_t i = 0; i < shape.chunks(); ++i) {
    chunk.begin(i);
    chunk.forward(kept, outputs);
  }
}

template <class Real>
void backward_all(const RecurrenceShape& shape, const RecurrenceRows<const Real>& of,
                  const RecurrenceKept<const Real>& kept, const TokenRows<const Real>& by_outputs,
                  const Real* by_state, const RecurrenceRows<Real>& by, Real* scratch) {
  Chunk<Real> chunk(shape, of, scratch);
  for (std::int64_t i = shape.chunks() - 1; i >= 0; --i) {
    chunk.begin(i);
    chunk.backward(kept, by_outputs, by_state, by);
  }
}

NAS_KERNEL(forward, forward_all)
NAS_KERNEL(backward, backward_all)

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

std::int64_t recurrence_scratch(const RecurrenceShape& shape) {
  return RecurrenceScratch<float>(shape, nullptr).size();
}

template <class Real>
void recurrence(const RecurrenceShape& shape, const RecurrenceRows<const Real>& of,
                const RecurrenceKept<Real>& kept, const TokenRows<Real>& outputs, Real* scratch) {
  NAS_CALL(forward, recurrence<Real>)(shape, of, kept, outputs, scratch);
}

template <class Real>
void recurrence_backward(const RecurrenceShape& shape, const RecurrenceRows<const Real>& of,
                         const RecurrenceKept<const Real>& kept,
                         const TokenRows<const Real>& by_outputs, const Real* by_state,
                         const RecurrenceRows<Real>& by, Real* scratch) {
  NAS_CALL(backward, recurrence_backward<Real>)(shape, of, kept, by_outputs, by_state, by, scratch);
}

NAS_INSTANTIATE(recurrence)
NAS_INSTANTIATE(recurrence_backward)

}  // namespace nas::kernels
#endif
