// Recurrent layers: one recurrence however it is computed, its limits that are another mechanism's,
// and what every mixer must do.

#include "nn/recurrent_layer.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "array_step.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/component.hpp"
#include "genotype/costs.hpp"
#include "nn/decoder.hpp"
#include "nn/transformer.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

/// Registered options of recurrent layers, with none where there is that.
std::vector<std::string> updates() { return components().keys("update"); }
std::vector<std::string> decays() {
  auto keys = components().keys("decay", "recurrent");
  keys.insert(keys.begin(), "none");
  return keys;
}

/// Genes of all cells of update x decay, and of what else a recurrent layer may have.
std::vector<std::string> layers() {
  std::vector<std::string> all;
  for (const auto& decay : decays()) {
    for (const auto& update : updates()) {
      all.push_back("recurrent{decay=" + decay + ",update=" + update + "}");
    }
  }
  for (const auto& feature : components().keys("feature")) {
    for (const auto& decay : decays()) {
      all.push_back("recurrent{key_width=4,decay=" + decay + ",feature=" + feature + "}");
    }
  }
  for (const auto& gating : components().keys("gating", "recurrent")) {
    all.push_back("recurrent{gating=" + gating + "}");
  }
  for (const auto* name :
       {"retnet", "gla", "gdn{neg_eigen=1}", "kda{key_width=4}", "gdn2{neg_eigen=1,gate_rank=3}",
        "recurrent{conv=3,heads=2}", "recurrent{gating=sigmoid_gate,bias=none}",
        "recurrent{gating=elementwise_gate,bias=no_bias,position=rope,key_width=4}",
        "recurrent{decay=channel,decay_form=softplus,decay_rank=2,update=delta}",
        "recurrent{decay=channel,decay_form=bounded,decay_rank=2,update=delta,neg_eigen=1}",
        "recurrent{feature=favor,favor_features=7}", "gdn2{head_width=10,gate_rank=2}",
        "recurrent{feature=hedgehog,near=5}", "recurrent{feature=elu1,near=64,head_width=6}",
        "recurrent{feature=taylor2,near=4,key_width=4,position=rope,conv=2,gating=swish_gate}",
        "kda{head_width=6,key_width=4,conv=2,gating=elementwise_gate}",
        "recurrent{head_width=10,feature=hedgehog,key_width=4,gating=swish_gate}",
        "recurrent{head_width=12,position=rope,update=add}"}) {
    all.emplace_back(name);
  }
  return all;
}

Architecture frame() {
  return {.layers = 2, .width = 24, .heads = 3, .context = 41, .vocabulary = 29};
}

Architecture model(const std::string& layer) {
  return canonical(parse_model("2*" + layer, frame()));
}

at::Generator generator(std::uint64_t seed) { return make_generator(at::kCPU, seed); }

/// Of a model's parameters: far from where nothing matters.
void randomise(Transformer& built) {
  const at::NoGradGuard no_grad;
  built.to(at::kCPU, at::kDouble);
  const auto from = generator(5);
  for (auto& [name, tensor] : built.parameters()) tensor.normal_(0.0, 0.5, from);
}

torch::Tensor tokens() {
  return at::randint(29, {2, 41}, generator(6), at::TensorOptions(at::kLong));
}

double difference(const torch::Tensor& actual, const torch::Tensor& expected) {
  return ((actual - expected) / expected.abs().clamp_min(1.0)).abs().max().item<double>();
}

struct Lone {
  explicit Lone(const std::string& name, NumericalMode mode = NumericalMode::reference)
      : layer({.mechanisms = {model(name).layer(0)}, .shape = attention_shape(model(name))},
              ParameterScope(parameters, mode)) {
    move_to(parameters, at::kCPU, at::kDouble);
    const at::NoGradGuard no_grad;
    const auto from = generator(7);
    for (auto& parameter : parameters) parameter.tensor.normal_(0.0, 0.5, from);
  }
  torch::Tensor operator()(const torch::Tensor& x) { return layer.forward(x, x, Pass{}, 0); }
  /// Takes the values of another layer's parameters of the same names.
  void take(Lone& other) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters) {
      for (const auto& given : other.parameters) {
        if (given.name == parameter.name) parameter.tensor.copy_(given.tensor);
      }
    }
  }

  std::vector<Parameter> parameters;
  RecurrentLayer layer;
};

torch::Tensor inputs(std::int64_t length = 41) {
  return at::empty({1, 2, length, 24}, at::TensorOptions(at::kDouble))
      .normal_(0.0, 1.0, generator(8));
}

Recurrence some_sequence(bool decays, bool by_channel, bool erases) {
  const std::vector<std::int64_t> of_keys{3, 2, 53, 5};
  const auto drawn = [](at::IntArrayRef sizes, std::uint64_t seed) {
    return at::empty(sizes, at::TensorOptions(at::kDouble)).normal_(0.0, 0.5, generator(seed));
  };
  Recurrence sequence{.queries = drawn(of_keys, 1),
                      .keys = drawn(of_keys, 2),
                      .values = drawn({3, 2, 53, 4}, 3),
                      .by_channel = by_channel};
  if (decays) sequence.log_decays = -drawn({3, 2, 53, by_channel ? 5 : 1}, 4).abs();
  if (erases) sequence.erased = sequence.keys * drawn(of_keys, 5).sigmoid();
  return sequence;
}

/// Token by token, from a state of zeros.
Recurred by_tokens(const Recurrence& sequence) {
  const auto& keys = sequence.keys;
  auto state = at::zeros({3, 2, keys.size(-1), sequence.values.size(-1)}, keys.options());
  std::vector<torch::Tensor> outputs;
  for (std::int64_t t = 0; t < keys.size(2); ++t) {
    const auto at_t = [t](const torch::Tensor& x) { return x.defined() ? x.narrow(2, t, 1) : x; };
    auto next = next_token({at_t(sequence.queries), at_t(keys), at_t(sequence.values),
                            at_t(sequence.log_decays), at_t(sequence.erased)},
                           state);
    outputs.push_back(std::move(next.outputs));
    state = std::move(next.state);
  }
  return {at::cat(outputs, 2), state};
}

/// By the kernel, which takes arrays.
Recurred kernel_result(const Recurrence& sequence, std::int64_t chunk) {
  const auto of_array = [](const torch::Tensor& x) { return x.defined() ? x.unsqueeze(0) : x; };
  const auto result =
      recurrence({of_array(sequence.queries), of_array(sequence.keys), of_array(sequence.values),
                  of_array(sequence.log_decays), of_array(sequence.erased), sequence.by_channel},
                 chunk);
  return {result.outputs.squeeze(0), result.state.squeeze(0)};
}

TEST(Recurrence, ChunksOfAnySizeAreTokenByToken) {
  for (const auto& [decays, by_channel] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    for (const bool erases : {false, true}) {
      const auto sequence = some_sequence(decays, by_channel, erases);
      const auto expected = by_tokens(sequence);
      for (const std::int64_t chunk : {0, 1, 2, 7, 16, 52, 53, 64}) {
        const auto result = by_chunks(sequence, chunk);
        EXPECT_LT(difference(result.outputs, expected.outputs), 1e-10) << chunk;
        EXPECT_LT(difference(result.state, expected.state), 1e-10) << chunk;
        const auto by_kernel = kernel_result(sequence, chunk);
        EXPECT_LT(difference(by_kernel.outputs, expected.outputs), 1e-10) << chunk;
        EXPECT_LT(difference(by_kernel.state, expected.state), 1e-10) << chunk;
      }
    }
  }
}

TEST(Recurrence, GradientsDoNotDependOnChunks) {
  const auto gradients_of = [](const Recurrence& sequence, const auto& compute) {
    std::vector<torch::Tensor> leaves{sequence.queries, sequence.keys, sequence.values,
                                      sequence.log_decays, sequence.erased};
    for (auto& leaf : leaves) {
      if (leaf.defined()) leaf = leaf.detach().requires_grad_(true);
    }
    const Recurred result = compute(
        Recurrence{leaves[0], leaves[1], leaves[2], leaves[3], leaves[4], sequence.by_channel});
    (result.outputs.square().sum() + result.state.square().sum()).backward();
    std::vector<torch::Tensor> gradients;
    for (const auto& leaf : leaves) {
      if (leaf.defined()) gradients.push_back(leaf.grad());
    }
    return gradients;
  };
  for (const auto& [decays, by_channel] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    for (const bool erases : {false, true}) {
      const auto sequence = some_sequence(decays, by_channel, erases);
      const auto expected = gradients_of(sequence, [](const auto& x) { return by_chunks(x, 1); });
      for (const std::int64_t chunk : {1, 9, 16, 53}) {
        for (const auto& gradients :
             {gradients_of(sequence, [&](const auto& x) { return by_chunks(x, chunk); }),
              gradients_of(sequence, [&](const auto& x) { return kernel_result(x, chunk); })}) {
          for (std::size_t i = 0; i < expected.size(); ++i) {
            EXPECT_LT(difference(gradients[i], expected[i]), 1e-9) << i << " " << chunk;
          }
        }
      }
    }
  }
}

// With e^-L alone a chunk of such decays would overflow.
TEST(Recurrence, StrongDecaysStayInTheRangeOfFloat) {
  for (const bool by_channel : {false, true}) {
    auto sequence = some_sequence(true, by_channel, true);
    sequence.log_decays = at::full_like(sequence.log_decays, by_channel ? -5.0 : -40.0);
    const auto expected = by_tokens(sequence);
    const auto narrow = [](const torch::Tensor& x) { return x.to(at::kFloat); };
    const Recurrence narrowed{narrow(sequence.queries), narrow(sequence.keys),
                              narrow(sequence.values),  narrow(sequence.log_decays),
                              narrow(sequence.erased),  by_channel};
    for (const auto& result : {by_chunks(narrowed), kernel_result(narrowed, 0)}) {
      EXPECT_LT(difference(result.outputs.to(at::kDouble), expected.outputs), 1e-5);
    }
  }
}

TEST(RecurrentLayer, IsItsNaiveFormInEveryWay) {
  const at::NoGradGuard no_grad;
  for (const auto& name : layers()) {
    SCOPED_TRACE(name);
    Lone lone(name);
    const auto x = inputs();
    const auto expected = lone.layer.naive(x);
    Lone by_kernels(name, NumericalMode::exact);
    by_kernels.take(lone);
    for (const std::int64_t chunk : {0, 1, 7, 16, 41}) {
      lone.layer.set_chunk(chunk);
      by_kernels.layer.set_chunk(chunk);
      EXPECT_LT(difference(lone(x), expected), 1e-9) << chunk;
      EXPECT_LT(difference(by_kernels(x), expected), 1e-9) << chunk;
    }
    const auto state = lone.layer.start(0);
    for (std::int64_t t = 0; t < x.size(2); ++t) {
      const auto next = lone.layer.step(x.narrow(2, t, 1), {}, Pass{}, *state);
      ASSERT_LT(difference(next, expected.narrow(2, t, 1)), 1e-9) << t;
    }
  }
}

TEST(RecurrentLayer, ForwardIsTokenByTokenAndTheStateAsLargeAsSaid) {
  const at::NoGradGuard no_grad;
  for (const auto& layer : layers()) {
    Transformer built(model(layer));
    randomise(built);
    const auto whole = built.logits(tokens(), Pass{});
    Decoder decoder(built);
    for (std::int64_t t = 0; t < whole.size(1); ++t) {
      const auto next = decoder.step(tokens().select(1, t));
      ASSERT_LT(difference(next, whole.select(1, t)), 1e-8) << layer << " " << t;
      ASSERT_EQ(decoder.state_bytes(), state_bytes(model(layer), t + 1)) << layer << " " << t;
    }
  }
}

TEST(RecurrentLayer, HasTheParametersOfTheFormula) {
  for (const auto& layer : layers()) {
    const Transformer built(model(layer));
    std::int64_t count = 0;
    for (const auto& [name, tensor] : built.parameters()) count += tensor.numel();
    EXPECT_EQ(num_parameters(model(layer)), count) << layer;
  }
}

TEST(RecurrentLayer, SeesNoLaterToken) {
  for (const auto& layer : layers()) {
    EXPECT_TRUE(check_causality(model(layer)).causal) << layer;
    EXPECT_TRUE(check_prefixes(model(layer)).consistent) << layer;
  }
}

TEST(RecurrentLayer, GradientsOfNearKeysAreDifferences) {
  constexpr double kStep = 1e-6;
  for (const auto* name : {"recurrent{feature=hedgehog,near=4,position=rope}",
                           "recurrent{feature=taylor2,near=3,key_width=4}"}) {
    Lone layer(name);
    auto x = inputs(11);
    std::vector<torch::Tensor> all{x};
    for (const auto& parameter : layer.parameters) all.push_back(parameter.tensor);
    for (auto& tensor : all) tensor.requires_grad_();
    const auto loss = [&] { return layer(x).sin().sum(); };
    loss().backward();
    const at::NoGradGuard no_grad;
    for (auto& tensor : all) {
      const auto way = at::empty_like(tensor).normal_(0.0, 1.0, generator(9));
      const auto moved = [&](double by) {
        tensor.add_(way, by);
        return loss().item<double>();
      };
      const double difference = (moved(kStep) - moved(-2.0 * kStep)) / (2.0 * kStep);
      tensor.add_(way, kStep);
      const double slope = (tensor.grad() * way).sum().item<double>();
      EXPECT_NEAR(slope, difference, 1e-6 * std::max(1.0, std::abs(slope))) << name;
    }
  }
}

TEST(RecurrentLayer, StatesDoNotGrow) {
  const at::NoGradGuard no_grad;
  for (const std::string name :
       {"recurrent{update=delta}", "recurrent{update=delta,neg_eigen=1}",
        "recurrent{update=delta2}", "recurrent{decay=channel,update=delta2,neg_eigen=1}"}) {
    Lone layer(name);
    const auto x = inputs(4096);
    const auto norm_after = [&](std::int64_t length) {
      return layer.layer.state_after(x.narrow(2, 0, length)).norm().item<double>();
    };
    EXPECT_LT(norm_after(4096), 2.0 * norm_after(512)) << name;
  }
}

TEST(FeatureMap, OfTheSecondOrderHasTheProductsOfTheSeries) {
  Lone layer("recurrent{feature=taylor2}");
  const auto u = inputs().view({1, 2, 41, 3, 8}).transpose(2, 3);
  const auto v = u.flip(3);
  const auto& phi = *layer.layer.feature_map();
  const auto s = (u * v).sum(-1) / std::sqrt(8.0);
  EXPECT_LT(difference((phi.of_queries(u) * phi.of_keys(v)).sum(-1), 1.0 + s + s.square() / 2.0),
            1e-12);
}

TEST(FeatureMap, OfRandomDirectionsApproachesSoftmax) {
  const auto q = 0.5 * inputs().view({1, 2, 41, 3, 8}).transpose(2, 3);
  const auto softmax = (q.matmul(q.flip(3).transpose(-2, -1)) / std::sqrt(8.0)).softmax(-1);
  const auto error_of = [&](std::int64_t features) {
    Lone layer("recurrent{feature=favor,favor_features=" + std::to_string(features) + "}");
    const auto& phi = *layer.layer.feature_map();
    const auto products = phi.of_queries(q).matmul(phi.of_keys(q.flip(3)).transpose(-2, -1));
    return (products / products.sum(-1, true) - softmax).abs().max().item<double>();
  };
  EXPECT_LT(error_of(4096), 0.06);
  EXPECT_GT(error_of(8), error_of(4096));
}

TEST(FeatureMap, RandomDirectionsAreOrthogonalInBlocksAndOfALayer) {
  const auto of_layer = [](std::int64_t layer) {
    std::vector<Parameter> none;
    AttentionShape shape{.width = 24, .heads = 3};
    shape.sizes.set("favor_features", 12);
    return feature_maps()
        .at("favor")
        .make({shape, Semantics::corrected, layer}, ParameterScope(none))
        ->drawn();
  };
  const auto drawn = of_layer(0);
  ASSERT_EQ(drawn.sizes(), (std::vector<std::int64_t>{12, 8}));
  const auto products = drawn.narrow(0, 0, 8).matmul(drawn.narrow(0, 0, 8).t());
  EXPECT_LT((products - at::diag(products.diagonal())).abs().max().item<double>(), 1e-12);
  EXPECT_TRUE(of_layer(0).equal(drawn));
  EXPECT_FALSE(of_layer(1).equal(drawn));
}

void expect_as_alone(const std::vector<Architecture>& all, NumericalMode mode) {
  const auto step_of = [&](const std::vector<std::size_t>& places) {
    return test::step_of(all, places, at::kFloat, at::kCPU, test::From::start, mode);
  };
  const auto together = step_of({0, 1, 2, 3});
  for (std::size_t place = 0; place < all.size(); ++place) {
    const auto alone = step_of({place});
    EXPECT_TRUE(together.losses[static_cast<std::int64_t>(place)].equal(alone.losses[0])) << place;
    ASSERT_EQ(together.gradients[place].size(), alone.gradients[0].size());
    for (const auto& [name, gradient] : alone.gradients[0]) {
      EXPECT_TRUE(together.gradients[place].at(name).equal(gradient)) << place << " " << name;
    }
  }
}

TEST(RecurrentLayer, InArraysOfHybridsIsAsAlone) {
  for (const std::string layer :
       {"gdn", "gdn2{gate_rank=2}", "gla", "retnet", "recurrent{feature=favor}",
        "recurrent{feature=hedgehog,decay=scalar}"}) {
    SCOPED_TRACE(layer);
    std::vector<Architecture> all;
    for (const auto& name :
         {layer + "/attn", "attn/" + layer, "2*" + layer, layer + "/attn{gating=highway}"}) {
      all.push_back(canonical(parse_model(name, frame())));
    }
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
      expect_as_alone(all, mode);
    }
  }
}

TEST(RecurrentLayer, BeginsAsItsSourcesDo) {
  Transformer built(model("recurrent{decay=scalar}"));
  built.initialise(1, 0);
  for (const auto& [name, tensor] : built.parameters()) {
    if (name.find("decay_log_rate") != std::string::npos) {
      EXPECT_GE(tensor.min().item<double>(), 0.0);
      EXPECT_LE(tensor.max().item<double>(), std::log(16.0));
    } else if (name.find("decay_step_bias") != std::string::npos) {
      const auto steps = at::softplus(tensor);
      EXPECT_GE(steps.min().item<double>(), 0.00099);
      EXPECT_LE(steps.max().item<double>(), 0.101);
      EXPECT_NE(steps.min().item<double>(), steps.max().item<double>());
    }
  }
}

}  // namespace
}  // namespace nas::nn
