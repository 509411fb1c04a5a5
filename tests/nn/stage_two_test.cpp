// Hybrids that learn as a whole to say what the teacher says.

#include "convert/stage_two.hpp"

#include "convert/low_rank.hpp"
#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "hybrids.hpp"
#include "ops/divergence_loss.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using testing::conversion, testing::drawn_weights, testing::some_tokens;

const Texts kBlocks{"full", "gdn", "window{6,2}", "drop"};

torch::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed, at::ScalarType type = at::kDouble) {
  return at::empty(sizes, type).normal_(0.0, 1.0, nn::make_generator(at::kCPU, seed));
}

torch::Tensor sequences(Integer count, std::uint64_t seed) {
  return some_tokens(count * 24, seed).view({count, -1});
}

/// KL by LibTorch's operations.
torch::Tensor plain(const torch::Tensor& features, const torch::Tensor& embedding,
                    const nn::OutputLayer& told) {
  const auto p = at::matmul(told.features, told.embedding.transpose(1, 2)).log_softmax(-1);
  const auto q = at::matmul(features, embedding.transpose(1, 2)).log_softmax(-1);
  return (p.exp() * (p - q)).sum(-1).mean(-1);
}

TEST(LinearDivergence, HasTheLossAndGradientsOfPlainOperations) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    for (const Integer vocabulary : {5, 97, 1030}) {
      SCOPED_TRACE(vocabulary);
      const auto features = drawn({2, 300, 7}, 1, type).requires_grad_();
      const auto embedding = drawn({2, vocabulary, 7}, 2, type).requires_grad_();
      const nn::OutputLayer told{drawn({2, 300, 4}, 3, type), drawn({2, vocabulary, 4}, 4, type)};
      const auto expected = plain(features, embedding, told);
      expected.sum().backward();
      const auto by_features = features.grad().clone(), by_embedding = embedding.grad().clone();
      for (const auto mode : {NumericalMode::exact, NumericalMode::reference}) {
        for (const auto& x : {features, embedding}) x.mutable_grad() = torch::Tensor();
        const auto loss = nn::linear_divergence(features, embedding, told, mode);
        const double error = type == at::kDouble ? 1e-11 : 2e-5;
        EXPECT_TRUE(at::allclose(loss, expected, error, error));
        loss.sum().backward();
        EXPECT_TRUE(at::allclose(features.grad(), by_features, error, error / 10.0));
        EXPECT_TRUE(at::allclose(embedding.grad(), by_embedding, error, error / 10.0));
      }
    }
  }
}

TEST(LinearDivergence, IsNothingBesideItselfAndTheSumOfItsParts) {
  const auto features = drawn({1, 40, 7}, 1, at::kFloat).requires_grad_();
  const auto embedding = drawn({1, 97, 7}, 2, at::kFloat).requires_grad_();
  const auto mode = NumericalMode::exact;
  const auto none =
      nn::linear_divergence(features, embedding, {features.detach(), embedding.detach()}, mode);
  none.sum().backward();
  EXPECT_EQ(none.item<float>(), 0.0F);
  EXPECT_EQ(features.grad().abs().max().item<float>(), 0.0F);
  EXPECT_EQ(embedding.grad().abs().max().item<float>(), 0.0F);
  const nn::OutputLayer told{drawn({1, 40, 4}, 3, at::kFloat), drawn({1, 97, 4}, 4, at::kFloat)};
  const auto whole = nn::linear_divergence(features, embedding, told, mode).item<float>();
  double sum = 0.0;
  for (const Integer first : {0, 25}) {
    const Integer rows = first == 0 ? 25 : 15;
    sum += nn::linear_divergence(
               features.narrow(1, first, rows), embedding,
               {told.features.narrow(1, first, rows).contiguous(), told.embedding}, mode, 40)
               .item<double>();
  }
  EXPECT_NEAR(sum, whole, 1e-5 * whole);
  EXPECT_GT(whole, 0.1F);
}

/// Stage 2 of hybrids of a drawn teacher.
struct School {
  Conversion of = conversion(kBlocks);
  Weights weights = drawn_weights(of.teacher());
  Assessor assessor{of, weights, NumericalMode::exact,
                    [](Integer) {
                      const auto tokens = some_tokens(41, 99);
                      return Samples{{tokens.narrow(0, 0, 40), tokens.narrow(0, 1, 40)}};
                    },
                    1e9};
  int asked = 0, left = 0;

  Distillation plan(Integer steps) {
    return {.steps = steps,
            .marks = {(steps + 1) / 2, steps},
            .batch =
                [this](Integer replicate, Integer step) {
                  ++asked;
                  if (left > 0 && --left == 0) request_stop();
                  return sequences(3, static_cast<std::uint64_t>(1000 * replicate + step));
                },
            .mixer_rate = 3e-3,
            .other_rate = 1e-3};
  }
  std::vector<Assessment> train(Distiller& distiller, const Placement& placement,
                                std::size_t marks = 2, Integer replicate = 0) {
    return distiller.train(placement, replicate, marks, [&](nn::TransformerArray& hybrid) {
      return assessor.assess(hybrid, 0);
    });
  }
  Distiller distiller(Distillation plan, const fs::path& folder = {}, const fs::path& kept = {}) {
    return {of, weights, NumericalMode::exact, std::move(plan), nullptr, folder, kept};
  }
};

TEST(StageTwo, LowersTheDivergenceOnOtherTokens) {
  School school;
  auto distiller = school.distiller(school.plan(80));
  for (const Placement& placement : {Placement{1, 1, 1, 1}, Placement{0, 3, 1, 2}}) {
    const auto before = school.assessor.assess(placement, 0);
    const auto found = school.train(distiller, placement);
    EXPECT_LT(found[0].kl, 0.95 * before.kl);
    EXPECT_LT(found[1].kl, found[0].kl);
  }
}

TEST(StageTwo, TheTeacherStaysWhatItIs) {
  School school;
  const TemporaryFolder folder;
  auto distiller = school.distiller(school.plan(4), {}, folder.path());
  (void)school.train(distiller, {0, 0, 0, 0});
  const auto trained = read_learned_hybrid(school.of, {0, 0, 0, 0}, folder.path() / "0");
  ASSERT_EQ(trained.size(), school.weights.size());
  for (const auto& [name, tensor] : school.weights)
    EXPECT_TRUE(at::equal(trained.at(name), tensor)) << name;
}

TEST(StageTwo, OnlyMixersLearnWhereTheRestHasNoRate) {
  School school;
  const TemporaryFolder folder;
  auto plan = school.plan(3);
  plan.other_rate = 0.0;
  auto distiller = school.distiller(plan, {}, folder.path());
  (void)school.train(distiller, {0, 1, 0, 0});
  const auto trained = read_learned_hybrid(school.of, {0, 1, 0, 0}, folder.path() / "0");
  const auto start = weights_of(school.of, school.weights, {0, 1, 0, 0});
  for (const auto& [name, tensor] : start) {
    const bool mixer = name.find(".attention.") != std::string::npos ||
                       name.find(".recurrent.") != std::string::npos;
    EXPECT_EQ(at::equal(trained.at(name), tensor), !mixer) << name;
  }
}

TEST(LowRank, GradientsAreThoseOfTheUnmergedFactors) {
  const auto weight = drawn({1, 7, 5}, 1), x = drawn({1, 5, 11}, 2), y = drawn({1, 7, 11}, 3);
  const nn::Parameter parameter{
      "w", weight.clone().requires_grad_(), {0}, nn::Start::constant(0.0), nn::Decay::yes};
  const auto loss = [&](const torch::Tensor& w) {
    return (at::bmm(w, x) - y).tanh().square().sum();
  };
  LowRank of(parameter, 2);
  of.merge();
  EXPECT_TRUE(at::equal(parameter.tensor, weight));  // at the start
  const auto &a = of.factors()[0].tensor, &b = of.factors()[1].tensor;
  EXPECT_EQ(a.numel() + b.numel(), 2 * (7 + 5));
  EXPECT_LT(a.numel() + b.numel(), weight.numel());
  {
    const at::NoGradGuard no_grad;
    a.copy_(drawn({1, 7, 2}, 4));
  }
  of.merge();
  const auto c = a.clone().requires_grad_(), d = b.clone().requires_grad_();
  const auto unmerged = loss(weight + at::bmm(c, d.transpose(1, 2)));
  const auto merged = loss(parameter.tensor);
  EXPECT_NEAR(merged.item<double>(), unmerged.item<double>(), 1e-12);
  unmerged.backward();
  merged.backward();
  of.take_gradient();
  EXPECT_TRUE(at::allclose(a.grad(), c.grad(), 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(b.grad(), d.grad(), 1e-10, 1e-12));
  EXPECT_FALSE(parameter.tensor.grad().defined());
  const auto way = drawn({1, 7, 2}, 5);
  const auto at_step = [&](double step) {
    return loss(weight + at::bmm(a + step * way, b.transpose(1, 2))).item<double>();
  };
  EXPECT_NEAR((a.grad() * way).sum().item<double>(), (at_step(1e-5) - at_step(-1e-5)) / 2e-5, 1e-6);
}

TEST(StageTwo, LowRankChangesMatricesByAFewDirections) {
  School school;
  const TemporaryFolder folder;
  auto plan = school.plan(40);
  plan.rank = 2;
  const Placement placement{1, 0, 2, 3};
  auto distiller = school.distiller(plan, {}, folder.path());
  const auto found = school.train(distiller, placement);
  EXPECT_LT(found[1].kl, 0.95 * school.assessor.assess(placement, 0).kl);
  const auto trained = read_learned_hybrid(school.of, placement, folder.path() / "0");
  for (const auto& [name, tensor] : weights_of(school.of, school.weights, placement)) {
    SCOPED_TRACE(name);
    const auto change = trained.at(name) - tensor;
    const bool mixer = name.find(".attention.") != std::string::npos ||
                       name.find(".recurrent.") != std::string::npos;
    if (mixer) continue;
    if (tensor.dim() == 1) {
      EXPECT_EQ(change.abs().max().item<float>(), 0.0F);
      continue;
    }
    const auto values = at::linalg_svdvals(change);
    EXPECT_GT(values[1].item<float>(), 1e-4F * values[0].item<float>());
    EXPECT_LT(values[2].item<float>(), 1e-4F * values[0].item<float>());
    EXPECT_GT(values[0].item<float>(), 0.0F);
  }
}

class StageTwoOfRank : public ::testing::TestWithParam<Integer> {};
INSTANTIATE_TEST_SUITE_P(Ranks, StageTwoOfRank, ::testing::Values(0, 2));

TEST_P(StageTwoOfRank, GoesOnWhereItWasStoppedAndAtRungs) {
  School school;
  const TemporaryFolder folder;
  const Placement placement{1, 0, 2, 1};
  auto plan = school.plan(9);
  plan.rank = GetParam();
  auto at_once = school.distiller(plan, {}, folder.path() / "one");
  const auto whole = school.train(at_once, placement, 2, 5);
  EXPECT_EQ(school.asked, 9);
  plan.room = 1.0;  // nothing is kept of the teacher
  auto parts = school.distiller(plan, folder.path() / "unfinished", folder.path() / "two");
  const auto stopped = [&](int after, std::size_t marks) {
    school.left = after;
    EXPECT_THROW((void)school.train(parts, placement, marks, 5), StopRequested);
    request_stop(false);
  };
  stopped(2, 2);
  stopped(1, 1);
  const auto first = school.train(parts, placement, 1, 5);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].kl, whole[0].kl);
  school.asked = 0;
  stopped(2, 2);
  const auto rest = school.train(parts, placement, 2, 5);
  EXPECT_EQ(school.asked, 4);
  EXPECT_EQ(rest[0].kl, whole[0].kl);
  EXPECT_EQ(rest[1].kl, whole[1].kl);
  EXPECT_EQ(rest[1].text_nll, whole[1].text_nll);
  const auto one = read_learned_hybrid(school.of, placement, folder.path() / "one" / "5");
  for (const auto& [name, tensor] :
       read_learned_hybrid(school.of, placement, folder.path() / "two" / "5"))
    EXPECT_TRUE(at::equal(tensor, one.at(name))) << name;
  parts.forget(placement, 5);
  EXPECT_TRUE(fs::is_empty(folder.path() / "unfinished" / "5"));
}

TEST(StageTwo, ItsRateRisesAndFalls) {
  const Distillation of{.steps = 100};
  EXPECT_DOUBLE_EQ(of.factor(0), 0.2);
  EXPECT_DOUBLE_EQ(of.factor(4), 1.0);
  EXPECT_NEAR(of.factor(99), 0.1, 1e-12);
  EXPECT_LT(of.factor(60), of.factor(40));
}

}  // namespace
}  // namespace nas
