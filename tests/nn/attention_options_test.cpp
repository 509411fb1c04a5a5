// What the options of the wide space promise: properties of each, causality, and arrays.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "attention_layers.hpp"
#include "genotype/mechanism_name.hpp"
#include "ops/memory.hpp"

namespace nas::nn::test {
namespace {

constexpr const char* kMany =
    "kv_heads=2,qk_norm=rms,position=rope,decay=scalar,normalization=sink,temperature=log_length,"
    "gating=headwise_gate,head_norm=rms,conv=4,pattern=window,window=4,globals=1";

/// Each option of attention of the wide space, and some together.
std::map<std::string, Mechanism> options_of_attention() {
  return with_each({"position=rope",
                    "position=rope,rope_fraction=0.5",
                    "position=alibi",
                    "position=t5,t5_buckets=6,t5_distance=8",
                    "pattern=window,window=3",
                    "pattern=window,window=2,globals=2",
                    "kv_heads=2",
                    "qk_norm=rms",
                    "head_norm=rms",
                    "conv=3",
                    "decay=scalar",
                    "similarity=l2",
                    "normalization=sink",
                    "normalization=sigmoid_attn",
                    "normalization=relu_n",
                    "temperature=log_length",
                    "gating=elementwise_gate",
                    "gating=headwise_gate",
                    "normalization=top_k,pattern=window,window=5",
                    kMany});
}

TEST(AttentionOptions, AreCausalAndTheSameInTheFusedKernel) {
  for (const auto& [name, mechanism] : options_of_attention()) {
    SCOPED_TRACE(name);
    expect_causal_option(mechanism);
    EXPECT_EQ(fused_forms(mechanism), (FusedForms{true, true, true}));
  }
}

/// Output and gradients by name of a layer of 4 heads over 2 sequences, in float64. Every other
/// factor of log_length is 0.
Values step_in_double(const Mechanism& mechanism, NumericalMode mode, std::int64_t tokens) {
  Layer layer(mechanism, mode);
  if (mechanism.word("temperature") == "log_length") {
    const at::NoGradGuard no_grad;
    layer["length_scale"].view({-1}).slice(0, 0, c10::nullopt, 2).zero_();
  }
  auto x = noise({2, tokens, 16}, 5).requires_grad_(true);
  const Pass pass{.training = true, .seeds = {3}};
  const auto y = layer.layer.forward(x, at::zeros_like(x), pass, 1);
  (y * noise(y.sizes(), 6)).sum().backward();
  Values values{{"y", y.detach()}, {"x", x.grad()}};
  for (const auto& parameter : layer.parameters) values[parameter.name] = parameter.tensor.grad();
  return values;
}

void expect_exact_equals_reference(const Mechanism& mechanism, const std::string& name,
                                   std::int64_t tokens = 40) {
  const auto exact = step_in_double(mechanism, NumericalMode::exact, tokens);
  const auto reference = step_in_double(mechanism, NumericalMode::reference, tokens);
  ASSERT_EQ(exact.size(), reference.size()) << name;
  for (const auto& [what, expected] : reference) {
    ASSERT_TRUE(expected.defined() && exact.at(what).defined()) << name << " " << what;
    ASSERT_EQ(exact.at(what).sizes(), expected.sizes()) << name << " " << what;
    EXPECT_LE((exact.at(what) - expected).abs().max().item<double>(),
              1e-9 * std::max(1.0, expected.abs().max().item<double>()))
        << name << " " << what;
  }
}

/// The options beside every similarity, whose maps of keys see fewer heads where keys are shared.
TEST(AttentionOptions, OfSharedKeysInWindowsEqualTheReferenceInTheFusedKernel) {
  auto mechanisms = options_of_attention();
  for (const auto* similarity : {"additive", "bilinear", "cosine", "silu_dot"}) {
    const auto change = std::string("similarity=") + similarity;
    mechanisms[similarity] = with(change);
    mechanisms["many " + change] = with(kMany + ("," + change));
  }
  for (const auto& [name, mechanism] : mechanisms) {
    for (const std::int64_t kv_heads : {1, 2}) {
      for (const std::int64_t window : {0, 7}) {
        auto own = mechanism;
        own.set("kv_heads", kv_heads);
        own.set("attention_dropout", 0.2);
        if (window > 0) own.set("pattern", "window"), own.set("window", window);
        expect_exact_equals_reference(own, name + ", " + std::to_string(kv_heads) +
                                               " key heads, window " + std::to_string(window));
      }
    }
  }
}

/// Where windows end within and between the kernel's blocks of 32, with terms of two kinds beside
/// the scores.
TEST(AttentionOptions, InAnyWindowEqualTheReferenceInTheFusedKernel) {
  auto biased =
      with("position=t5,t5_buckets=6,t5_distance=8,decay=scalar,kv_heads=2,pattern=window");
  const auto check = [&](const std::string& name, std::int64_t tokens) {
    for (const std::int64_t window : {1, 5, 32, 64, 200}) {
      for (const std::int64_t globals : {0, 1, 4}) {
        biased.set("window", window), biased.set("globals", globals);
        expect_exact_equals_reference(biased, name + to_string(biased), tokens);
      }
    }
  };
  for (const std::int64_t tokens : {1, 7, 33, 70, 129}) check("", tokens);
  for (const auto* temperature : {"fixed", "log_length"}) {
    biased.set("temperature", temperature);
    for (const auto& key : components().keys("normalization")) {
      biased.set("normalization", key);
      if (fused_forms(biased).attention) check("rows ", 70);
    }
    biased.set("normalization", "softmax");
    for (const auto& key : components().keys("similarity")) {
      biased.set("similarity", key);
      check("scores ", 70);
    }
    biased.set("similarity", "dot");
  }
}

/// Bytes of tensors at most at once in a step of mode exact.
std::int64_t peak_bytes(const Mechanism& mechanism, std::int64_t tokens) {
  Layer layer(mechanism, NumericalMode::exact);
  const auto x = noise({1, tokens, 16}, 5).requires_grad_(true);
  const MemoryScope scope;
  const auto y = layer.layer.forward(x, x, Pass{}, 0);
  y.sum().backward();
  return scope.peak_bytes();
}

TEST(AttentionOptions, NeedMemoryInProportionToTheTokens) {
  for (const std::int64_t window : {0, 7}) {
    for (auto [name, mechanism] : options_of_attention()) {
      if (window > 0) mechanism.set("pattern", "window"), mechanism.set("window", window);
      const auto few = static_cast<double>(peak_bytes(mechanism, 1024));
      EXPECT_LE(static_cast<double>(peak_bytes(mechanism, 2048)), 2.2 * few) << name << window;
      EXPECT_LE(static_cast<double>(peak_bytes(mechanism, 4096)), 4.4 * few) << name << window;
    }
  }
}

TEST(AttentionOptions, SharedKeyHeadsAreRepeatedRows) {
  Layer shared(with("kv_heads=2"));
  Layer own(vanilla());
  for (const auto* name : {"k_proj.weight", "v_proj.weight"}) {
    const auto rows = shared[name].view({1, 2, 1, 4, 16}).expand({1, 2, 2, 4, 16});
    own.set(name, rows.reshape({1, 16, 16}));
  }
  expect_equal(shared, own);
  Layer all(with("kv_heads=4"));
  Layer none(vanilla());
  expect_equal(all, none, 0.0);
}

TEST(AttentionOptions, NormalisedQueriesAndKeysHaveNoScale) {
  Layer layer(with("qk_norm=rms"));
  Layer large(with("qk_norm=rms"));
  large.set("q_proj.weight", layer["q_proj.weight"] * 1000.0);
  large.set("k_proj.weight", layer["k_proj.weight"] * 1000.0);
  expect_equal(layer, large, 1e-3);  // but for the epsilon
}

TEST(AttentionOptions, RotatedScoresDependOnTheDistanceAlone) {
  for (const double fraction : {1.0, 0.5}) {
    LayerContext context;
    context.shape.width = 32;
    context.shape.heads = 4;
    context.shape.sizes.set("rope_fraction", fraction);
    std::vector<Parameter> parameters;
    const auto rope = positions().at("rope").make(context, ParameterScope(parameters));
    const auto q = noise({1, 1, 1, 4, 8}, 1).expand({1, 1, 12, 4, 8});
    const auto k = noise({1, 1, 1, 4, 8}, 2).expand({1, 1, 12, 4, 8});
    const auto turned = rope->mapped(q, 0).transpose(2, 3);
    const auto scores = turned.matmul(rope->mapped(k, 0).transpose(2, 3).transpose(-2, -1));
    EXPECT_TRUE(scores.slice(-2, 1).slice(-1, 1).allclose(scores.slice(-2, 0, 11).slice(-1, 0, 11),
                                                          1e-12, 1e-12));
    EXPECT_TRUE(turned.norm(2, -1).allclose(q.transpose(2, 3).norm(2, -1), 1e-12, 0.0));
    EXPECT_FALSE(scores.select(-1, 0).allclose(scores.select(-1, 5)));
  }
}

TEST(AttentionOptions, EqualBiasesOfDistancesAreNone) {
  Layer biased(with("position=t5"));
  Layer none(vanilla());
  biased.fill("relative_bias.weight", 0.7);
  expect_equal(biased, none);
}

/// The buckets of distances below `tokens`.
std::vector<std::int64_t> t5_buckets_of(const Mechanism& sizes, std::int64_t tokens) {
  LayerContext context;
  context.shape.heads = 1;
  context.shape.sizes = sizes;
  std::vector<Parameter> parameters;
  const auto t5 = positions().at("t5").make(context, ParameterScope(parameters));
  const at::NoGradGuard no_grad;
  auto& table = parameters.front().tensor;
  table.copy_(at::arange(sizes.integer("t5_buckets")).view({1, -1, 1}));
  const auto buckets = t5->distance_biases(tokens, table)[0][0].to(at::kLong).contiguous();
  return {buckets.data_ptr<std::int64_t>(), buckets.data_ptr<std::int64_t>() + tokens};
}

/// a^i b^j, whole: its digits to base 2^32, the highest first.
std::vector<std::uint32_t> product_of_powers(std::int64_t a, std::int64_t i, std::int64_t b,
                                             std::int64_t j) {
  std::vector<std::uint32_t> digits{1};  // the lowest first
  for (std::int64_t n = 0; n < i + j; ++n) {
    std::uint64_t carry = 0;
    for (auto& digit : digits) {
      carry += std::uint64_t{digit} * static_cast<std::uint64_t>(n < i ? a : b);
      digit = static_cast<std::uint32_t>(carry);
      carry >>= 32U;
    }
    if (carry > 0) digits.push_back(static_cast<std::uint32_t>(carry));
  }
  return {digits.rbegin(), digits.rend()};
}

/// Distance n is in bucket E + k or later where log(n / E) / log(far / E) >= k / E: where
/// n^E E^k >= far^k E^E.
TEST(AttentionOptions, DistancesShareBucketsExactlyByTheirLogarithms) {
  std::vector<std::int64_t> distances{320, 480, 640, 960, 1000, 1024, 2187};
  for (std::int64_t distance = 2; distance <= 160; ++distance) distances.push_back(distance);
  for (std::int64_t exact = 1; exact <= 32; ++exact) {
    for (const auto far : distances) {
      if (far <= exact) continue;
      Mechanism sizes;
      sizes.set("t5_buckets", 2 * exact);
      sizes.set("t5_distance", far);
      const auto buckets = t5_buckets_of(sizes, far + 2);
      const auto reaches = [&](std::int64_t distance, std::int64_t k) {
        const auto ours = product_of_powers(distance, exact, exact, k);
        const auto edge = product_of_powers(far, k, exact, exact);
        return ours.size() != edge.size() ? ours.size() > edge.size() : ours >= edge;
      };
      for (std::int64_t n = 1; n < far + 2; ++n) {
        const auto before = buckets[static_cast<std::size_t>(n - 1)];
        const auto bucket = buckets[static_cast<std::size_t>(n)];
        if (n < exact || n >= far) {
          ASSERT_EQ(bucket, n < exact ? n : 2 * exact - 1) << n << " " << exact << " " << far;
        } else if (bucket != before) {
          ASSERT_TRUE(reaches(n, bucket - exact)) << n << " " << exact << " " << far;
          ASSERT_FALSE(reaches(n - 1, before - exact + 1)) << n << " " << exact << " " << far;
        }
      }
      const auto last = buckets[static_cast<std::size_t>(far - 1)];
      ASSERT_FALSE(reaches(far - 1, last - exact + 1)) << exact << " " << far;
    }
  }
}

TEST(AttentionOptions, AlibiIsForgetGatesOfOneStrengthEach) {
  Layer alibi(with("position=alibi"));
  Layer forget(with("decay=scalar"));
  forget.fill("forget.weight", 0.0);
  std::vector<double> logits;
  for (int h = 0; h < 4; ++h) logits.push_back(-std::log(std::expm1(std::exp2(-2.0 * (h + 1)))));
  forget.set("forget.bias", at::tensor(logits, kDouble).unsqueeze(0));
  expect_equal(alibi, forget);
}

TEST(AttentionOptions, OpenForgetGatesAreNone) {
  Layer forget(with("decay=scalar"));
  Layer none(vanilla());
  forget.fill("forget.weight", 0.0);
  forget.fill("forget.bias", 60.0);
  expect_equal(forget, none);
}

TEST(AttentionOptions, DecaysOfLongSequencesAreExactInFloat) {
  LayerContext context;
  context.shape.width = 4;
  context.shape.heads = 1;
  std::vector<Parameter> parameters;
  const auto decay = decays().at("scalar").make(context, ParameterScope(parameters));
  const at::NoGradGuard no_grad;
  parameters[0].tensor.zero_();
  parameters[1].tensor.fill_(0.0F);  // each token halves
  const auto sums = decay->cumulative(at::zeros({1, 1, 8192, 4}, at::TensorOptions(at::kFloat)));
  const auto steps = sums.slice(-1, 1) - sums.slice(-1, 0, -1);
  EXPECT_TRUE(steps.allclose(at::full_like(steps, -std::log(2.0)), 1e-9, 0.0));
}

TEST(AttentionOptions, SinksOfNoWeightAreSoftmaxAndOfZeroSoftmax1) {
  Layer sink(with("normalization=sink"));
  Layer softmax(vanilla());
  sink.fill("sink", -1e3);
  expect_equal(sink, softmax);
  Layer softmax1(with("normalization=softmax1"));
  sink.fill("sink", 0.0);
  expect_equal(sink, softmax1);
}

TEST(AttentionOptions, WeightsAreOfVisibleKeys) {
  Mechanism sizes;
  sizes.set("window", 5);
  LayerContext context;
  context.shape.sizes = sizes;
  std::vector<Parameter> parameters;
  const auto visible = patterns()
                           .at("window")
                           .make(context, ParameterScope(parameters))
                           ->visible(at::empty({1, 1, 1, 12, 1}), 0);
  const auto weights = [&](const char* key, const torch::Tensor& scores) {
    return normalizations()
        .at(key)
        .make(context, ParameterScope(parameters))
        ->weights(scores, visible);
  };
  const auto counts = at::arange(1, 13, kDouble).clamp_max(5.0);
  const auto zeros = at::zeros({1, 1, 1, 12, 12}, kDouble);
  EXPECT_TRUE(weights("sigmoid_attn", zeros).sum(-1)[0][0][0].allclose(counts / (counts + 1.0)));
  const auto ones = at::ones_like(zeros);
  EXPECT_TRUE(weights("relu_n", ones).sum(-1).allclose(ones.select(-1, 0)));
  const auto few = weights("top_k", noise({1, 1, 1, 12, 12}, 3)).ne(0.0).sum(-1)[0][0][0];
  EXPECT_TRUE(few.equal((counts / 4.0).ceil().to(at::kLong)));
}

TEST(AttentionOptions, WindowsShowSoManyTokens) {
  Layer wide(with("pattern=window,window=9"));
  Layer full(vanilla());
  expect_equal(wide, full, 0.0);
  Layer window(with("pattern=window,window=3"));
  const auto y = window(input());
  auto changed = input().clone();
  changed.select(1, 2).mul_(-2.0);
  const auto moved = (window(changed) - y).abs().amax({0, 2}).gt(1e-9);
  for (std::int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(moved[i].item<bool>(), i >= 2 && i < 5) << i;
  }
}

TEST(AttentionOptions, OpenGatesAreNoneAndHeadwiseOnesRepeatRows) {
  Layer none(vanilla());
  for (const auto* gating : {"elementwise_gate", "headwise_gate"}) {
    Layer open(with(std::string("gating=") + gating));
    open.fill("head_gate.weight", 0.0);
    open.fill("head_gate.bias", 60.0);
    expect_equal(open, none);
  }
  Layer headwise(with("gating=headwise_gate"));
  Layer elementwise(with("gating=elementwise_gate"));
  elementwise.set("head_gate.weight", headwise["head_gate.weight"].repeat_interleave(4, 1));
  elementwise.set("head_gate.bias", headwise["head_gate.bias"].repeat_interleave(4, 1));
  expect_equal(headwise, elementwise);
}

TEST(AttentionOptions, NearestKeysOfOneLengthAreThoseOfTheLargestProduct) {
  std::vector<Parameter> parameters;
  const auto weights = [&](const char* key, const torch::Tensor& q, const torch::Tensor& k) {
    return similarities().at(key).make({}, ParameterScope(parameters))->scores(q, k).softmax(-1);
  };
  const auto q = noise({1, 2, 2, 6, 4}, 1);
  const auto k = unit(noise({1, 2, 2, 6, 4}, 2)) * 3.0;
  EXPECT_TRUE(weights("l2", q, k).allclose(weights("dot", q, k), 1e-12, 1e-14));
  const auto far = similarities().at("l2").make({}, ParameterScope(parameters))->scores(q, k);
  const auto squares = (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1);
  EXPECT_TRUE(far.allclose(squares / -2.0, 1e-12, 1e-12));
}

/// Initial values by name of a layer of width 16, 4 heads, context 9.
Values started(const Mechanism& mechanism) {
  std::vector<Parameter> parameters;
  const nas::test::LoneLayer layer(mechanism, Layer::shape_of(mechanism, 4), Semantics::corrected,
                                   ParameterScope(parameters));
  initialise(parameters, {{1, 0}});
  Values values;
  for (const auto& parameter : parameters) values[parameter.name] = parameter.tensor[0].detach();
  return values;
}

TEST(AttentionOptions, StartAsSpecified) {
  const auto many = started(with(kMany));
  EXPECT_EQ(many.at("sink").abs().max().item<double>(), 0.0);
  EXPECT_EQ(many.at("q_norm.weight").min().item<double>(), 1.0);
  EXPECT_EQ(many.at("head_gate.bias").min().item<double>(), 2.0);
  EXPECT_NEAR(many.at("length_scale").min().item<double>(), 1.0 / std::log(9.0), 1e-7);
  EXPECT_EQ(many.at("q_conv.weight").select(1, 3).min().item<double>(), 1.0);
  EXPECT_NEAR(many.at("q_conv.weight").narrow(1, 0, 3).std().item<double>(), 0.02, 0.006);
  EXPECT_EQ(many.at("k_conv.weight").size(0), 8);
  EXPECT_EQ(many.at("forget.weight").abs().max().item<double>(), 0.0);
  // Over 4 to 9 tokens, in equal ratios.
  const auto tokens = many.at("forget.bias").to(at::kDouble).sigmoid().log().reciprocal().neg();
  EXPECT_NEAR(tokens[0].item<double>(), 4.0, 1e-4);
  EXPECT_NEAR(tokens[1].item<double>(), 4.0 * std::cbrt(9.0 / 4.0), 1e-4);
  EXPECT_NEAR(tokens[3].item<double>(), 9.0, 1e-4);
}

TEST(AttentionOptions, WordsForBiasesNameTheProjectionsThatHaveOne) {
  const std::map<std::string, std::size_t> counts{{"bias", 4}, {"no_bias", 1}, {"none", 0}};
  for (const auto& [word, count] : counts) {
    const auto values = started(with("bias=" + word));
    EXPECT_EQ(values.size(), 4 + count) << word;
    EXPECT_EQ(values.contains("q_proj.bias"), word == "bias");
    EXPECT_EQ(values.contains("out_proj.bias"), word != "none");
  }
}

TEST(AttentionOptions, OfOneShapeMayBeInOneArray) {
  const auto rope = with("position=rope");
  EXPECT_TRUE(same_shapes(vanilla(), rope));
  EXPECT_FALSE(same_shapes(vanilla(), with("kv_heads=2")));
  EXPECT_FALSE(same_shapes(vanilla(), with("conv=4")));
  EXPECT_FALSE(same_shapes(vanilla(), with("heads=2")));
}

TEST(AttentionOptions, InAnArrayComputeWhatEachComputesAlone) {
  auto mechanisms = options_of_attention();
  mechanisms["biases, sums and sinks"] = with("position=t5,decay=scalar,normalization=sink");
  std::vector<Mechanism> all;
  for (int twice = 0; twice < 2; ++twice) {
    for (const auto& [name, mechanism] : mechanisms) {
      if (!same_shapes(mechanism, vanilla())) continue;
      all.push_back(mechanism);
      all.back().set("attention_dropout", 0.2);
    }
  }
  expect_same_alone(all, NumericalMode::reference);
  expect_same_alone(all, NumericalMode::exact);
  for (const auto* similarity : {"dot", "additive", "bilinear", "cosine", "silu_dot"})
    all.push_back(with(std::string("similarity=") + similarity));
  expect_same_alone(all, NumericalMode::exact, 40);
}

TEST(AttentionOptions, WithSharedKeysInAnArrayComputeWhatEachComputesAlone) {
  std::vector<Mechanism> all;
  for (const auto* of_one :
       {"qk_norm=none,position=rope,gating=none", "qk_norm=rms,position=none,gating=headwise_gate",
        "qk_norm=rms,position=rope,gating=elementwise_gate"}) {
    all.push_back(with(std::string("kv_heads=2,conv=4,temperature=log_length,") + of_one));
  }
  expect_same_alone(all, NumericalMode::reference);
  expect_same_alone(all, NumericalMode::exact);
  for (const auto& [name, mechanism] : options_of_attention()) {
    all.push_back(mechanism);
    all.back().set("kv_heads", 2);
    all.back().set("conv", 4);
  }
  for (const auto* similarity : {"additive", "bilinear", "cosine", "silu_dot", "additive"}) {
    all.push_back(with(std::string(kMany) + ",similarity=" + similarity));
  }
  expect_same_alone(all, NumericalMode::exact, 40);
}

}  // namespace
}  // namespace nas::nn::test
