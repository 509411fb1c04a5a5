// What recurrent blocks are at the start, with the teacher's weights.

#include "core/error.hpp"
#include "hybrids.hpp"
#include "nn/decoder.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using testing::conversion, testing::drawn_weights, testing::logits, testing::some_tokens;

constexpr Integer kHeads = 4, kWidth = 8, kTokens = 21;

torch::Tensor unit(const torch::Tensor& u) {
  const auto active = at::silu(u);
  return active / (active.square().sum(-1, true) + 1e-6).sqrt();
}

/// Entries m and m + d/2 turned by t 10000^(-2m/d); u (T, H, d).
torch::Tensor rotated(const torch::Tensor& u) {
  const auto m = at::arange(kWidth / 2, at::kDouble);
  const auto angles =
      at::arange(u.size(0), at::kDouble).view({-1, 1, 1}) * at::pow(1e4, -2.0 * m / kWidth);
  const auto a = u.narrow(-1, 0, kWidth / 2), b = u.narrow(-1, kWidth / 2, kWidth / 2);
  return at::cat({a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()}, -1);
}

torch::Tensor hedgehog(const torch::Tensor& u) { return at::cat({u, -u}, -1).softmax(-1); }
torch::Tensor taylor2(const torch::Tensor& u) {
  return at::cat({at::ones_like(u.narrow(-1, 0, 1)), u / std::pow(kWidth, 0.25),
                  (u.unsqueeze(-1) * u.unsqueeze(-2)).flatten(-2) / std::sqrt(2.0 * kWidth)},
                 -1);
}

/// What a block adds to the stream at the start, token by token in double.
/// @param alpha  of a head.   @param beta  0: nothing is erased.   @param feature  or none: outputs are normed.
torch::Tensor added(const Weights& weights, const torch::Tensor& stream,
                    const std::function<double(Integer)>& alpha, double beta,
                    torch::Tensor (*feature)(const torch::Tensor&)) {
  const auto of = [&](const std::string& name) {
    return weights.at("layers.0.attention" + name + ".weight").to(at::kDouble);
  };
  const auto h = stream.flatten(0, 2).to(at::kDouble);
  const auto x = h / (h.square().mean(-1, true) + 1e-5).sqrt() * of("_norm");
  const auto heads = [&](const std::string& name, Integer groups) {
    return at::matmul(x, of(name).t())
        .view({-1, groups, 1, kWidth})
        .expand({-1, groups, kHeads / groups, kWidth})
        .reshape({-1, kHeads, kWidth});
  };
  auto q = heads(".q_proj", kHeads), k = heads(".k_proj", 2), v = heads(".v_proj", 2);
  if (beta > 0.0) {
    q = unit(q), k = unit(k), v = at::silu(v);
  } else if (feature != nullptr) {
    q = feature(q), k = feature(k);
  } else {
    q = rotated(q), k = rotated(k);
  }
  auto outputs = at::zeros({x.size(0), kHeads, kWidth}, at::kDouble);
  for (Integer i = 0; i < kHeads; ++i) {
    auto state = at::zeros({k.size(-1), kWidth}, at::kDouble);
    auto sum = at::zeros({k.size(-1)}, at::kDouble);
    for (Integer t = 0; t < x.size(0); ++t) {
      state *= alpha(i);
      const auto held = beta > 0.0 ? k[t][i].matmul(state) : at::zeros({kWidth}, at::kDouble);
      state += (beta > 0.0 ? beta : 1.0) * k[t][i].outer(v[t][i] - held);
      sum += k[t][i];
      const auto o = q[t][i].matmul(state);
      const auto scaled = o / std::sqrt(static_cast<double>(kWidth));
      outputs[t][i] = feature != nullptr ? o / (q[t][i].dot(sum) + 1e-6)
                                         : scaled / (scaled.square().mean() + 1e-5).sqrt();
    }
  }
  return at::matmul(outputs.flatten(1), of(".out_proj").t()).view_as(stream);
}

TEST(RecurrentBlocks, BeginAsLinearAttentionWithTheTeachersWeights) {
  const Texts names{"full", "drop", "ret",          "ssd",    "gdn",     "gdn2",
                    "kda",  "lin",  "lin{taylor2}", "ret{0}", "gdn{0,0}"};
  const auto of = conversion(names);
  const auto weights = drawn_weights(of.teacher());
  HybridModel model(of, weights, NumericalMode::exact);
  const auto stream = model.embedded(some_tokens(kTokens));
  const auto kept = [](Integer) { return 0.99; };
  const auto retained = [](Integer head) {
    return 1.0 - std::ldexp(1.0, -5 - static_cast<int>(head));
  };
  const auto all = [](Integer) { return 1.0; };
  for (std::size_t block = 2; block < names.size(); ++block) {
    SCOPED_TRACE(of.blocks()[block].text);
    const auto is = [&](const char* key) { return names[block].starts_with(key); };
    const bool features = is("lin");
    const auto expected = added(weights, stream,
                                features    ? std::function<double(Integer)>(all)
                                : is("ret") ? retained
                                            : kept,
                                features || is("ret") || is("ssd") ? 0.0 : 0.5,
                                !features               ? nullptr
                                : names[block] == "lin" ? hedgehog
                                                        : taylor2);
    // What the feed-forward layer makes of it is that of a layer without attention.
    const auto as = model.behind(0, 1, stream + expected.to(at::kFloat));
    const auto found = model.behind(0, block, stream);
    EXPECT_LT(((found - as).norm() / (as - model.behind(0, 1, stream)).norm()).item<double>(),
              2e-5);
  }
}

/// @param head_width  of the teacher; 0: its width over the heads.
void expect_steps(Integer head_width) {
  auto teacher = testing::llama();
  for (auto& layer : teacher.stack) layer.set("head_width", head_width);
  std::vector<LayerBlock> blocks;
  for (const auto* text : {"full", "ret", "ssd", "gdn", "gdn2", "kda", "lin", "lin{taylor2}",
                           "window{4,1}", "near{hedgehog,5}", "near{taylor2}"})
    blocks.push_back(parse_block(text));
  const Conversion of(teacher, std::move(blocks));
  const auto weights = drawn_weights(of.teacher());
  HybridModel model(of, weights, NumericalMode::exact);
  const auto tokens = some_tokens(kTokens);
  for (const auto& placement : {Placement{1, 2, 3, 4}, {5, 6, 7, 0}, {0, 3, 8, 3}, {9, 10, 0, 9}}) {
    SCOPED_TRACE(of.name(placement));
    nn::Transformer whole(of.architecture(placement), NumericalMode::exact);
    const auto own = weights_of(of, weights, placement);
    for (auto& [name, tensor] : whole.parameters()) tensor.copy_(own.at(name).unsqueeze(0));
    nn::Decoder decoder(whole, kTokens);
    const auto expected = logits(model, placement, tokens);
    for (Integer t = 0; t < kTokens; ++t) {
      const auto step = decoder.step(tokens.narrow(0, t, 1)).squeeze(0);
      EXPECT_TRUE(at::allclose(step, expected[t], 1e-3, 1e-3)) << t;
    }
    EXPECT_EQ(decoder.state_bytes(), of.cache_bytes(placement, kTokens));
  }
}

TEST(RecurrentBlocks, NearKeysOfAllTokensAreAttention) {
  const at::NoGradGuard no_grad;
  const auto of = conversion({"full", "near{hedgehog,21}", "near{taylor2,20}"});
  const auto weights = drawn_weights(of.teacher());
  HybridModel model(of, weights, NumericalMode::exact);
  const auto tokens = some_tokens(kTokens);
  const auto expected = logits(model, {0, 0, 0, 0}, tokens);
  EXPECT_TRUE(at::allclose(logits(model, {1, 1, 1, 1}, tokens), expected, 1e-4, 1e-5));
  const auto fewer = logits(model, {0, 0, 0, 2}, tokens);
  EXPECT_TRUE(at::allclose(fewer.narrow(0, 0, 20), expected.narrow(0, 0, 20), 1e-4, 1e-5));
  EXPECT_GT((fewer[20] - expected[20]).abs().max().item<double>(), 1e-4);
}

TEST(RecurrentBlocks, AreTokenByTokenWhatTheyAreOfASequence) {
  const at::NoGradGuard no_grad;
  for (const Integer width : {0, 12}) {
    SCOPED_TRACE(width);
    expect_steps(width);
  }
}

TEST(RecurrentBlocks, RefuseWhatTheyCannotTakeOver) {
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"lin{relu}", "feature = relu, must be one of hedgehog, taylor2"},
           {"gdn{9}", "conv = 9, must be"},
           {"near{hedgehog,0}", "near = 0, must be"},
           {"gdn{1}", "conv"},
           {"ret{2}", "gate = 2, must be"}}) {
    EXPECT_THAT(message_of<InputError>([&] {
                  (void)conversion({"full", given});
                }),
                HasSubstr(said));
  }
}

}  // namespace
}  // namespace nas
