#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <hwy/foreach_target.h>

#include "kernels/attention.hpp"
#include "kernels/dropout-inl.h"
#include "kernels/matrix-inl.h"
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

/// A head's vectors as columns: `width` rows of padded(tokens) elements, zeros behind.
template <class Real>
void pack_columns(HeadVectors<const Real> vectors, std::int64_t tokens, std::int64_t width,
                  Real* HWY_RESTRICT columns) {
  const std::int64_t size = padded(tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Real* vector = vectors[t];
    for (std::int64_t e = 0; e < width; ++e) columns[e * size + t] = vector[e];
  }
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
    Block block{query_block(begin, attention.tokens, attention.window, attention.globals)};
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

// The scores. Each has, for one head after the other:
//   start(head, clear)                   before the first block, either pass; `clear`: gradients
//                                        w.r.t. k begin at 0, else at what they are;
//   forward(block, scores)               raw scores;
//   backward(block, gradient, dq, dots)  from dL/dr, r the raw scores: dL/dq (rows of
//                                        padded(width)) and sum_j gradient_ij r_ij for each row;
//   finish(dk, ddirection)               after the last block: gradients w.r.t. k and direction.

/// r = q.k, and what is made of it by a map.
template <class Real, class Map>
class ProductScore {
 public:
  ProductScore(std::int64_t tokens, std::int64_t width, bool backward, Workspace<Real>& workspace)
      : keys_(workspace.take(width * padded(tokens))) {
    if constexpr (Map::kTakesNorms) key_norms_ = workspace.take(tokens);
    if (!backward) return;
    key_rows_ = workspace.take(tokens * padded(width));
    query_rows_ = workspace.take(tokens * padded(width));
    dk_ = workspace.take(tokens * padded(width));
    if constexpr (Map::kNeedsProduct) products_ = workspace.take(kQueryRows * padded(tokens));
    if constexpr (Map::kTakesNorms) by_key_norms_ = workspace.take(tokens);
  }

  void start(const Head<Real>& head, bool clear) {
    head_ = head;
    pack_columns(head.k, head.tokens, head.width, keys_);
    if constexpr (Map::kTakesNorms) find_norms();
    if (key_rows_ == nullptr) return;
    pack_rows(head.k, head.tokens, head.width, key_rows_);
    pack_rows(head.q, head.tokens, head.width, query_rows_);
    if (!clear) return;
    std::fill_n(dk_, head.tokens * padded(head.width), Real{0});
    if constexpr (Map::kTakesNorms) std::fill_n(by_key_norms_, padded(head.tokens), Real{0});
  }

  void forward(const Block& block, Real* scores) {
    product(block, scores);
    if constexpr (Map::kTakesNorms) take_norms(block, scores);
    if constexpr (Map::kNeedsProduct) {
      const Wide<Real> d;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      for (std::int64_t i = 0; i < block.rows() * block.columns(); i += lanes) {
        hn::StoreU(Map::value(d, hn::LoadU(d, scores + i)), d, scores + i);
      }
    }
  }

  void backward(const Block& block, Real* gradient, Real* dq, Real* dots) {
    const std::int64_t size = padded(head_.width);
    if constexpr (Map::kNeedsProduct) {
      product(block, products_);
      const Wide<Real> d;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      for (std::int64_t i = 0; i < block.rows(); ++i) {
        auto sum = hn::Zero(d);
        for (std::int64_t j = i * block.columns(); j < (i + 1) * block.columns(); j += lanes) {
          const auto product = hn::LoadU(d, products_ + j);
          const auto g = hn::LoadU(d, gradient + j);
          sum = hn::MulAdd(g, Map::value(d, product), sum);
          hn::StoreU(hn::Mul(g, Map::slope(d, product)), d, gradient + j);
        }
        dots[i] = sum_of(d, sum);
      }
    }
    block.for_keys([&](const Run& run) {
      const Real* by_scores = gradient + run.begin;
      multiply_rows<Real>(block.rows(), size, run.size(), {by_scores, block.columns(), 1},
                          key_rows_ + run.key * size, size,
                          run.begin == 0 ? Initial<Real>{} : Initial<Real>{dq, size}, dq, size);
      Real* dk = dk_ + run.key * size;
      multiply_rows<Real>(run.size(), size, block.rows(), {by_scores, 1, block.columns()},
                          query_rows_ + block.begin * size, size, {dk, size}, dk, size);
    });
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
    block.for_keys([&](const Run& run) {
      multiply_rows<Real>(block.rows(), padded(run.size()), head_.width,
                          {head_.q[block.begin], head_.q.token_step, 1}, keys_ + run.key,
                          padded(head_.tokens), {}, out + run.begin, block.columns());
    });
  }

  /// |k|^2 / 2 of all keys.
  void find_norms() {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t size = padded(head_.tokens);
    for (std::int64_t t = 0; t < size; t += lanes) {
      auto sum = hn::Zero(d);
      for (std::int64_t e = 0; e < head_.width; ++e) {
        const auto k = hn::LoadU(d, keys_ + e * size + t);
        sum = hn::MulAdd(k, k, sum);
      }
      hn::StoreU(hn::Mul(hn::Set(d, static_cast<Real>(0.5)), sum), d, key_norms_ + t);
    }
  }

  Real query_norm(std::int64_t i) const {
    const Real* query = head_.q[i];
    return std::inner_product(query, query + head_.width, query, Real{0}) / 2;
  }

  /// From q.k to -|q - k|^2 / 2.
  void take_norms(const Block& block, Real* scores) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      Real* row = scores + (i - block.begin) * block.columns();
      const auto own = hn::Set(d, query_norm(i));
      block.for_row(i, [&](const Run& run) {
        for (std::int64_t j = 0; j < run.size(); j += lanes) {
          const auto norms = hn::Add(own, hn::LoadU(d, key_norms_ + run.key + j));
          Real* at = row + run.begin + j;
          hn::StoreU(hn::Sub(hn::LoadU(d, at), norms), d, at);
        }
      });
    }
  }

  /// From the gradients of sum_j g_ij q_i.k_j to those of -sum_j g_ij |q_i - k_j|^2 / 2.
  void norms_backward(const Block& block, const Real* gradient, Real* dq, Real* dots) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t size = padded(head_.width);
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      const Real* row = gradient + (i - block.begin) * block.columns();
      auto row_sum = hn::Zero(d);
      auto norm_sum = hn::Zero(d);
      block.for_row(i, [&](const Run& run) {
        for (std::int64_t j = 0; j < run.size(); j += lanes) {
          const auto g = hn::LoadU(d, row + run.begin + j);
          row_sum = hn::Add(row_sum, g);
          norm_sum = hn::MulAdd(g, hn::LoadU(d, key_norms_ + run.key + j), norm_sum);
          Real* by_norms = by_key_norms_ + run.key + j;
          hn::StoreU(hn::Add(hn::LoadU(d, by_norms), g), d, by_norms);
        }
      });
      const Real sum = sum_of(d, row_sum);
      const Real* query = query_rows_ + i * size;
      Real* by_query = dq + (i - block.begin) * size;
      dots[i - block.begin] = std::inner_product(query, query + size, by_query, Real{0}) -
                              query_norm(i) * sum - sum_of(d, norm_sum);
      for (std::int64_t e = 0; e < size; ++e) by_query[e] -= sum * query[e];
    }
  }

  Head<Real> head_{};
  Real* keys_;                // (width, padded tokens)
  Real* key_rows_ = nullptr;  // (tokens, padded width), as the following ones
  Real* query_rows_ = nullptr;
  Real* dk_ = nullptr;
  Real* products_ = nullptr;
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
  AdditiveScore(std::int64_t tokens, std::int64_t width, bool backward, Workspace<Real>& workspace)
      : keys_(workspace.take(width * padded(tokens))), query_(workspace.take(width)) {
    if (!backward) return;
    dk_ = workspace.take(width * padded(tokens));
    ddirection_ = workspace.take(width);
  }

  void start(const Head<Real>& head, bool clear) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    head_ = head;
    const std::int64_t size = head.width * padded(head.tokens);
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
      for (std::int64_t i = 0; i < size; i += lanes) {
        const auto k = hn::LoadU(d, keys_ + i);
        hn::StoreU(exponential(d, hn::Add(k, k)), d, keys_ + i);
      }
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

  void backward(const Block& block, Real* gradient, Real* dq, Real* dots) {
    if (factored_) {
      backward_rows<true>(block, gradient, dq, dots);
    } else {
      backward_rows<false>(block, gradient, dq, dots);
    }
  }

  void finish(HeadVectors<Real> dk) {
    const std::int64_t size = padded(head_.tokens);
    for (std::int64_t t = 0; t < head_.tokens; ++t) {
      for (std::int64_t e = 0; e < head_.width; ++e) dk[t][e] = dk_[e * size + t];
    }
  }
  void finish_head(Real* ddirection) { std::copy_n(ddirection_, head_.width, ddirection); }

 private:
  /// 2 q, or e^(2 q), of one token.
  template <bool kFactored>
  void load_query(std::int64_t token) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t e = 0; e < head_.width; ++e) query_[e] = 2 * head_.q[token][e];
    if constexpr (kFactored) {
      for (std::int64_t e = 0; e < head_.width; e += lanes) {
        hn::StoreU(exponential(d, hn::LoadU(d, query_ + e)), d, query_ + e);
      }
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

  template <bool kFactored>
  void forward_rows(const Block& block, Real* HWY_RESTRICT scores) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t size = padded(head_.tokens);
    const auto total = hn::Set(d, direction_sum_);
    const auto minus_two = hn::Set(d, Real{-2});
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      load_query<kFactored>(i);
      Real* row = scores + (i - block.begin) * block.columns();
      std::fill(row, row + block.row_begin(i), Real{0});
      // Visible keys only, two vectors at a time: a single chain of additions would stall on its
      // latency.
      block.for_row(i, [&](const Run& run) {
        Real* HWY_RESTRICT out = row + run.begin;
        const Real* HWY_RESTRICT from = keys_ + run.key;
        std::int64_t j = 0;
        for (; j + 2 * lanes <= run.size(); j += 2 * lanes) {
          auto sum0 = hn::Zero(d);
          auto sum1 = hn::Zero(d);
          for (std::int64_t e = 0; e < head_.width; ++e) {
            const auto query = hn::Set(d, query_[e]);
            const auto weight = hn::Set(d, head_.direction[e]);
            const Real* keys = from + e * size + j;
            sum0 = hn::MulAdd(weight, fraction<kFactored>(d, query, hn::LoadU(d, keys)), sum0);
            sum1 =
                hn::MulAdd(weight, fraction<kFactored>(d, query, hn::LoadU(d, keys + lanes)), sum1);
          }
          hn::StoreU(hn::MulAdd(minus_two, sum0, total), d, out + j);
          hn::StoreU(hn::MulAdd(minus_two, sum1, total), d, out + j + lanes);
        }
        for (; j < run.size(); j += lanes) {
          auto sum = hn::Zero(d);
          for (std::int64_t e = 0; e < head_.width; ++e) {
            sum = hn::MulAdd(
                hn::Set(d, head_.direction[e]),
                fraction<kFactored>(d, hn::Set(d, query_[e]), hn::LoadU(d, from + e * size + j)),
                sum);
          }
          hn::StoreU(hn::MulAdd(minus_two, sum, total), d, out + j);
        }
      });
      std::fill(row + block.row_end(i), row + block.columns(), Real{0});
    }
  }

  template <bool kFactored>
  void backward_rows(const Block& block, const Real* HWY_RESTRICT gradient, Real* HWY_RESTRICT dq,
                     Real* HWY_RESTRICT dots) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t size = padded(head_.tokens);
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
  Real* keys_;   // (width, padded tokens): k, or e^(2 k)
  Real* query_;  // (width)
  Real* dk_ = nullptr;
  Real* ddirection_ = nullptr;
};

template <class Real>
void drop_row(const Dropout& dropout, std::int64_t first, std::int64_t size, Real* HWY_RESTRICT row,
              Real* HWY_RESTRICT other) {
  const Wide<Real> d;
  const auto scale = hn::Set(d, static_cast<Real>(dropout.scale));
  for_each_kept(d, dropout, first, size, [&](std::int64_t i, std::int64_t n, auto mask) {
    // A vector beyond n belongs to the next block of the mask, or lies behind the row.
    const auto meant = hn::FirstN(d, static_cast<std::size_t>(n));
    const auto drop = [&](Real* at) {
      const auto x = hn::LoadU(d, at + i);
      const auto dropped = hn::IfThenElseZero(mask, hn::Mul(x, scale));
      hn::StoreU(hn::IfThenElse(meant, dropped, x), d, at + i);
    };
    drop(row);
    if (other != nullptr) drop(other);
  });
}

/// Dropout of what the query sees of a row, and of `other`, a row of the same columns, unless null.
/// @param query  its number among those of all heads.
template <class Real>
void drop_row(const Attention<Real>& attention, const Block& block, std::int64_t query, Real* row,
              Real* other) {
  const std::int64_t i = query % attention.tokens;
  block.for_row(i, [&](const Run& run) {
    drop_row<Real>(attention.dropout, query * attention.tokens + run.key,
                   std::min(run.size(), i + 1 - run.key), row + run.begin,
                   other == nullptr ? nullptr : other + run.begin);
  });
}

/// What is added to the scores of one head after the other: b[i - j] + c_i - c_j.
template <class Real>
class Biases {
 public:
  Biases(const Attention<Real>& attention, const AttentionGradients<Real>* gradients,
         Workspace<Real>& workspace)
      : attention_(attention), gradients_(gradients) {
    const std::int64_t tokens = attention.tokens;
    if (attention.distance_biases != nullptr) biases_ = workspace.take(tokens + kPadding);
    if (attention.sums != nullptr) sums_ = workspace.take(tokens);
    if (gradients == nullptr) return;
    if (gradients->distance_biases != nullptr) dbiases_ = workspace.take(tokens + kPadding);
    if (gradients->sums != nullptr) {
      by_keys_ = workspace.take(tokens);
      by_queries_ = workspace.take(tokens);
    }
  }

  void start(std::int64_t index) {
    const std::int64_t tokens = attention_.tokens;
    if (biases_ != nullptr) {
      const Real* biases = attention_.distance_biases + index % attention_.heads * tokens;
      std::reverse_copy(biases, biases + tokens, biases_);
      std::fill_n(biases_ + tokens, kPadding, Real{0});
    }
    if (sums_ != nullptr) head_sums_ = attention_.sums + index * tokens;
    if (dbiases_ != nullptr) std::fill_n(dbiases_, tokens + kPadding, Real{0});
    if (by_keys_ != nullptr) std::fill_n(by_keys_, padded(tokens), Real{0});
  }

  /// Before a block's rows. c enters as its distance from the block's first query, so that
  /// differences are exact to what a block forgets, however large c is.
  void start(const Block& block) {
    if (sums_ == nullptr) return;
    base_ = head_sums_[block.begin];
    block.for_keys([&](const Run& run) {
      for (std::int64_t j = run.key; j < run.key + run.size(); ++j) {
        sums_[j] = static_cast<Real>(head_sums_[j] - base_);
      }
      std::fill(sums_ + run.key + run.size(), sums_ + padded(run.key + run.size()), Real{0});
    });
  }

  void add_to(const Block& block, std::int64_t i, Real* HWY_RESTRICT row) const {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (biases_ != nullptr) {
      block.for_row(i, [&](const Run& run) {
        const Real* biases = biases_ + reversed(i, run.key);
        Real* at = row + run.begin;
        for (std::int64_t j = 0; j < run.size(); j += lanes) {
          hn::StoreU(hn::Add(hn::LoadU(d, at + j), hn::LoadU(d, biases + j)), d, at + j);
        }
      });
    }
    if (sums_ != nullptr) {
      const auto own = hn::Set(d, static_cast<Real>(head_sums_[i] - base_));
      block.for_row(i, [&](const Run& run) {
        const Real* sums = sums_ + run.key;
        Real* at = row + run.begin;
        for (std::int64_t j = 0; j < run.size(); j += lanes) {
          const auto difference = hn::Sub(own, hn::LoadU(d, sums + j));
          hn::StoreU(hn::Add(hn::LoadU(d, at + j), difference), d, at + j);
        }
      });
    }
  }

  /// @param gradient  dL/ds, 0 for hidden keys.
  void backward(const Block& block, std::int64_t i, const Real* HWY_RESTRICT gradient) {
    const Wide<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto add = [&](const Run& run, Real* HWY_RESTRICT to) {
      for (std::int64_t j = 0; j < run.size(); j += lanes) {
        const auto g = hn::LoadU(d, gradient + run.begin + j);
        hn::StoreU(hn::Add(hn::LoadU(d, to + j), g), d, to + j);
      }
    };
    if (dbiases_ != nullptr) {
      block.for_row(i, [&](const Run& run) { add(run, dbiases_ + reversed(i, run.key)); });
    }
    if (by_keys_ != nullptr) {
      block.for_row(i, [&](const Run& run) { add(run, by_keys_ + run.key); });
      auto sum = hn::Zero(d);
      for (std::int64_t j = block.row_begin(i); j < block.row_end(i); j += lanes) {
        sum = hn::Add(sum, hn::LoadU(d, gradient + j));
      }
      by_queries_[i] = sum_of(d, sum);
    }
  }

  void finish(std::int64_t index) {
    const std::int64_t tokens = attention_.tokens;
    if (dbiases_ != nullptr) {
      std::reverse_copy(dbiases_, dbiases_ + tokens, gradients_->distance_biases + index * tokens);
    }
    if (by_keys_ != nullptr) {
      for (std::int64_t t = 0; t < tokens; ++t) {
        gradients_->sums[index * tokens + t] =
            static_cast<double>(by_queries_[t]) - static_cast<double>(by_keys_[t]);
      }
    }
  }

 private:
  /// Where b[i - j] lies: so that it is read forwards along a row.
  [[nodiscard]] std::int64_t reversed(std::int64_t i, std::int64_t j) const {
    return attention_.tokens - 1 - i + j;
  }

  const Attention<Real>& attention_;
  const AttentionGradients<Real>* gradients_;
  Real* biases_ = nullptr;  // b from the largest distance to 0, then zeros
  Real* sums_ = nullptr;    // c_j - base
  const double* head_sums_ = nullptr;
  double base_ = 0;
  Real* dbiases_ = nullptr;
  Real* by_keys_ = nullptr;     // sum_i dL/ds_ij
  Real* by_queries_ = nullptr;  // sum_j dL/ds_ij
};

template <class ScoreOf, class Real>
void forward_heads(const Attention<Real>& attention, HeadVectors<Real> output, std::int64_t begin,
                   std::int64_t end, Real* memory) {
  const std::int64_t tokens = attention.tokens;
  const std::int64_t width = attention.width;
  const std::int64_t row = padded(width);
  const std::int64_t kept_size = weights_size(tokens, attention.window, attention.globals);
  Workspace<Real> workspace(memory);
  ScoreOf score(tokens, width, /*backward=*/false, workspace);
  Real* values = workspace.take(tokens * row);
  Real* mixed = workspace.take(kQueryRows * row);
  Real* weights = workspace.take(kQueryRows * padded(tokens) + kPadding);
  Biases<Real> biases(attention, nullptr, workspace);
  for (std::int64_t index = begin; index < end; ++index) {
    const std::int64_t sequence = index / attention.heads;
    const std::int64_t head = index % attention.heads;
    const std::int64_t key_head = head / attention.group();
    const auto temperature = attention.inverse_temperature.head(sequence, head);
    score.start({tokens, width, attention.q.head(sequence, head),
                 attention.k.head(sequence, key_head), attention.direction},
                /*clear=*/true);
    biases.start(index);
    pack_rows(attention.v.head(sequence, key_head), tokens, width, values);
    Real* kept = attention.weights == nullptr ? nullptr : attention.weights + index * kept_size;
    for (std::int64_t first = 0; first < tokens; first += kQueryRows) {
      const auto block = Block::of(attention, first);
      const std::int64_t columns = block.columns();
      score.forward(block, weights);
      biases.start(block);
      for (std::int64_t i = block.begin; i < block.end; ++i) {
        const Wide<Real> d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const std::int64_t visible = block.visible(i);
        const std::int64_t row_begin = block.row_begin(i);
        const std::int64_t row_end = block.row_end(i);
        const std::int64_t size = row_end - row_begin;
        Real* whole = weights + (i - block.begin) * columns;
        Real* scores = whole + row_begin;
        const auto factor = hn::Set(d, *temperature[i]);
        for (std::int64_t j = 0; j < size; j += lanes) {
          hn::StoreU(hn::Mul(factor, hn::LoadU(d, scores + j)), d, scores + j);
        }
        biases.add_to(block, i, whole);
        block.hide(i, whole);
        const auto& rows = attention.normalization;
        const Real statistic =
            attention.sinks == nullptr
                ? rows.forward(scores, visible, size, tokens)
                : rows.forward_with_sink(scores, visible, size, attention.sinks[head]);
        std::fill(whole, scores, Real{0});
        std::fill(whole + row_end, whole + columns, Real{0});
        if (kept != nullptr) {
          attention.statistics[index * tokens + i] = statistic;
          std::copy_n(whole, columns, kept + (i - block.begin) * columns);
        }
        if (attention.dropout.drops()) {
          drop_row<Real>(attention, block, index * tokens + i, whole, nullptr);
        }
      }
      if (kept != nullptr) kept += block.rows() * columns;
      block.for_keys([&](const Run& run) {
        multiply_rows<Real>(block.rows(), row, run.size(), {weights + run.begin, columns, 1},
                            values + run.key * row, row,
                            run.begin == 0 ? Initial<Real>{} : Initial<Real>{mixed, row}, mixed,
                            row);
      });
      unpack_rows(mixed, output.head(sequence, head), block.begin, block.end, width);
    }
  }
}

/// Whether a query's factor u leaves too little of u dL/ds to divide by it. The raw scores of the
/// block are computed again then; only training may make such factors, seldom.
template <class Real>
bool vanishes(Real factor) {
  return std::abs(factor) < static_cast<Real>(sizeof(Real) == sizeof(float) ? 1e-18 : 1e-150);
}

template <class ScoreOf, class Real>
void backward_heads(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                    std::int64_t begin, std::int64_t end, Real* memory) {
  const std::int64_t tokens = attention.tokens;
  const std::int64_t width = attention.width;
  const std::int64_t row = padded(width);
  const std::int64_t kept_size = weights_size(tokens, attention.window, attention.globals);
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Workspace<Real> workspace(memory);
  ScoreOf score(tokens, width, /*backward=*/true, workspace);
  Real* values = workspace.take(width * padded(tokens));  // as columns
  Real* outputs = workspace.take(tokens * row);           // dL/d(output)
  Real* dv = workspace.take(tokens * row);
  Real* dq = workspace.take(kQueryRows * row);
  Real* dots = workspace.take(kQueryRows);
  Real* gradient = workspace.take(kQueryRows * padded(tokens) + kPadding);
  Real* dropped = workspace.take(kQueryRows * padded(tokens) + kPadding);
  Biases<Real> biases(attention, &gradients, workspace);
  for (std::int64_t index = begin; index < end; ++index) {
    const std::int64_t sequence = index / attention.heads;
    const std::int64_t head = index % attention.heads;
    const std::int64_t key_head = head / attention.group();
    const bool first_of_group = head % attention.group() == 0;
    const auto temperature = attention.inverse_temperature.head(sequence, head);
    score.start({tokens, width, attention.q.head(sequence, head),
                 attention.k.head(sequence, key_head), attention.direction},
                /*clear=*/first_of_group);
    biases.start(index);
    pack_columns(attention.v.head(sequence, key_head), tokens, width, values);
    pack_rows(gradients.output.head(sequence, head), tokens, width, outputs);
    if (first_of_group) std::fill_n(dv, tokens * row, Real{0});
    Real* by_temperature = gradients.inverse_temperature + index * tokens;
    Real by_sink = 0;
    const Real* weights = attention.weights + index * kept_size;
    for (std::int64_t first = 0; first < tokens; first += kQueryRows) {
      const auto block = Block::of(attention, first);
      const std::int64_t columns = block.columns();
      block.for_keys([&](const Run& run) {
        multiply_rows<Real>(block.rows(), padded(run.size()), width,
                            {outputs + block.begin * row, row, 1}, values + run.key, padded(tokens),
                            {}, gradient + run.begin, columns);
      });
      const Real* used = weights;
      if (attention.dropout.drops()) {
        std::copy_n(weights, block.rows() * columns, dropped);
        for (std::int64_t i = block.begin; i < block.end; ++i) {
          const std::int64_t offset = (i - block.begin) * columns;
          drop_row<Real>(attention, block, index * tokens + i, dropped + offset, gradient + offset);
        }
        used = dropped;
      }
      block.for_keys([&](const Run& run) {
        Real* by_values = dv + run.key * row;
        multiply_rows<Real>(run.size(), row, block.rows(), {used + run.begin, 1, columns},
                            outputs + block.begin * row, row, {by_values, row}, by_values, row);
      });
      bool has_raw_scores = false;
      for (std::int64_t i = block.begin; i < block.end; ++i) {
        const Real statistic = attention.statistics[index * tokens + i];
        const std::int64_t row_begin = block.row_begin(i);
        const std::int64_t size = columns - row_begin;
        const Real* w = weights + (i - block.begin) * columns + row_begin;
        Real* whole = gradient + (i - block.begin) * columns;
        Real* g = whole + row_begin;
        std::fill(whole, g, Real{0});
        if (attention.sinks != nullptr) {
          auto sum = hn::Zero(d);
          for (std::int64_t j = 0; j < size; j += lanes) {
            sum = hn::MulAdd(hn::LoadU(d, w + j), hn::LoadU(d, g + j), sum);
          }
          by_sink -= statistic * sum_of(d, sum);
        }
        attention.normalization.backward(w, g, size, statistic);
        biases.backward(block, i, whole);
        if (vanishes(*temperature[i])) {
          // What dropout left of the weights has been used.
          if (!has_raw_scores) score.forward(block, dropped);
          has_raw_scores = true;
          const Real* raw = dropped + (g - gradient);
          by_temperature[i] = std::inner_product(g, g + size, raw, Real{0});
        }
        const auto factor = hn::Set(d, *temperature[i]);
        for (std::int64_t j = 0; j < size; j += lanes) {
          hn::StoreU(hn::Mul(factor, hn::LoadU(d, g + j)), d, g + j);
        }
      }
      score.backward(block, gradient, dq, dots);
      unpack_rows(dq, gradients.q.head(sequence, head), block.begin, block.end, width);
      for (std::int64_t i = block.begin; i < block.end; ++i) {
        const Real factor = *temperature[i];
        if (!vanishes(factor)) by_temperature[i] = dots[i - block.begin] / factor;
      }
      weights += block.rows() * columns;
    }
    biases.finish(index);
    if (gradients.sinks != nullptr) gradients.sinks[index] = by_sink;
    score.finish_head(gradients.direction == nullptr ? nullptr
                                                     : gradients.direction + index * width);
    if ((head + 1) % attention.group() == 0) {
      unpack_rows(dv, gradients.v.head(sequence, key_head), 0, tokens, width);
      score.finish(gradients.k.head(sequence, key_head));
    }
  }
}

template <class Real>
void run_forward(const Attention<Real>& attention, HeadVectors<Real> output, std::int64_t begin,
                 std::int64_t end, Real* workspace) {
  switch (attention.score) {
    case Score::product:
      return forward_heads<ProductScore<Real, Identity>>(attention, output, begin, end, workspace);
    case Score::silu_product:
      return forward_heads<ProductScore<Real, Silu>>(attention, output, begin, end, workspace);
    case Score::additive:
      return forward_heads<AdditiveScore<Real>>(attention, output, begin, end, workspace);
    case Score::distance:
      return forward_heads<ProductScore<Real, Distance>>(attention, output, begin, end, workspace);
  }
}

template <class Real>
void run_backward(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                  std::int64_t begin, std::int64_t end, Real* workspace) {
  switch (attention.score) {
    case Score::product:
      return backward_heads<ProductScore<Real, Identity>>(attention, gradients, begin, end,
                                                          workspace);
    case Score::silu_product:
      return backward_heads<ProductScore<Real, Silu>>(attention, gradients, begin, end, workspace);
    case Score::additive:
      return backward_heads<AdditiveScore<Real>>(attention, gradients, begin, end, workspace);
    case Score::distance:
      return backward_heads<ProductScore<Real, Distance>>(attention, gradients, begin, end,
                                                          workspace);
  }
}

void forward_in_float(const Attention<float>& attention, HeadVectors<float> output,
                      std::int64_t begin, std::int64_t end, float* workspace) {
  run_forward(attention, output, begin, end, workspace);
}

void forward_in_double(const Attention<double>& attention, HeadVectors<double> output,
                       std::int64_t begin, std::int64_t end, double* workspace) {
  run_forward(attention, output, begin, end, workspace);
}

void backward_in_float(const Attention<float>& attention,
                       const AttentionGradients<float>& gradients, std::int64_t begin,
                       std::int64_t end, float* workspace) {
  run_backward(attention, gradients, begin, end, workspace);
}

void backward_in_double(const Attention<double>& attention,
                        const AttentionGradients<double>& gradients, std::int64_t begin,
                        std::int64_t end, double* workspace) {
  run_backward(attention, gradients, begin, end, workspace);
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(forward_in_float);
HWY_EXPORT(forward_in_double);
HWY_EXPORT(backward_in_float);
HWY_EXPORT(backward_in_double);

std::int64_t attention_workspace(std::int64_t tokens, std::int64_t width, bool with_biases) {
  // The larger pass: seven arrays of all vectors, three blocks of rows, some vectors; see take().
  const std::int64_t plain = 7 * padded(tokens) * padded(width) +
                             3 * (kQueryRows + 1) * padded(tokens) +
                             4 * kQueryRows * padded(width) + 16 * kPadding;
  // Seven arrays of a number for each token.
  return with_biases ? plain + 7 * (padded(tokens) + kPadding) : plain;
}

template <>
void attention_forward(const Attention<float>& attention, HeadVectors<float> output,
                       std::int64_t begin, std::int64_t end, float* workspace) {
  HWY_DYNAMIC_DISPATCH(forward_in_float)(attention, output, begin, end, workspace);
}

template <>
void attention_forward(const Attention<double>& attention, HeadVectors<double> output,
                       std::int64_t begin, std::int64_t end, double* workspace) {
  HWY_DYNAMIC_DISPATCH(forward_in_double)(attention, output, begin, end, workspace);
}

template <>
void attention_backward(const Attention<float>& attention,
                        const AttentionGradients<float>& gradients, std::int64_t begin,
                        std::int64_t end, float* workspace) {
  HWY_DYNAMIC_DISPATCH(backward_in_float)(attention, gradients, begin, end, workspace);
}

template <>
void attention_backward(const Attention<double>& attention,
                        const AttentionGradients<double>& gradients, std::int64_t begin,
                        std::int64_t end, double* workspace) {
  HWY_DYNAMIC_DISPATCH(backward_in_double)(attention, gradients, begin, end, workspace);
}

}  // namespace nas::kernels
#endif
