// One token at a time with the state gives what the whole sequence gives, for every option.

#include "nn/decoder.hpp"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/component.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"
#include "ops/torch_compat.hpp"
#include "unit/message_of.hpp"

namespace nas::nn {
namespace {

constexpr std::int64_t kTokens = 16;
constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kVocabulary = 13;

Architecture frame() {
  return {.stack = {vanilla_mechanism(Semantics::corrected)},
          .layers = 2,
          .width = 16,
          .heads = 4,
          .context = kTokens,
          .vocabulary = kVocabulary};
}

Architecture model_of(const std::string& name) { return parse_model(name, frame()); }

/// Two layers of attention with one of its genes set, its sizes such that options do something.
Architecture with_option(const std::string& gene, const std::string& key, std::int64_t kv_heads) {
  auto architecture = frame();
  auto& layer = architecture.stack.front();
  layer.set(gene, key);
  layer.set("kv_heads", kv_heads);
  layer.set("window", 5);
  layer.set("globals", 2);
  layer.set("t5_buckets", 8);
  layer.set("t5_distance", 12);
  return architecture;
}

bool is_decodable(const Component& component) {
  return component.causal && component.prefix_consistent;
}

/// For each option of attention that a module computes: gene and key.
void for_each_option(const std::function<void(const std::string&, const Component&)>& see) {
  for (const auto* slot : layer_slots()) {
    if (!slot->is_component() || slot->name == "mixer" || !has_gene("attn", *slot)) continue;
    for (const auto& key : components().keys(slot->name)) {
      see(slot->name, components().at(slot->name, key));
    }
  }
}

/// Scores far from flat.
void randomise(Transformer& model, at::ScalarType type) {
  constexpr double kSpread = 0.5;
  const at::NoGradGuard no_grad;
  model.to(at::kCPU, type);
  const auto generator = make_generator(at::kCPU, 5);
  for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, kSpread, generator);
}

torch::Tensor some_tokens(std::int64_t length = kTokens) {
  return at::randint(kVocabulary, {kBatch, length}, make_generator(at::kCPU, 6),
                     at::TensorOptions(at::kLong));
}

/// The largest difference of a logit, relative to max(1, |logit|).
double difference(const torch::Tensor& actual, const torch::Tensor& expected) {
  return ((actual - expected) / expected.abs().clamp_min(1.0)).abs().max().item<double>();
}

void expect_same_steps(const Architecture& architecture, const std::string& what,
                       NumericalMode mode = NumericalMode::reference) {
  const at::NoGradGuard no_grad;
  Transformer model(architecture, mode);
  randomise(model, at::kDouble);
  const auto tokens = some_tokens();
  const auto whole = model.logits(tokens, Pass{});
  Decoder decoder(model);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const auto logits = decoder.step(tokens.select(1, t));
    ASSERT_EQ(logits.sizes(), whole.select(1, t).sizes()) << what;
    ASSERT_LE(difference(logits, whole.select(1, t)), 1e-9) << what << ", token " << t;
    // Keys that the maps of position path change are kept for every head.
    const auto& layer = architecture.layer(0);
    if (layer.word("position") == "path" && layer.integer("kv_heads") > 0) continue;
    ASSERT_EQ(decoder.state_bytes(), nas::state_bytes(architecture, t + 1))
        << what << ", token " << t;
  }
  EXPECT_EQ(decoder.tokens(), kTokens);
}

TEST(Decoder, StepsAreThoseOfTheWholeSequenceForEveryOption) {
  for_each_option([](const std::string& gene, const Component& component) {
    if (!is_decodable(component)) return;
    for (const std::int64_t kv_heads : {0, 1, 2}) {
      if (component.key == "channel" && kv_heads > 0) continue;  // there is no such layer
      expect_same_steps(with_option(gene, component.key, kv_heads),
                        gene + " = " + component.key + ", kv_heads = " + std::to_string(kv_heads));
    }
  });
}

const std::vector<std::string>& combinations() {
  static const std::vector<std::string> names{
      "model{norm_eps=0.1,block=parallel_norms}/2*attn{head_width=6,kv_heads=2,qk_norm=rms,qk_eps="
      "0.1,conv=2,position=rope,rope_factor=8,rope_original=9,rope_low=0.1,pattern=window,window="
      "4}",
      "2*attn{conv=3}", "2*attn{conv=4,kv_heads=2,qk_norm=rms}", "2*attn{pattern=window,window=1}",
      "2*attn{pattern=window,window=3}", "2*attn{pattern=window,window=1,globals=3}",
      "2*attn{pattern=window,window=14,globals=2}",
      "2*attn{pattern=window,window=13,globals=2,position=alibi}",
      "2*attn{pattern=window,window=3,globals=2,position=rope}",
      "2*attn{pattern=window,window=3,globals=2,position=rope,rope_fraction=0.5}",
      "2*attn{pattern=window,window=3,globals=2,position=alibi}",
      "2*attn{pattern=window,window=4,position=t5,t5_buckets=8,t5_distance=12}",
      "2*attn{pattern=window,window=4,globals=1,decay=scalar}",
      "2*attn{normalization=top_k,pattern=window,window=6,position=alibi}",
      "2*attn{normalization=sigmoid_attn,temperature=log_length,pattern=window,window=5,globals=1}",
      "2*attn{normalization=relu_n,similarity=l2,temperature=per_query}",
      "2*attn{similarity=additive,kv_heads=2,normalization=entmax15,temperature=learned}",
      "2*attn{similarity=bilinear,kv_heads=2,normalization=sparsemax,decay=scalar}",
      // Layers "modern" and "gemma_like" of the golden cases, and all together.
      "2*attn{kv_heads=2,qk_norm=rms,normalization=sink,gating=headwise_gate,position=rope}",
      "2*attn{kv_heads=1,qk_norm=rms,pattern=window,window=4,position=rope}",
      "2*attn{kv_heads=2,qk_norm=rms,normalization=sink,temperature=log_length,"
      "gating=elementwise_gate,pattern=window,window=4,globals=1,position=alibi,decay=scalar,"
      "conv=4,head_norm=rms}",
      // What the order of keys, or queries themselves, decide about.
      "2*attn{normalization=stick_breaking,pattern=window,window=4,globals=2}",
      "2*attn{pattern=strided,stride=5,temperature=log_length,position=alibi}",
      "2*attn{pattern=bigbird,block=2,globals=1,random=2,kv_heads=2,decay=scalar}",
      "2*attn{pattern=lsh,block=2,buckets=4,rounds=2,decay=scalar}",
      "2*attn{pattern=lsh,block=3,buckets=2,temperature=log_length,normalization=top_k}",
      "2*attn{kv_heads=2,value_exclusion=1,soft_cap=2,position=t5,t5_buckets=8,t5_distance=12}",
      // What stands between key and query.
      "2*attn{position=cope,cope_positions=4,pattern=window,window=4,globals=1,kv_heads=2}",
      "2*attn{position=path,pattern=window,window=4,globals=1,similarity=l2,decay=scalar,conv=3}",
      "2*attn{decay=channel,decay_form=bounded,pattern=window,window=5,position=rope}",
      "2*attn{decay=channel,decay_rank=3,normalization=stick_breaking,gating=headwise_gate}",
      "2*attn{pattern=indexed,block=2,chosen=2,kv_heads=2,temperature=log_length}",
      "2*attn{pattern=indexed,block=3,chosen=1,position=cope,cope_positions=4,decay=scalar}",
      "2*conv", "conv{conv=8,smear=1}/attn{smear=1,conv=3}",
      "attn{value_embedding=1,conv=3}/attn/attn{kv_heads=2,value_embedding=1,value_exclusion=1}",
      "2*attn{pattern=lsh,block=2,buckets=4,value_embedding=1}",
      // Two maps in a head, and a latent in place of keys and values.
      "2*attn{maps=difference,qk_norm=rms,kv_heads=2,conv=3,position=rope,rope_base=50}",
      "attn{maps=difference,pattern=window,window=4,globals=1,normalization=stick_breaking,decay="
      "scalar}/attn{keys=shared,maps=difference,pattern=window,window=3}",
      "2*attn{maps=difference,pattern=window,window=3,full_groups=5,position=alibi}",
      "2*attn{kv_rank=5}", "2*attn{kv_rank=5,position=rope,pattern=window,window=4,globals=1}",
      "2*attn{kv_rank=5,position=rope,similarity=cosine,normalization=stick_breaking}",
      "2*attn{kv_rank=5,similarity=additive,position=alibi,decay=scalar,value_exclusion=1}",
      "2*attn{kv_rank=5,similarity=silu_dot,pattern=bigbird,block=2,head_norm=rms}",
      // Keys of earlier layers, and windows by head.
      "attn{kv_heads=2,position=rope}/"
      "attn{kv_heads=2,keys=shared,qk_norm=rms,position=rope,smear=1}",
      "attn{pattern=window,window=5,globals=2}/attn{keys=shared,pattern=window,window=3,globals=1,"
      "position=alibi,normalization=stick_breaking}/attn{keys=shared,pattern=window,window=5}",
      "attn/recurrent/attn{pattern=window,window=1}/attn{keys=shared,pattern=strided,stride=3}",
      "2*attn{kv_heads=2,pattern=window,window=4,globals=1,full_groups=2,position=alibi,"
      "normalization=sink,temperature=log_length,gating=headwise_gate}",
      "2*attn{pattern=window,window=3,full_groups=5,normalization=stick_breaking,"
      "value_exclusion=1,position=t5,t5_buckets=8,t5_distance=12,similarity=additive}",
      "attn{pattern=window,window=4,globals=1,full_groups=6,position=rope}/"
      "attn{keys=shared,pattern="
      "window,window=3,globals=1,full_groups=6,position=rope}",
      // Layers, and heads, of several kinds.
      "2*pair(attn{pattern=window,window=4,globals=1,kv_heads=1,position=rope,gating=headwise_gate}"
      "|"
      "retnet){smear=1}",
      "pair(attn{normalization=stick_breaking,decay=scalar}|recurrent{feature=taylor2,key_width=3})"
      "/"
      "pair(attn{maps=difference}|gla{decay_rank=3}){bias=no_bias}/attn{pattern=window,window=3}",
      "attn/pair(attn{position=alibi}|linear){bias=none}/attn{keys=shared}",
      "attn{pattern=window,window=4,globals=1,position=rope}+swiglu/attn{kv_heads=1,"
      "decay=scalar}+swiglu/attn{heads=2,conv=3,pattern=window,window=2}",
      // What surrounds the mixers.
      "model{norm=rms}/2*attn+swiglu", "model{norm_place=post}/2*attn",
      "model{norm=rms,norm_place=sandwich,bias=none}/attn+relu2/none+swiglu",
      "model{block=parallel,bias=none}/attn/attn+none",
      "model{position_embedding=sinusoidal,tied=0}/attn/attn+swiglu{ratio=2}",
      "model{position_embedding=none,norm=rms,tied=0,bias=no_bias}/attn+none/none+relu2/attn"};
  return names;
}

TEST(Decoder, StepsAreThoseOfTheWholeSequenceForCombinations) {
  for (const auto& name : combinations()) expect_same_steps(model_of(name), name);
}

TEST(Decoder, StepsAreThoseOfTheWholeSequenceForModelsOfFusedModes) {
  for (const auto* name :
       {"2*attn", "2*attn{gating=input_gate,temperature=per_query}", "2*attn{gating=highway}",
        "2*attn{kv_heads=2,qk_norm=rms,gating=headwise_gate,position=rope}"}) {
    expect_same_steps(model_of(name), name, NumericalMode::exact);
  }
}

TEST(Decoder, StepsAreThoseOfTheWholeSequenceAsPublished) {
  auto architecture = frame();
  architecture.semantics = Semantics::published;
  architecture.stack = {vanilla_mechanism(Semantics::published)};
  expect_same_steps(architecture, "published vanilla");
  architecture.stack.front().set("temperature", "shifted_abs");
  architecture.stack.front().set("gating", "normed_highway");
  expect_same_steps(architecture, "published");
}

TEST(Decoder, GoesBeyondTheContextWithoutLearnedPositions) {
  auto architecture = model_of("model{position_embedding=sinusoidal}/2*attn{position=t5}");
  architecture.context = 4;
  expect_same_steps(architecture, "longer than the context");
}

// Sums of 600 forgotten logarithms, of which the newest decide.
TEST(Decoder, ForgetsInFloatAsPreciselyAsInDouble) {
  constexpr std::int64_t kLong = 600;
  const at::NoGradGuard no_grad;
  const auto architecture = model_of("model{position_embedding=none}/2*attn{decay=scalar}");
  Transformer model(architecture);
  randomise(model, at::kDouble);
  const auto tokens = some_tokens(kLong);
  const auto whole = model.logits(tokens, Pass{});
  model.to(at::kCPU, at::kFloat);
  Decoder decoder(model, kLong);
  torch::Tensor logits;
  for (std::int64_t t = 0; t < kLong; ++t) logits = decoder.step(tokens.select(1, t));
  EXPECT_EQ(logits.scalar_type(), at::kFloat);
  EXPECT_LE(difference(logits.to(at::kDouble), whole.select(1, kLong - 1)), 1e-3);
  EXPECT_EQ(decoder.state_bytes(), nas::state_bytes(architecture, kLong));
}

TEST(Decoder, CopiesGoOnApart) {
  for (const auto* name :
       {"2*attn{pattern=window,window=3,globals=1,decay=scalar,conv=3}", "2*attn{decay=scalar}"}) {
    Transformer model(model_of(name));
    randomise(model, at::kDouble);
    const auto tokens = some_tokens();
    // One that has room for what comes, and one that has not.
    for (const std::int64_t room : {std::int64_t{1}, kTokens}) {
      Decoder decoder(model, room);
      for (std::int64_t t = 0; t < 6; ++t) (void)decoder.step(tokens.select(1, t));
      auto other = decoder.copy();
      EXPECT_EQ(other.tokens(), 6);
      EXPECT_EQ(other.state_bytes(), decoder.state_bytes());
      for (std::int64_t t = 10; t < 15; ++t) (void)other.step(tokens.select(1, t));
      const auto whole = model.logits(tokens.slice(1, 0, 7), Pass{}).select(1, 6);
      EXPECT_LE(difference(decoder.step(tokens.select(1, 6)), whole), 1e-9) << name;
      EXPECT_EQ(other.tokens(), 11);
    }
  }
}

TEST(Decoder, BeginsAgain) {
  Transformer model(model_of("2*attn{position=rope,conv=3,decay=scalar}"));
  randomise(model, at::kDouble);
  const auto tokens = some_tokens();
  Decoder decoder(model);
  EXPECT_EQ(decoder.state_bytes(), 0);
  const auto first = decoder.step(tokens.select(1, 0));
  (void)decoder.step(tokens.select(1, 1));
  decoder.reset();
  EXPECT_EQ(decoder.tokens(), 0);
  EXPECT_TRUE(decoder.step(tokens.select(1, 0)).equal(first));
  decoder.reset();
  EXPECT_LE(difference(decoder.step(tokens.select(1, 0).slice(0, 0, 1)), first.slice(0, 0, 1)),
            1e-9);
}

template <class Error, class Work>
void expect_throws(const Work& work, const std::string& text) {
  EXPECT_EQ(message_of<Error>(work), text);
}

TEST(Decoder, RefusesWhatNeedsTheWholeSequence) {
  std::int64_t refused = 0;
  for_each_option([&](const std::string& gene, const Component& component) {
    const auto architecture = with_option(gene, component.key, 0);
    if (is_decodable(component)) {
      EXPECT_NO_THROW(require_decodable(architecture)) << gene << " = " << component.key;
      return;
    }
    ++refused;
    Transformer model(architecture);
    expect_throws<InputError>(
        [&] { const Decoder decoder(model); },
        gene + " = " + component.key + ": cannot go on one token at a time, since it " +
            (component.causal ? "depends on the length of the sequence" : "sees later tokens"));
  });
  EXPECT_EQ(refused, 2);  // sequence_mean and topk_quarter
}

TEST(Decoder, RefusesTokensThatDoNotFit) {
  Transformer model(frame());
  randomise(model, at::kFloat);
  Decoder decoder(model);
  const auto tokens = some_tokens();
  expect_throws<std::invalid_argument>([&] { (void)decoder.step(tokens); },
                                       "tokens have 2 dimensions and 32 numbers, must be (B)");
  for (std::int64_t t = 0; t < kTokens; ++t) (void)decoder.step(tokens.select(1, t));
  expect_throws<std::invalid_argument>(
      [&] { (void)decoder.step(tokens.select(0, 0)); },
      "tokens have 1 dimensions and 16 numbers, must be (B) with B = 2 as before");
  expect_throws<std::invalid_argument>([&] { (void)decoder.step(tokens.select(1, 0)); },
                                       "no position is learned for more tokens than context = 16");
}

TEST(Decoder, NeedsNoArray) {
  const auto architecture = frame();
  TransformerArray two({architecture, architecture}, NumericalMode::reference);
  two.initialise({{1, 0}, {1, 1}});
  auto state = two.start(1);
  expect_throws<std::invalid_argument>(
      [&] {
        (void)two.step(at::zeros({2, 1}, at::TensorOptions(at::kLong)), state);
      },
      "a step of 2 models: only one model goes on token by token");
}

}  // namespace
}  // namespace nas::nn
