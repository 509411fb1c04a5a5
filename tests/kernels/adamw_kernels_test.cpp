#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/adamw.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

/// A model with parameters of some sizes; the last one has no gradient, and every other one decays.
template <class Real>
struct Model {
  std::vector<Array<Real>> parameters, gradients, first, second;
  double learning_rate, weight_decay, clip_norm;
  std::int64_t steps = 0;

  Model(std::uint64_t seed, double rate, double decay, double clip)
      : learning_rate(rate), weight_decay(decay), clip_norm(clip) {
    for (const std::int64_t size : {5000, 1, 130, 9000, 77}) {
      parameters.push_back(random_numbers<Real>(size, ++seed));
      gradients.push_back(random_numbers<Real>(size, ++seed));
      first.emplace_back(static_cast<std::size_t>(size));
      second.emplace_back(static_cast<std::size_t>(size));
    }
  }
  [[nodiscard]] static bool decays(std::size_t parameter) { return parameter % 2 == 0; }
  [[nodiscard]] bool has_gradient(std::size_t parameter) const {
    return parameter + 1 < parameters.size();
  }
};

template <class Real>
void step(std::vector<Model<Real>>& models) {
  Array<Piece<Real>> pieces;
  Array<std::int64_t> first_pieces{0};
  Array<double> rates;
  Array<double> decays;
  Array<double> clips;
  Array<std::int64_t> steps;
  for (std::size_t r = 0; r < models.size(); ++r) {
    auto& model = models[r];
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      const auto size = static_cast<std::int64_t>(model.parameters[p].size());
      for (std::int64_t begin = 0; begin < size; begin += kPieceSize) {
        pieces.push_back({model.parameters[p].data() + begin,
                          model.has_gradient(p) ? model.gradients[p].data() + begin : nullptr,
                          model.first[p].data() + begin, model.second[p].data() + begin,
                          std::min(kPieceSize, size - begin), static_cast<std::int32_t>(r),
                          Model<Real>::decays(p)});
      }
    }
    first_pieces.push_back(static_cast<std::int64_t>(pieces.size()));
    rates.push_back(model.learning_rate);
    decays.push_back(model.weight_decay);
    clips.push_back(model.clip_norm);
    steps.push_back(model.steps);
  }
  AdamW<Real> call;
  call.pieces = pieces.data();
  call.num_pieces = static_cast<std::int64_t>(pieces.size());
  call.first_pieces = first_pieces.data();
  call.models = static_cast<std::int64_t>(models.size());
  call.learning_rates = rates.data();
  call.weight_decays = decays.data();
  call.clip_norms = clips.data();
  call.steps = steps.data();
  auto scratch = unwritten<double>(adamw_scratch_size(call));
  call.scratch = scratch.data();
  adamw(call, AtOnce());
  for (std::size_t r = 0; r < models.size(); ++r) models[r].steps = steps[r];
}

/// The formula, in double.
template <class Real>
void step_by_formula(Model<Real>& model) {
  double squares = 0;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    if (!model.has_gradient(p)) continue;
    for (const double g : model.gradients[p]) squares += g * g;
  }
  const double factor = std::min(1.0, model.clip_norm / (std::sqrt(squares) + 1e-6));
  const auto t = static_cast<double>(++model.steps);
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    if (!model.has_gradient(p)) continue;
    for (std::size_t i = 0; i < model.parameters[p].size(); ++i) {
      const double g = factor * model.gradients[p][i];
      const double m = 0.9 * model.first[p][i] + (1 - 0.9) * g;
      const double v = 0.999 * model.second[p][i] + (1 - 0.999) * g * g;
      double x = model.parameters[p][i];
      if (Model<Real>::decays(p)) x -= model.learning_rate * model.weight_decay * x;
      x -= model.learning_rate / (1 - std::pow(0.9, t)) * m /
           (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
      model.first[p][i] = static_cast<Real>(m);
      model.second[p][i] = static_cast<Real>(v);
      model.parameters[p][i] = static_cast<Real>(x);
    }
  }
}

template <class Real>
std::vector<Model<Real>> three_models() {
  return {{100, 1e-2, 0.1, 1.0}, {200, 3e-3, 0.0, 1e9}, {300, 1e-1, 0.5, 20.0}};
}

template <class Real>
class AdamWKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(AdamWKernels, Reals);

TYPED_TEST(AdamWKernels, FollowTheFormulaForSeveralSteps) {
  auto ours = three_models<TypeParam>();
  ours[2].steps = 7;  // models may stand at different steps
  auto expected = ours;
  for (int i = 0; i < 5; ++i) {
    step(ours);
    for (auto& model : expected) step_by_formula(model);
  }
  for (std::size_t r = 0; r < ours.size(); ++r) {
    EXPECT_EQ(ours[r].steps, r == 2 ? 12 : 5);
    for (std::size_t p = 0; p < ours[r].parameters.size(); ++p) {
      const auto what = "model " + std::to_string(r) + ", parameter " + std::to_string(p);
      const double allowed = sizeof(TypeParam) == sizeof(float) ? 2e-6 : 1e-13;
      expect_close(ours[r].parameters[p], expected[r].parameters[p], what, allowed);
      expect_close(ours[r].first[p], expected[r].first[p], what + ", first moment", allowed);
      expect_close(ours[r].second[p], expected[r].second[p], what + ", second moment", allowed);
    }
  }
  EXPECT_EQ(ours[0].parameters.back(), three_models<TypeParam>()[0].parameters.back())
      << "without a gradient nothing happens";
}

TEST(AdamWArray, AModelIsBitEqualAloneAndBesideOneThatIsNotANumber) {
  auto array = three_models<float>();
  array[1].gradients[3][17] = std::numeric_limits<float>::quiet_NaN();
  auto lone = std::vector{array[2]};
  in_both_orders([&] {
    step(array);
    step(lone);
    EXPECT_EQ(array[2].parameters, lone[0].parameters);
    EXPECT_EQ(array[2].second, lone[0].second);
  });
  EXPECT_TRUE(std::isnan(array[1].parameters[0][0])) << "clipped by a norm that is not a number";
  EXPECT_FALSE(std::isnan(array[0].parameters[0][0]));
}

}  // namespace
}  // namespace nas::cuda
