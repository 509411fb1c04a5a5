// Hybrids of a trained model: their weights, their logits, and what is said of them.

#include "convert/assessment.hpp"
#include "core/error.hpp"
#include "data/corpus.hpp"
#include "genotype/costs.hpp"
#include "hybrids.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using testing::drawn_weights, testing::llama, testing::logits, testing::some_tokens;

Conversion conversion(const Texts& blocks = {"full", "window{6,2}", "drop", "local", "gqa{1}"}) {
  return testing::conversion(blocks);
}

/// By a whole transformer with weights of its own.
torch::Tensor logits_of_whole(const Conversion& of, const Weights& teacher,
                              const Placement& placement, const torch::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  nn::Transformer model(of.architecture(placement), NumericalMode::exact);
  const auto weights = weights_of(of, teacher, placement);
  for (auto& [name, tensor] : model.parameters()) tensor.copy_(weights.at(name).unsqueeze(0));
  return model.logits(tokens.unsqueeze(0), nn::Pass{}).squeeze(0);
}

TEST(Hybrid, EachPlacementIsTheTransformerOfItsArchitecture) {
  const auto of = conversion();
  const auto weights = drawn_weights(of.teacher());
  HybridModel model(of, weights, NumericalMode::exact);
  const auto tokens = some_tokens(40);
  for (const auto& placement :
       {Placement{0, 0, 0, 0}, {1, 1, 1, 1}, {0, 2, 0, 1}, {3, 0, 4, 2}, {4, 4, 4, 4}}) {
    SCOPED_TRACE(of.name(placement));
    EXPECT_TRUE(at::equal(logits(model, placement, tokens),
                          logits_of_whole(of, weights, placement, tokens)));
  }
}

TEST(Hybrid, SharesWhatTheNearestLayerKeeps) {
  const auto of =
      conversion({"full", "share", "window{6,2}", "gqa{1}", "drop", "local", "heads{2,6,2}"});
  EXPECT_THAT(of.choices(0), ElementsAre(0, 2, 3, 4, 5, 6));
  EXPECT_THAT(of.choices(3), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  auto weights = drawn_weights(of.teacher());
  HybridModel model(of, weights, NumericalMode::exact);
  const auto tokens = some_tokens(40);
  constexpr Integer kToken = 2 * 2 * 8 * 4;  // keys and values of two heads of 8 numbers
  const Sample document{some_tokens(40, 1), some_tokens(40, 2)};
  Assessor assessor(
      of, weights, NumericalMode::exact, [&](Integer) { return Samples{document}; }, 1e9);
  const auto teacher = logits_of_whole(of, weights, {0, 0, 0, 0}, document.tokens).log_softmax(-1);
  for (const auto& [placement, giver, tokens_kept] :
       std::vector<std::tuple<Placement, Integer, Integer>>{{{0, 1, 1, 1}, 0, 40},
                                                            {{0, 0, 2, 1}, 2, 88},
                                                            {{0, 3, 1, 1}, 1, 60},
                                                            {{0, 0, 4, 1}, 1, 80},
                                                            {{2, 5, 1, 4}, 0, 8},
                                                            {{0, 6, 1, 1}, 1, 64}}) {
    SCOPED_TRACE(of.name(placement));
    const auto shares = placement[3] == 1 ? 3 : 2;
    EXPECT_EQ(of.giver(placement, shares), giver);
    EXPECT_EQ(of.refusal(placement), "");
    EXPECT_EQ(of.cache_bytes(placement, 40), tokens_kept * kToken);
    EXPECT_TRUE(at::equal(logits(model, placement, tokens),
                          logits_of_whole(of, weights, placement, tokens)));
    const auto student = logits_of_whole(of, weights, placement, document.tokens).log_softmax(-1);
    EXPECT_NEAR(assessor.assess(placement, 0).kl,
                (teacher.exp() * (teacher - student)).sum(-1).mean().item<double>(), 1e-4);
    EXPECT_EQ(of.parse(of.name(placement)), placement);
    EXPECT_GT(assessor.decode_milliseconds(placement, 8), 0.0);
  }
  for (const auto& placement : {Placement{1, 0, 0, 0}, {4, 1, 0, 0}, {5, 5, 1, 0}}) {
    EXPECT_THAT(of.refusal(placement), HasSubstr("shares keys, and no earlier layer keeps any"));
    EXPECT_THAT(message_of<InputError>([&] { (void)of.architecture(placement); }),
                HasSubstr("no earlier layer keeps any"));
  }
  // Behind a layer that adds nothing, of the same norm and keys, it is as it was.
  for (const auto* name :
       {"attention_norm.weight", "attention.k_proj.weight", "attention.v_proj.weight"})
    weights["layers.2." + std::string(name)] = weights.at("layers.1." + std::string(name));
  for (const auto* name : {"attention.out_proj.weight", "feed_forward.contract.weight"})
    weights["layers.1." + std::string(name)] =
        at::zeros_like(weights.at("layers.1." + std::string(name)));
  HybridModel same(of, weights, NumericalMode::exact);
  EXPECT_TRUE(at::equal(logits(same, {0, 0, 1, 0}, tokens), logits(same, {0, 0, 0, 0}, tokens)));
}

TEST(Hybrid, HeadsThatStayWholeKeepAll) {
  const auto of =
      conversion({"full", "heads{3,6,2}", "heads{1,6,2}", "heads{2,6,2}", "window{6,2}"});
  EXPECT_THAT(of.choices(1), ElementsAre(0, 2, 3, 4));  // 3 is both
  const auto weights = drawn_weights(of.teacher());
  HybridModel model(of, weights, NumericalMode::exact);
  const auto tokens = some_tokens(40);
  const Placement placement{2, 0, 3, 4};
  EXPECT_TRUE(
      at::equal(logits(model, placement, tokens), logits_of_whole(of, weights, placement, tokens)));
  EXPECT_EQ(of.name(placement), "full 1; heads{1,6,2} 0; heads{2,6,2} 2; window{6,2} 3");
  EXPECT_EQ(of.cache_bytes(placement, 40), (2 * (40 + 8) + 2 * 40 + 2 * 8) * 2 * 8 * 4);
  EXPECT_THAT(message_of<InputError>([] {
                (void)conversion({"full", "heads{4,6,2}"});
              }),
              AllOf(HasSubstr("block heads{4,6,2} of layer 0: "),
                    HasSubstr("full_groups = 4, must be at most 3")));
}

TEST(Hybrid, ABlockThatSeesAllIsTheLayer) {
  const auto of = conversion({"full", "window{48,0}", "window{4,48}", "gqa{2}", "window{6,2}"});
  EXPECT_THAT(of.choices(0), ElementsAre(0, 4));
}

TEST(Hybrid, LocalIsTheProductOfTwoMatrices) {
  const auto of = conversion();
  const auto weights = drawn_weights(of.teacher());
  HybridModel model(of, weights, NumericalMode::exact);
  const auto stream = model.embedded(some_tokens(9));
  const auto local = model.behind(0, 3, stream), drop = model.behind(0, 2, stream);
  const auto normed = stream / (stream.square().mean(-1, true) + 1e-5).sqrt() *
                      weights.at("layers.0.attention_norm.weight");
  const auto v = at::matmul(normed, weights.at("layers.0.attention.v_proj.weight").t());
  const auto repeated = v.view({9, 2, 1, 8}).expand({9, 2, 2, 8}).reshape({9, 32});
  const auto added = at::matmul(repeated, weights.at("layers.0.attention.out_proj.weight").t());
  auto with = stream.flatten(0, 2) + added;
  // What the feed-forward layer makes of it is its affair: drop has the same one.
  EXPECT_GT((local - drop).abs().max().item<double>(), 1e-2);
  HybridModel other(of, weights, NumericalMode::exact);
  EXPECT_TRUE(at::allclose(other.behind(0, 2, with.view({1, 1, 9, 32})), local, 1e-4, 1e-4));
}

TEST(Hybrid, ItsCacheIsThatOfItsBlocks) {
  const auto of = conversion();
  constexpr Integer kToken = 2 * 2 * 8 * 4;  // keys and values of two heads of 8 numbers
  const auto bytes = [&](const Placement& placement) { return of.cache_bytes(placement, 40); };
  EXPECT_EQ(bytes({0, 0, 0, 0}), 4 * 40 * kToken);
  EXPECT_EQ(bytes({0, 1, 0, 0}), (3 * 40 + 8) * kToken);
  EXPECT_EQ(bytes({2, 3, 4, 0}), (20 + 40) * kToken);
}

TEST(Hybrid, NamesAreReadAgain) {
  const auto of = conversion();
  for (const auto& placement : {Placement{0, 0, 0, 0}, {1, 0, 1, 1}, {3, 0, 4, 2}}) {
    EXPECT_EQ(of.parse(of.name(placement)), placement);
  }
  EXPECT_EQ(of.name({1, 0, 1, 1}), "full 1; window{6,2} 0,2-3");
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"full 0-2", "layer 3 has no block"},
           {"full 0-3; drop 1", "layer 1 has two blocks"},
           {"full 0-4", "must be in [0, 3]"},
           {"sieve 0-3", "must be BLOCK LAYERS"},
           {"full", "must be BLOCK LAYERS"},
           {"full 3-0", "must be in [0, 3]"},
           {"full x", "must be in [0, 3]"}}) {
    EXPECT_THAT(message_of<InputError>([&] { (void)of.parse(given); }), HasSubstr(said));
  }
}

TEST(Hybrid, RefusesBlocksThatCannotBe) {
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"windw", "did you mean window"},
           {"window{0,4}", "width = 0, must be"},
           {"window{64,4,1}", "has 3 sizes, window has 2"},
           {"window{64", "must end with }"},
           {"window{x}", "width = x, must be"}}) {
    EXPECT_THAT(message_of<InputError>([&] { (void)parse_block(given); }), HasSubstr(said));
  }
  EXPECT_THAT(message_of<InputError>([] {
                (void)conversion({"full", "gqa{3}"});
              }),
              HasSubstr("block gqa{3} of layer 0"));
}

TEST(Assessor, SaysWhatAWholeTransformerSays) {
  const auto of = conversion();
  const auto weights = drawn_weights(of.teacher());
  const Sample document{some_tokens(40, 1), some_tokens(40, 2)};
  const auto probe = Probe("copy{12}").draw(3, 97);
  int made = 0;
  Assessor assessor(
      of, weights, NumericalMode::exact,
      [&](Integer) {
        ++made;
        return Samples{document, probe};
      },
      1e9);
  const Placement placement{0, 1, 2, 3};
  const auto found = assessor.assess(placement, 0);
  const auto logs = [&](const Placement& one, const Sample& sample) {
    return logits_of_whole(of, weights, one, sample.tokens).to(at::kDouble).log_softmax(-1);
  };
  const auto teacher = logs({0, 0, 0, 0}, document), student = logs(placement, document);
  EXPECT_NEAR(found.kl, (teacher.exp() * (teacher - student)).sum(-1).mean().item<double>(), 1e-5);
  EXPECT_NEAR(found.agreement,
              teacher.argmax(-1).eq(student.argmax(-1)).to(at::kDouble).mean().item<double>(),
              1e-12);
  const auto loss = [&](const Placement& one, const Sample& sample) {
    const auto asked = sample.targets.ge(0).nonzero().flatten();
    return -logs(one, sample)
                .index_select(0, asked)
                .gather(1, sample.targets.index_select(0, asked).unsqueeze(1))
                .mean()
                .item<double>();
  };
  EXPECT_NEAR(found.text_loss, loss(placement, document) - loss({0, 0, 0, 0}, document), 1e-4);
  EXPECT_NEAR(found.recall, loss(placement, probe) - loss({0, 0, 0, 0}, probe), 1e-4);
  const auto asked = probe.targets.ge(0).nonzero().flatten();
  const auto next = probe.targets.index_select(0, asked).roll(5);
  const Sample others{probe.tokens, probe.targets.index_copy(0, asked, next)};
  EXPECT_NEAR(found.recall_margin, loss({0, 0, 0, 0}, others) - loss({0, 0, 0, 0}, probe), 1e-4);
  // Of large logits, and of models that hardly differ.
  auto sharp = weights;
  sharp["final_norm.weight"] = weights.at("final_norm.weight") * 20.0;
  auto close = sharp;
  for (const auto* name : {"layers.0.attention.k_proj.weight", "layers.0.attention.v_proj.weight"})
    close[name] =
        sharp.at(name).view({2, 8, 32}).mean(0, true).expand({2, 8, 32}).reshape({16, 32}) * 1e-3;
  const auto log_of = [&](const Weights& of_weights, const Placement& one) {
    HybridModel model(of, of_weights, NumericalMode::exact);
    return logits(model, one, document.tokens).to(at::kDouble).log_softmax(-1);
  };
  Assessor of_close(
      of, close, NumericalMode::exact, [&](Integer) { return Samples{document}; }, 1e9);
  const auto before = log_of(close, {0, 0, 0, 0}), after = log_of(close, {4, 0, 0, 0});
  const double small = (before.exp() * (before - after)).sum(-1).mean().item<double>();
  EXPECT_NEAR(of_close.assess({4, 0, 0, 0}, 0).kl, small, 1e-3 * small + 1e-7);
  const auto nothing = assessor.assess({0, 0, 0, 0}, 0);
  EXPECT_EQ(nothing.kl, 0.0);
  EXPECT_EQ(nothing.recall, 0.0);
  const auto sum = assessor.added_up(placement, 0);
  double kl = 0.0;
  for (const auto& alone : {Placement{0, 1, 0, 0}, {0, 0, 2, 0}, {0, 0, 0, 3}})
    kl += assessor.assess(alone, 0).kl;
  EXPECT_DOUBLE_EQ(sum.kl, kl);
  EXPECT_EQ(made, 1);
}

TEST(Probe, AsksForWhatWasSaidBefore) {
  const auto at_of = [](const torch::Tensor& tensor, Integer i) {
    return tensor[i].item<Integer>();
  };
  const auto copy = Probe("copy{5}").draw(1, 50);
  ASSERT_EQ(copy.tokens.size(0), 10);
  for (Integer t = 0; t < 10; ++t) {
    EXPECT_EQ(at_of(copy.targets, t), t >= 5 && t < 9 ? at_of(copy.tokens, t - 4) : kNotScored);
  }
  for (const auto* text : {"pairs{6}", "needle{9}"}) {
    const auto sample = Probe(text).draw(2, 60);
    ASSERT_EQ(sample.tokens.size(0), Probe(text).tokens());
    int asked = 0;
    for (Integer t = 0; t < sample.tokens.size(0); ++t) {
      if (at_of(sample.targets, t) == kNotScored) continue;
      ++asked;
      Integer before = 0;  // where the key stood
      while (at_of(sample.tokens, before) != at_of(sample.tokens, t)) ++before;
      ASSERT_LT(before, t);
      EXPECT_EQ(at_of(sample.tokens, before + 1), at_of(sample.targets, t));
    }
    EXPECT_EQ(asked, std::string(text).starts_with("pairs") ? 6 : 1);
  }
  EXPECT_FALSE(at::equal(Probe("copy{5}").draw(1, 50).tokens, Probe("copy{5}").draw(2, 50).tokens));
  for (const auto* text : {"copy", "copy{1}", "copy{x}", "echo{5}", "copy{5"}) {
    EXPECT_THAT(message_of<InputError>([&] { Probe{text}; }), HasSubstr("must be one of copy{n}"));
  }
}

}  // namespace
}  // namespace nas
