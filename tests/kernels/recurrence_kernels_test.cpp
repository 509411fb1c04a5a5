#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/recurrence.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

enum class Decays { none, whole, channels };

struct Form {
  Decays decays = Decays::none;
  bool erases = false;
  std::int64_t models = 2, sequences = 2, heads = 3, tokens = 37, features = 6, width = 5;
  std::int64_t chunk = 16;

  [[nodiscard]] kernels::RecurrenceShape shape() const {
    return {.tokens = tokens,
            .features = features,
            .width = width,
            .chunk = chunk,
            .by_channel = decays == Decays::channels};
  }
  [[nodiscard]] std::int64_t all_heads() const { return models * sequences * heads; }
  [[nodiscard]] std::string text() const {
    return "decays " + std::to_string(static_cast<int>(decays)) + (erases ? ", erases" : "") +
           ", T " + std::to_string(tokens) + ", f " + std::to_string(features) + ", d " +
           std::to_string(width);
  }
};

/// Vectors (R, B, T, H, n), as projections lie.
template <class Real>
struct Vectors {
  Array<Real> numbers;
  std::int64_t size = 0;

  Vectors() = default;
  Vectors(const Form& form, std::int64_t n, std::uint64_t seed, double largest = 1.0)
      : numbers(random_numbers<Real>(form.all_heads() * form.tokens * n, seed, largest)), size(n) {}

  template <class Number = const Real>
  HeadVectors<Number> all(const Form& form) {
    if (size == 0) return {};
    const auto of_sequence = form.tokens * form.heads * size;
    return {numbers.data(), form.sequences * of_sequence, of_sequence, size, form.heads * size};
  }
  template <class Number = const Real>
  kernels::TokenRows<Number> of_head(const Form& form, std::int64_t head) {
    if (size == 0) return {};
    const auto of_all = all<Number>(form);
    return {of_all.data + head / form.heads * of_all.sequence_step +
                head % form.heads * of_all.head_step,
            of_all.token_step};
  }
};

/// Everything that goes in, and what comes out.
template <class Real>
struct Case {
  Form form;
  Vectors<Real> q, k, v, decays, erased, outer;
  Array<Real> by_state;
  Vectors<Real> outputs, dq, dk, dv, ddecays, derased;
  Array<Real> states;

  explicit Case(const Form& given)
      : form(given),
        q(given, given.features, 1),
        k(given, given.features, 2, 0.5),
        v(given, given.width, 3),
        outer(given, given.width, 6),
        by_state(random_numbers<Real>(given.all_heads() * given.features * given.width, 7)),
        outputs(given, given.width, 0),
        dq(given, given.features, 0),
        dk(given, given.features, 0),
        dv(given, given.width, 0) {
    if (given.decays != Decays::none) {
      const auto columns = given.decays == Decays::channels ? given.features : 1;
      decays = ddecays = Vectors<Real>(given, columns, 4);
      for (Real& x : decays.numbers) x = x > 0 ? -x * Real{4} : x / Real{8};  // in (-4, 0]
    }
    if (given.erases) erased = derased = Vectors<Real>(given, given.features, 5, 0.5);
    states = unwritten<Real>(given.all_heads() * (given.shape().chunks() + 1) * given.features *
                             given.shape().padded_width());
  }

  void run_kernels() {
    auto updates = unwritten<Real>(form.all_heads() * form.tokens * form.shape().padded_width());
    const Recurrence<Real> of{.models = form.models,
                              .sequences = form.sequences,
                              .heads = form.heads,
                              .shape = form.shape(),
                              .queries = q.all(form),
                              .keys = k.all(form),
                              .values = v.all(form),
                              .log_decays = decays.all(form),
                              .erased = erased.all(form),
                              .states = states.data(),
                              .updates = updates.data()};
    recurrence(of, outputs.template all<Real>(form), AtOnce());
    recurrence_backward(of,
                        {.outputs = outer.all(form),
                         .state = by_state.data(),
                         .queries = dq.template all<Real>(form),
                         .keys = dk.template all<Real>(form),
                         .values = dv.template all<Real>(form),
                         .log_decays = ddecays.template all<Real>(form),
                         .erased = derased.template all<Real>(form)},
                        AtOnce());
  }

  /// The same by the CPU's kernels, head by head.
  void run_on_cpu() {
    const auto shape = form.shape();
    Array<Real> scratch(static_cast<std::size_t>(kernels::recurrence_scratch(shape)));
    const auto size = shape.features * shape.padded_width();
    Array<Real> kept(static_cast<std::size_t>((shape.chunks() + 1) * size));
    Array<Real> updates(static_cast<std::size_t>(form.tokens * shape.padded_width()));
    for (std::int64_t head = 0; head < form.all_heads(); ++head) {
      const kernels::RecurrenceRows<const Real> of{
          q.of_head(form, head), k.of_head(form, head), v.of_head(form, head),
          decays.of_head(form, head), erased.of_head(form, head)};
      kernels::recurrence<Real>(shape, of, {kept.data(), updates.data()},
                                outputs.template of_head<Real>(form, head), scratch.data());
      kernels::recurrence_backward<Real>(
          shape, of, {kept.data(), updates.data()}, outer.of_head(form, head),
          by_state.data() + head * shape.features * shape.width,
          {dq.template of_head<Real>(form, head), dk.template of_head<Real>(form, head),
           dv.template of_head<Real>(form, head), ddecays.template of_head<Real>(form, head),
           derased.template of_head<Real>(form, head)},
          scratch.data());
      std::copy(kept.begin(), kept.end(), states.begin() + head * std::ssize(kept));
    }
  }

  /// The last states of all heads.
  [[nodiscard]] Array<Real> last_states() const {
    const auto shape = form.shape();
    Array<Real> last;
    for (std::int64_t head = 0; head < form.all_heads(); ++head) {
      for (std::int64_t p = 0; p < shape.features; ++p) {
        const auto at = ((head * (shape.chunks() + 1) + shape.chunks()) * shape.features + p) *
                        shape.padded_width();
        last.insert(last.end(), states.begin() + at, states.begin() + at + shape.width);
      }
    }
    return last;
  }
};

template <class Real>
void expect_equal_to_cpu(const Form& form) {
  Case<Real> ours(form);
  Case<Real> expected(form);
  ours.run_kernels();
  expected.run_on_cpu();
  const auto what = form.text();
  expect_close(ours.outputs.numbers, expected.outputs.numbers, what + " outputs");
  expect_close(ours.last_states(), expected.last_states(), what + " states");
  expect_close(ours.dq.numbers, expected.dq.numbers, what + " dq");
  expect_close(ours.dk.numbers, expected.dk.numbers, what + " dk");
  expect_close(ours.dv.numbers, expected.dv.numbers, what + " dv");
  expect_close(ours.ddecays.numbers, expected.ddecays.numbers, what + " ddecays");
  expect_close(ours.derased.numbers, expected.derased.numbers, what + " derased");
}

template <class Real>
class RecurrenceKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(RecurrenceKernels, Reals);

TYPED_TEST(RecurrenceKernels, EqualTheCpusForEveryForm) {
  for (const auto decays : {Decays::none, Decays::whole, Decays::channels}) {
    for (const bool erases : {false, true}) {
      in_both_orders([&] { expect_equal_to_cpu<TypeParam>({.decays = decays, .erases = erases}); });
    }
  }
}

TYPED_TEST(RecurrenceKernels, EqualTheCpusForEverySize) {
  for (const std::int64_t tokens : {1, 15, 16, 17, 48}) {
    for (const auto& [features, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {33, 40}}) {
      expect_equal_to_cpu<TypeParam>({.decays = Decays::whole,
                                      .erases = true,
                                      .models = 1,
                                      .sequences = 1,
                                      .heads = 2,
                                      .tokens = tokens,
                                      .features = features,
                                      .width = width});
      expect_equal_to_cpu<TypeParam>({.decays = Decays::channels,
                                      .models = 1,
                                      .sequences = 1,
                                      .heads = 2,
                                      .tokens = tokens,
                                      .features = features,
                                      .width = width,
                                      .chunk = 7});
    }
  }
}

TEST(RecurrenceArray, AModelHasTheSameBitsAlone) {
  const Form form{.decays = Decays::whole, .erases = true};
  Case<float> together(form);
  together.run_kernels();
  Case<float> alone({.decays = Decays::whole, .erases = true, .models = 1});
  const auto second = [](Vectors<float>& to, const Vectors<float>& from) {
    to.numbers.assign(from.numbers.begin() + std::ssize(from.numbers) / 2, from.numbers.end());
  };
  for (const auto part : {&Case<float>::q, &Case<float>::k, &Case<float>::v, &Case<float>::decays,
                          &Case<float>::erased, &Case<float>::outer}) {
    second(alone.*part, together.*part);
  }
  alone.by_state.assign(together.by_state.begin() + std::ssize(together.by_state) / 2,
                        together.by_state.end());
  alone.run_kernels();
  for (const auto part : {&Case<float>::outputs, &Case<float>::dq, &Case<float>::dk,
                          &Case<float>::dv, &Case<float>::ddecays, &Case<float>::derased}) {
    Vectors<float> expected;
    second(expected, together.*part);
    EXPECT_EQ((alone.*part).numbers, expected.numbers);
  }
}

TEST(RecurrenceLaunches, FitWhereAnH200HasTheSharedMemory) {
  const auto shape = [](std::int64_t features, std::int64_t width, bool by_channel) {
    return kernels::RecurrenceShape{128, features, width, 16, by_channel};
  };
  EXPECT_TRUE(recurrence_fits<float>(shape(64, 64, true)));
  EXPECT_TRUE(recurrence_fits<float>(shape(96, 96, true)));
  EXPECT_TRUE(recurrence_fits<double>(shape(32, 32, true)));
  EXPECT_FALSE(recurrence_fits<float>(shape(561, 32, false)));
}

}  // namespace
}  // namespace nas::cuda
