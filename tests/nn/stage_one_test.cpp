// Blocks that learn, each alone in its layer, to add what the teacher's layer adds.

#include "convert/stage_one.hpp"

#include "core/error.hpp"
#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "hybrids.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using testing::conversion, testing::drawn_weights, testing::logits, testing::some_tokens;

const Texts kBlocks{"full", "ret", "ssd", "gdn", "gdn2", "kda", "lin", "window{6,2}", "drop"};

torch::Tensor sequences(Integer count, std::uint64_t seed) {
  return some_tokens(count * 24, seed).view({count, -1});
}

Lessons lessons(Integer steps, int* asked = nullptr) {
  return {.steps = steps,
          .seeds = 2,
          .batch =
              [asked](Integer seed, Integer step) {
                if (asked != nullptr) ++*asked;
                return sequences(3, static_cast<std::uint64_t>(1000 * seed + step));
              },
          .held_out = {sequences(2, 77), sequences(1, 78)}};
}

void expect_equal(const LearnedBlock& one, const LearnedBlock& other) {
  ASSERT_EQ(one.weights.size(), other.weights.size());
  for (const auto& [name, tensor] : one.weights)
    EXPECT_TRUE(at::equal(tensor, other.weights.at(name))) << name;
  EXPECT_EQ(one.loss_before, other.loss_before);
  EXPECT_EQ(one.loss, other.loss);
}

TEST(StageOne, GradientsAreDifferencesOfTheLoss) {
  const auto of = conversion(kBlocks);
  const auto weights = drawn_weights(of.teacher());
  for (std::size_t block = 1; block + 1 < kBlocks.size(); ++block) {
    SCOPED_TRACE(of.blocks()[block].text);
    BlockArray array(of, weights, block, {1, 3}, NumericalMode::reference);
    nn::move_to(array.parameters(), at::kCPU, at::kDouble);
    const auto generator = nn::make_generator(at::kCPU, 3);
    const auto drawn = [&](at::IntArrayRef sizes) {
      return at::empty(sizes, at::kDouble).normal_(0.0, 1.0, generator);
    };
    std::vector<torch::Tensor> x, y;
    for (int i = 0; i < 2; ++i)
      x.push_back(drawn({1, 2, 9, 32})), y.push_back(drawn({1, 2, 9, 32}));
    const auto note = [&] {
      EXPECT_FALSE(array.note(0, x[0], x[0], y[0]));
      EXPECT_FALSE(array.note(1, x[0], x[0], y[0]));
      EXPECT_FALSE(array.note(2, x[0], x[0], y[0]));
      EXPECT_TRUE(array.note(3, x[1], x[1], y[1]));
    };
    const auto loss = [&] {
      note();
      const auto errors = array.errors();
      return errors[0][0] / errors[0][1] + errors[1][0] / errors[1][1];
    };
    note();
    array.differentiate();
    for (auto& parameter : array.parameters()) {
      const at::NoGradGuard no_grad;
      const auto direction = drawn(parameter.tensor.sizes());
      const double slope = (parameter.tensor.grad() * direction).sum().item<double>();
      constexpr double kStep = 1e-5;
      parameter.tensor.add_(direction, kStep);
      const double above = loss();
      parameter.tensor.sub_(direction, 2.0 * kStep);
      const double below = loss();
      parameter.tensor.add_(direction, kStep);
      EXPECT_NEAR(slope, (above - below) / (2.0 * kStep), 1e-6 * (1.0 + std::abs(slope)))
          << parameter.name;
    }
  }
}

TEST(StageOne, TheTeachersOwnLayerHasNoError) {
  const auto of = conversion(kBlocks);
  const auto weights = drawn_weights(of.teacher());
  HybridModel teacher(of, weights, NumericalMode::exact);
  BlockArray own(of, weights, 0, {0, 1, 2, 3}, NumericalMode::exact);
  BlockArray window(of, weights, 7, {2}, NumericalMode::exact);
  auto stream = teacher.embedded(sequences(2, 1));
  for (Integer i = 0; i < 4; ++i) {
    nn::Pass watching;
    watching.mixed = [&](const auto& x, const auto& before, const auto& added) {
      EXPECT_TRUE(at::equal(before, stream));
      (void)own.note(i, x, before, added);
      (void)window.note(i, x, before, added);
    };
    stream = teacher.behind(i, 0, stream, watching);
  }
  for (const auto& [error, square] : own.errors()) {
    EXPECT_LT(error, 1e-10 * square);
    EXPECT_GT(square, 0.0);
  }
  const auto errors = window.errors();
  EXPECT_GT(errors[0][0], 1e-3 * errors[0][1]);
}

TEST(StageOne, RecurrentBlocksTakeTheTeachersScale) {
  const auto of = conversion(kBlocks);
  const auto weights = drawn_weights(of.teacher());
  for (std::size_t block = 1; block < 8; ++block) {
    SCOPED_TRACE(of.blocks()[block].text);
    BlockArray array(of, weights, block, {0, 2}, NumericalMode::exact);
    const auto generator = nn::make_generator(at::kCPU, 4);
    const auto x = at::empty({1, 2, 9, 32}).normal_(0.0, 1.0, generator);
    const auto y = at::empty({1, 2, 9, 32}).normal_(0.0, 0.1, generator);
    const auto error = [&](bool scales) {
      (void)array.note(0, x, x, y);
      (void)array.note(2, x, x, y);
      if (scales) array.scale();
      const auto errors = array.errors();
      return errors[1][0] / errors[1][1];
    };
    const double before = error(false), after = error(true);
    if (block < 7) {
      EXPECT_LE(after, 1.0);  // at worst the factor is 0
      EXPECT_LT(after, before);
      EXPECT_NEAR(error(true), after, 1e-4);  // the factor is then 1
    } else {
      EXPECT_EQ(after, before);
    }
  }
}

TEST(StageOne, EachBlockOfEachLayerLearns) {
  const auto of = conversion(kBlocks);
  const auto weights = drawn_weights(of.teacher());
  LearnedBlocks learned(of, weights, NumericalMode::exact, lessons(60), {});
  for (Integer layer = 0; layer < 4; ++layer) {
    for (std::size_t block = 1; block + 1 < kBlocks.size(); ++block) {
      const auto one = learned.at(layer, block, 0);
      ASSERT_TRUE(one);
      const bool began_near = kBlocks[block].starts_with("window");  // these tokens say no more
      EXPECT_LT(one->loss, (began_near ? 1.2F : 0.95F) * one->loss_before)
          << layer << " " << of.blocks()[block].text;
      EXPECT_GT(one->loss, 0.0F);
    }
    EXPECT_FALSE(learned.at(layer, 8, 0));  // drop
    EXPECT_FALSE(learned.at(layer, 0, 0));
  }
  EXPECT_NE(learned.at(0, 3, 0)->loss, learned.at(0, 3, 1)->loss);
  EXPECT_EQ(learned.seed(5), 1);
  const auto losses = learned.losses({0, 3, 8, 1}, 0);
  ASSERT_TRUE(losses);
  EXPECT_FLOAT_EQ(static_cast<float>(losses->back()),
                  (learned.at(1, 3, 0)->loss + learned.at(3, 1, 0)->loss) / 2.0F);
  EXPECT_FALSE(learned.losses({0, 8, 0, 0}, 0));
  // Hybrids of them.
  const Placement placement{3, 0, 7, 5};
  HybridModel model(of, weights, NumericalMode::exact, learned.of_seed(1));
  const auto all = weights_of(of, weights, placement, learned.of_seed(1));
  nn::Transformer whole(of.architecture(placement), NumericalMode::exact);
  for (auto& [name, tensor] : whole.parameters()) share(tensor, all.at(name));
  const auto tokens = some_tokens(24);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(logits(model, placement, tokens),
                        whole.logits(tokens.unsqueeze(0), nn::Pass{}).squeeze(0)));
  HybridModel untrained(of, weights, NumericalMode::exact);
  EXPECT_FALSE(
      at::allclose(logits(model, placement, tokens), logits(untrained, placement, tokens)));
}

TEST(StageOne, WhatSharesKeysLearnsWithThoseOfTheLayerBefore) {
  const auto of = conversion({"full", "share", "heads{1,6,2}"});
  const auto weights = drawn_weights(of.teacher());
  auto little = lessons(40);
  LearnedBlocks together(of, weights, NumericalMode::exact, little, {});
  little.room = 1.0;
  LearnedBlocks alone(of, weights, NumericalMode::exact, little, {});
  EXPECT_FALSE(together.at(0, 1, 0));
  for (Integer layer = 1; layer < 4; ++layer) {
    EXPECT_LT(together.at(layer, 1, 0)->loss, 0.95F * together.at(layer, 1, 0)->loss_before);
    expect_equal(*alone.at(layer, 1, 0), *together.at(layer, 1, 0));
  }
}

TEST(StageOne, IsAlikeAloneInArraysAndFromFiles) {
  const auto of = conversion({"full", "gdn", "kda"});
  const auto weights = drawn_weights(of.teacher());
  const TemporaryFolder folder;
  LearnedBlocks together(of, weights, NumericalMode::exact, lessons(5), {});
  auto little = lessons(5);
  little.room = 1.0;  // one after the other
  int asked = 0, left = 0;
  little.batch = [&, batch = little.batch](Integer seed, Integer step) {
    if (step > 0 && ++asked > 0 && --left == 0) request_stop();
    return batch(seed, step);
  };
  for (const int stop : {3, 4, 7}) {  // it goes on from where it was stopped
    left = stop;
    LearnedBlocks stopped(of, weights, NumericalMode::exact, little, folder.path());
    EXPECT_THROW((void)stopped.at(0, 1, 0), StopRequested);
    request_stop(false);
  }
  LearnedBlocks alone(of, weights, NumericalMode::exact, little, folder.path());
  for (Integer layer = 0; layer < 4; ++layer) {
    for (const std::size_t block : {1U, 2U})
      expect_equal(*alone.at(layer, block, 0), *together.at(layer, block, 0));
  }
  EXPECT_EQ(asked, 8 * 4);
  EXPECT_FALSE(fs::exists(folder.path() / "0" / "unfinished.pt"));
  EXPECT_EQ(alone.seconds(1), 0.0);  // files hold all of the first seed
  EXPECT_EQ(together.bytes(),
            16.0 * static_cast<double>(of.mixer_parameters(0, 1) + of.mixer_parameters(0, 2)));
  EXPECT_GT(alone.seconds(2), 0.0);
  EXPECT_GT(together.seconds(2), 1.5 * together.seconds(1));
  asked = 0;
  fs::remove(folder.path() / "0" / "2.kda{4,1}.safetensors");  // as if it had been stopped
  LearnedBlocks again(of, weights, NumericalMode::exact, lessons(5, &asked), folder.path());
  for (Integer layer = 0; layer < 4; ++layer) {
    for (const std::size_t block : {1U, 2U})
      expect_equal(*again.at(layer, block, 0), *together.at(layer, block, 0));
  }
  EXPECT_EQ(asked, 6);
  std::ofstream(folder.path() / "0" / "1.gdn{4,1}.safetensors") << "cut";
  LearnedBlocks damaged(of, weights, NumericalMode::exact, lessons(5), folder.path());
  EXPECT_THAT(message_of<InputError>([&] { (void)damaged.at(1, 1, 0); }), HasSubstr("1.gdn{4,1}"));
}

TEST(StageOne, ItsRateFallsAsACosine) {
  const Lessons of{.steps = 101};
  EXPECT_DOUBLE_EQ(of.rate(0), 1e-3);
  EXPECT_NEAR(of.rate(50), (1e-3 + 1e-5) / 2.0, 1e-12);
  EXPECT_NEAR(of.rate(100), 1e-5, 1e-15);
}

}  // namespace
}  // namespace nas
