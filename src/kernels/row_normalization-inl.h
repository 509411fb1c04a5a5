// The arithmetic of kernels/normalization.hpp, written once for the vectors of a CPU
// (kernels/normalization.cpp) and the warps of a GPU (cuda/row_normalization.cuh). Each includes
// this file inside its namespace, with NAS_ROW for what stands before a function there, and brings
//
//   - rows: each(f) and map(f) call f(x) for a query's scores and f(p, g) for its weights and
//     gradients; map() writes what f returns over the scores, or the gradients. To each() hidden
//     keys have the score -inf and the weight 0. Of scores there are also `visible` (how many),
//     largest() and keep(), for which see softmax_over_largest();
//   - their Number: what f gets, an element in each lane, with + - * > and
//       exponential(x)  logistic(x)  root(x)  positive_part(x)
//       plus_product(z, x, y) = z + x y  and  minus_product(z, x, y) = z - x y
//       where(x > y, z): z, or 0 where that is false;  num_true(x > y): in how many lanes it holds
//       order(x): an integer of the same order; -0 and 0 are equal
//       total(x): the sum of all lanes
//     and exponential() and order() of a single number.

template <class Row>
using RealOf = typename Row::Real;
template <class Row>
using NumberOf = typename Row::Number;

/// Sum of term(x), or of term(p, g).
template <class Row, class Term>
NAS_ROW RealOf<Row> sum_over(const Row& row, const Term& term) {
  NumberOf<Row> sum = 0;
  row.each([&](auto... x) { sum = sum + term(x...); });
  return total(sum);
}

/// row <- map(row). @return the sum.
template <class Row, class Map>
NAS_ROW RealOf<Row> sum_mapped(const Row& row, const Map& map) {
  NumberOf<Row> sum = 0;
  row.map([&](auto x) {
    const auto y = map(x);
    sum = sum + y;
    return y;
  });
  return total(sum);
}

template <class Row>
NAS_ROW void scale(const Row& row, RealOf<Row> factor) {
  row.map([&](auto x) { return x * factor; });
}

/// row <- e^(row - top). @return the sum.
template <class Row>
NAS_ROW RealOf<Row> exponentials(const Row& row, RealOf<Row> top) {
  return sum_mapped(row, [&](auto x) { return exponential(x - top); });
}

/// row <- map(row) / (sum + 1e-8). @return what it was divided by.
template <class Row, class Map>
NAS_ROW RealOf<Row> divide_mapped(const Row& row, const Map& map) {
  const auto sum = sum_mapped(row, map) + static_cast<RealOf<Row>>(1e-8);
  scale(row, 1 / sum);
  return sum;
}

/// <p, g>
template <class Row>
NAS_ROW RealOf<Row> product_sum(const Row& row) {
  return sum_over(row, [](auto p, auto g) { return p * g; });
}

struct Softmax {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    scale(row, 1 / exponentials(row, row.largest()));
    return 0;
  }
  template <class Row>
  NAS_ROW static void backward(const Row& row, RealOf<Row> /*statistic*/) {
    const auto mean = product_sum(row);
    row.map([&](auto p, auto g) { return p * (g - mean); });
  }
};

struct Sink : Softmax {
  template <class Row>
  NAS_ROW static RealOf<Row> forward_with_sink(const Row& row, RealOf<Row> sink) {
    const auto largest = row.largest();
    const auto top = largest < sink ? sink : largest;
    const auto extra = exponential(sink - top);
    const auto factor = 1 / (exponentials(row, top) + extra);
    scale(row, factor);
    return factor * extra;
  }
};

struct Softmax1 : Softmax {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    Sink::forward_with_sink(row, 0);
    return 0;
  }
};

struct ReluNorm {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    return divide_mapped(row, [](auto x) { return positive_part(x); });
  }
  template <class Row>
  NAS_ROW static void backward(const Row& row, RealOf<Row> sum) {
    const auto mean = product_sum(row);
    const auto factor = 1 / sum;
    row.map([&](auto p, auto g) { return where(p > 0, (g - mean) * factor); });
  }
};

struct SigmoidNorm {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    return divide_mapped(row, [](auto x) { return logistic(x); });
  }
  template <class Row>
  NAS_ROW static void backward(const Row& row, RealOf<Row> sum) {
    const auto mean = product_sum(row);
    // o (1 - o) / sum with o = p sum.
    row.map([&](auto p, auto g) { return minus_product(p, p * sum, p) * (g - mean); });
  }
};

struct SigmoidAttention {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    const auto shift = std::log(static_cast<RealOf<Row>>(row.visible));
    row.map([&](auto x) { return logistic(x - shift); });
    return 0;
  }
  template <class Row>
  NAS_ROW static void backward(const Row& row, RealOf<Row> /*statistic*/) {
    row.map([](auto p, auto g) { return minus_product(p, p, p) * g; });
  }
};

struct ReluN {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    const auto count = static_cast<RealOf<Row>>(row.visible);
    const auto factor = 1 / count;
    row.map([&](auto x) { return positive_part(x) * factor; });
    return count;
  }
  template <class Row>
  NAS_ROW static void backward(const Row& row, RealOf<Row> count) {
    const auto factor = 1 / count;
    row.map([&](auto p, auto g) { return where(p > 0, g * factor); });
  }
};

struct Sparsemax {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    const auto top = row.largest();
    row.map([&](auto x) { return x - top; });
    // The largest is 0 now: at -1 it alone fills the sum, so the threshold is not to the left of
    // it. From there the supports shrink; one that does not is the last, or rounding would go on
    // for ever.
    RealOf<Row> threshold = -1;
    for (int count = std::numeric_limits<int>::max();;) {
      int larger = 0;
      NumberOf<Row> sum = 0;
      row.each([&](auto x) {
        const auto above = x > threshold;
        larger += num_true(above);
        sum = sum + where(above, x);
      });
      threshold = (total(sum) - 1) / static_cast<RealOf<Row>>(larger);
      if (larger >= count) break;
      count = larger;
    }
    row.map([&](auto x) { return positive_part(x - threshold); });
    return 0;
  }
  template <class Row>
  NAS_ROW static void backward(const Row& row, RealOf<Row> /*statistic*/) {
    int count = 0;
    NumberOf<Row> sum = 0;
    row.each([&](auto p, auto g) {
      const auto inside = p > 0;
      count += num_true(inside);
      sum = sum + where(inside, g);
    });
    const auto mean = total(sum) / static_cast<RealOf<Row>>(count);
    row.map([&](auto p, auto g) { return where(p > 0, g - mean); });
  }
};

struct Entmax15 {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    using Real = RealOf<Row>;
    const auto top = row.largest();
    row.map([&](auto x) { return (x - top) * static_cast<Real>(0.5); });
    // As for sparsemax, -1 is not to the right of the threshold. From the left the excess only
    // falls; rounding ends it.
    Real threshold = -1;
    constexpr int kMostSteps = 60;
    for (int step = 0; step < kMostSteps; ++step) {
      NumberOf<Row> sum = 0;
      NumberOf<Row> squares = 0;
      row.each([&](auto x) {
        const auto above = positive_part(x - threshold);
        sum = sum + above;
        squares = plus_product(squares, above, above);
      });
      const Real excess = total(squares) - 1;
      const Real next = threshold + excess / (2 * total(sum));
      if (!(excess > 2 * std::numeric_limits<Real>::epsilon() && next > threshold)) break;
      threshold = next;
    }
    row.map([&](auto x) {
      const auto above = positive_part(x - threshold);
      return above * above;
    });
    return 0;
  }
  template <class Row>
  NAS_ROW static void backward(const Row& row, RealOf<Row> /*statistic*/) {
    const auto roots = sum_over(row, [](auto p, auto /*g*/) { return root(p); });
    const auto mean = sum_over(row, [](auto p, auto g) { return root(p) * g; }) / roots;
    row.map([&](auto p, auto g) { return root(p) * (g - mean); });
  }
};

/// Softmax over the `count` largest of the row; of equal scores at the threshold the first ones.
template <class Row>
NAS_ROW void softmax_over_largest(const Row& row, std::int64_t count) {
  const auto top = row.largest();
  if (count < row.visible) {
    // The smallest threshold that at most `count` scores exceed: it is one of the scores, unless
    // exactly `count` are above a gap, where the search may stop at once.
    auto high = order(top);                                 // none exceeds it
    auto low = std::numeric_limits<decltype(high)>::min();  // more exceed it
    std::int64_t above = 0;
    while (above != count && low + 1 < high) {
      // Without overflow: the mean of the two, rounded down.
      const auto middle = (low & high) + ((low ^ high) >> 1);
      int found = 0;
      row.each([&](auto x) { found += num_true(order(x) > middle); });
      if (found > count) {
        low = middle;
      } else {
        high = middle;
        above = found;
      }
    }
    // Hides scores of a lower order, and of those of this one all but so many first ones.
    row.keep(high, count - above);
  }
  scale(row, 1 / exponentials(row, top));
}

struct TopK : Softmax {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t /*tokens*/) {
    softmax_over_largest(row, (row.visible + 3) / 4);
    return 0;
  }
};

struct TopkQuarter : Softmax {
  template <class Row>
  NAS_ROW static RealOf<Row> forward(const Row& row, std::int64_t tokens) {
    softmax_over_largest(row, tokens < 4 ? 1 : tokens / 4);
    return 0;
  }
};
