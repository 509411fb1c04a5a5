#include "genotype/architecture_name.hpp"

#include "core/error.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"
#include "unit/paper_components.hpp"

namespace nas {
namespace {

/// 128 wide, 4 heads, 2 layers, 128 tokens.
const Architecture kFrame{};

std::string canonical_name(const std::string& name, const Architecture& frame = kFrame) {
  return to_string(canonical(parse_model(name, frame)));
}

std::string refusal(const std::string& name, const Architecture& frame = kFrame) {
  return message_of<InputError>([&] { (void)canonical(parse_model(name, frame)); });
}

/// One option of a gene of the paper: its label, and what it is called under either semantics.
struct PaperOption {
  std::string label, corrected, published;
  [[nodiscard]] const std::string& key(Semantics semantics) const {
    return semantics == Semantics::published ? published : corrected;
  }
};

TEST(SixFields, AreWrittenAsEver) {
  const std::vector<PaperOption> similarities{{"dot", "dot", "dot"},
                                              {"multiplicative", "silu_dot", "silu_dot"},
                                              {"additive", "additive", "additive"},
                                              {"cosine", "cosine", "cosine"}};
  const std::vector<PaperOption> normalizations{{"softmax", "softmax", "softmax"},
                                                {"sparsemax", "sparsemax", "topk_quarter"},
                                                {"relu_norm", "relu_norm", "relu_norm"},
                                                {"sigmoid", "sigmoid_norm", "sigmoid_norm"}};
  const std::vector<PaperOption> gatings{{"none", "none", "none"},
                                         {"input_gate", "input_gate", "input_gate"},
                                         {"output_gate", "output_gate", "output_gate"},
                                         {"highway", "highway", "normed_highway"}};
  const std::vector<PaperOption> temperatures{{"fixed", "fixed", "sqrt_d"},
                                              {"learned", "learned", "shifted_abs"},
                                              {"adaptive", "per_query", "sequence_mean"}};
  for (const auto semantics : {Semantics::corrected, Semantics::published}) {
    auto frame = kFrame;
    frame.semantics = semantics;
    frame.layers = 3;
    std::set<std::string> functions;
    int names = 0;
    for (const auto& similarity : similarities) {
      for (const auto& normalization : normalizations) {
        for (const auto& gating : gatings) {
          for (const auto& temperature : temperatures) {
            for (const std::string bias : {"bias", "no_bias"}) {
              ++names;
              const auto written = [&](const std::string& last) {
                return similarity.key(semantics) + "|" + normalization.key(semantics) + "|" +
                       gating.key(semantics) + "|" + last + "|" + bias + "|0.1";
              };
              const auto labelled = similarity.label + "|" + normalization.label + "|" +
                                    gating.label + "|" + temperature.label + "|" + bias + "|0.1";
              const auto name = written(temperature.key(semantics));
              // The temperature cancels behind relu_norm.
              const auto function = normalization.label == "relu_norm"
                                        ? written(temperatures.front().key(semantics))
                                        : name;
              for (const auto& given : {name, labelled}) {
                const auto parsed = parse_model(given, frame);
                EXPECT_EQ(parsed.layers, 3);
                EXPECT_EQ(to_string(parsed), name);
                EXPECT_EQ(label(parsed), name);
                EXPECT_EQ(to_string(canonical(parsed)), function);
                EXPECT_EQ(to_string(canonical(parsed.stack.front(), semantics)), function);
                EXPECT_EQ(candidate_of(parsed).genotype,
                          candidate_of(parsed.stack.front(), semantics).genotype);
              }
              functions.insert(function);
            }
          }
        }
      }
    }
    EXPECT_EQ(names, 384);
    EXPECT_EQ(functions.size(), 320U);
  }
}

// Halves in their canonical forms, as layers of half of the heads.
TEST(LayeredNames, HaveHeadsOfTwoKindsInALayer) {
  for (const auto& [given, name, shown] : std::vector<std::array<std::string, 3>>{
           {"2*pair", "2*pair(attn|recurrent)", "2*pair(attn|recurrent)"},
           {"pair(swa{window=8}|ssd){bias=none}+swiglu/pair(mqa|linear){smear=1}",
            "pair(attn{pattern=window,window=8}|recurrent{decay=scalar}){bias=none}+swiglu/"
            "pair(attn{kv_heads=1}|recurrent{feature=elu1}){smear=1}",
            "pair(swa{window=8}|ssd){bias=none}+swiglu/pair(mqa|linear){smear=1}"},
           {"pair(attn{kv_heads=2,window=3}|recurrent{key_width=32}){heads=4}+none",
            "pair(attn|recurrent)+none", "pair(attn|recurrent)+none"},
           {"pair(attn{pattern=window,window=999}|recurrent{feature=elu1,position=rope}){heads=8}",
            "pair(attn|recurrent{feature=elu1}){heads=8}", "pair(attn|linear){heads=8}"},
           {"model{bias=none}/2*pair(attn|recurrent)", "model{bias=none}/2*pair(attn|recurrent)",
            "model{bias=none}/2*pair(attn|recurrent)"}}) {
    const auto model = canonical(parse_model(given, kFrame));
    EXPECT_EQ(to_string(model), name);
    EXPECT_EQ(label(model), shown);
    EXPECT_EQ(canonical_name(name), name);
    EXPECT_EQ(canonical_name(shown), name);
    auto frame = kFrame;
    frame.layers = model.layers;
    EXPECT_EQ(candidate_of(architecture_of(candidate_of(model).genotype, frame)).name, name);
  }
  auto odd = kFrame;
  odd.heads = 1;
  EXPECT_THAT(refusal("2*pair", odd), HasSubstr("heads = 1, must be even: mixer pair has two"));
}

TEST(SixFields, NameEveryUniformModelOfThem) {
  EXPECT_EQ(canonical_name("2*attn"), "dot|softmax|none|fixed|bias|0.1");
  EXPECT_EQ(canonical_name("5*attn"), "dot|softmax|none|fixed|bias|0.1");
  EXPECT_EQ(parse_model("5*attn", kFrame).layers, 5);
  EXPECT_EQ(canonical_name("2*attn{normalization=sink,temperature=log_length}"),
            "dot|sink|none|log_length|bias|0.1");
  EXPECT_EQ(canonical_name("2*attn{bias=none}"), "model{bias=none}/2*attn");
  EXPECT_EQ(canonical_name("2*attn+swiglu"), "2*attn+swiglu");
  EXPECT_EQ(canonical_name("attn/attn{dropout=0.2}"), "attn/attn{dropout=0.2}");
}

TEST(LayeredNames, ReadAliasesAndWriteThemForPeople) {
  const std::map<std::string, std::string> names{
      {"linear", "recurrent{feature=elu1}"},
      {"performer", "recurrent{feature=favor}"},
      {"retnet", "recurrent{gating=swish_gate,position=rope,decay=fixed}"},
      {"ssd", "recurrent{decay=scalar}"},
      {"gla", "recurrent{gating=swish_gate,decay=channel}"},
      {"deltanet", "recurrent{conv=4,update=delta}"},
      {"gdn", "recurrent{gating=swish_gate,decay=scalar,conv=4,update=delta}"},
      {"kda", "recurrent{gating=swish_gate,decay=channel,conv=4,update=delta}"},
      {"gdn2", "recurrent{gating=sigmoid_gate,decay=channel,conv=4,update=delta2}"},
      {"swa", "attn{pattern=window}"},
      {"mqa", "attn{kv_heads=1}"}};
  for (const auto& [alias, written] : names) {
    const auto model = canonical(parse_model(alias, kFrame));
    EXPECT_EQ(to_string(model), written);
    EXPECT_EQ(label(model), alias);
  }
  EXPECT_EQ(canonical_name("deltanet{conv=0}"), "recurrent{update=delta}");
  EXPECT_EQ(label(canonical(parse_model("2*swa{window=16}+swiglu", kFrame))),
            "2*swa{window=16}+swiglu");
}

TEST(LayeredNames, SayWhereTheyAreWrong) {
  EXPECT_THAT(refusal("2*attn{positon=rope}"),
              StartsWith("model '2*attn{positon=rope}': character 8: unknown gene of mixer attn "
                         "'positon'; did you mean position? Known: heads, "));
  EXPECT_THAT(refusal("atn"),
              StartsWith("model 'atn': character 1: unknown mixer 'atn'; did you mean attn? Known: "
                         "attn, "));
  for (const auto& alias : aliases()) {
    const bool named = refusal("atn").find(" " + alias.name) != std::string::npos;
    EXPECT_EQ(named, is_built(alias)) << alias.name;
    EXPECT_FALSE(is_built(alias) && alias.mixer == "recurrent") << alias.name;
  }
  EXPECT_THAT(refusal("2*sparsemax"), HasSubstr("; sparsemax is an option of normalization: "
                                                "attn{normalization=sparsemax}"));
  EXPECT_EQ(refusal("attn+swigl"),
            "model 'attn+swigl': character 6: ffn = swigl, must be one of gelu, swiglu, none; "
            "did you mean swiglu?");
  EXPECT_THAT(refusal("attn+geglu"), HasSubstr("none; geglu is written swiglu: a gated"));
  EXPECT_THAT(refusal("2*mamba2"), HasSubstr("'mamba2'; mamba2 is written ssd+conv=4"));
  for (const auto* text : {"sparsemax kv_heads=1", "sparsemax, kv_heads=1"}) {
    EXPECT_THAT(refusal(text), HasSubstr("'; did you mean sparsemax+kv_heads=1?"));
  }
  EXPECT_EQ(refusal("model{norm=group}/2*attn"),
            "model 'model{norm=group}/2*attn': character 7: norm = group, must be one of layer, "
            "rms");
  EXPECT_THAT(
      refusal("model{norms=rms}/2*attn"),
      HasSubstr("character 7: unknown gene of the model 'norms'; did you mean norm? Known: "
                "position_embedding, norm, norm_eps, norm_place, block, tied, learning_rate, "
                "optimizer, bias"));
  EXPECT_THAT(refusal("attn{conv=3,conv=4}"),
              HasSubstr("character 13: gene 'conv' is given twice"));
  EXPECT_THAT(refusal("attn{conv}"), HasSubstr("a gene must be written gene=value"));
  EXPECT_THAT(refusal("attn{conv=3"), HasSubstr("',' or '}' must follow a gene"));
  EXPECT_THAT(refusal("attn}"), HasSubstr("character 5: a layer must end here"));
  EXPECT_THAT(refusal("model{tied=0}"), HasSubstr("the layers must follow"));
  EXPECT_THAT(refusal("0*attn"), HasSubstr("must be a number of layers >= 1"));
  EXPECT_THAT(refusal("x*attn"), HasSubstr("unknown mixer 'x'"));
  EXPECT_THAT(refusal("5000*attn"), HasSubstr("more than 4096 layers"));
  EXPECT_THAT(refusal("conv{bias=none}"),
              HasSubstr("unknown gene of mixer conv 'bias', known: conv, smear"));
  EXPECT_THAT(refusal("none{conv=3}+gelu"), HasSubstr("mixer none has no genes"));
  EXPECT_THAT(refusal("attn+gelu{width=3}"), HasSubstr("unknown gene of a feed-forward layer"));
  const std::string alone = " out: a half of mixer pair has what is of its heads alone";
  for (const auto& [given, said] : std::vector<std::pair<std::string, std::string>>{
           {"pair(recurrent|attn)",
            "character 6: first = recurrent, must be a layer of mixer attn"},
           {"pair(attn|2*recurrent)", "second = 2*recurrent, must be a layer of mixer recurrent"},
           {"pair(attn|model{norm=rms}/recurrent)", "must be a layer of mixer recurrent"},
           {"pair(attn|ssd{conv=4})", "second = ssd{conv=4}, must leave conv" + alone},
           {"pair(attn|ssd{update=delta})", "must leave update" + alone},
           {"pair(attn{heads=2}|recurrent)", "must leave heads" + alone},
           {"pair(attn{kv_rank=8}|recurrent)", "must leave kv_rank" + alone},
           {"pair(attn+none|recurrent)", "first = attn+none, must leave ffn" + alone},
           {"pair(attn{gating=highway}|recurrent)",
            "must have gating none, elementwise_gate or headwise_gate"},
           {"pair(attn{windo=3}|recurrent)",
            "first = attn{windo=3}, character 6: unknown gene of mixer attn 'windo'; did you mean"},
           {"pair(attn|recurrent", "character 20: ')' must follow: pair(LAYER|LAYER)"},
           {"pair(attn)", "'|' must follow: pair(LAYER|LAYER)"},
           {"pair(attn|recurrent){first=attn}", "unknown gene of mixer pair 'first', known: heads"},
           {"2*pair(attn{kv_heads=4}|recurrent)",
            "half attn: kv_heads = 4, must divide heads = 2"}}) {
    EXPECT_THAT(refusal(given), HasSubstr(said)) << given;
  }
  EXPECT_THAT(refusal(""), HasSubstr("unknown mixer ''"));
  EXPECT_THAT(refusal("attn/"), HasSubstr("character 6: unknown mixer ''"));
  EXPECT_THAT(refusal("attn{window=0}"), HasSubstr("window = 0, must be an integer >= 1"));
}

TEST(LayeredNames, RefuseModelsThatCannotBe) {
  EXPECT_EQ(refusal("2*attn{kv_heads=3}"),
            "model '2*attn{kv_heads=3}': kv_heads = 3, must divide heads = 4");
  EXPECT_EQ(refusal("attn/attn{heads=3}"),
            "model 'attn/attn{heads=3}': layer 1: heads = 3, must divide width = 128");
  EXPECT_THAT(refusal("none+none"), HasSubstr("have a feed-forward layer beside it"));
  EXPECT_THAT(refusal("conv{conv=0}"), HasSubstr("must be in [2, 8] as the mixer"));
  EXPECT_THAT(refusal("attn{position=rope,rope_fraction=0.3}"), HasSubstr("not 9.6 of 32"));
  EXPECT_THAT(refusal("attn{position=rope,rope_fraction=0.03125}"), HasSubstr("not 1 of 32"));
  EXPECT_THAT(refusal("recurrent{position=rope,key_width=9}"), HasSubstr("not 9 of 9"));
  EXPECT_THAT(refusal("attn{kv_rank=8,pattern=window,window=3,full_groups=1}"),
              HasSubstr("kv_rank = 8, must be 0 beside full_groups: a latent is of all heads"));
  EXPECT_THAT(refusal("attn{heads=128,maps=difference}"), HasSubstr("heads of even width, not 1"));
  EXPECT_THAT(refusal("attn{position=t5,t5_distance=16}"),
              HasSubstr("greater than half of t5_buckets = 32"));
  EXPECT_EQ(refusal("attn{position=t5,t5_distance=17}"), "nothing was thrown");
}

TEST(Candidates, SayWhyThereIsNoSuchModel) {
  struct Case {
    std::string given, name, refusal;
  };
  const std::vector<Case> cases{
      {"none+none", "none+none",
       "mixer = none, must have a feed-forward layer beside it: ffn is none, too"},
      {"attn{normalization=relu_norm,temperature=learned,kv_heads=3}/conv",
       "attn{kv_heads=3,normalization=relu_norm}/conv",
       "layer 0: kv_heads = 3, must divide heads = 4"},
      {"attn{position=rope,rope_fraction=0.3,window=8}+swiglu",
       "attn{position=rope,rope_fraction=0.3}+swiglu",
       "position = rope, must rotate an even number of entries, not 9.6 of 32"},
      {"attn{window=8}+swiglu", "attn+swiglu", ""}};
  for (const auto& each : cases) {
    const auto candidate = candidate_of(parse_unchecked(each.given, kFrame));
    EXPECT_EQ(candidate.name, each.name);
    EXPECT_EQ(candidate.refusal, each.refusal) << each.given;
    const auto recorded = parse_unchecked(candidate.name, kFrame);
    EXPECT_EQ(candidate_of(recorded).name, candidate.name) << "as it is recorded";
    EXPECT_EQ(candidate_of(recorded).refusal, candidate.refusal);
    EXPECT_EQ(label(recorded), candidate.name);
    EXPECT_EQ(candidate_of(architecture_of(candidate.genotype, recorded)).name, candidate.name);
  }
}

TEST(LayeredNames, ReadBackWithTheLargestNumbers) {
  for (const std::string base : {"1000000000000000", "2000000000000000", "9007199254740990"}) {
    const auto name = "2*attn{position=rope,rope_base=" + base + "}";
    EXPECT_EQ(candidate_of(parse_model(name, kFrame)).name, name);
  }
}

TEST(Candidates, OfWrongSizesThereAreNone) {
  auto frame = kFrame;
  frame.width = 129;
  EXPECT_THAT(message_of<InputError>([&] { (void)candidate_of(frame); }),
              HasSubstr("heads = 4, must divide width = 129"));
}

TEST(LayeredNames, PublishedSemanticsKnowsThePapersGenesOnly) {
  auto published = kFrame;
  published.semantics = Semantics::published;
  EXPECT_THAT(refusal("2*attn{pattern=window}", published),
              HasSubstr("semantics published knows names of six fields alone"));
  auto windowed = parse_model("dot|softmax|none|fixed|bias|0.1", published);
  windowed.stack.front().set("pattern", "window");
  EXPECT_THAT(message_of<InputError>([&] { (void)canonical(windowed); }),
              HasSubstr("semantics = published knows the paper's six genes only"));
}

struct Rule {
  std::string given, canonical;
};

TEST(CanonicalForm, VoidsWhatHasNoEffect) {
  const std::vector<Rule> rules{
      {"recurrent{gating=highway,position=alibi}", "recurrent"},        // V1
      {"attn{gating=swish_gate,decay=channel}+swiglu", "attn+swiglu"},  // V1
      {"conv{conv=3}", "conv"},                                         // V2
      {"attn+none{ratio=2}", "attn+none"},                              // V3
      {"attn{window=8,rope_base=100}+swiglu", "attn+swiglu"},           // V4
      {"attn{normalization=relu_norm,temperature=learned}+swiglu",
       "attn{normalization=relu_norm}+swiglu"},  // V5
      {"attn{normalization=relu_norm,temperature=learned,soft_cap=8}+swiglu",
       "attn{normalization=relu_norm,temperature=learned,soft_cap=8}+swiglu"},                 // V5
      {"attn{similarity=cosine,qk_norm=rms}+swiglu", "attn{similarity=cosine}+swiglu"},        // V6
      {"attn{similarity=bilinear,position=rope}+swiglu", "attn{similarity=bilinear}+swiglu"},  // V7
      {"attn{similarity=bilinear,position=t5}+swiglu",
       "attn{similarity=bilinear,position=t5}+swiglu"},  // V7
      {"attn{pattern=lsh,similarity=cosine,kv_heads=1,position=rope,conv=3}",
       "attn{pattern=lsh}"},  // V8
      {"attn{kv_rank=32,kv_heads=1,qk_norm=rms,position=rope,rope_fraction=0.5}",
       "attn{kv_rank=32,position=rope}"},                                              // V9
      {"attn{maps=difference,head_norm=rms,position=path}", "attn{maps=difference}"},  // V10
      {"attn{pattern=window,window=128}+swiglu", "attn+swiglu"},                       // V11
      {"attn{pattern=window,globals=128}+swiglu", "attn+swiglu"},                      // V11
      {"attn{pattern=window,window=127}", "attn{pattern=window,window=127}"},          // V11
      {"attn{pattern=strided,stride=1}+swiglu", "attn+swiglu"},                        // V11
      {"attn{pattern=strided,stride=128}+swiglu", "attn+swiglu"},                      // V11
      {"attn{pattern=bigbird,block=32,random=2}+swiglu", "attn+swiglu"},               // V11
      {"attn{pattern=bigbird,block=32}", "attn{pattern=bigbird,block=32}"},            // V11
      {"attn{pattern=lsh,buckets=1,conv=3}", "attn{conv=3}"},  // V11 after V8
      {"attn{kv_heads=4}+swiglu", "attn+swiglu"},              // V12
      {"attn{head_width=32,qk_eps=0.5}+swiglu", "attn+swiglu"},
      {"attn{head_width=10,position=rope,rope_original=9,rope_low=0,rope_high=9}",
       "attn{head_width=10,position=rope}"},
      {"attn{position=rope,rope_factor=8,rope_low=0,rope_high=9}",
       "attn{position=rope,rope_factor=8}"},
      {"model{norm=rms,norm_eps=1e-6,block=parallel_norms,norm_place=post,bias=qkv}/2*attn"
       "{qk_norm=rms,qk_eps=1e-6}+swiglu_bias",
       "model{norm=rms,norm_eps=1e-06,block=parallel_norms,bias=qkv}/2*attn{qk_norm=rms,"
       "qk_eps=1e-06}+swiglu_bias"},
      {"attn{heads=4,kv_heads=2}", "attn{kv_heads=2}"},
      {"recurrent{key_width=32}", "recurrent"},                             // V12
      {"recurrent{update=delta,feature=elu1}", "recurrent{update=delta}"},  // V13
      {"recurrent{neg_eigen=1}", "recurrent"},                              // V13
      {"recurrent{update=delta2,feature=elu1,neg_eigen=1}",
       "recurrent{update=delta2,neg_eigen=1}"},                                // V13
      {"recurrent{update=delta2,position=rope}", "recurrent{update=delta2}"},  // V14
      {"recurrent{gate_rank=8,decay_form=softplus}", "recurrent"},             // V4
      {"recurrent{gating=sigmoid_gate,gate_rank=8}", "recurrent{gating=sigmoid_gate,gate_rank=8}"},
      {"recurrent{decay=channel,decay_tau=4,decay_form=softplus}",
       "recurrent{decay=channel,decay_form=softplus}"},
      {"attn{gating=sigmoid_gate}+swiglu", "attn+swiglu"},                                // V1
      {"recurrent{feature=elu1,position=rope,rope_base=10}", "recurrent{feature=elu1}"},  // V14
      {"recurrent{update=delta,position=rope}", "recurrent{update=delta}"},               // V14
      {"model{block=parallel,norm_place=post}/2*attn", "model{block=parallel}/2*attn"},   // V15
      {"model{bias=none}/2*attn{bias=bias}/attn", "2*attn/attn{bias=none}"},              // V16
      {"model{bias=none}/attn{bias=no_bias}/attn{bias=bias}", "attn{bias=no_bias}/attn"},
      {"model{bias=none}/2*conv", "2*conv"},  // V16
      {"attn+gelu{ratio=4}/conv", "attn/conv"},
  };
  for (const auto& rule : rules) {
    const auto expected =
        rule.canonical == "attn" ? "dot|softmax|none|fixed|bias|0.1" : rule.canonical;
    EXPECT_EQ(canonical_name(rule.given), expected) << rule.given;
  }
}

TEST(CanonicalForm, HoldsOnePeriodOfLayers) {
  const auto cycle = canonical(parse_model("attn/2*conv/attn/2*conv/attn", kFrame));
  EXPECT_EQ(cycle.stack.size(), 3U);
  EXPECT_EQ(cycle.layers, 7);
  EXPECT_EQ(to_string(cycle), "attn/2*conv/attn/2*conv/attn");
  auto idle = kFrame;
  idle.stack = {vanilla_mechanism(Semantics::corrected), {}, {}};
  idle.layers = 1;  // the others are no layers
  EXPECT_EQ(canonical(idle).stack.size(), 1U);
}

/// A value of a gene, whatever the others are.
std::string drawn(const Slot& slot, RandomEngine& random) {
  const auto of = [&](const Texts& texts) {
    return texts[static_cast<std::size_t>(random.below(std::ssize(texts)))];
  };
  if (slot.name == "keys" && random.below(std::int64_t{8}) > 0)
    return "own";  // shared is rarely one
  if (slot.name == "first") return of({"attn", "attn{kv_heads=2}", "swa{window=8}"});
  if (slot.name == "second") return of({"recurrent", "ssd", "recurrent{key_width=9,gating=none}"});
  if (slot.is_component() || slot.is_word()) return of(slot.choices);
  static const std::map<std::string, Texts> kNumbers{{"attention_dropout", {"0", "0.1", "0.25"}},
                                                     {"heads", {"1", "2", "4", "8", "3"}},
                                                     {"kv_heads", {"0", "1", "2", "4"}},
                                                     {"kv_rank", {"0", "0", "0", "32"}},
                                                     {"conv", {"0", "3", "4"}},
                                                     {"window", {"16", "64", "200"}},
                                                     {"globals", {"0", "4"}},
                                                     {"stride", {"1", "8", "16"}},
                                                     {"buckets", {"1", "2", "8"}},
                                                     {"rope_base", {"100", "10000", "500000"}},
                                                     {"rope_fraction", {"0.25", "0.5", "1"}},
                                                     {"rope_low", {"0.5", "1"}},
                                                     {"rope_high", {"4", "8"}},
                                                     {"rope_factor", {"1", "8"}},
                                                     {"rope_original", {"0", "64"}},
                                                     {"head_width", {"0", "16", "32", "40"}},
                                                     {"norm_eps", {"1e-05", "1e-06"}},
                                                     {"qk_eps", {"1e-05", "1e-06"}},
                                                     {"t5_buckets", {"16", "32"}},
                                                     {"decay_tau", {"8", "16", "12.5"}},
                                                     {"key_width", {"0", "8", "16", "32"}},
                                                     {"neg_eigen", {"0", "1"}},
                                                     {"value_exclusion", {"0", "1"}},
                                                     {"full_groups", {"0", "0", "1", "2"}},
                                                     {"soft_cap", {"0", "30", "50"}},
                                                     {"smear", {"0", "1"}},
                                                     {"value_embedding", {"0", "1"}},
                                                     {"ratio", {"1", "2", "4"}}};
  const auto found = kNumbers.find(slot.name);
  return found != kNumbers.end() ? of(found->second)
                                 : std::to_string(1 + random.below(std::int64_t{70}));
}

Architecture drawn_model(RandomEngine& random) {
  auto model = kFrame;
  for (const auto* slot : model_slots())
    choose(*slot, drawn(*slot, random), model.semantics, model.genes);
  model.layers = 1 + random.below(std::int64_t{8});
  model.stack.resize(static_cast<std::size_t>(1 + random.below(model.layers)));
  for (auto& layer : model.stack) {
    for (const auto* slot : layer_slots()) {
      choose(*slot, drawn(*slot, random), model.semantics, layer);
    }
  }
  return model;
}

TEST(CanonicalForm, OfAnyGenotypeIsAFixedPointThatItsNameReadsBackTo) {
  RandomEngine random(11);
  int models = 0;
  int refused = 0;
  while (models < 300) {
    Architecture once;
    try {
      once = canonical(drawn_model(random));
    } catch (const InputError&) {
      ASSERT_LT(++refused, 100'000);
      continue;
    }
    ++models;
    const auto name = to_string(once);
    EXPECT_EQ(canonical(once), once) << name;
    auto frame = kFrame;
    frame.layers = once.layers;  // which names of six fields leave out
    EXPECT_EQ(parse_model(name, frame), once) << name;
    EXPECT_EQ(canonical(parse_model(label(once), frame)), once) << label(once);
    frame.stack = {vanilla_mechanism(Semantics::corrected)};
    EXPECT_EQ(canonical(architecture_of(genotype_of(once), frame)), once) << name;
  }
}

TEST(Genotypes, OfHybridsNameTheSlotOfALayer) {
  const auto model = canonical(parse_model("attn{pattern=window,window=16}/conv+swiglu", kFrame));
  const auto genotype = genotype_of(model);
  EXPECT_EQ(genotype.option("slot0.window"), "16");
  EXPECT_EQ(genotype.option("slot0.similarity"), "dot");
  EXPECT_EQ(genotype.option("slot1.mixer"), "conv");
  EXPECT_EQ(genotype.option("slot1.ffn"), "swiglu");
  EXPECT_EQ(offered({.name = "slot0.window", .options = {"16", "32"}}, model), GeneValue("16"));
  EXPECT_EQ(offered({.name = "slot0.window", .options = {"32"}}, model), std::nullopt);
  // Beside a convolution no window has an effect.
  EXPECT_EQ(offered({.name = "slot1.window", .options = {"32"}}, model), GeneValue("32"));
  EXPECT_EQ(offered({.name = "slot0.heads", .options = {"2", "4"}}, model), GeneValue("4"));
  EXPECT_EQ(offered({.name = "norm", .options = {"layer"}}, model), GeneValue("layer"));
  EXPECT_EQ(offered({.name = "norm", .options = {"rms"}}, model), std::nullopt);
}

TEST(Genotypes, OfAllLayersAreOneGene) {
  const Genotype genotype({{"norm", std::string("rms")},
                           {"pattern", std::string("window")},
                           {"slot1.pattern", std::string("full")},
                           {"window", std::string("16")},
                           {"attention_dropout", 0.2}});
  auto frame = kFrame;
  frame.stack = {vanilla_mechanism(Semantics::corrected)};
  EXPECT_EQ(to_string(canonical(architecture_of(genotype, frame))),
            "model{norm=rms}/attn{dropout=0.2,pattern=window,window=16}/attn{dropout=0.2}");
}

TEST(Genotypes, SayWhichGenesHaveAnEffect) {
  auto frame = kFrame;
  frame.stack = {vanilla_mechanism(Semantics::corrected)};
  const Genotype genotype({{"block", std::string("parallel")},
                           {"norm_place", std::string("post")},
                           {"slot0.mixer", std::string("recurrent")},
                           {"slot0.similarity", std::string("cosine")},
                           {"slot0.decay", std::string("scalar")},
                           {"slot1.pattern", std::string("window")},
                           {"slot1.window", std::string("16")},
                           {"slot1.stride", std::string("8")},
                           {"slot1.decay_rank", std::string("8")},
                           {"temperature", std::string("learned")}});
  EXPECT_THAT(active(genotype, frame), ElementsAre("block", "slot0.mixer", "slot0.decay",
                                                   "slot1.pattern", "slot1.window", "temperature"));
  // A window of the whole context hides nothing, but smaller ones do.
  const Genotype wide({{"pattern", std::string("window")}, {"window", std::string("128")}});
  EXPECT_EQ(to_string(canonical(architecture_of(wide, frame))), "dot|softmax|none|fixed|bias|0.1");
  EXPECT_THAT(active(wide, frame), ElementsAre("pattern", "window"));
  // Of layers in turn, where neighbours that are alike are written once.
  const Texts genes{"window", "slot0.window", "slot1.window", "slot2.window"};
  EXPECT_THAT(active(genes, parse_model("attn/swa", kFrame)),
              ElementsAre("window", "slot1.window"));
  EXPECT_THAT(active(genes, parse_model("2*swa", kFrame)),
              ElementsAre("window", "slot0.window", "slot1.window", "slot2.window"));
}

TEST(RequireBuilt, NamesWhatNoModuleComputes) {
  const auto unbuilt = [](const std::string& name) {
    return message_of<InputError>([&] { require_built(parse_model(name, kFrame)); });
  };
  EXPECT_EQ(unbuilt("2*attn"), "nothing was thrown");
  EXPECT_EQ(unbuilt("2*attn{position=cope}"), "position = cope: no module computes it");
  EXPECT_EQ(unbuilt("2*attn{maps=difference}"), "maps = difference: no module computes it");
  EXPECT_EQ(unbuilt("attn/gdn"), "mixer = recurrent: no module computes it");
  EXPECT_EQ(unbuilt("model{norm=rms}/2*attn"), "nothing was thrown");
}

TEST(VanillaArchitecture, HasTheGenesOfTheFrame) {
  const auto frame =
      parse_model("model{norm=rms,bias=none}/2*attn{similarity=cosine,qk_norm=rms}+swiglu", kFrame);
  EXPECT_EQ(to_string(canonical(vanilla_architecture(frame))),
            "model{norm=rms,bias=none}/2*attn{qk_norm=rms}+swiglu");
  EXPECT_EQ(to_string(vanilla_architecture(kFrame)), "dot|softmax|none|fixed|bias|0.1");
}

}  // namespace
}  // namespace nas
