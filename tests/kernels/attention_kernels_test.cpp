#include <array>
#include <future>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "kernels/cuda/attention.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

constexpr std::array kScores{kernels::Score::product, kernels::Score::silu_product,
                             kernels::Score::additive, kernels::Score::distance};
constexpr std::array kNormalizations{
    Normalization::softmax,      Normalization::softmax1,     Normalization::relu_norm,
    Normalization::sigmoid_norm, Normalization::sparsemax,    Normalization::entmax15,
    Normalization::top_k,        Normalization::topk_quarter, Normalization::sink,
    Normalization::sigmoid_attn, Normalization::relu_n};
constexpr std::int64_t kMechanisms = kScores.size() * kNormalizations.size();

kernels::RowNormalization on_cpu(Normalization normalization) {
  using Maker = kernels::RowNormalization (*)();
  constexpr std::array<Maker, kNormalizations.size()> kMakers{
      &kernels::softmax,   &kernels::softmax1,     &kernels::relu_norm, &kernels::sigmoid_norm,
      &kernels::sparsemax, &kernels::entmax15,     &kernels::top_k,     &kernels::topk_quarter,
      &kernels::sink,      &kernels::sigmoid_attn, &kernels::relu_n};
  const auto place = std::find(kNormalizations.begin(), kNormalizations.end(), normalization);
  return kMakers.at(static_cast<std::size_t>(place - kNormalizations.begin()))();
}

struct Sizes {
  std::int64_t models, sequences, heads, tokens, width;
  std::int64_t group = 1;  // of heads that share keys

  /// Numbers between tokens; some between them belong to nobody.
  [[nodiscard]] std::int64_t token_step() const { return heads * width + 3; }
  [[nodiscard]] std::int64_t vectors() const { return models * sequences * tokens * token_step(); }
  [[nodiscard]] std::int64_t queries() const { return models * sequences * heads * tokens; }
};

template <class Real, class Number>
HeadVectors<Real> vectors_in(Array<Number>& memory, const Sizes& sizes) {
  return {memory.data(), sizes.sequences * sizes.tokens * sizes.token_step(),
          sizes.tokens * sizes.token_step(), sizes.width, sizes.token_step()};
}

/// Everything that goes in, and what comes out.
template <class Real>
struct Case {
  Sizes sizes;
  Array<Mechanism> mechanisms;
  Array<std::uint64_t> seeds;
  std::uint64_t site = 3;
  bool rounds_factors = false;
  Array<Real> q, k, v, outer, temperature, directions, distance_biases, sinks;
  Array<double> sums;

  Array<Real> output, dq, dk, dv, dtemperature, ddirections, ddistance_biases, dsinks;
  Array<double> dsums;
};

template <class Real>
auto results(const Case<Real>& of) {
  return std::tie(of.output, of.dq, of.dk, of.dv, of.dtemperature, of.ddirections,
                  of.ddistance_biases, of.dsums, of.dsinks);
}

/// Of models that have a row of something.
std::int64_t num_rows(const Array<Mechanism>& mechanisms, std::int32_t Mechanism::*row) {
  return std::count_if(mechanisms.begin(), mechanisms.end(),
                       [&](const Mechanism& mechanism) { return mechanism.*row >= 0; });
}

template <class Real>
Case<Real> make_case(const Sizes& sizes, Array<Mechanism> mechanisms, double size = 1.0) {
  Case<Real> made;
  made.sizes = sizes;
  made.mechanisms = std::move(mechanisms);
  for (std::int64_t r = 0; r < sizes.models; ++r) {
    made.seeds.push_back(static_cast<std::uint64_t>(1000 + r));
  }
  made.q = random_numbers<Real>(sizes.vectors(), 1, size);
  made.k = random_numbers<Real>(sizes.vectors(), 2, size);
  made.v = random_numbers<Real>(sizes.vectors(), 3);
  made.outer = random_numbers<Real>(sizes.vectors(), 4);
  made.temperature = random_numbers<Real>(sizes.queries(), 5);
  for (Real& u : made.temperature) u = Real{1} + u / 2;
  const auto rows = [&](std::int32_t Mechanism::*row) { return num_rows(made.mechanisms, row); };
  made.directions = random_numbers<Real>(rows(&Mechanism::direction) * sizes.width, 6);
  made.distance_biases =
      random_numbers<Real>(rows(&Mechanism::distance_biases) * sizes.heads * sizes.tokens, 7);
  made.sinks = random_numbers<Real>(rows(&Mechanism::sinks) * sizes.heads, 8);
  made.sums = random_numbers<double>(
      rows(&Mechanism::sums) * sizes.sequences * sizes.heads * sizes.tokens, 9);
  return made;
}

template <class Real>
Attention<Real> attention_of(Case<Real>& given) {
  const Sizes& sizes = given.sizes;
  Attention<Real> attention;
  attention.models = sizes.models;
  attention.sequences = sizes.sequences;
  attention.heads = sizes.heads;
  attention.kv_heads = sizes.heads / sizes.group;
  attention.tokens = sizes.tokens;
  attention.width = sizes.width;
  attention.mechanisms = given.mechanisms.data();
  attention.seeds = given.seeds.data();
  attention.site = given.site;
  attention.q = vectors_in<const Real>(given.q, sizes);
  attention.k = vectors_in<const Real>(given.k, sizes);
  attention.v = vectors_in<const Real>(given.v, sizes);
  attention.inverse_temperature = {given.temperature.data(),
                                   sizes.sequences * sizes.heads * sizes.tokens,
                                   sizes.heads * sizes.tokens, sizes.tokens, 1};
  attention.directions = given.directions.data();
  attention.num_directions = num_rows(given.mechanisms, &Mechanism::direction);
  attention.distance_biases = given.distance_biases.data();
  attention.num_distance_biases = num_rows(given.mechanisms, &Mechanism::distance_biases);
  attention.sums = given.sums.data();
  attention.num_sums = num_rows(given.mechanisms, &Mechanism::sums);
  attention.sinks = given.sinks.data();
  attention.num_sinks = num_rows(given.mechanisms, &Mechanism::sinks);
  attention.rounds_factors = given.rounds_factors;
  return attention;
}

template <class Real>
void run_kernels(Case<Real>& given) {
  auto attention = attention_of(given);
  auto weights = unwritten<Real>(attention_weights_size(attention));
  auto statistics = unwritten<Real>(given.sizes.queries());
  auto scratch = unwritten<Real>(attention_scratch_size(attention));
  attention.weights = weights.data();
  attention.statistics = statistics.data();
  for (auto* out : {&given.output, &given.dq, &given.dk, &given.dv}) {
    *out = Array<Real>(given.q.size());
  }
  given.dtemperature = unwritten<Real>(given.sizes.queries());
  given.ddirections = Array<Real>(given.directions.size());
  given.ddistance_biases = unwritten<Real>(std::ssize(given.distance_biases));
  given.dsums = unwritten<double>(std::ssize(given.sums));
  given.dsinks = unwritten<Real>(std::ssize(given.sinks));
  attention_forward(attention, vectors_in<Real>(given.output, given.sizes), AtOnce());
  AttentionGradients<Real> gradients;
  gradients.output = vectors_in<const Real>(given.outer, given.sizes);
  gradients.q = vectors_in<Real>(given.dq, given.sizes);
  gradients.k = vectors_in<Real>(given.dk, given.sizes);
  gradients.v = vectors_in<Real>(given.dv, given.sizes);
  gradients.inverse_temperature = given.dtemperature.data();
  gradients.directions = given.ddirections.data();
  gradients.distance_biases = given.ddistance_biases.data();
  gradients.sums = given.dsums.data();
  gradients.sinks = given.dsinks.data();
  gradients.scratch = scratch.data();
  attention_backward(attention, gradients, AtOnce());
}

/// The same by the CPU's kernels, model by model.
/// @param keeps  whether the backward pass has the weights of the forward pass.
template <class Real>
void run_on_cpu(Case<Real>& given, bool keeps = true) {
  const Sizes& sizes = given.sizes;
  for (auto* out : {&given.output, &given.dq, &given.dk, &given.dv}) {
    *out = Array<Real>(given.q.size());
  }
  given.dtemperature.assign(given.temperature.size(), 0);
  given.ddirections.assign(given.directions.size(), 0);
  const std::int64_t heads = sizes.sequences * sizes.heads;
  Array<Real> kept(static_cast<std::size_t>(heads * kernels::kept_size(sizes.tokens)));
  Array<Real> ddirection(static_cast<std::size_t>(heads * sizes.width));
  Array<Real> dbiases(static_cast<std::size_t>(heads * sizes.tokens));
  Array<Real> dsinks(static_cast<std::size_t>(heads));
  given.ddistance_biases.assign(given.distance_biases.size(), 0);
  given.dsums.assign(given.sums.size(), 0);
  given.dsinks.assign(given.sinks.size(), 0);
  std::size_t bytes = sizeof(Real) * static_cast<std::size_t>(kernels::attention_workspace(
                                         sizes.tokens, sizes.width, /*with_biases=*/true)) +
                      64;
  std::vector<std::byte> memory(bytes);
  void* aligned = memory.data();
  std::align(64, bytes - 64, aligned, bytes);
  auto* workspace = static_cast<Real*>(aligned);
  for (std::int64_t r = 0; r < sizes.models; ++r) {
    const auto model = [&](auto& numbers) {
      const auto size = static_cast<std::int64_t>(numbers.size()) / sizes.models;
      return numbers.data() + r * size;
    };
    const auto vectors = [&](auto& numbers) {
      return kernels::HeadVectors<std::remove_pointer_t<decltype(model(numbers))>>{
          model(numbers), sizes.tokens * sizes.token_step(), sizes.width, sizes.token_step()};
    };
    const auto& mechanism = given.mechanisms[static_cast<std::size_t>(r)];
    kernels::Attention<Real> attention;
    attention.sequences = sizes.sequences;
    attention.heads = sizes.heads;
    attention.kv_heads = sizes.heads / sizes.group;
    attention.tokens = sizes.tokens;
    attention.width = sizes.width;
    attention.window = mechanism.seen.window;
    attention.globals = mechanism.seen.globals;
    attention.score = mechanism.score;
    attention.normalization = on_cpu(mechanism.normalization).template kernel<Real>();
    attention.q = vectors(std::as_const(given.q));
    attention.k = vectors(std::as_const(given.k));
    attention.v = vectors(std::as_const(given.v));
    if (mechanism.score == kernels::Score::additive) {
      attention.direction = given.directions.data() + mechanism.direction * sizes.width;
    }
    const auto row = [](auto& numbers, std::int32_t number, std::int64_t size) {
      return number < 0 ? nullptr : numbers.data() + number * size;
    };
    attention.distance_biases =
        row(given.distance_biases, mechanism.distance_biases, sizes.heads * sizes.tokens);
    attention.sums = row(given.sums, mechanism.sums, heads * sizes.tokens);
    attention.sinks = row(given.sinks, mechanism.sinks, sizes.heads);
    attention.inverse_temperature = {model(std::as_const(given.temperature)),
                                     sizes.heads * sizes.tokens, sizes.tokens, 1};
    attention.dropout = {mix64(mix64(given.seeds[static_cast<std::size_t>(r)]) ^ given.site),
                         mechanism.dropout_threshold, mechanism.dropout_scale};
    if (keeps) attention.kept = kept.data();
    kernels::attention_forward(attention, vectors(given.output), 0, heads, workspace);
    kernels::AttentionGradients<Real> gradients;
    gradients.output = vectors(std::as_const(given.outer));
    gradients.q = vectors(given.dq);
    gradients.k = vectors(given.dk);
    gradients.v = vectors(given.dv);
    gradients.inverse_temperature = model(given.dtemperature);
    if (attention.direction != nullptr) gradients.direction = ddirection.data();
    if (attention.distance_biases != nullptr) gradients.distance_biases = dbiases.data();
    if (attention.sinks != nullptr) gradients.sinks = dsinks.data();
    gradients.sums = row(given.dsums, mechanism.sums, heads * sizes.tokens);
    kernels::attention_backward(attention, gradients, 0, heads, workspace);
    // Row `number` of the sums of all, of `size` numbers, is the sum of the parts.
    const auto add = [](const Array<Real>& parts, std::int32_t number, std::int64_t size,
                        Array<Real>& all) {
      for (std::int64_t i = 0; number >= 0 && i < std::ssize(parts); ++i) {
        all[static_cast<std::size_t>(number * size + i % size)] +=
            parts[static_cast<std::size_t>(i)];
      }
    };
    add(ddirection, mechanism.direction, sizes.width, given.ddirections);
    add(dbiases, mechanism.distance_biases, sizes.heads * sizes.tokens, given.ddistance_biases);
    add(dsinks, mechanism.sinks, sizes.heads, given.dsinks);
  }
}

template <class Real>
void expect_equal_to_cpu(const Case<Real>& given, const std::string& what,
                         double allowed = tolerance<Real>(),
                         double allowed_of_sums = tolerance<Real>()) {
  auto ours = given;
  auto expected = given;
  run_kernels(ours);
  run_on_cpu(expected);
  expect_close(ours.output, expected.output, what + " output", allowed);
  expect_close(ours.dq, expected.dq, what + " dq", allowed);
  expect_close(ours.dk, expected.dk, what + " dk", allowed);
  expect_close(ours.dv, expected.dv, what + " dv", allowed);
  expect_close(ours.dtemperature, expected.dtemperature, what + " dtemperature", allowed_of_sums);
  expect_close(ours.ddirections, expected.ddirections, what + " ddirections", allowed);
  expect_close(ours.ddistance_biases, expected.ddistance_biases, what + " dbiases", allowed);
  expect_close(ours.dsums, expected.dsums, what + " dsums", allowed_of_sums);
  expect_close(ours.dsinks, expected.dsinks, what + " dsinks", allowed_of_sums);
}

/// A case of which vectors are TensorFloat-32 numbers, so that scores are exact: what is rounded are
/// weights and gradients w.r.t. scores, by at most 2^-11 of each.
Case<float> rounding(Case<float> given) {
  given.rounds_factors = true;
  for (auto* vectors : {&given.q, &given.k, &given.v, &given.outer}) {
    for (float& x : *vectors) x = std::ldexp(std::nearbyint(std::ldexp(x, 10)), -10);
  }
  return given;
}
constexpr double kRounded = 1e-3;
constexpr double kRoundedSums = 4e-3;  // whose terms, scores times gradients, cancel

Mechanism mechanism_of(kernels::Score score, Normalization normalization, std::int32_t direction,
                       double dropout) {
  const auto mask = kernels::Dropout::of(0, dropout);
  return {.score = score,
          .normalization = normalization,
          .direction = score == kernels::Score::additive ? direction : -1,
          .dropout_threshold = dropout > 0 ? mask.threshold : 0,
          .dropout_scale = dropout > 0 ? mask.scale : 1.0};
}

/// Two models of a mechanism, one of them with dropout.
Array<Mechanism> pair_of(kernels::Score score, Normalization normalization) {
  Array<Mechanism> pair{mechanism_of(score, normalization, 1, 0.0),
                        mechanism_of(score, normalization, 0, 0.2)};
  if (normalization == Normalization::sink) {
    pair[0].sinks = 1;
    pair[1].sinks = 0;
  }
  return pair;
}

/// Models that see various keys, with and without what is added to scores: the first and third have both.
Array<Mechanism> of_seen(kernels::Score score, Normalization normalization) {
  Array<Mechanism> models;
  for (const auto& seen : {Seen{5, 2}, Seen{1, 0}, Seen{33, 30}, Seen{40, 0}, Seen{0, 3}}) {
    auto model = mechanism_of(score, normalization, static_cast<std::int32_t>(models.size()),
                              models.size() == 1 ? 0.2 : 0.0);
    model.seen = seen;
    const auto number = static_cast<std::int32_t>(models.size());
    if (number % 2 == 0) model.distance_biases = model.sums = number / 2;
    if (normalization == Normalization::sink) model.sinks = number;
    models.push_back(model);
  }
  return models;
}

/// Of a mechanism's pair of models; with rounded factors on tensor cores.
template <class Real, bool kRounds = false>
void expect_pair_equal(const Sizes& sizes, kernels::Score score, Normalization normalization) {
  std::ostringstream what;
  what << "score " << static_cast<int>(score) << ", normalization "
       << static_cast<int>(normalization) << ", T " << sizes.tokens << ", d " << sizes.width;
  auto given = make_case<Real>(sizes, pair_of(score, normalization));
  if constexpr (kRounds) {
    expect_equal_to_cpu(rounding(std::move(given)), what.str(), kRounded, kRoundedSums);
  } else {
    expect_equal_to_cpu(given, what.str());
  }
}

/// Of every mechanism, with one block of queries and some; each normalization once with two.
template <class Real, bool kRounds = false>
void expect_mechanisms_equal() {
  std::size_t number = 0;
  for (const auto score : kScores) {
    for (const auto normalization : kNormalizations) {
      const bool large = number++ % kScores.size() == 0;
      expect_pair_equal<Real, kRounds>(large ? Sizes{2, 1, 1, 64, 16} : Sizes{2, 1, 2, 33, 8},
                                       score, normalization);
    }
  }
}

template <class Real>
class AttentionKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionKernels, Reals);

TYPED_TEST(AttentionKernels, EqualTheCpusForEveryMechanism) {
  expect_mechanisms_equal<TypeParam>();
}

/// With windows, global keys, biases by distance, sums and keys that heads share.
TYPED_TEST(AttentionKernels, EqualTheCpusForWhatIsSeenAndAdded) {
  const auto expect_equal = [](const Sizes& sizes, kernels::Score score,
                               Normalization normalization) {
    std::ostringstream what;
    what << "score " << static_cast<int>(score) << ", normalization "
         << static_cast<int>(normalization) << ", T " << sizes.tokens;
    expect_equal_to_cpu(make_case<TypeParam>(sizes, of_seen(score, normalization)), what.str());
  };
  for (const auto score : kScores) {
    const std::int64_t width = score == kernels::Score::product ? 33 : 9;
    expect_equal({5, 1, 2, 66, width, 2}, score, Normalization::sink);
  }
  expect_equal({5, 2, 2, 66, 8, 2}, kernels::Score::product, Normalization::sparsemax);
  for (const auto normalization :
       {Normalization::softmax, Normalization::top_k, Normalization::sigmoid_attn}) {
    in_both_orders([&] {
      expect_equal({5, 1, 2, 66, 8, 2}, kernels::Score::product, normalization);
    });
  }
}

/// Weights that are computed again have the same bits, also where a factor of scores vanishes.
TYPED_TEST(AttentionKernels, TheCpusNeedNoKeptWeights) {
  for (const auto score : kScores) {
    for (const auto normalization : kNormalizations) {
      auto kept = make_case<TypeParam>({5, 2, 2, 66, 8, 2}, of_seen(score, normalization));
      kept.temperature[40] = 0;
      auto again = kept;
      run_on_cpu(kept);
      run_on_cpu(again, /*keeps=*/false);
      EXPECT_TRUE(results(again) == results(kept)) << static_cast<int>(normalization);
    }
  }
}

TYPED_TEST(AttentionKernels, EqualTheCpusForEverySize) {
  for (const auto score : kScores) {
    for (const std::int64_t tokens : {1, 31, 32, 97}) {
      expect_pair_equal<TypeParam>({2, 2, 1, tokens, 8}, score, Normalization::softmax);
    }
    for (const std::int64_t tokens : {1, 31, 65}) {
      expect_pair_equal<TypeParam>({2, 1, 1, tokens, 40}, score, Normalization::softmax);
    }
  }
}

TEST(AttentionOnTensorCores, EqualsTheCpusForEveryMechanism) {
  expect_mechanisms_equal<float, true>();
}

TEST(AttentionOnTensorCores, EqualsTheCpusForEverySize) {
  for (const auto score : {kernels::Score::product, kernels::Score::silu_product}) {
    for (const std::int64_t tokens : {1, 32, 97}) {
      in_both_orders([&] {
        expect_pair_equal<float, true>({2, 1, 1, tokens, 8}, score, Normalization::softmax);
      });
    }
    expect_pair_equal<float, true>({2, 1, 1, 65, 40}, score, Normalization::softmax);
  }
}

/// Factors are rounded, each to 10 bits behind the point: one key, so that the output is its value.
TEST(AttentionOnTensorCores, RoundsFactors) {
  auto given = make_case<float>(
      {1, 1, 1, 1, 8}, {mechanism_of(kernels::Score::product, Normalization::softmax, 0, 0.0)});
  given.rounds_factors = true;
  run_kernels(given);
  for (std::size_t e = 0; e < 8; ++e) {
    int exponent = 0;
    const float fraction = std::frexp(given.v[e], &exponent);
    EXPECT_EQ(given.output[e], std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11));
  }
}

TYPED_TEST(AttentionKernels, AdditiveScoresOfLargeVectorsDoNotOverflow) {
  expect_equal_to_cpu(
      make_case<TypeParam>({2, 1, 1, 33, 8},
                           pair_of(kernels::Score::additive, Normalization::softmax), 60.0),
      "large");
}

TYPED_TEST(AttentionKernels, DropoutCrossesTheBlocksOfTheCpusMask) {
  // 9 heads of 97 x 97 weights are more than the 65,536 that share a word.
  expect_equal_to_cpu(
      make_case<TypeParam>({1, 1, 9, 97, 8},
                           {mechanism_of(kernels::Score::product, Normalization::softmax, 0, 0.3)}),
      "dropout");
}

TYPED_TEST(AttentionKernels, OfEqualScoresTheFirstAreKept) {
  for (const auto normalization : {Normalization::top_k, Normalization::topk_quarter}) {
    auto given =
        make_case<TypeParam>({2, 1, 1, 70, 8}, pair_of(kernels::Score::product, normalization));
    // Keys 3 i, 3 i + 1 and 3 i + 2 are one.
    const auto step = static_cast<std::size_t>(given.sizes.token_step());
    for (std::size_t i = 0; i < given.k.size(); ++i) {
      given.k[i] = given.k[i - i / step % 70 % 3 * step];
    }
    expect_equal_to_cpu(given, "normalization " + std::to_string(static_cast<int>(normalization)));
  }
}

/// Every mechanism once.
Array<Mechanism> mixed() {
  Array<Mechanism> mechanisms;
  for (const auto normalization : kNormalizations) {
    for (const auto score : kScores) {
      const auto number = static_cast<std::int32_t>(mechanisms.size());
      auto mechanism = mechanism_of(score, normalization,
                                    number / static_cast<std::int32_t>(kScores.size()), 0.1);
      if (normalization == Normalization::sink) {
        mechanism.sinks = static_cast<std::int32_t>(num_rows(mechanisms, &Mechanism::sinks));
      }
      mechanisms.push_back(mechanism);
    }
  }
  return mechanisms;
}

/// A model of a case as an array of one.
template <class Real>
Case<Real> alone(const Case<Real>& given, std::size_t model) {
  auto lone = given;
  const auto part = [](Array<Real>& numbers, std::size_t parts, std::size_t index) {
    const auto size = static_cast<std::ptrdiff_t>(numbers.size() / parts);
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(index) * size;
    numbers = Array<Real>(begin, begin + size);
  };
  lone.sizes.models = 1;
  for (auto* numbers : {&lone.q, &lone.k, &lone.v, &lone.outer, &lone.temperature, &lone.output,
                        &lone.dq, &lone.dk, &lone.dv, &lone.dtemperature}) {
    part(*numbers, given.mechanisms.size(), model);
  }
  lone.seeds = {given.seeds[model]};
  auto mechanism = given.mechanisms[model];
  const auto own = [&](Array<Real>& numbers, std::int32_t Mechanism::*row) {
    if (mechanism.*row < 0) {
      numbers.clear();
    } else {
      part(numbers, static_cast<std::size_t>(num_rows(given.mechanisms, row)),
           static_cast<std::size_t>(mechanism.*row));
    }
  };
  own(lone.directions, &Mechanism::direction);
  own(lone.ddirections, &Mechanism::direction);
  own(lone.sinks, &Mechanism::sinks);
  own(lone.dsinks, &Mechanism::sinks);
  if (mechanism.direction > 0) mechanism.direction = 0;
  if (mechanism.sinks > 0) mechanism.sinks = 0;
  lone.mechanisms = {mechanism};
  return lone;
}

/// In full precision, and with rounded factors.
class AttentionArray : public testing::TestWithParam<bool> {
 protected:
  static Case<float> of_all(std::int64_t tokens) {
    auto made = make_case<float>({kMechanisms, 1, 1, tokens, 8}, mixed());
    made.rounds_factors = GetParam();
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(, AttentionArray, testing::Bool());

TEST_P(AttentionArray, AModelIsBitEqualInAnyArrayAndForAnyOrderOfThreads) {
  auto array = of_all(40);
  run_kernels(array);
  Array<float> output(array.output.size());  // where nobody asks for more
  attention_forward(attention_of(array), vectors_in<float>(output, array.sizes), AtOnce());
  EXPECT_EQ(output, array.output);
  for (std::size_t model = 0; model < array.mechanisms.size(); ++model) {
    const auto expected = alone(array, model);
    in_both_orders([&] {
      auto lone = expected;
      run_kernels(lone);
      EXPECT_TRUE(results(lone) == results(expected)) << model;
    });
  }
}

TEST_P(AttentionArray, ANaNStaysInItsModel) {
  auto clean = of_all(5);
  auto poisoned = clean;
  const std::size_t size = clean.k.size() / kMechanisms;
  for (std::size_t model = 0; model < kMechanisms; model += 2) {
    poisoned.k[model * size + 2] = std::numeric_limits<float>::quiet_NaN();
  }
  run_kernels(clean);
  run_kernels(poisoned);
  for (std::size_t model = 0; model < kMechanisms; ++model) {
    const auto ours = alone(poisoned, model).dq;
    if (model % 2 == 1) {
      EXPECT_EQ(ours, alone(clean, model).dq) << model;
    } else {
      const auto output = alone(poisoned, model).output;
      EXPECT_TRUE(std::any_of(output.begin(), output.end(), [](float x) { return std::isnan(x); }))
          << model;
    }
  }
}

#ifndef NAS_EMULATE_CUDA
/// What a kernel may have is a property of the kernel, not of a launch.
TEST(AttentionLaunches, ThreadsLaunchWithMoreAndLessSharedMemory) {
  std::vector<std::future<void>> runs;
  for (const std::int64_t tokens : {300, 700}) {
    runs.push_back(std::async(std::launch::async, [tokens] {
      for (int i = 0; i < 20; ++i) {
        auto given = make_case<float>(
            {1, 1, 1, tokens, 32},
            {mechanism_of(kernels::Score::product, Normalization::softmax, 0, 0.0)});
        run_kernels(given);  // throws where a launch is refused
      }
    }));
  }
  for (auto& run : runs) EXPECT_NO_THROW(run.get());
}
#endif

TEST(AttentionLaunches, FitWhereAnH200HasTheSharedMemory) {
  EXPECT_TRUE(attention_fits<float>(1024, 128));
  EXPECT_FALSE(attention_fits<float>(2048, 128));
  EXPECT_FALSE(attention_fits<double>(1024, 128));
}

}  // namespace
}  // namespace nas::cuda
