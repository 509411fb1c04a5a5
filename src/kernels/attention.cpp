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

/// A block of queries [begin, end) over keys [0, end), rows of padded(end) elements.
struct Block {
  std::int64_t begin;
  std::int64_t end;
  [[nodiscard]] std::int64_t rows() const { return end - begin; }
  [[nodiscard]] std::int64_t columns() const { return padded(end); }
};

// The scores. Each has, for one head after the other:
//   start(head)                          before the first block, either pass;
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
    if (!backward) return;
    key_rows_ = workspace.take(tokens * padded(width));
    query_rows_ = workspace.take(tokens * padded(width));
    dk_ = workspace.take(tokens * padded(width));
    if constexpr (Map::kNeedsProduct) products_ = workspace.take(kQueryRows * padded(tokens));
  }

  void start(const Head<Real>& head) {
    head_ = head;
    pack_columns(head.k, head.tokens, head.width, keys_);
    if (key_rows_ == nullptr) return;
    pack_rows(head.k, head.tokens, head.width, key_rows_);
    pack_rows(head.q, head.tokens, head.width, query_rows_);
    std::fill_n(dk_, head.tokens * padded(head.width), Real{0});
  }

  void forward(const Block& block, Real* scores) {
    product(block, scores);
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
    multiply_rows<Real>(block.rows(), size, block.end, {gradient, block.columns(), 1}, key_rows_,
                        size, {}, dq, size);
    multiply_rows<Real>(block.end, size, block.rows(), {gradient, 1, block.columns()},
                        query_rows_ + block.begin * size, size, {dk_, size}, dk_, size);
    if constexpr (!Map::kNeedsProduct) {
      // sum_j g_ij q_i.k_j = q_i.dq_i
      for (std::int64_t i = 0; i < block.rows(); ++i) {
        const Real* query = query_rows_ + (block.begin + i) * size;
        dots[i] = std::inner_product(query, query + size, dq + i * size, Real{0});
      }
    }
  }

  void finish(HeadVectors<Real> dk, Real* /*ddirection*/) {
    unpack_rows(dk_, dk, 0, head_.tokens, head_.width);
  }

 private:
  void product(const Block& block, Real* out) {
    multiply_rows<Real>(block.rows(), block.columns(), head_.width,
                        {head_.q[block.begin], head_.q.token_step, 1}, keys_, padded(head_.tokens),
                        {}, out, block.columns());
  }

  Head<Real> head_{};
  Real* keys_;                // (width, padded tokens)
  Real* key_rows_ = nullptr;  // (tokens, padded width), as the following ones
  Real* query_rows_ = nullptr;
  Real* dk_ = nullptr;
  Real* products_ = nullptr;
};

struct Identity {
  static constexpr bool kNeedsProduct = false;
};

struct Silu {
  static constexpr bool kNeedsProduct = true;
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

  void start(const Head<Real>& head) {
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
    std::fill_n(dk_, size, Real{0});
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

  void finish(HeadVectors<Real> dk, Real* ddirection) {
    const std::int64_t size = padded(head_.tokens);
    for (std::int64_t t = 0; t < head_.tokens; ++t) {
      for (std::int64_t e = 0; e < head_.width; ++e) dk[t][e] = dk_[e * size + t];
    }
    std::copy_n(ddirection_, head_.width, ddirection);
  }

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
      // Visible keys only, two vectors at a time: a single chain of additions would stall on its
      // latency.
      const std::int64_t end = padded(i + 1);
      std::int64_t j = 0;
      for (; j + 2 * lanes <= end; j += 2 * lanes) {
        auto sum0 = hn::Zero(d);
        auto sum1 = hn::Zero(d);
        for (std::int64_t e = 0; e < head_.width; ++e) {
          const auto query = hn::Set(d, query_[e]);
          const auto weight = hn::Set(d, head_.direction[e]);
          const Real* keys = keys_ + e * size + j;
          sum0 = hn::MulAdd(weight, fraction<kFactored>(d, query, hn::LoadU(d, keys)), sum0);
          sum1 =
              hn::MulAdd(weight, fraction<kFactored>(d, query, hn::LoadU(d, keys + lanes)), sum1);
        }
        hn::StoreU(hn::MulAdd(minus_two, sum0, total), d, row + j);
        hn::StoreU(hn::MulAdd(minus_two, sum1, total), d, row + j + lanes);
      }
      for (; j < end; j += lanes) {
        auto sum = hn::Zero(d);
        for (std::int64_t e = 0; e < head_.width; ++e) {
          sum = hn::MulAdd(
              hn::Set(d, head_.direction[e]),
              fraction<kFactored>(d, hn::Set(d, query_[e]), hn::LoadU(d, keys_ + e * size + j)),
              sum);
        }
        hn::StoreU(hn::MulAdd(minus_two, sum, total), d, row + j);
      }
      std::fill(row + end, row + block.columns(), Real{0});
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
      const std::int64_t end = padded(i + 1);
      auto total = hn::Zero(d);
      for (std::int64_t j = 0; j < end; j += lanes) total = hn::Add(total, hn::LoadU(d, row + j));
      const Real row_sum = sum_of(d, total);
      Real dot = 0;
      for (std::int64_t e = 0; e < head_.width; ++e) {
        const auto query = hn::Set(d, query_[e]);
        const auto weight = hn::Set(d, 4 * head_.direction[e]);
        const Real* HWY_RESTRICT keys = keys_ + e * size;
        Real* HWY_RESTRICT dk = dk_ + e * size;
        auto fractions = hn::Zero(d);
        auto slopes = hn::Zero(d);
        for (std::int64_t j = 0; j < end; j += lanes) {
          const auto g = hn::LoadU(d, row + j);
          const auto y = fraction<kFactored>(d, query, hn::LoadU(d, keys + j));
          const auto gy = hn::Mul(g, y);
          const auto slope = hn::NegMulAdd(gy, y, gy);  // g y (1 - y)
          fractions = hn::Add(fractions, gy);
          slopes = hn::Add(slopes, slope);
          hn::StoreU(hn::MulAdd(weight, slope, hn::LoadU(d, dk + j)), d, dk + j);
        }
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

template <class ScoreOf, class Real>
void forward_heads(const Attention<Real>& attention, HeadVectors<Real> output, std::int64_t begin,
                   std::int64_t end, Real* memory) {
  const std::int64_t tokens = attention.tokens;
  const std::int64_t width = attention.width;
  const std::int64_t row = padded(width);
  Workspace<Real> workspace(memory);
  ScoreOf score(tokens, width, /*backward=*/false, workspace);
  Real* values = workspace.take(tokens * row);
  Real* mixed = workspace.take(kQueryRows * row);
  Real* weights = workspace.take(kQueryRows * padded(tokens) + kPadding);
  for (std::int64_t index = begin; index < end; ++index) {
    const std::int64_t sequence = index / attention.heads;
    const std::int64_t head = index % attention.heads;
    const auto temperature = attention.inverse_temperature.head(sequence, head);
    score.start({tokens, width, attention.q.head(sequence, head), attention.k.head(sequence, head),
                 attention.direction});
    pack_rows(attention.v.head(sequence, head), tokens, width, values);
    Real* kept =
        attention.weights == nullptr ? nullptr : attention.weights + index * weights_size(tokens);
    for (Block block{0, 0}; block.end < tokens;) {
      block = {block.end, std::min(block.end + kQueryRows, tokens)};
      const std::int64_t columns = block.columns();
      score.forward(block, weights);
      for (std::int64_t i = block.begin; i < block.end; ++i) {
        const Wide<Real> d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const std::int64_t visible = i + 1;
        const std::int64_t size = padded(visible);
        Real* scores = weights + (i - block.begin) * columns;
        const auto factor = hn::Set(d, *temperature[i]);
        for (std::int64_t j = 0; j < size; j += lanes) {
          hn::StoreU(hn::Mul(factor, hn::LoadU(d, scores + j)), d, scores + j);
        }
        std::fill(scores + visible, scores + size, -std::numeric_limits<Real>::infinity());
        const Real statistic = attention.normalization.forward(scores, visible, size, tokens);
        std::fill(scores + size, scores + columns, Real{0});
        if (kept != nullptr) {
          attention.statistics[index * tokens + i] = statistic;
          std::copy_n(scores, columns, kept + (i - block.begin) * columns);
        }
        if (attention.dropout.drops()) {
          drop_row<Real>(attention.dropout, (index * tokens + i) * tokens, visible, scores,
                         nullptr);
        }
      }
      if (kept != nullptr) kept += block.rows() * columns;
      multiply_rows<Real>(block.rows(), row, block.end, {weights, columns, 1}, values, row, {},
                          mixed, row);
      unpack_rows(mixed, output.head(sequence, head), block.begin, block.end, width);
    }
  }
}

template <class ScoreOf, class Real>
void backward_heads(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                    std::int64_t begin, std::int64_t end, Real* memory) {
  const std::int64_t tokens = attention.tokens;
  const std::int64_t width = attention.width;
  const std::int64_t row = padded(width);
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
  for (std::int64_t index = begin; index < end; ++index) {
    const std::int64_t sequence = index / attention.heads;
    const std::int64_t head = index % attention.heads;
    const auto temperature = attention.inverse_temperature.head(sequence, head);
    score.start({tokens, width, attention.q.head(sequence, head), attention.k.head(sequence, head),
                 attention.direction});
    pack_columns(attention.v.head(sequence, head), tokens, width, values);
    pack_rows(gradients.output.head(sequence, head), tokens, width, outputs);
    std::fill_n(dv, tokens * row, Real{0});
    const Real* weights = attention.weights + index * weights_size(tokens);
    for (Block block{0, 0}; block.end < tokens;) {
      block = {block.end, std::min(block.end + kQueryRows, tokens)};
      const std::int64_t columns = block.columns();
      multiply_rows<Real>(block.rows(), columns, width, {outputs + block.begin * row, row, 1},
                          values, padded(tokens), {}, gradient, columns);
      const Real* used = weights;
      if (attention.dropout.drops()) {
        std::copy_n(weights, block.rows() * columns, dropped);
        for (std::int64_t i = block.begin; i < block.end; ++i) {
          const std::int64_t offset = (i - block.begin) * columns;
          drop_row<Real>(attention.dropout, (index * tokens + i) * tokens, i + 1, dropped + offset,
                         gradient + offset);
        }
        used = dropped;
      }
      multiply_rows<Real>(block.end, row, block.rows(), {used, 1, columns},
                          outputs + block.begin * row, row, {dv, row}, dv, row);
      for (std::int64_t i = block.begin; i < block.end; ++i) {
        Real* g = gradient + (i - block.begin) * columns;
        attention.normalization.backward(weights + (i - block.begin) * columns, g, columns,
                                         attention.statistics[index * tokens + i]);
        const auto factor = hn::Set(d, *temperature[i]);
        for (std::int64_t j = 0; j < columns; j += lanes) {
          hn::StoreU(hn::Mul(factor, hn::LoadU(d, g + j)), d, g + j);
        }
      }
      score.backward(block, gradient, dq, dots);
      unpack_rows(dq, gradients.q.head(sequence, head), block.begin, block.end, width);
      for (std::int64_t i = block.begin; i < block.end; ++i) {
        gradients.inverse_temperature[index * tokens + i] = dots[i - block.begin] / *temperature[i];
      }
      weights += block.rows() * columns;
    }
    unpack_rows(dv, gradients.v.head(sequence, head), 0, tokens, width);
    score.finish(gradients.k.head(sequence, head),
                 gradients.direction == nullptr ? nullptr : gradients.direction + index * width);
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

std::int64_t attention_workspace(std::int64_t tokens, std::int64_t width) {
  // The larger pass: seven arrays of all vectors, three blocks of rows, some vectors; see take().
  return 7 * padded(tokens) * padded(width) + 3 * (kQueryRows + 1) * padded(tokens) +
         4 * kQueryRows * padded(width) + 16 * kPadding;
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
