#include "genotype/shorthand.hpp"

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/component.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"
#include "unit/paper_components.hpp"

namespace nas {
namespace {

using Words = Texts;

const Architecture kFrame{};  // of 2 layers

/// Stand-ins for what the library with Torch registers beside the paper's components.
[[maybe_unused]] const bool kRegistered = [] {
  components().add({.gene = "mixer", .key = "recurrent", .summary = "mixer recurrent"});
  components().add({.gene = "mixer", .key = "conv", .summary = "mixer conv"});
  components().add({.gene = "mixer", .key = "pair", .summary = "mixer pair"});
  components().add({.gene = "feature", .key = "elu1", .summary = "feature elu1"});
  return true;
}();

std::string meant(const std::string& text, const std::string& baseline = "") {
  const auto base = baseline.empty() ? vanilla_architecture(kFrame) : parse_model(baseline, kFrame);
  return to_string(canonical(named_model(text, kFrame, base)));
}

std::string refusal(const std::string& text, const std::string& baseline = "") {
  return message_of<InputError>([&] { (void)meant(text, baseline); });
}

TEST(Shorthand, ChangesOneGeneOfTheBaseline) {
  EXPECT_EQ(meant("sparsemax"), "dot|sparsemax|none|fixed|bias|0.1");
  EXPECT_EQ(meant("output_gate"), "dot|softmax|output_gate|fixed|bias|0.1");
  EXPECT_EQ(meant("multiplicative"), "silu_dot|softmax|none|fixed|bias|0.1");
  EXPECT_EQ(meant("no_bias"), "dot|softmax|none|fixed|no_bias|0.1");
  EXPECT_EQ(meant("dropout=0"), "dot|softmax|none|fixed|bias|0");
  EXPECT_EQ(meant("post"), meant("model{norm_place=post}/2*attn"));
  EXPECT_EQ(meant("mqa"), "2*attn{kv_heads=1}");
  EXPECT_EQ(meant("kv_heads=1+sparsemax"), "2*attn{kv_heads=1,normalization=sparsemax}");
  EXPECT_EQ(meant("smear"), "2*attn{smear=1}");
  EXPECT_EQ(meant(" gating=highway "), "dot|softmax|highway|fixed|bias|0.1");
  EXPECT_EQ(meant("sparsemax", "2*attn{kv_heads=2,conv=4,dropout=0}"),
            "2*attn{kv_heads=2,normalization=sparsemax,dropout=0,conv=4}");
}

TEST(Shorthand, AMixerKeepsWhatTheBaselineSaysOfItsGenes) {
  EXPECT_EQ(meant("mixer=recurrent"), "2*recurrent");
  EXPECT_EQ(meant("mixer=recurrent+decay=scalar"), "2*recurrent{decay=scalar}");
  EXPECT_EQ(meant("deltanet", "2*attn{kv_heads=2,dropout=0}+none"),
            "2*recurrent{conv=4,update=delta}+none");
  EXPECT_EQ(meant("linear", "2*attn{conv=3,dropout=0}"), "2*recurrent{conv=3,feature=elu1}");
  EXPECT_EQ(meant("swish_gate+deltanet"), "2*recurrent{gating=swish_gate,conv=4,update=delta}");
}

TEST(Shorthand, APairHasHalvesThatAreWrittenOut) {
  EXPECT_EQ(meant("pair", "2*attn{kv_heads=2,dropout=0}+none"), "2*pair(attn|recurrent)+none");
  EXPECT_EQ(meant("pair+first=swa+second=linear@1"),
            "pair(attn{pattern=window}|recurrent)/"
            "pair(attn{pattern=window}|recurrent{feature=elu1})");
  EXPECT_EQ(meant("pair(attn|linear)/=", "2*attn{conv=4}"),
            "pair(attn|recurrent{feature=elu1})/attn{conv=4}");
  EXPECT_THAT(refusal("pair+second=gdn"), HasSubstr("second = gdn, must leave conv out: a half"));
}

TEST(Shorthand, EveryLayerThatHasAGeneTakesIt) {
  EXPECT_EQ(meant("sparsemax", "attn/conv"), "attn{normalization=sparsemax}/conv");
  EXPECT_THAT(refusal("swish_gate"),
              AllOf(HasSubstr("model 'swish_gate': character 1: gating = swish_gate, must be one "
                              "of a layer's mixer, which is attn; it belongs to mixer recurrent")));
}

TEST(Shorthand, WhatSeveralThingsBearIsRefusedWithTheirGenes) {
  EXPECT_THAT(refusal("none"), AllOf(HasSubstr("'none' may mean several things, write one of "),
                                     HasSubstr("gating=none"), HasSubstr("ffn=none")));
  EXPECT_EQ(refusal("sparsemax+fixed"),
            "model 'sparsemax+fixed': character 11: 'fixed' may mean several things, write one of "
            "temperature=fixed, decay=fixed");
  EXPECT_THAT(refusal("conv"), HasSubstr("write one of mixer=conv, conv=NUMBER"));
  EXPECT_EQ(refusal("heads"),
            "model 'heads': character 1: gene heads needs a number: heads=NUMBER");
  EXPECT_EQ(refusal("sparsemax+normalization=softmax"),
            "model 'sparsemax+normalization=softmax': character 11: gene normalization is given "
            "twice");
}

TEST(Shorthand, NothingIsKnownThatNoModuleComputes) {
  const auto text = refusal("spasemax");
  EXPECT_THAT(text,
              AllOf(HasSubstr("nothing is called 'spasemax'; did you mean sparsemax? Known: "),
                    HasSubstr(", sparsemax, ")));
  const auto known = text.substr(text.find("Known: ") + 7);
  std::istringstream words(known.substr(0, known.find(", gene=value")));
  std::size_t count = 0;
  for (std::string word; std::getline(words >> std::ws, word, ',');) {
    std::string why;
    try {
      require_built(canonical(named_model(word, kFrame)));
    } catch (const InputError& error) {
      why = error.what();
    }
    // It can be built, or belongs to another mixer, which is said.
    EXPECT_THAT(why,
                ::testing::AnyOf("", HasSubstr("it belongs to mixer"), HasSubstr("must rotate"),
                                 HasSubstr("must divide"), HasSubstr("must have an earlier layer")))
        << word;
    ++count;
  }
  EXPECT_GT(count, 20U);
  EXPECT_THAT(refusal("cope"), HasSubstr("nothing is called 'cope'"));
  EXPECT_THAT(refusal("maps=x"),
              AllOf(HasSubstr("maps = x, must be one of single"), Not(HasSubstr("difference"))));
  EXPECT_THAT(refusal("mine.so"), HasSubstr("'mine.so' is not loaded, must be among `plugins`"));
}

TEST(Shorthand, NamesStayNames) {
  for (const auto* name : {"dot|softmax|none|fixed|bias|0.1", "2*mqa", "attn/conv", "mqa{conv=4}",
                           "model{norm=rms}/2*attn", "=/gdn", "2*={conv=0}", "", "+gelu"}) {
    EXPECT_FALSE(is_shorthand(name, kFrame)) << name;
  }
  EXPECT_TRUE(is_shorthand("mqa", kFrame));
  EXPECT_TRUE(is_shorthand("gdn@0,1+mine.so@1", kFrame));
  EXPECT_TRUE(is_shorthand("../lib/mine.so+rope", kFrame));
  auto one = kFrame;
  one.layers = 1;
  EXPECT_FALSE(is_shorthand("mqa", one)) << "the name of its layer";
  EXPECT_FALSE(is_shorthand("attn+swiglu", one));
  EXPECT_TRUE(is_shorthand("sparsemax", one));
  EXPECT_TRUE(is_shorthand("mqa+sparsemax", one));
}

constexpr const char* kConvolved = "2*attn{conv=4,dropout=0}";
constexpr const char* kModern =
    "model{position_embedding=none,norm=rms,bias=none}/attn{conv=4,dropout=0}+swiglu{ratio=3}/"
    "gla+none";

TEST(LayeredName, KeepsTheBaselinesFrame) {
  const std::string gdn = "recurrent{gating=swish_gate,decay=scalar,conv=4,update=delta}";
  const std::string attn = "attn{dropout=0,conv=4}";
  EXPECT_EQ(meant("gdn/attn", kConvolved), gdn + "/" + attn);
  EXPECT_EQ(meant("attn/gdn", kConvolved), attn + "/" + gdn);
  EXPECT_EQ(meant("2*attn", kConvolved), "2*" + attn);
  EXPECT_EQ(meant("attn/attn", kConvolved), "2*" + attn);
  EXPECT_EQ(meant("2*swa{window=16}", kConvolved),
            "2*attn{dropout=0,pattern=window,window=16,conv=4}");
  EXPECT_EQ(meant("conv/none", kConvolved), "conv{conv=4}/none");
  EXPECT_EQ(meant("attn{conv=0}/attn{dropout=0.1}", kConvolved), "attn{dropout=0}/attn{conv=4}");
  EXPECT_EQ(meant("deltanet/attn", kModern),
            "model{position_embedding=none,norm=rms,bias=none}/recurrent{gating=swish_gate,conv=4,"
            "update=delta}+swiglu{ratio=3}/attn{dropout=0,conv=4}+none")
      << "genes of the baseline's layer of that mixer, the feed-forward layer of the place";
}

TEST(LayeredName, HasTheBaselinesLayer) {
  EXPECT_EQ(meant("=/gdn", kConvolved), meant("attn/gdn", kConvolved));
  EXPECT_EQ(meant("2*=", kConvolved), meant("2*attn", kConvolved));
  EXPECT_EQ(meant("={conv=0}+swiglu/=", kConvolved),
            "attn{dropout=0}+swiglu/attn{dropout=0,conv=4}");
  EXPECT_EQ(meant("2*=", kModern), meant(kModern, kConvolved)) << "which a head makes full";
  EXPECT_THAT(refusal("model{norm=rms}/=/gdn"),
              HasSubstr("character 17: '=' is the baseline's layer, must be written out in a full "
                        "name"));
}

TEST(LayeredName, IsFullWithAHeadOrSixFields) {
  EXPECT_EQ(meant("model{}/attn/gdn", kModern), meant("attn/gdn"));
  EXPECT_EQ(meant("model{norm=rms}/2*attn", kModern), "model{norm=rms}/2*attn");
  EXPECT_EQ(meant("dot|sparsemax|none|fixed|bias|0.1", kConvolved),
            "dot|sparsemax|none|fixed|bias|0.1");
  // As stored: beside no baseline.
  EXPECT_EQ(to_string(canonical(parse_model("attn/conv", kFrame))), "attn/conv");
  EXPECT_EQ(full_name("attn/conv"), "model{}/attn/conv");
  EXPECT_EQ(full_name("model{norm=rms}/2*attn"), "model{norm=rms}/2*attn");
  EXPECT_EQ(full_name("dot|softmax|none|fixed|bias|0.1"), "dot|softmax|none|fixed|bias|0.1");
}

TEST(Shorthand, ChangesSingleLayers) {
  EXPECT_EQ(meant("gdn@1", kConvolved), meant("=/gdn", kConvolved));
  EXPECT_EQ(meant("gdn@0,1", kConvolved), meant("gdn", kConvolved));
  EXPECT_EQ(meant("sparsemax@0+conv=0@1", kConvolved),
            "attn{normalization=sparsemax,dropout=0,conv=4}/attn{dropout=0}");
  EXPECT_EQ(meant("gdn@0+gla@1+swiglu", kConvolved), meant("gdn+swiglu/gla+swiglu", kConvolved));
  EXPECT_EQ(meant("neg_eigen@1", kModern), meant("=/={neg_eigen=1}", kModern))
      << "of a baseline whose layers differ";
  EXPECT_EQ(refusal("gdn@2"),
            "model 'gdn@2': character 5: layer '2', must be a number from 0 to 1");
  EXPECT_THAT(refusal("gdn@0,"), HasSubstr("character 7: layer '', must be a number from 0 to 1"));
  EXPECT_THAT(refusal("gdn@0+gla@1,0"), HasSubstr("gene mixer is given twice"));
  EXPECT_THAT(refusal("post@1"),
              HasSubstr("norm_place is of the whole model, must be without '@'"));
  EXPECT_EQ(meant("sparsemax", kModern), meant("sparsemax@0", kModern));
  EXPECT_THAT(refusal("window@1", kModern), HasSubstr("which is recurrent; it belongs to mixer"));
  EXPECT_THAT(refusal("gdn@0+swish_gate@1"), HasSubstr("a layer's mixer, which is attn"));
}

TEST(Shorthand, ARecurrentLayerIsWhatItsNameSays) {
  EXPECT_EQ(meant("gla", "2*gdn"), "2*recurrent{gating=swish_gate,decay=channel,conv=4}");
  EXPECT_EQ(meant("linear/=", "2*gdn"), "recurrent{gating=swish_gate,conv=4,feature=elu1}/" +
                                            meant("gdn@0", "2*gdn").substr(2));
}

Words unsaid(const std::string& model, const std::string& baseline) {
  const auto of = [](const std::string& name) { return canonical(parse_model(name, kFrame)); };
  return unsaid_differences(of(model), of(baseline));
}

TEST(Shorthand, SaysWhatANameLeavesOutOfABaseline) {
  EXPECT_THAT(unsaid("attn/gdn", kConvolved), ElementsAre("dropout", "conv"));
  EXPECT_THAT(unsaid("attn{conv=4,dropout=0}/gdn", kConvolved), IsEmpty());
  EXPECT_THAT(unsaid("2*mqa", "2*attn{dropout=0}"), ElementsAre("dropout"));
  EXPECT_THAT(unsaid("dot|sparsemax|none|fixed|bias|0.1", kConvolved), ElementsAre("conv"))
      << "of six fields it says the dropout";
  EXPECT_THAT(unsaid("gdn/attn{conv=4,dropout=0}", kModern),
              ElementsAre("position_embedding", "norm", "bias", "ffn", "ratio"));
  EXPECT_THAT(unsaid("model{bias=none}/2*attn", "2*attn"), IsEmpty());
  EXPECT_THAT(unsaid("2*attn{normalization=relu_norm}", "2*attn{temperature=learned}"), IsEmpty())
      << "without effect in both";
  EXPECT_THAT(unsaid(kConvolved, kConvolved), IsEmpty());
}

TEST(Shorthand, RefusesAPartWithoutEffect) {
  EXPECT_THAT(refusal("gdn+rope"),
              HasSubstr("has no effect beside the other parts, must be left out"));
  EXPECT_EQ(refusal("retnet+rope"), "nothing was thrown") << "it has that";
  EXPECT_EQ(refusal("rope+softmax"), "nothing was thrown") << "vanilla has that";
  EXPECT_THAT(refusal("rope+"), HasSubstr("a part is empty"));
  // Also where another layer does not have the gene at all, or the name needs fewer layers.
  const std::string hybrid = "recurrent{decay=scalar}/attn";
  EXPECT_THAT(refusal("window+window=4+stride=8", hybrid), HasSubstr("has no effect beside"));
  EXPECT_THAT(refusal("heads=1+kv_heads=1", hybrid), HasSubstr("has no effect beside"));
  EXPECT_EQ(meant("window+window=4", hybrid),
            "recurrent{decay=scalar}/attn{pattern=window,window=4}");
  EXPECT_EQ(meant("mixer=conv+conv=4", hybrid), "2*conv{conv=4}");
}

TEST(Shorthand, LabelsAreReadByTheSemantics) {
  auto frame = kFrame;
  frame.semantics = Semantics::published;
  EXPECT_EQ(to_string(canonical(named_model("sparsemax", frame))),
            "dot|topk_quarter|none|sqrt_d|bias|0.1");
}

std::string said(const std::string& model, const std::string& baseline = "") {
  const auto base =
      canonical(baseline.empty() ? vanilla_architecture(kFrame) : parse_model(baseline, kFrame));
  return shorthand_of(canonical(parse_model(model, kFrame)), base).value_or("nothing");
}

TEST(Shorthand, SaysWhatAModelChangesOfAnother) {
  EXPECT_EQ(said("additive|sparsemax|none|fixed|bias|0.1"), "additive+sparsemax");
  EXPECT_EQ(said("dot|softmax|output_gate|fixed|no_bias|0"), "output_gate+no_bias+dropout=0");
  EXPECT_EQ(said("2*attn{kv_heads=1,normalization=sparsemax}"), "kv_heads=1+sparsemax");
  EXPECT_EQ(said("2*attn{kv_heads=1}"), "mqa");
  EXPECT_EQ(said("2*ssd"), "ssd");
  EXPECT_EQ(said("2*pair(swa{window=8}|ssd)"), "pair+first=swa{window=8}+second=ssd");
  EXPECT_EQ(said("2*attn{smear=1}"), "smear");
  EXPECT_EQ(said("dot|softmax|none|fixed|bias|0.1", "2*attn{conv=4}"), "conv=0");
  EXPECT_EQ(said("2*attn"), "nothing") << "it is the base";
  EXPECT_EQ(said("attn/gla"), "nothing") << "one layer alone differs";
}

TEST(Shorthand, SaysWhatIsReadAsTheSame) {
  const auto base = canonical(parse_model("2*attn{conv=4,dropout=0}", kFrame));
  for (const auto* word :
       {"sparsemax", "additive+sparsemax", "relu_norm", "temperature=learned", "smear", "gdn",
        "kv_heads=2+highway", "post", "dropout=0.1+multiplicative"}) {
    const auto model = canonical(named_model(word, kFrame, base));
    const auto text = shorthand_of(model, base);
    ASSERT_TRUE(text) << word;
    EXPECT_EQ(to_string(canonical(named_model(*text, kFrame, base))), to_string(model)) << *text;
  }
}

}  // namespace
}  // namespace nas
