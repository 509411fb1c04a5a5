#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svd.h>
#include <gmock/gmock.h>
#include <torch/serialize.h>

#include "core/seed.hpp"
#include "genotype/slots.hpp"
#include "ops/torch_compat.hpp"
#include "training/optimizer.hpp"
#include "training/update_rule.hpp"

namespace nas {
namespace {

constexpr std::int64_t kRows = 24, kColumns = 10;
constexpr int kSteps = 25;  // SOAP's bases have turned twice

torch::Tensor draw(std::vector<std::int64_t> shape, std::int64_t model, int step) {
  const auto generator = nn::make_generator(at::kCPU, derive_seed(3, model, "draw", step));
  return at::randn(shape, generator, at::TensorOptions(at::kDouble));
}

torch::Tensor turned(std::int64_t size, int which) {
  return std::get<0>(at::linalg_qr(draw({size, size}, 0, 1000 + which)));
}

/// A matrix and a bias of each of some models, and an optimiser of them.
struct Array {
  std::vector<std::int64_t> models;
  std::vector<nn::Parameter> parameters;
  std::unique_ptr<Optimizer> optimizer;

  Array(const std::string& rule, std::vector<std::int64_t> of, at::ScalarType type = at::kDouble,
        std::int64_t rows = kRows)
      : models(std::move(of)) {
    const auto add = [&](const char* name, std::vector<std::int64_t> shape, nn::Decay decay) {
      std::vector<torch::Tensor> starts;
      for (const auto model : models) starts.push_back(draw(shape, model, 0));
      auto tensor = at::stack(starts).to(type).contiguous();
      tensor.set_requires_grad(true);
      parameters.push_back(
          {name, tensor, nn::first_models(std::ssize(models)), nn::Start::normal(), decay});
    };
    add("layers.0.attention.o_proj.weight", {rows, kColumns}, nn::Decay::yes);
    add("layers.0.norm.weight", {kColumns}, nn::Decay::no);
    optimizer = std::make_unique<Optimizer>(
        parameters, std::ssize(models),
        [](const nn::Parameter& parameter) { return parameter.decay == nn::Decay::yes; }, 0.999,
        optimizers().at(rule).make());
  }

  static ModelStep step_of(int step) {
    return {.step = step, .learning_rate = 0.01, .weight_decay = 0.1, .clip_norm = 1e9};
  }

  /// @param of  what is done to a matrix' gradient.
  template <class Change>
  void take(int first, int last, const Change& of) {
    for (int step = first; step <= last; ++step) {
      for (auto& parameter : parameters) {
        std::vector<torch::Tensor> gradients;
        for (const auto model : models) {
          auto sizes = parameter.tensor.sizes().slice(1).vec();
          const auto gradient = draw(std::move(sizes), model, step);
          gradients.push_back(gradient.dim() == 2 ? of(gradient) : gradient);
        }
        parameter.tensor.mutable_grad() = at::stack(gradients).to(parameter.tensor.scalar_type());
      }
      optimizer->step(std::vector<ModelStep>(models.size(), step_of(step)));
    }
  }
  void take(int first, int last) {
    take(first, last, [](const torch::Tensor& gradient) { return gradient; });
  }

  [[nodiscard]] torch::Tensor matrix(std::int64_t model = 0) const {
    return parameters.front().tensor.detach()[model];
  }
};

double largest(const torch::Tensor& difference) { return difference.abs().max().item<double>(); }

class EachRule : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, EachRule, testing::ValuesIn(optimizers().keys()),
                         [](const auto& rule) { return rule.param; });

TEST_P(EachRule, ChangesAModelOfAnArrayAsItAlone) {
  EXPECT_THAT(options(slot("training.optimizer")), testing::Contains(GetParam()));
  Array array(GetParam(), {0, 1, 2}, at::kFloat), alone(GetParam(), {1}, at::kFloat);
  array.take(1, kSteps);
  alone.take(1, kSteps);
  for (std::size_t i = 0; i < array.parameters.size(); ++i)
    EXPECT_TRUE(at::equal(array.parameters[i].tensor[1], alone.parameters[i].tensor[0]))
        << array.parameters[i].name;
}

TEST_P(EachRule, GoesOnFromWhatItHasSaved) {
  Array whole(GetParam(), {0, 1}, at::kFloat), first(GetParam(), {0, 1}, at::kFloat);
  whole.take(1, kSteps);
  first.take(1, 13);
  std::stringstream file;
  torch::serialize::OutputArchive saved;
  first.optimizer->save(saved, 1);
  saved.save_to(file);
  Array second(GetParam(), {1}, at::kFloat);
  torch::serialize::InputArchive read;
  read.load_from(file);
  second.optimizer->load(read, 0);
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < second.parameters.size(); ++i)
    second.parameters[i].tensor[0].copy_(first.parameters[i].tensor[1]);
  second.take(14, kSteps);
  EXPECT_TRUE(at::equal(whole.matrix(1), second.matrix()));
}

TEST_P(EachRule, ClipsGradientsByTheModelsNorm) {
  Array as_it_is(GetParam(), {0}), larger(GetParam(), {0});
  const auto step = [](Array& array, double factor) {
    for (auto& parameter : array.parameters)
      parameter.tensor.mutable_grad() = draw(parameter.tensor.sizes().vec(), 0, 1) * factor;
    auto of = Array::step_of(2);
    of.clip_norm = 0.5;
    array.optimizer->step(std::vector{of});
  };
  step(as_it_is, 1.0);
  step(larger, 1000.0);
  EXPECT_LT(largest(as_it_is.matrix() - larger.matrix()), 1e-7);
}

TEST(Lion, MovesBySignsOfWhatItsFormulaSays) {
  Array array("lion", {0});
  auto weights = array.matrix().clone(), momentum = at::zeros_like(weights);
  array.take(1, kSteps);
  for (int step = 1; step <= kSteps; ++step) {
    const auto gradient = draw({kRows, kColumns}, 0, step);
    weights = weights * (1.0 - 0.01 * 0.1) - 0.01 * (0.9 * momentum + 0.1 * gradient).sign();
    momentum = 0.99 * momentum + 0.01 * gradient;
  }
  EXPECT_LT(largest(array.matrix() - weights), 1e-12);
}

/// What five iterations make of a matrix, by its singular values: each becomes a polynomial of itself.
torch::Tensor orthogonal_by_values(const torch::Tensor& matrix) {
  auto [u, values, v] = at::linalg_svd(matrix / matrix.norm(), /*full_matrices=*/false);
  for (int i = 0; i < 5; ++i)
    values = 3.4445 * values - 4.7750 * values.pow(3) + 2.0315 * values.pow(5);
  return u.matmul(at::diag(values)).matmul(v);
}

TEST(Muon, MovesByItsAverageWithOtherSingularValues) {
  Array array("muon", {0});
  auto weights = array.matrix().clone(), momentum = at::zeros_like(weights);
  array.take(1, kSteps);
  for (int step = 1; step <= kSteps; ++step) {
    const auto gradient = draw({kRows, kColumns}, 0, step);
    momentum = 0.95 * momentum + 0.05 * gradient;
    weights =
        weights * (1.0 - 0.01 * 0.1) - 0.01 * 0.2 * std::sqrt(double{kRows}) *
                                           orthogonal_by_values(0.95 * momentum + 0.05 * gradient);
  }
  EXPECT_LT(largest(array.matrix() - weights), 1e-9);
}

TEST(Muon, LeavesWhatIsNoMapOfHiddenVectorsToAdamW) {
  const auto muon = optimizers().at("muon").make();
  const auto takes = [&](const char* name, std::vector<std::int64_t> sizes, bool decays = true) {
    return muon->takes({name, at::zeros(sizes), {0}, {}, nn::Decay::yes}, decays);
  };
  EXPECT_TRUE(takes("layers.0.attention.q_proj.weight", {1, 8, 8}));
  EXPECT_FALSE(takes("layers.0.attention.q_conv.weight", {1, 8, 4}));
  EXPECT_FALSE(takes("layers.0.attention.q_proj.bias", {1, 8}));
  EXPECT_FALSE(takes("layers.0.attention.t5.weight", {1, 8, 8}, false));
  EXPECT_FALSE(takes("token_embedding.weight", {1, 8, 8}));
  Array array("muon", {0}), adamw("adamw", {0});
  array.take(1, 3);
  adamw.take(1, 3);
  EXPECT_TRUE(at::equal(array.parameters.back().tensor, adamw.parameters.back().tensor));
}

TEST(Soap, FollowsWhereGradientsAreTurned) {
  // Square, so that no eigenvalue is there twice. Without weight decay of what it began with: U (W - W0) V' of gradients G is W - W0 of U G V'.
  const auto u = turned(kColumns, 1), v = turned(kColumns, 2);
  Array as_it_is("soap", {0}, at::kDouble, kColumns), other("soap", {0}, at::kDouble, kColumns);
  for (auto* array : {&as_it_is, &other}) {
    const torch::NoGradGuard no_grad;
    array->parameters.front().tensor.zero_();
  }
  as_it_is.take(1, kSteps);
  other.take(1, kSteps, [&](const torch::Tensor& g) { return u.matmul(g).matmul(v.t()); });
  EXPECT_GT(largest(as_it_is.matrix()), 0.01);
  EXPECT_LT(largest(u.matmul(as_it_is.matrix()).matmul(v.t()) - other.matrix()), 1e-8);
}

TEST(Soap, IsAdamOnItsBasesWhereTheseStay) {
  // Gradients of one row and one column have the bases that the first has: a multiple s_t of one matrix a b'.
  const auto a = draw({kRows, 1}, 0, 1), b = draw({1, kColumns}, 0, 2);
  const auto unit = a.matmul(b) / (a.norm() * b.norm());
  Array array("soap", {0});
  {
    const torch::NoGradGuard no_grad;
    array.parameters.front().tensor.zero_();
  }
  double first = 0.0, second = 0.0, moved = 0.0;
  for (int step = 1; step <= kSteps; ++step) {
    const double size = 1.0 + 0.3 * std::sin(step);
    array.take(step, step, [&](const torch::Tensor&) { return size * unit; });
    if (step == 1) continue;
    first = 0.95 * first + 0.05 * size;
    second = 0.95 * second + 0.05 * size * size;
    const double t = step - 1;
    moved = moved * (1.0 - 0.01 * 0.1) - 0.01 * std::sqrt(1.0 - std::pow(0.95, t)) /
                                             (1.0 - std::pow(0.95, t)) * first /
                                             (std::sqrt(second) + 1e-8);
  }
  EXPECT_NEAR((array.matrix() * unit).sum().item<double>(), moved, 1e-6);
}

}  // namespace
}  // namespace nas
