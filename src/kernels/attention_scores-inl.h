// Scores of attention and what they are computed from, block by block, once per instruction set.

#if defined(NAS_KERNELS_ATTENTION_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NAS_KERNELS_ATTENTION_SCORES_INL_H_
#undef NAS_KERNELS_ATTENTION_SCORES_INL_H_
#else
#define NAS_KERNELS_ATTENTION_SCORES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include <hwy/highway.h>

#include "kernels/attention.hpp"
#include "kernels/matrix-inl.h"
#include "kernels/pairs.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// Hands out pieces of the scratch memory.
template <class Real>
class Workspace {
 public:
  explicit Workspace(Real* next) : next_(next) {}
  Real* take(std::int64_t size) { return std::exchange(next_, next_ + padded(size)); }

 private:
  Real* next_;
};

/// Calls run(d, j) for the first elements j of the vectors of a row, whose size is a multiple of
/// theirs.
template <class Real, class Run>
HWY_INLINE void for_vectors(std::int64_t size, const Run& run) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t j = 0; j < size; j += lanes) run(d, j);
}

/// row <- map(d, row).
template <class Real, class Map>
HWY_INLINE void map_row(std::int64_t size, Real* row, const Map& map) {
  for_vectors<Real>(
      size, [&](auto d, std::int64_t j) { hn::StoreU(map(d, hn::LoadU(d, row + j)), d, row + j); });
}

/// to <- to + row.
template <class Real>
HWY_INLINE void add_row(std::int64_t size, const Real* HWY_RESTRICT row, Real* HWY_RESTRICT to) {
  for_vectors<Real>(size, [&](auto d, std::int64_t j) {
    hn::StoreU(hn::Add(hn::LoadU(d, to + j), hn::LoadU(d, row + j)), d, to + j);
  });
}

/// A head's vectors as rows of padded(width) elements, zeros behind.
template <class Real>
void pack_rows(HeadVectors<const Real> vectors, std::int64_t tokens, std::int64_t width,
               Real* HWY_RESTRICT rows) {
  const std::int64_t size = padded(width);
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::copy_n(vectors[t], width, rows + t * size);
    std::fill_n(rows + t * size + width, size - width, Real{0});
  }
}

/// Elements from one row of a head's columns to the next: an odd number of cache lines, since rows
/// that are a power of two apart crowd the cache.
constexpr std::int64_t column_step(std::int64_t tokens) { return padded(tokens) | kPadding; }

/// A head's vectors as columns: `width` rows of column_step(tokens) elements, zeros behind.
template <class Real>
void pack_columns(HeadVectors<const Real> vectors, std::int64_t tokens, std::int64_t width,
                  Real* HWY_RESTRICT columns) {
  const std::int64_t size = column_step(tokens);
  transpose(width, tokens, vectors[0], vectors.token_step, columns, size);
  for (std::int64_t e = 0; e < width; ++e) {
    std::fill_n(columns + e * size + tokens, size - tokens, Real{0});
  }
}

template <class Real>
void unpack_rows(const Real* HWY_RESTRICT rows, HeadVectors<Real> vectors, std::int64_t begin,
                 std::int64_t end, std::int64_t width) {
  const std::int64_t size = padded(width);
  for (std::int64_t t = begin; t < end; ++t) {
    std::copy_n(rows + (t - begin) * size, width, vectors[t]);
  }
}

/// One head's sizes and inputs.
template <class Real>
struct Head {
  std::int64_t tokens;
  std::int64_t width;
  HeadVectors<const Real> q, k;
  const Real* direction;
};

/// A run of a block's columns and the key of the first one.
struct Run {
  std::int64_t begin;  ///< column
  std::int64_t end;
  std::int64_t key;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// A block of queries with the keys that they see.
struct Block : QueryBlock {
  std::int64_t window = 0;
  std::int64_t first_keys = 0;  ///< that the window does not hide, apart from the others or not

  template <class Real>
  static Block of(const Attention<Real>& attention, std::int64_t begin) {
    Block block{query_block(begin, attention.tokens, attention.window, attention.globals,
                            attention.pairs.has_value())};
    if (attention.window > 0) {
      block.window = attention.window;
      block.first_keys = std::max<std::int64_t>(attention.globals, 0);
    }
    return block;
  }

  /// Calls run(Run) for the columns of the block's keys, whose number needs no padding.
  template <class Call>
  void for_keys(const Call& run) const {
    if (apart() > 0) run(Run{0, globals, 0});
    run(Run{apart(), apart() + end - first, first});
  }

  /// The columns from the first to the last key that query i sees, padded.
  [[nodiscard]] std::int64_t row_begin(std::int64_t i) const {
    return first_keys > 0 ? 0 : window_begin(i, window) / kPadding * kPadding - first;
  }
  [[nodiscard]] std::int64_t row_end(std::int64_t i) const {
    return apart() + padded(i + 1) - first;
  }
  /// Calls run(Run) for these.
  template <class Call>
  void for_row(std::int64_t i, const Call& run) const {
    const std::int64_t begin_column = row_begin(i);
    if (begin_column < apart()) run(Run{0, apart(), 0});
    const std::int64_t column = std::max(begin_column, apart());
    run(Run{column, row_end(i), column - apart() + first});
  }

  /// How many keys query i sees.
  [[nodiscard]] std::int64_t visible(std::int64_t i) const {
    const std::int64_t hidden = window_begin(i, window);
    return i + 1 - hidden + std::min(first_keys, hidden);
  }
  /// Writes -inf to the other columns from row_begin() to row_end().
  template <class Real>
  void hide(std::int64_t i, Real* row) const {
    constexpr Real kHidden = -std::numeric_limits<Real>::infinity();
    const std::int64_t hidden_begin = first_keys > 0 ? first_keys : row_begin(i);
    const std::int64_t hidden_end = apart() + window_begin(i, window) - first;
    if (hidden_begin < hidden_end) std::fill(row + hidden_begin, row + hidden_end, kHidden);
    std::fill(row + apart() + i + 1 - first, row + row_end(i), kHidden);
  }
};

/// Products of a block's rows with a head's vectors, each padded(width) elements: of numbers, or of both rounded, in
/// pairs. Vectors are factors as columns or as rows, packed for either.
template <class Real>
class BlockProducts {
 public:
  BlockProducts(const Attention<Real>& attention, Workspace<Real>& workspace)
      : form_(attention.pairs), tokens_(attention.tokens), width_(attention.width) {
    if (!form_) return;
    left_ = workspace.take(
        std::max(packed_size(kQueryRows / 2, tokens_), kQueryRows / 2 * (width_ + 1)));
    right_ = workspace.take(packed_size(kQueryRows / 2, width_));
  }

  [[nodiscard]] BlockProducts of_numbers() const {
    auto products = *this;
    products.form_.reset();
    return products;
  }

  /// Of packed vectors.
  [[nodiscard]] std::int64_t room() const { return (padded(tokens_) + kPadding) * size_; }

  void pack_as_columns(HeadVectors<const Real> vectors, Real* columns) const {
    if constexpr (kFloat) {
      if (form_) {
        return pack_pairs({vectors[0], 1, vectors.token_step}, width_, tokens_, 0, width_, columns,
                          *form_);
      }
    }
    pack_columns(vectors, tokens_, width_, columns);
  }

  void pack_as_rows(HeadVectors<const Real> vectors, Real* rows) const {
    if constexpr (kFloat) {
      for (std::int64_t key = 0; form_ && key < tokens_; key += kPanelRows) {
        const auto size = std::min(kPanelRows, tokens_ - key);
        pack_pairs({vectors[key], vectors.token_step, 1}, size, width_, 0, size,
                   rows + pairs_at(key), *form_);
      }
    }
    if (!form_) pack_rows(vectors, tokens_, width_, rows);
  }

  /// out (rows, columns) = x (rows, width) vectors'.
  void by_columns(const Block& block, const Real* x, std::int64_t x_row, const Real* columns,
                  Real* out) const {
    const auto pairs = (width_ + 1) / 2;
    if constexpr (kFloat) {
      if (form_) round_pairs(block.rows(), width_, x, x_row, left_, *form_);
    }
    block.for_keys([&](const Run& run) {
      const auto n = padded(run.size());
      if constexpr (kFloat) {
        if (form_) {
          return multiply_pairs(block.rows(), n, pairs, {left_}, columns + run.key * pairs, {},
                                out + run.begin, block.columns(), *form_);
        }
      }
      multiply_rows<Real>(block.rows(), n, width_, {x, x_row, 1}, columns + run.key,
                          column_step(tokens_), {}, out + run.begin, block.columns());
    });
  }

  /// out (rows, size) = weights (rows, columns) vectors.
  void by_rows(const Block& block, const Real* weights, const Real* rows, Real* out) const {
    block.for_keys([&](const Run& run) {
      const Real* const of_run = weights + run.begin;
      if constexpr (kFloat) {
        for (std::int64_t from = 0; form_ && from < run.size(); from += kPanelRows) {
          const auto key = run.key + from, size = std::min(kPanelRows, tokens_ - key);
          round_some(block, of_run + from, std::min(size, run.size() - from), size);
          multiply_pairs(block.rows(), size_, (size + 1) / 2, {left_}, rows + pairs_at(key),
                         {run.begin + from == 0 ? nullptr : out, size_}, out, size_, *form_);
        }
      }
      if (!form_) {
        multiply_rows<Real>(block.rows(), size_, run.size(), {of_run, block.columns(), 1},
                            rows + run.key * size_, size_, {run.begin == 0 ? nullptr : out, size_},
                            out, size_);
      }
    });
  }

  /// sums (tokens, size) += weights' x (rows, size).
  void add_outer(const Block& block, const Real* weights, const Real* x, Real* sums) const {
    const auto rows = block.rows();
    if constexpr (kFloat) {
      if (form_) pack_pairs({x, size_, 1}, rows, size_, 0, rows, right_, *form_);
    }
    block.for_keys([&](const Run& run) {
      Real* const to = sums + run.key * size_;
      if constexpr (kFloat) {
        if (form_) {
          pack_pairs({weights + run.begin, block.columns(), 1}, rows, run.size(), 0, rows, left_,
                     *form_);
          return multiply_pairs(run.size(), size_, (rows + 1) / 2, {left_, run.size(), 0}, right_,
                                {to, size_}, to, size_, *form_);
        }
      }
      multiply_rows<Real>(run.size(), size_, rows, {weights + run.begin, 1, block.columns()}, x,
                          size_, {to, size_}, to, size_);
    });
  }

 private:
  static constexpr bool kFloat = std::is_same_v<Real, float>;

  /// Where pairs of vectors from `key` on, a multiple of kPanelRows, lie.
  [[nodiscard]] std::int64_t pairs_at(std::int64_t key) const {
    return key / 2 * packed_size(1, width_);
  }

  /// Weights of `size` keys of which a run has some, then zeros, to left_.
  void round_some(const Block& block, const Real* weights, std::int64_t some,
                  std::int64_t size) const {
    if (some == size)
      return round_pairs(block.rows(), size, weights, block.columns(), left_, *form_);
    HWY_ALIGN Real filled[kQueryRows * kPanelRows] = {};
    for (std::int64_t i = 0; i < block.rows(); ++i) {
      std::copy_n(weights + i * block.columns(), some, filled + i * kPanelRows);
    }
    round_pairs(block.rows(), size, filled, kPanelRows, left_, *form_);
  }

  std::optional<PairForm> form_;
  std::int64_t tokens_, width_, size_ = padded(width_);
  Real* left_ = nullptr;
  Real* right_ = nullptr;
};

// The scores. Each has, for one head after the other:
//   start(head, clear)                   before the first block, either pass; `clear`: gradients
//                                        w.r.t. k begin at 0, else at what they are;
//   forward(block, scores)               raw scores;
//   backward(block, gradient, dq, dots, spare)
//                                        from dL/dr, r the raw scores: dL/dq (rows of
//                                        padded(width)) and sum_j gradient_ij r_ij for each row;
//                                        `spare` has room for a block;
//   finish(dk, ddirection)               after the last block: gradients w.r.t. k and direction.

/// r = q.k, and what is made of it by a map.
template <class Real, class Map>
class ProductScore {
 public:
  ProductScore(const Attention<Real>& attention, const BlockProducts<Real>& products, bool backward,
               Workspace<Real>& workspace)
      : products_(Map::kTakesNorms ? products.of_numbers() : products),
        keys_(workspace.take(products_.room())) {
    const std::int64_t tokens = attention.tokens, size = tokens * padded(attention.width);
    if constexpr (Map::kTakesNorms) key_norms_ = workspace.take(tokens);
    if (!backward) return;
    key_rows_ = workspace.take(products_.room());
    query_rows_ = workspace.take(size);
    dk_ = workspace.take(size);
    if constexpr (Map::kTakesNorms) by_key_norms_ = workspace.take(tokens);
  }

  void start(const Head<Real>& head, bool clear) {
    const bool known = head_.k.data == head.k.data;  // heads of a group have the same keys
    head_ = head;
    if (!known) {
      products_.pack_as_columns(head.k, keys_);
      if constexpr (Map::kTakesNorms) find_norms();
    }
    if (key_rows_ == nullptr) return;
    products_.pack_as_rows(head.k, key_rows_);
    pack_rows(head.q, head.tokens, head.width, query_rows_);
    if (!clear) return;
    std::fill_n(dk_, head.tokens * padded(head.width), Real{0});
    if constexpr (Map::kTakesNorms) std::fill_n(by_key_norms_, padded(head.tokens), Real{0});
  }

  void forward(const Block& block, Real* scores) {
    product(block, scores);
    if constexpr (Map::kTakesNorms) take_norms(block, scores);
    if constexpr (Map::kNeedsProduct) {
      map_row(block.rows() * block.columns(), scores,
              [](auto d, auto x) { return Map::value(d, x); });
    }
  }

  void backward(const Block& block, Real* gradient, Real* dq, Real* dots, Real* spare) {
    const std::int64_t size = padded(head_.width);
    if constexpr (Map::kNeedsProduct) {
      product(block, spare);
      for (std::int64_t i = 0; i < block.rows(); ++i) {
        const Real* products = spare + i * block.columns();
        Real* row = gradient + i * block.columns();
        auto sum = hn::Zero(Wide<Real>());
        for_vectors<Real>(block.columns(), [&](auto d, std::int64_t j) {
          const auto product = hn::LoadU(d, products + j);
          const auto g = hn::LoadU(d, row + j);
          sum = hn::MulAdd(g, Map::value(d, product), sum);
          hn::StoreU(hn::Mul(g, Map::slope(d, product)), d, row + j);
        });
        dots[i] = sum_of(Wide<Real>(), sum);
      }
    }
    products_.by_rows(block, gradient, key_rows_, dq);
    products_.add_outer(block, gradient, query_rows_ + block.begin * size, dk_);
    if constexpr (Map::kTakesNorms) {
      norms_backward(block, gradient, dq, dots);
    } else if constexpr (!Map::kNeedsProduct) {
      // sum_j g_ij q_i.k_j = q_i.dq_i
      for (std::int64_t i = 0; i < block.rows(); ++i) {
        const Real* query = query_rows_ + (block.begin + i) * size;
        dots[i] = std::inner_product(query, query + size, dq + i * size, Real{0});
      }
    }
  }

  void finish(HeadVectors<Real> dk) {
    if constexpr (Map::kTakesNorms) {
      // dr_ij/dk_j = q_i - k_j
      const std::int64_t size = padded(head_.width);
      for (std::int64_t t = 0; t < head_.tokens; ++t) {
        for (std::int64_t e = 0; e < head_.width; ++e) {
          dk_[t * size + e] -= by_key_norms_[t] * key_rows_[t * size + e];
        }
      }
    }
    unpack_rows(dk_, dk, 0, head_.tokens, head_.width);
  }
  void finish_head(Real* /*ddirection*/) {}

 private:
  void product(const Block& block, Real* out) {
    products_.by_columns(block, head_.q[block.begin], head_.q.token_step, keys_, out);
  }

  /// |k|^2 / 2 of all keys.
  void find_norms() {
    const std::int64_t size = column_step(head_.tokens);
    for_vectors<Real>(padded(head_.tokens), [&](auto d, std::int64_t t) {
      auto sum = hn::Zero(d);
      for (std::int64_t e = 0; e < head_.width; ++e) {
        const auto k = hn::LoadU(d, keys_ + e * size + t);
        sum = hn::MulAdd(k, k, sum);
      }
      hn::StoreU(hn::Mul(hn::Set(d, static_cast<Real>(0.5)), sum), d, key_norms_ + t);
    });
  }

  Real query_norm(std::int64_t i) const {
    const Real* query = head_.q[i];
    return std::inner_product(query, query + head_.width, query, Real{0}) / 2;
  }

  /// From q.k to -|q - k|^2 / 2.
  void take_norms(const Block& block, Real* scores) {
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      Real* row = scores + (i - block.begin) * block.columns();
      const auto own = hn::Set(Wide<Real>(), query_norm(i));
      block.for_row(i, [&](const Run& run) {
        for_vectors<Real>(run.size(), [&](auto d, std::int64_t j) {
          const auto norms = hn::Add(own, hn::LoadU(d, key_norms_ + run.key + j));
          Real* at = row + run.begin + j;
          hn::StoreU(hn::Sub(hn::LoadU(d, at), norms), d, at);
        });
      });
    }
  }

  /// From the gradients of sum_j g_ij q_i.k_j to those of -sum_j g_ij |q_i - k_j|^2 / 2.
  void norms_backward(const Block& block, const Real* gradient, Real* dq, Real* dots) {
    const Wide<Real> d;
    const std::int64_t size = padded(head_.width);
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      const Real* row = gradient + (i - block.begin) * block.columns();
      auto row_sum = hn::Zero(d);
      auto norm_sum = hn::Zero(d);
      block.for_row(i, [&](const Run& run) {
        for_vectors<Real>(run.size(), [&](auto /*d*/, std::int64_t j) {
          const auto g = hn::LoadU(d, row + run.begin + j);
          row_sum = hn::Add(row_sum, g);
          norm_sum = hn::MulAdd(g, hn::LoadU(d, key_norms_ + run.key + j), norm_sum);
          Real* by_norms = by_key_norms_ + run.key + j;
          hn::StoreU(hn::Add(hn::LoadU(d, by_norms), g), d, by_norms);
        });
      });
      const Real sum = sum_of(d, row_sum);
      const Real* query = query_rows_ + i * size;
      Real* by_query = dq + (i - block.begin) * size;
      dots[i - block.begin] = std::inner_product(query, query + size, by_query, Real{0}) -
                              query_norm(i) * sum - sum_of(d, norm_sum);
      for (std::int64_t e = 0; e < size; ++e) by_query[e] -= sum * query[e];
    }
  }

  BlockProducts<Real> products_;
  Head<Real> head_{};
  Real* keys_;  // as columns
  Real* key_rows_ = nullptr;
  Real* query_rows_ = nullptr;  // (tokens, padded width)
  Real* dk_ = nullptr;
  Real* key_norms_ = nullptr;     // (padded tokens): |k|^2 / 2
  Real* by_key_norms_ = nullptr;  // sum_i g_ij
};

struct Identity {
  static constexpr bool kNeedsProduct = false;
  static constexpr bool kTakesNorms = false;
};

/// -|q - k|^2 / 2 = q.k - |q|^2 / 2 - |k|^2 / 2.
struct Distance {
  static constexpr bool kNeedsProduct = false;
  static constexpr bool kTakesNorms = true;
};

struct Silu {
  static constexpr bool kNeedsProduct = true;
  static constexpr bool kTakesNorms = false;
  template <class D>
  static HWY_INLINE Vector<D> value(D d, Vector<D> x) {
    return hn::Mul(x, logistic(d, x));
  }
  template <class D>
  static HWY_INLINE Vector<D> slope(D d, Vector<D> x) {
    // o + x o (1 - o)
    const auto o = logistic(d, x);
    return hn::MulAdd(hn::Mul(x, o), hn::Sub(hn::Set(d, hn::TFromD<D>{1}), o), o);
  }
};

/// r = v.tanh(q + k). With a = e^(2 q) and b = e^(2 k), once for each vector,
///   tanh(q + k) = 1 - 2 y,  y = 1 / (1 + a b),  tanh' = 4 y (1 - y),
/// so that a pair of tokens costs a reciprocal and some products. Where the exponents might leave
/// the range of numbers, a head is computed by 1 / (1 + e^(2 (q + k))) instead.
template <class Real>
class AdditiveScore {
 public:
  AdditiveScore(const Attention<Real>& attention, const BlockProducts<Real>& /*products*/,
                bool backward, Workspace<Real>& workspace)
      : keys_(workspace.take(attention.width * column_step(attention.tokens))),
        query_(workspace.take(attention.width)) {
    if (!backward) return;
    const auto tokens = attention.tokens, width = attention.width;
    dk_ = workspace.take(width * column_step(tokens));
    ddirection_ = workspace.take(width);
  }

  void start(const Head<Real>& head, bool clear) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    head_ = head;
    const std::int64_t size = head.width * column_step(head.tokens);
    pack_columns(head.k, head.tokens, head.width, keys_);
    Real largest_query = 0;
    for (std::int64_t t = 0; t < head.tokens; ++t) {
      for (std::int64_t e = 0; e < head.width; ++e) {
        largest_query = std::max(largest_query, std::abs(head.q[t][e]));
      }
    }
    auto largest_key = hn::Zero(d);
    for (std::int64_t i = 0; i < size; i += lanes) {
      largest_key = hn::Max(largest_key, hn::Abs(hn::LoadU(d, keys_ + i)));
    }
    // 2 |q + k| <= 86 keeps a b between 4e-38 and 3e37.
    factored_ = largest_query + largest_of(d, largest_key) <= Real{43};
    if (factored_) {
      map_row(size, keys_, [](auto of, auto k) { return exponential(of, hn::Add(k, k)); });
    }
    direction_sum_ = std::accumulate(head.direction, head.direction + head.width, Real{0});
    if (dk_ == nullptr) return;
    if (clear) std::fill_n(dk_, size, Real{0});
    std::fill_n(ddirection_, head.width, Real{0});
  }

  void forward(const Block& block, Real* scores) {
    if (factored_) {
      forward_rows<true>(block, scores);
    } else {
      forward_rows<false>(block, scores);
    }
  }

  void backward(const Block& block, Real* gradient, Real* dq, Real* dots, Real* /*spare*/) {
    if (factored_) {
      backward_rows<true>(block, gradient, dq, dots);
    } else {
      backward_rows<false>(block, gradient, dq, dots);
    }
  }

  void finish(HeadVectors<Real> dk) {
    const std::int64_t size = column_step(head_.tokens);
    for (std::int64_t t = 0; t < head_.tokens; ++t) {
      for (std::int64_t e = 0; e < head_.width; ++e) dk[t][e] = dk_[e * size + t];
    }
  }
  void finish_head(Real* ddirection) { std::copy_n(ddirection_, head_.width, ddirection); }

 private:
  /// 2 q, or e^(2 q), of one token.
  template <bool kFactored>
  void load_query(std::int64_t token) {
    for (std::int64_t e = 0; e < head_.width; ++e) query_[e] = 2 * head_.q[token][e];
    if constexpr (kFactored) {
      map_row(head_.width, query_, [](auto d, auto x) { return exponential(d, x); });
    }
  }

  /// y of one element of a query and a vector of keys.
  template <bool kFactored, class D>
  static HWY_INLINE Vector<D> fraction(D d, Vector<D> query, Vector<D> key) {
    const auto one = hn::Set(d, Real{1});
    if constexpr (kFactored) {
      return reciprocal(d, hn::MulAdd(query, key, one));
    } else {
      return logistic(d, hn::Neg(hn::Add(query, hn::Add(key, key))));
    }
  }

  /// Raw scores of the loaded query and vectors of keys.
  template <bool kFactored, std::size_t kVectors>
  HWY_INLINE void write(const Real* HWY_RESTRICT keys, Real* HWY_RESTRICT scores) const {
    const Wide<Real> d;
    const auto total = hn::Set(d, direction_sum_);
    Vector<Wide<Real>> sums[kVectors];
    for (auto& sum : sums) sum = hn::Zero(d);
    for (std::int64_t e = 0; e < head_.width; ++e, keys += column_step(head_.tokens)) {
      const auto query = hn::Set(d, query_[e]);
      const auto weight = hn::Set(d, head_.direction[e]);
      for (std::size_t n = 0; n < kVectors; ++n) {
        const auto key = hn::LoadU(d, keys + n * hn::Lanes(d));
        sums[n] = hn::MulAdd(weight, fraction<kFactored>(d, query, key), sums[n]);
      }
    }
    for (std::size_t n = 0; n < kVectors; ++n) {
      hn::StoreU(hn::MulAdd(hn::Set(d, Real{-2}), sums[n], total), d, scores + n * hn::Lanes(d));
    }
  }

  template <bool kFactored>
  void forward_rows(const Block& block, Real* HWY_RESTRICT scores) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Wide<Real>()));
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      load_query<kFactored>(i);
      Real* row = scores + (i - block.begin) * block.columns();
      std::fill(row, row + block.row_begin(i), Real{0});
      // Visible keys only, two vectors at a time: a single chain of additions would stall on its
      // latency.
      block.for_row(i, [&](const Run& run) {
        std::int64_t j = 0;
        for (; j + 2 * lanes <= run.size(); j += 2 * lanes) {
          write<kFactored, 2>(keys_ + run.key + j, row + run.begin + j);
        }
        if (j < run.size()) write<kFactored, 1>(keys_ + run.key + j, row + run.begin + j);
      });
      std::fill(row + block.row_end(i), row + block.columns(), Real{0});
    }
  }

  template <bool kFactored>
  void backward_rows(const Block& block, const Real* HWY_RESTRICT gradient, Real* HWY_RESTRICT dq,
                     Real* HWY_RESTRICT dots) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t size = column_step(head_.tokens);
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      load_query<kFactored>(i);
      const Real* row = gradient + (i - block.begin) * block.columns();
      auto total = hn::Zero(d);
      for (std::int64_t j = block.row_begin(i); j < block.row_end(i); j += lanes) {
        total = hn::Add(total, hn::LoadU(d, row + j));
      }
      const Real row_sum = sum_of(d, total);
      Real dot = 0;
      for (std::int64_t e = 0; e < head_.width; ++e) {
        const auto query = hn::Set(d, query_[e]);
        const auto weight = hn::Set(d, 4 * head_.direction[e]);
        const Real* HWY_RESTRICT keys = keys_ + e * size;
        Real* HWY_RESTRICT dk = dk_ + e * size;
        auto fractions = hn::Zero(d);
        auto slopes = hn::Zero(d);
        block.for_row(i, [&](const Run& run) {
          const Real* by_scores = row + run.begin;
          for (std::int64_t j = 0; j < run.size(); j += lanes) {
            const auto g = hn::LoadU(d, by_scores + j);
            const auto y = fraction<kFactored>(d, query, hn::LoadU(d, keys + run.key + j));
            const auto gy = hn::Mul(g, y);
            const auto slope = hn::NegMulAdd(gy, y, gy);  // g y (1 - y)
            fractions = hn::Add(fractions, gy);
            slopes = hn::Add(slopes, slope);
            Real* at = dk + run.key + j;
            hn::StoreU(hn::MulAdd(weight, slope, hn::LoadU(d, at)), d, at);
          }
        });
        const Real tangents = row_sum - 2 * sum_of(d, fractions);  // sum_j g tanh
        ddirection_[e] += tangents;
        dot += head_.direction[e] * tangents;
        dq[(i - block.begin) * padded(head_.width) + e] =
            4 * head_.direction[e] * sum_of(d, slopes);
      }
      dots[i - block.begin] = dot;
    }
  }

  Head<Real> head_{};
  bool factored_ = true;
  Real direction_sum_ = 0;
  Real* keys_;   // (width, column_step(tokens)): k, or e^(2 k)
  Real* query_;  // (width)
  Real* dk_ = nullptr;
  Real* ddirection_ = nullptr;
};

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#endif  // NAS_KERNELS_ATTENTION_SCORES_INL_H_
