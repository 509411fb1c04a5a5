#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <algorithm>
#include <cmath>
#include <numeric>

#include <hwy/foreach_target.h>

#include "kernels/attention.hpp"
#include "kernels/attention_scores-inl.h"
#include "kernels/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// Dropout of what a block's queries see: `rows` to `dropped`, maybe the same, and in place `others`,
/// of the same columns, unless null.
/// @param head  its number among those of all sequences.
template <class Real>
void drop_rows(const Attention<Real>& attention, const Block& block, std::int64_t head,
               const Real* rows, Real* dropped, Real* others) {
  const Wide<Real> d;
  const auto scale = hn::Set(d, static_cast<Real>(attention.dropout.scale));
  if (dropped != rows) std::copy_n(rows, block.rows() * block.columns(), dropped);
  for (std::int64_t i = block.begin; i < block.end; ++i) {
    block.for_row(i, [&](const Run& run) {
      const std::int64_t begin = (i - block.begin) * block.columns() + run.begin;
      const std::int64_t first = (head * attention.tokens + i) * attention.tokens + run.key;
      for_each_kept(d, attention.dropout, first, std::min(run.size(), i + 1 - run.key),
                    [&](std::int64_t j, std::int64_t n, auto mask) {
                      // A vector beyond n belongs to the next block of the mask, or lies behind the row.
                      const auto meant = hn::FirstN(d, static_cast<std::size_t>(n));
                      for (Real* of : {dropped, others}) {
                        if (of == nullptr) continue;
                        const auto x = hn::LoadU(d, of + begin + j);
                        const auto kept = hn::IfThenElseZero(mask, hn::Mul(x, scale));
                        hn::StoreU(hn::IfThenElse(meant, kept, x), d, of + begin + j);
                      }
                    });
    });
  }
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
    if (biases_ != nullptr) {
      block.for_row(i, [&](const Run& run) {
        add_row(run.size(), biases_ + reversed(i, run.key), row + run.begin);
      });
    }
    if (sums_ != nullptr) {
      const auto own = hn::Set(Wide<Real>(), static_cast<Real>(head_sums_[i] - base_));
      block.for_row(i, [&](const Run& run) {
        const Real* sums = sums_ + run.key;
        Real* at = row + run.begin;
        for_vectors<Real>(run.size(), [&](auto d, std::int64_t j) {
          const auto difference = hn::Sub(own, hn::LoadU(d, sums + j));
          hn::StoreU(hn::Add(hn::LoadU(d, at + j), difference), d, at + j);
        });
      });
    }
  }

  /// @param gradient  dL/ds, 0 for hidden keys.
  void backward(const Block& block, std::int64_t i, const Real* HWY_RESTRICT gradient) {
    const auto add = [&](const Run& run, Real* to) {
      add_row(run.size(), gradient + run.begin, to);
    };
    if (dbiases_ != nullptr) {
      block.for_row(i, [&](const Run& run) { add(run, dbiases_ + reversed(i, run.key)); });
    }
    if (by_keys_ != nullptr) {
      block.for_row(i, [&](const Run& run) { add(run, by_keys_ + run.key); });
      const Real* row = gradient + block.row_begin(i);
      auto sum = hn::Zero(Wide<Real>());
      for_vectors<Real>(block.row_end(i) - block.row_begin(i),
                        [&](auto d, std::int64_t j) { sum = hn::Add(sum, hn::LoadU(d, row + j)); });
      by_queries_[i] = sum_of(Wide<Real>(), sum);
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

/// row <- factor row.
template <class Real>
HWY_INLINE void scale_row(Real factor, std::int64_t size, Real* row) {
  const auto factors = hn::Set(Wide<Real>(), factor);
  map_row(size, row, [&](auto /*d*/, auto x) { return hn::Mul(factors, x); });
}

/// Where head `index` of all sequences' heads lies.
template <class Real>
struct HeadPlace {
  std::int64_t index, sequence, head, key_head;
  HeadVectors<const Real> temperature;

  HeadPlace(const Attention<Real>& attention, std::int64_t index_of_all)
      : index(index_of_all),
        sequence(index / attention.heads),
        head(index % attention.heads),
        key_head(head / attention.group()),
        temperature(attention.inverse_temperature.head(sequence, head)) {}

  [[nodiscard]] Head<Real> inputs(const Attention<Real>& attention) const {
    return {attention.tokens, attention.width, attention.q.head(sequence, head),
            attention.k.head(sequence, key_head), attention.direction};
  }
};

/// Weights before dropout of one block after the other, one head after the other.
template <class ScoreOf, class Real>
class Weights {
 public:
  Weights(const Attention<Real>& attention, const AttentionGradients<Real>* gradients,
          Workspace<Real>& workspace)
      : products(attention, workspace),
        score(attention, products, gradients != nullptr, workspace),
        biases(attention, gradients, workspace),
        rows(workspace.take(kQueryRows * padded(attention.tokens) + kPadding)),
        statistics(workspace.take(kQueryRows)),
        attention_(attention),
        keeps_(attention.kept != nullptr && kept_size_ > 0),
        computes_(!keeps_ || gradients == nullptr) {}

  /// @param clear  gradients w.r.t. keys begin at 0.
  void start(const HeadPlace<Real>& place, bool clear) {
    score.start(place.inputs(attention_), clear);
    biases.start(place.index);
    if (!keeps_) return;
    kept_ = attention_.kept + place.index * kept_size_;
    statistics = kept_ + kept_size_ - attention_.tokens - kQueryRows;
  }

  /// @return a block's rows, and in `statistics` theirs; in the backward pass as they were kept.
  Real* next(const HeadPlace<Real>& place, const Block& block) {
    Real* found = rows;
    if (keeps_) {
      found = std::exchange(kept_, kept_ + block.rows() * block.columns());
      statistics += kQueryRows;
    }
    if (!computes_) return found;
    score.forward(block, found);
    biases.start(block);
    const auto& by = attention_.normalization;
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      Real* whole = found + (i - block.begin) * block.columns();
      Real* scores = whole + block.row_begin(i);
      const std::int64_t size = block.row_end(i) - block.row_begin(i);
      scale_row(*place.temperature[i], size, scores);
      biases.add_to(block, i, whole);
      block.hide(i, whole);
      statistics[i - block.begin] =
          attention_.sinks == nullptr
              ? by.forward(scores, block.visible(i), size, attention_.tokens)
              : by.forward_with_sink(scores, block.visible(i), size, attention_.sinks[place.head]);
      std::fill(whole, scores, Real{0});
      std::fill(scores + size, whole + block.columns(), Real{0});
    }
    return found;
  }

  BlockProducts<Real> products;
  ScoreOf score;
  Biases<Real> biases;
  Real* rows;        ///< of a block that is not kept
  Real* statistics;  ///< what the normalization returned for the block's rows

 private:
  const Attention<Real>& attention_;
  std::int64_t kept_size_ = kept_size(attention_.tokens, attention_.window, attention_.globals,
                                      attention_.pairs.has_value());
  bool keeps_;
  bool computes_;
  Real* kept_ = nullptr;  // of the next block
};

/// The forward pass of one head after the other.
template <class ScoreOf, class Real>
class Forward {
 public:
  Forward(const Attention<Real>& attention, HeadVectors<Real> output, Real* memory)
      : attention_(attention),
        output_(output),
        workspace_(memory),
        weights_(attention, nullptr, workspace_),
        values_(workspace_.take(weights_.products.room())),
        mixed_(workspace_.take(kQueryRows * row_)) {}

  void run(std::int64_t index) {
    const HeadPlace<Real> place(attention_, index);
    weights_.start(place, /*clear=*/true);
    const auto values = attention_.v.head(place.sequence, place.key_head);
    if (std::exchange(packed_, values.data) != values.data) {
      weights_.products.pack_as_rows(values, values_);
    }
    for (std::int64_t first = 0; first < attention_.tokens; first += kQueryRows) {
      const auto block = Block::of(attention_, first);
      const Real* rows = weights_.next(place, block);
      if (attention_.dropout.drops()) {
        drop_rows<Real>(attention_, block, index, rows, weights_.rows, nullptr);
        rows = weights_.rows;
      }
      weights_.products.by_rows(block, rows, values_, mixed_);
      unpack_rows(mixed_, output_.head(place.sequence, place.head), block.begin, block.end,
                  attention_.width);
    }
  }

 private:
  const Attention<Real>& attention_;
  HeadVectors<Real> output_;
  std::int64_t row_ = padded(attention_.width);
  Workspace<Real> workspace_;
  Weights<ScoreOf, Real> weights_;
  Real* values_;
  Real* mixed_;
  const Real* packed_ = nullptr;  // what values_ has
};

/// Whether a query's factor u leaves too little of u dL/ds to divide by it. The raw scores of the
/// block are computed again then; only training may make such factors, seldom.
template <class Real>
bool vanishes(Real factor) {
  return std::abs(factor) < static_cast<Real>(sizeof(Real) == sizeof(float) ? 1e-18 : 1e-150);
}

/// The backward pass, likewise.
template <class ScoreOf, class Real>
class Backward {
 public:
  Backward(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
           Real* memory)
      : attention_(attention),
        gradients_(gradients),
        workspace_(memory),
        weights_(attention, &gradients, workspace_),
        values_(workspace_.take(weights_.products.room())),
        outputs_(workspace_.take(attention.tokens * row_)),
        dv_(workspace_.take(attention.tokens * row_)),
        dq_(workspace_.take(kQueryRows * row_)),
        dots_(workspace_.take(kQueryRows)),
        gradient_(workspace_.take(kQueryRows * padded(attention.tokens) + kPadding)),
        spare_(workspace_.take(kQueryRows * padded(attention.tokens) + kPadding)) {}

  void run(std::int64_t index) {
    const std::int64_t tokens = attention_.tokens;
    const std::int64_t width = attention_.width;
    const HeadPlace<Real> place(attention_, index);
    const bool first_of_group = place.head % attention_.group() == 0;
    weights_.start(place, /*clear=*/first_of_group);
    weights_.products.pack_as_columns(attention_.v.head(place.sequence, place.key_head), values_);
    pack_rows(gradients_.output.head(place.sequence, place.head), tokens, width, outputs_);
    if (first_of_group) std::fill_n(dv_, tokens * row_, Real{0});
    by_temperature_ = gradients_.inverse_temperature + index * tokens;
    by_sink_ = 0;
    for (std::int64_t first = 0; first < tokens; first += kQueryRows) {
      run(place, Block::of(attention_, first));
    }
    weights_.biases.finish(index);
    if (gradients_.sinks != nullptr) gradients_.sinks[index] = by_sink_;
    weights_.score.finish_head(
        gradients_.direction == nullptr ? nullptr : gradients_.direction + index * width);
    if ((place.head + 1) % attention_.group() == 0) {
      unpack_rows(dv_, gradients_.v.head(place.sequence, place.key_head), 0, tokens, width);
      weights_.score.finish(gradients_.k.head(place.sequence, place.key_head));
    }
  }

 private:
  void run(const HeadPlace<Real>& place, const Block& block) {
    const Real* weights = weights_.next(place, block);
    values_backward(place, block, weights);
    has_raw_scores_ = false;
    for (std::int64_t i = block.begin; i < block.end; ++i) weigh(place, block, i, weights);
    weights_.score.backward(block, gradient_, dq_, dots_, spare_);
    unpack_rows(dq_, gradients_.q.head(place.sequence, place.head), block.begin, block.end,
                attention_.width);
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      const Real factor = *place.temperature[i];
      if (!vanishes(factor)) by_temperature_[i] = dots_[i - block.begin] / factor;
    }
  }

  /// Gradients w.r.t. a block's weights, before dropout, and its share of those w.r.t. values.
  void values_backward(const HeadPlace<Real>& place, const Block& block, const Real* weights) {
    const Real* outputs = outputs_ + block.begin * row_;
    weights_.products.by_columns(block, outputs, row_, values_, gradient_);
    const Real* used = weights;
    if (attention_.dropout.drops()) {
      drop_rows(attention_, block, place.index, weights, spare_, gradient_);
      used = spare_;
    }
    weights_.products.add_outer(block, used, outputs, dv_);
  }

  /// Gradients w.r.t. weights of query i to those w.r.t. raw scores.
  void weigh(const HeadPlace<Real>& place, const Block& block, std::int64_t i,
             const Real* weights) {
    const Real statistic = weights_.statistics[i - block.begin];
    const std::int64_t row_begin = block.row_begin(i);
    const std::int64_t size = block.columns() - row_begin;
    const std::int64_t offset = (i - block.begin) * block.columns();
    const Real* w = weights + offset + row_begin;
    Real* whole = gradient_ + offset;
    Real* g = whole + row_begin;
    std::fill(whole, g, Real{0});
    if (attention_.sinks != nullptr) by_sink_ -= statistic * product_sum(w, g, size);
    attention_.normalization.backward(w, g, size, statistic);
    weights_.biases.backward(block, i, whole);
    const Real factor = *place.temperature[i];
    if (vanishes(factor)) {
      // What dropout left of the weights has been used.
      if (!has_raw_scores_) weights_.score.forward(block, spare_);
      has_raw_scores_ = true;
      const Real* raw = spare_ + (g - gradient_);
      by_temperature_[i] = std::inner_product(g, g + size, raw, Real{0});
    }
    scale_row(factor, size, g);
  }

  static Real product_sum(const Real* a, const Real* b, std::int64_t size) {
    auto sum = hn::Zero(Wide<Real>());
    for_vectors<Real>(size, [&](auto d, std::int64_t j) {
      sum = hn::MulAdd(hn::LoadU(d, a + j), hn::LoadU(d, b + j), sum);
    });
    return sum_of(Wide<Real>(), sum);
  }

  const Attention<Real>& attention_;
  const AttentionGradients<Real>& gradients_;
  std::int64_t row_ = padded(attention_.width);
  Workspace<Real> workspace_;
  Weights<ScoreOf, Real> weights_;
  Real* values_;   // as columns
  Real* outputs_;  // dL/d(output)
  Real* dv_;
  Real* dq_;
  Real* dots_;
  Real* gradient_;
  Real* spare_;                     // weights after dropout, raw scores, then the score's own
  Real* by_temperature_ = nullptr;  // of the present head
  Real by_sink_ = 0;
  bool has_raw_scores_ = false;  // of the present block, in spare_
};

/// Pass, Forward or Backward, over heads [begin, end).
template <template <class, class> class Pass, class Real, class Results>
void run_heads(const Attention<Real>& attention, const Results& results, std::int64_t begin,
               std::int64_t end, Real* workspace) {
  const auto run = [&](auto pass) {
    for (std::int64_t index = begin; index < end; ++index) pass.run(index);
  };
  switch (attention.score) {
    case Score::product:
      return run(Pass<ProductScore<Real, Identity>, Real>(attention, results, workspace));
    case Score::silu_product:
      return run(Pass<ProductScore<Real, Silu>, Real>(attention, results, workspace));
    case Score::additive:
      return run(Pass<AdditiveScore<Real>, Real>(attention, results, workspace));
    case Score::distance:
      return run(Pass<ProductScore<Real, Distance>, Real>(attention, results, workspace));
  }
}

template <class Real>
void forward_heads(const Attention<Real>& attention, HeadVectors<Real> output, std::int64_t begin,
                   std::int64_t end, Real* workspace) {
  run_heads<Forward>(attention, output, begin, end, workspace);
}

template <class Real>
void backward_heads(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                    std::int64_t begin, std::int64_t end, Real* workspace) {
  run_heads<Backward>(attention, gradients, begin, end, workspace);
}

NAS_KERNEL(forward, forward_heads)
NAS_KERNEL(backward, backward_heads)

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

std::int64_t attention_workspace(std::int64_t tokens, std::int64_t width, bool with_biases) {
  // The larger pass: seven arrays of all vectors, three blocks of rows, some vectors, pairs of a
  // block; see take().
  const std::int64_t plain = 7 * (padded(tokens) + kPadding) * padded(width) +
                             3 * (kQueryRows + 1) * padded(tokens) +
                             4 * kQueryRows * padded(width) + 16 * kPadding +
                             kQueryRows / 2 * (padded(tokens) + 2 * padded(width) + 6 * kPadding);
  // Seven arrays of a number for each token.
  return with_biases ? plain + 7 * (padded(tokens) + kPadding) : plain;
}

template <class Real>
void attention_forward(const Attention<Real>& attention, HeadVectors<Real> output,
                       std::int64_t begin, std::int64_t end, Real* workspace) {
  NAS_CALL(forward, attention_forward<Real>)(attention, output, begin, end, workspace);
}

template <class Real>
void attention_backward(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                        std::int64_t begin, std::int64_t end, Real* workspace) {
  NAS_CALL(backward, attention_backward<Real>)(attention, gradients, begin, end, workspace);
}

NAS_INSTANTIATE(attention_forward)
NAS_INSTANTIATE(attention_backward)

}  // namespace nas::kernels
#endif
