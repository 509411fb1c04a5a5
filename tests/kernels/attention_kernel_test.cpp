#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"

namespace nas::kernels {
namespace {

using Kind = RowNormalization::Kind;

/// What is computed.
struct Form {
  std::int64_t sequences = 2;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 4;
  std::int64_t tokens = 33;
  std::int64_t width = 8;
  std::int64_t window = 0;
  std::int64_t globals = 0;
  Score score = Score::product;
  RowNormalization normalization = softmax();
  bool distance_biases = false;
  bool sums = false;
  double dropout = 0;

  [[nodiscard]] bool has_sinks() const { return normalization.kind() == Kind::sink; }
  [[nodiscard]] std::int64_t group() const { return heads / kv_heads; }
  [[nodiscard]] std::int64_t num_heads() const { return sequences * heads; }
  [[nodiscard]] bool sees(std::int64_t i, std::int64_t j) const {
    return j <= i && (window == 0 || i - j < window || j < globals);
  }
  /// Where element e of a token's vector lies; `of` heads are side by side.
  [[nodiscard]] std::size_t at(std::int64_t of, std::int64_t b, std::int64_t t, std::int64_t h,
                               std::int64_t e) const {
    return static_cast<std::size_t>(((b * tokens + t) * of + h) * width + e);
  }
  [[nodiscard]] std::size_t of_query(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return static_cast<std::size_t>((b * heads + h) * tokens + i);
  }
};

std::string described(const Form& form) {
  std::ostringstream text;
  text << "T " << form.tokens << ", d " << form.width << ", H " << form.heads << ", G "
       << form.kv_heads << ", window " << form.window << ", globals " << form.globals << ", score "
       << static_cast<int>(form.score) << ", rows " << static_cast<int>(form.normalization.kind())
       << ", biases " << form.distance_biases << ", sums " << form.sums << ", dropout "
       << form.dropout;
  return text.str();
}

/// The inputs, or the gradients w.r.t. them.
template <class Real>
struct Numbers {
  std::vector<Real> q, k, v, temperature, direction, biases, sinks;
  std::vector<double> sums;

  explicit Numbers(const Form& form) {
    const auto sized = [](std::int64_t size) {
      return std::vector<Real>(static_cast<std::size_t>(size));
    };
    const auto vectors = form.sequences * form.tokens * form.width;
    q = sized(vectors * form.heads);
    k = v = sized(vectors * form.kv_heads);
    temperature = sized(form.num_heads() * form.tokens);
    direction = sized(form.width);
    biases = sized(form.heads * form.tokens);
    sinks = sized(form.heads);
    sums.resize(static_cast<std::size_t>(form.num_heads() * form.tokens));
  }
};

template <class Real>
void fill(std::vector<Real>& numbers, std::mt19937_64& random, double size) {
  std::normal_distribution<double> normal(0, size);
  for (Real& x : numbers) x = static_cast<Real>(normal(random));
}

template <class Real>
struct Case {
  Form form;
  Numbers<Real> inputs;
  std::vector<Real> by_output;  ///< L = <o, by_output>

  explicit Case(const Form& given) : form(given), inputs(given) {
    std::mt19937_64 random(5);
    fill(inputs.q, random, 1);
    fill(inputs.k, random, 1);
    fill(inputs.v, random, 1);
    fill(inputs.temperature, random, 0.3);
    for (Real& u : inputs.temperature) u += 1;
    fill(inputs.direction, random, 1);
    fill(inputs.biases, random, 0.5);
    fill(inputs.sinks, random, 1);
    fill(inputs.sums, random, 0.2);
    by_output.resize(inputs.q.size());
    fill(by_output, random, 1);
  }
};

/// What a pass gives.
template <class Real>
struct Results {
  std::vector<Real> output;
  Numbers<Real> gradients;
};

Dropout dropout_of(const Form& form) {
  return form.dropout > 0 ? Dropout::of(11, form.dropout) : Dropout{};
}

/// By the kernels, in calls of `heads_a_call` heads.
template <class Real>
Results<Real> by_kernels(const Case<Real>& given, std::int64_t heads_a_call) {
  const Form& form = given.form;
  const Numbers<Real>& inputs = given.inputs;
  const auto vectors = [&](auto* data, std::int64_t heads) {
    return HeadVectors<std::remove_pointer_t<decltype(data)>>{
        data, form.tokens * heads * form.width, form.width, heads * form.width};
  };
  const Real nan = std::numeric_limits<Real>::quiet_NaN();
  const auto unwritten = [&](std::int64_t size) {
    return std::vector<Real>(static_cast<std::size_t>(size), nan);
  };
  const bool biased = form.distance_biases || form.sums || form.score == Score::distance;
  auto memory = unwritten(attention_workspace(form.tokens, form.width, biased) + 64);
  auto* workspace = memory.data();
  while (reinterpret_cast<std::uintptr_t>(workspace) % 64 != 0) ++workspace;
  auto weights = unwritten(form.num_heads() * weights_size(form.tokens, form.window, form.globals));
  auto statistics = unwritten(form.num_heads() * form.tokens);
  Attention<Real> attention;
  attention.sequences = form.sequences;
  attention.heads = form.heads;
  attention.kv_heads = form.kv_heads;
  attention.tokens = form.tokens;
  attention.width = form.width;
  attention.window = form.window;
  attention.globals = form.globals;
  attention.score = form.score;
  attention.normalization = form.normalization.kernel<Real>();
  attention.q = vectors(inputs.q.data(), form.heads);
  attention.k = vectors(inputs.k.data(), form.kv_heads);
  attention.v = vectors(inputs.v.data(), form.kv_heads);
  if (form.score == Score::additive) attention.direction = inputs.direction.data();
  attention.inverse_temperature = {inputs.temperature.data(), form.heads * form.tokens, form.tokens,
                                   1};
  if (form.distance_biases) attention.distance_biases = inputs.biases.data();
  if (form.sums) attention.sums = inputs.sums.data();
  if (form.has_sinks()) attention.sinks = inputs.sinks.data();
  attention.dropout = dropout_of(form);
  attention.weights = weights.data();
  attention.statistics = statistics.data();

  Results<Real> results{std::vector<Real>(inputs.q.size(), nan), Numbers<Real>(form)};
  auto& by = results.gradients;
  for (auto* numbers : {&by.q, &by.k, &by.v, &by.temperature}) {
    std::fill(numbers->begin(), numbers->end(), nan);
  }
  auto directions = unwritten(form.num_heads() * form.width);
  auto biases = unwritten(form.num_heads() * form.tokens);
  auto sinks = unwritten(form.num_heads());
  AttentionGradients<Real> gradients;
  gradients.output = vectors(given.by_output.data(), form.heads);
  gradients.q = vectors(by.q.data(), form.heads);
  gradients.k = vectors(by.k.data(), form.kv_heads);
  gradients.v = vectors(by.v.data(), form.kv_heads);
  gradients.inverse_temperature = by.temperature.data();
  if (form.score == Score::additive) gradients.direction = directions.data();
  if (form.distance_biases) gradients.distance_biases = biases.data();
  if (form.sums) gradients.sums = by.sums.data();
  if (form.has_sinks()) gradients.sinks = sinks.data();
  for (std::int64_t begin = 0; begin < form.num_heads(); begin += heads_a_call) {
    const auto end = std::min(begin + heads_a_call, form.num_heads());
    attention_forward(attention, vectors(results.output.data(), form.heads), begin, end, workspace);
  }
  for (std::int64_t begin = 0; begin < form.num_heads(); begin += heads_a_call) {
    const auto end = std::min(begin + heads_a_call, form.num_heads());
    attention_backward(attention, gradients, begin, end, workspace);
  }
  const auto add_up = [](const std::vector<Real>& parts, std::vector<Real>& sums) {
    for (std::size_t i = 0; i < parts.size(); ++i) sums[i % sums.size()] += parts[i];
  };
  if (form.score == Score::additive) add_up(directions, by.direction);
  if (form.distance_biases) add_up(biases, by.biases);
  if (form.has_sinks()) add_up(sinks, by.sinks);
  return results;
}

/// dL/ds of a row from dL/dw and the weights.
using RowBackward = std::function<std::vector<double>(const std::vector<double>&)>;

struct Row {
  std::vector<double> weights;
  double sink_weight = 0;
  RowBackward backward;
};

/// The weights of a row of visible scores: the new normalizations by their formulas, the others by
/// their kernel, on these scores alone.
Row normalized(const Form& form, const std::vector<double>& scores, double sink) {
  const auto n = scores.size();
  const auto count = static_cast<double>(n);
  const auto kind = form.normalization.kind();
  Row row;
  if (kind == Kind::sigmoid_attn || kind == Kind::relu_n) {
    std::vector<double> slopes;
    for (const double s : scores) {
      const double o = 1 / (1 + std::exp(std::log(count) - s));
      const bool is_relu = kind == Kind::relu_n;
      row.weights.push_back(is_relu ? std::max(s, 0.0) / count : o);
      slopes.push_back(!is_relu ? o * (1 - o) : s > 0 ? 1 / count : 0);
    }
    row.backward = [slopes](std::vector<double> g) {
      for (std::size_t j = 0; j < g.size(); ++j) g[j] *= slopes[j];
      return g;
    };
    return row;
  }
  if (kind == Kind::softmax || kind == Kind::sink) {
    double top = *std::max_element(scores.begin(), scores.end());
    if (kind == Kind::sink) top = std::max(top, sink);
    double sum = kind == Kind::sink ? std::exp(sink - top) : 0;
    row.sink_weight = sum;
    for (const double s : scores) sum += std::exp(s - top);
    for (const double s : scores) row.weights.push_back(std::exp(s - top) / sum);
    row.sink_weight /= sum;
    row.backward = [w = row.weights](std::vector<double> g) {
      double mean = 0;
      for (std::size_t j = 0; j < g.size(); ++j) mean += w[j] * g[j];
      for (std::size_t j = 0; j < g.size(); ++j) g[j] = w[j] * (g[j] - mean);
      return g;
    };
    return row;
  }
  const auto size = static_cast<std::size_t>(padded(static_cast<std::int64_t>(n)));
  const auto& kernel = form.normalization.kernel<double>();
  auto whole = scores;
  whole.resize(size, -std::numeric_limits<double>::infinity());
  const double statistic = kernel.forward(whole.data(), static_cast<std::int64_t>(n),
                                          static_cast<std::int64_t>(size), form.tokens);
  row.weights.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
  row.backward = [=](std::vector<double> g) {
    g.resize(size);
    kernel.backward(whole.data(), g.data(), static_cast<std::int64_t>(size), statistic);
    g.resize(n);
    return g;
  };
  return row;
}

bool is_kept(const Dropout& dropout, std::int64_t element) {
  return dropout_hash(static_cast<std::uint32_t>(element % kDropoutBlock),
                      dropout_word(dropout.key, element)) >= dropout.threshold;
}

/// A score of a query and a key, and its derivatives by their elements.
struct RawScore {
  double value = 0;
  std::vector<double> by_q, by_k, by_direction;
};

template <class Real>
RawScore raw_score(const Form& form, const Real* q, const Real* k, const Real* direction) {
  const auto width = static_cast<std::size_t>(form.width);
  RawScore raw{0, std::vector<double>(width), std::vector<double>(width),
               std::vector<double>(width)};
  for (std::size_t e = 0; e < width; ++e) {
    const double x = q[e];
    const double y = k[e];
    if (form.score == Score::additive) {
      const double tangent = raw.by_direction[e] = std::tanh(x + y);
      raw.value += direction[e] * tangent;
      raw.by_q[e] = raw.by_k[e] = direction[e] * (1 - tangent * tangent);
    } else {
      const bool distant = form.score == Score::distance;
      raw.value += distant ? -(x - y) * (x - y) / 2 : x * y;
      raw.by_q[e] = distant ? y - x : y;
      raw.by_k[e] = distant ? x - y : x;
    }
  }
  if (form.score != Score::silu_product) return raw;
  const double o = 1 / (1 + std::exp(-raw.value));
  for (auto* slopes : {&raw.by_q, &raw.by_k}) {
    for (double& slope : *slopes) slope *= o + raw.value * o * (1 - o);
  }
  raw.value *= o;
  return raw;
}

/// By loops over queries and keys, in double.
template <class Real>
Results<double> by_loops(const Case<Real>& given) {
  const Form& form = given.form;
  const Numbers<Real>& in = given.inputs;
  Results<double> results{std::vector<double>(in.q.size()), Numbers<double>(form)};
  auto& by = results.gradients;
  const auto dropout = dropout_of(form);
  const auto width = static_cast<std::size_t>(form.width);
  const auto add_row = [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const auto query = form.of_query(b, h, i);
    const auto q = form.at(form.heads, b, i, h, 0);
    const auto key = [&](std::int64_t j) {
      return form.at(form.kv_heads, b, j, h / form.group(), 0);
    };
    const auto far = [&](std::int64_t j) {
      return static_cast<std::size_t>(h * form.tokens + i - j);
    };
    std::vector<std::int64_t> seen;
    std::vector<RawScore> raw;
    std::vector<double> scores, by_weights;
    for (std::int64_t j = 0; j <= i; ++j) {
      if (!form.sees(i, j)) continue;
      seen.push_back(j);
      raw.push_back(raw_score(form, &in.q[q], &in.k[key(j)], in.direction.data()));
      scores.push_back(in.temperature[query] * raw.back().value);
      if (form.distance_biases) scores.back() += in.biases[far(j)];
      if (form.sums) scores.back() += in.sums[query] - in.sums[form.of_query(b, h, j)];
    }
    const auto head = static_cast<std::size_t>(h);
    const auto row = normalized(form, scores, in.sinks[head]);
    for (std::size_t n = 0; n < seen.size(); ++n) {
      const auto element = static_cast<std::int64_t>(query) * form.tokens + seen[n];
      const bool kept = !dropout.drops() || is_kept(dropout, element);
      const double factor = !kept ? 0 : dropout.drops() ? dropout.scale : 1;
      by_weights.push_back(0);
      for (std::size_t e = 0; e < width; ++e) {
        const double value = in.v[key(seen[n]) + e];
        const double g = factor * given.by_output[q + e];
        results.output[q + e] += factor * row.weights[n] * value;
        by.v[key(seen[n]) + e] += row.weights[n] * g;
        by_weights[n] += g * value;
      }
      if (form.has_sinks()) by.sinks[head] -= row.sink_weight * by_weights[n] * row.weights[n];
    }
    const auto by_scores = row.backward(by_weights);
    for (std::size_t n = 0; n < seen.size(); ++n) {
      const double g = by_scores[n];
      by.temperature[query] += g * raw[n].value;
      if (form.distance_biases) by.biases[far(seen[n])] += g;
      if (form.sums) by.sums[query] += g;
      if (form.sums) by.sums[form.of_query(b, h, seen[n])] -= g;
      for (std::size_t e = 0; e < width; ++e) {
        by.q[q + e] += g * in.temperature[query] * raw[n].by_q[e];
        by.k[key(seen[n]) + e] += g * in.temperature[query] * raw[n].by_k[e];
        by.direction[e] += g * in.temperature[query] * raw[n].by_direction[e];
      }
    }
  };
  for (std::int64_t row = 0; row < form.num_heads() * form.tokens; ++row) {
    add_row(row / form.tokens / form.heads, row / form.tokens % form.heads, row % form.tokens);
  }
  return results;
}

template <class A, class B>
void expect_close(const std::vector<A>& ours, const std::vector<B>& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(ours.size(), expected.size()) << what;
  double size = 1;
  for (const auto x : expected) size = std::max(size, std::abs(static_cast<double>(x)));
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double error = std::abs(static_cast<double>(ours[i]) - static_cast<double>(expected[i]));
    ASSERT_LE(error, tolerance * size) << what << " at " << i;
  }
}

template <class A, class B>
void expect_close(const Results<A>& ours, const Results<B>& expected, double tolerance,
                  const std::string& what) {
  const auto& a = ours.gradients;
  const auto& b = expected.gradients;
  expect_close(ours.output, expected.output, tolerance, what + ": output");
  expect_close(a.q, b.q, tolerance, what + ": dq");
  expect_close(a.k, b.k, tolerance, what + ": dk");
  expect_close(a.v, b.v, tolerance, what + ": dv");
  expect_close(a.temperature, b.temperature, tolerance, what + ": dtemperature");
  expect_close(a.direction, b.direction, tolerance, what + ": ddirection");
  expect_close(a.biases, b.biases, tolerance, what + ": dbiases");
  expect_close(a.sums, b.sums, tolerance, what + ": dsums");
  expect_close(a.sinks, b.sinks, tolerance, what + ": dsinks");
}

template <class Real>
void expect_equal(const Results<Real>& a, const Results<Real>& b, const std::string& what) {
  expect_close(a, b, 0, what);
}

template <class Real>
void expect_as_by_loops(const Form& form) {
  const Case<Real> given(form);
  expect_close(by_kernels(given, form.num_heads()), by_loops(given),
               sizeof(Real) == sizeof(float) ? 2e-5 : 1e-12, described(form));
}

template <class Real>
class AttentionKernel : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionKernel, Reals);

TYPED_TEST(AttentionKernel, SeesWhatItsWindowAndItsGlobalKeysLeave) {
  for (const std::int64_t tokens : {1, 7, 33, 70, 129}) {
    for (const std::int64_t window : {0, 1, 5, 32, 64, 200}) {
      for (const std::int64_t globals : {0, 1, 4, 20}) {
        expect_as_by_loops<TypeParam>({.sequences = 1,
                                       .heads = 2,
                                       .kv_heads = 2,
                                       .tokens = tokens,
                                       .window = window,
                                       .globals = globals});
      }
    }
  }
}

TYPED_TEST(AttentionKernel, WindowsFitEveryScore) {
  for (const auto score : {Score::product, Score::silu_product, Score::additive, Score::distance}) {
    for (const std::int64_t window : {0, 5, 32}) {
      for (const std::int64_t globals : {0, 4}) {
        for (const std::int64_t kv_heads : {1, 4}) {
          expect_as_by_loops<TypeParam>({.kv_heads = kv_heads,
                                         .tokens = 70,
                                         .window = window,
                                         .globals = globals,
                                         .score = score});
        }
      }
    }
  }
}

TYPED_TEST(AttentionKernel, AddsBiasesByDistanceAndDifferencesOfSums) {
  for (const std::int64_t tokens : {1, 7, 33, 70, 129}) {
    for (const std::int64_t window : {0, 5, 64}) {
      for (const std::int64_t globals : {0, 4}) {
        for (const int with : {1, 2, 3}) {
          expect_as_by_loops<TypeParam>({.sequences = 2,
                                         .heads = 2,
                                         .kv_heads = 1,
                                         .tokens = tokens,
                                         .window = window,
                                         .globals = globals,
                                         .distance_biases = with % 2 == 1,
                                         .sums = with >= 2});
        }
      }
    }
  }
}

TYPED_TEST(AttentionKernel, NewRowsAreTheirFormulas) {
  for (const auto& rows : {sink(), sigmoid_attn(), relu_n()}) {
    // By another precision a score just above 0 is below: with relu_n no gradient is close then.
    if (rows.kind() == Kind::relu_n && sizeof(TypeParam) == sizeof(float)) continue;
    for (const std::int64_t tokens : {1, 7, 33, 129}) {
      for (const std::int64_t window : {0, 1, 32}) {
        for (const std::int64_t globals : {0, 1}) {
          for (const double dropout : {0.0, 0.3}) {
            expect_as_by_loops<TypeParam>({.tokens = tokens,
                                           .window = window,
                                           .globals = globals,
                                           .normalization = rows,
                                           .distance_biases = true,
                                           .dropout = dropout});
          }
        }
      }
    }
  }
}

TEST(AttentionKernel, EveryNormalizationBearsWindows) {
  for (const auto& rows : {softmax1(), relu_norm(), sigmoid_norm(), sparsemax(), entmax15(),
                           top_k(), topk_quarter()}) {
    for (const std::int64_t window : {1, 5, 32}) {
      for (const std::int64_t globals : {0, 1, 4}) {
        expect_as_by_loops<double>(
            {.tokens = 70, .window = window, .globals = globals, .normalization = rows});
      }
    }
  }
}

/// Say of a log_length whose scale was trained to zero, or next to it.
TYPED_TEST(AttentionKernel, FactorsOfZeroHaveGradients) {
  for (const auto score : {Score::product, Score::silu_product, Score::additive, Score::distance}) {
    for (const auto& rows :
         {softmax(), softmax1(), sink(), sigmoid_attn(), sigmoid_norm(), relu_norm(), relu_n(),
          sparsemax(), entmax15(), top_k(), topk_quarter()}) {
      for (const std::int64_t window : {0, 32}) {
        Case<TypeParam> given({.tokens = 70,
                               .window = window,
                               .globals = 1,
                               .score = score,
                               .normalization = rows,
                               .distance_biases = true,
                               .dropout = 0.1});
        auto& factors = given.inputs.temperature;
        for (std::size_t i = 0; i < factors.size(); i += 3) {
          factors[i] = i % 2 == 0 ? TypeParam{0} : std::numeric_limits<TypeParam>::denorm_min();
        }
        expect_close(by_kernels(given, 8), by_loops(given),
                     sizeof(TypeParam) == sizeof(float) ? 2e-5 : 1e-12, described(given.form));
      }
    }
  }
}

TYPED_TEST(AttentionKernel, NeighbouringHeadsShareKeys) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    for (const std::int64_t tokens : {1, 33, 70}) {
      for (const double dropout : {0.0, 0.2}) {
        expect_as_by_loops<TypeParam>(
            {.kv_heads = kv_heads, .tokens = tokens, .width = 12, .dropout = dropout});
      }
    }
  }
}

TYPED_TEST(AttentionKernel, DoesNotDependOnTheDivisionAmongCalls) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    const Form form{.kv_heads = kv_heads,
                    .tokens = 70,
                    .window = 20,
                    .globals = 2,
                    .normalization = sink(),
                    .distance_biases = true,
                    .sums = true,
                    .dropout = 0.1};
    const Case<TypeParam> given(form);
    expect_equal(by_kernels(given, form.group()), by_kernels(given, form.num_heads()),
                 described(form));
  }
}

/// A forget gate that forgets a lot at once: neighbours before and after are as near as without.
TEST(AttentionKernel, LargeSumsLoseNothingInFloat) {
  Case<float> given({.tokens = 129, .sums = true});
  double sum = 0;
  for (std::size_t i = 0; i < given.inputs.sums.size(); ++i) {
    sum =
        i % 129 == 0 ? -3000.0 : sum - (i % 129 == 40 ? 500.0 : 1e-3 * static_cast<double>(i % 7));
    given.inputs.sums[i] = sum;
  }
  expect_close(by_kernels(given, 8), by_loops(given), 2e-5, "large sums");
}

/// The gradients of the loops above, which are formulas too, by differences of their outputs.
TEST(AttentionKernel, GradientsAreDifferences) {
  for (const auto& rows : {softmax(), sink(), sigmoid_attn()}) {
    for (const auto score : {Score::product, Score::distance}) {
      Case<double> given({.sequences = 1,
                          .heads = 2,
                          .kv_heads = 1,
                          .tokens = 9,
                          .width = 3,
                          .window = 4,
                          .globals = 1,
                          .score = score,
                          .normalization = rows,
                          .distance_biases = true,
                          .sums = true});
      const auto gradients = by_kernels(given, 2).gradients;
      const auto loss = [&] {
        const auto output = by_kernels(given, 2).output;
        double sum = 0;
        for (std::size_t i = 0; i < output.size(); ++i) sum += output[i] * given.by_output[i];
        return sum;
      };
      constexpr double kStep = 1e-5;
      const auto expect_slopes = [&](std::vector<double>& input, const std::vector<double>& slopes,
                                     const char* what) {
        for (std::size_t i = 0; i < input.size(); ++i) {
          const double before = input[i];
          input[i] = before + kStep;
          const double above = loss();
          input[i] = before - kStep;
          const double below = loss();
          input[i] = before;
          EXPECT_NEAR(slopes[i], (above - below) / (2 * kStep), 1e-8) << what << " " << i;
        }
      };
      auto& in = given.inputs;
      expect_slopes(in.q, gradients.q, "q");
      expect_slopes(in.k, gradients.k, "k");
      expect_slopes(in.v, gradients.v, "v");
      expect_slopes(in.temperature, gradients.temperature, "temperature");
      expect_slopes(in.biases, gradients.biases, "biases");
      expect_slopes(in.sums, gradients.sums, "sums");
      if (given.form.has_sinks()) expect_slopes(in.sinks, gradients.sinks, "sinks");
    }
  }
}

TEST(AttentionKernel, KeepsWeightsInProportionToTheWindow) {
  EXPECT_EQ(weights_size(70), 32 * 32 + 32 * 64 + 6 * 80);
  EXPECT_EQ(weights_size(70, 70, 0), weights_size(70));
  EXPECT_EQ(weights_size(4096, 64, 0), 32 * 32 + 32 * 64 + 126 * 32 * 96);
  // Apart from the window from query 96 on.
  EXPECT_EQ(weights_size(4096, 64, 4), weights_size(4096, 64, 0) + 125 * 32 * 16);
}

}  // namespace
}  // namespace nas::kernels
