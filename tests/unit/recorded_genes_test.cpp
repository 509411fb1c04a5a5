#include "report/recorded_genes.hpp"

#include "digest_file.hpp"
#include "prelude.hpp"
#include "report/text.hpp"
#include "unit/report_fixture.hpp"

namespace nas {
namespace {

class RecordedGenesTest : public ReportTest {};

TEST_F(RecordedGenesTest, GenesComeFromTheConfigurationAndElseFromTheAsks) {
  const auto genes = [this](const char* first, const char* second, const nlohmann::json& meta) {
    return test::results_json(run_of(
        {evaluation("a", 64), evaluation("b", 32)},
        {ask(0, 0, {"a"}, 64, false, first), ask(1, 0, {"b"}, 32, false, second)}, meta))["genes"];
  };
  const nlohmann::json space{{"similarity", {"cosine", "dot"}},
                             {"bias", {true, false}},
                             {"attention_dropout", {{"min", 0}, {"max", 0.3}}}};
  EXPECT_EQ(genes("dot|softmax|none|fixed|bias|0.1", "cosine|softmax|none|learned|bias|0.2",
                  {{"config", {{"space", space}}}}),
            nlohmann::json::parse(R"([
      {"name": "similarity", "options": ["cosine", "dot"]},
      {"name": "normalization", "options": ["softmax"]},
      {"name": "gating", "options": ["none"]},
      {"name": "temperature", "options": ["fixed", "learned"]},
      {"name": "bias", "options": ["bias", "no_bias"]},
      {"name": "attention_dropout", "min": 0.0, "max": 0.3}])"));
  EXPECT_EQ(genes("0.5|-2", "0.25|3e+06", nlohmann::json::object()),
            nlohmann::json::parse(R"([{"name": "x1", "min": 0.25, "max": 0.5},
                                      {"name": "x2", "min": -2.0, "max": 3e6}])"))
      << "numbers without a space are real genes";
}

class LongNamesTest : public ReportTest {
 protected:
  LongNamesTest() {
    std::vector<Evaluation> made{
        evaluation("v", 90, "model{norm=rms}/2*attn"),
        evaluation("a", 91, "model{norm=rms}/2*attn{position=rope}"),
        evaluation("b", 92,
                   "model{norm=rms}/2*attn{kv_heads=1,normalization=sparsemax,gating=highway}"),
        evaluation("c", 93, "model{norm=rms}/2*attn{temperature=per_query}")};
    std::vector<Ask> asks;
    for (const auto* id : {"a", "b", "c"}) {
      asks.push_back(ask(std::ssize(asks), 0, {id}, 90.0, false,
                         "dot|softmax|none|fixed|bias|0.1|rms|1|rope"));
    }
    fill(long_, made, asks);
    long_.set_meta(
        "config",
        {{"space", {{"norm", {"rms"}}, {"kv_heads", {1, 4}}, {"position", {"none", "rope"}}}}});
    long_.set_meta("baseline", {{"evaluations", {"v"}}, {"fitness", {100.0}}});
  }

  Store long_{folder_ / "long.sqlite"};
};

TEST_F(LongNamesTest, GenesOfTheSpaceHaveColumns) {
  expect_words(evaluations_csv(RunSummary(long_)),
               {"candidate,similarity,normalization,gating,temperature,bias,attention_dropout,"
                "norm,kv_heads,position,replicate,",
                ",dot,softmax,none,fixed,bias,0.1,rms,0,rope,0,",
                ",dot,sparsemax,highway,fixed,bias,0.1,rms,1,none,0,"});
}

TEST_F(LongNamesTest, TablesNameWhatDiffersFromTheBaseline) {
  expect_words(closing_table(RunSummary(long_)),
               {" position=rope ", " sparsemax+highway+kv_heads=1 ",
                "named by the searched genes that differ from the baseline "
                "model{norm=rms}/2*attn\n"});
}

TEST_F(LongNamesTest, ModelsWhoseLayersDifferAreNamedLayerByLayer) {
  long_.add({evaluation("h", 89.0, "model{norm=rms}/attn{position=rope}/conv")});
  long_.add_asks({ask(3, 1, {"h"}, 89.0)});
  long_.set_meta("config", {{"space",
                             {{"norm", {"rms"}},
                              {"stack", "cycle"},
                              {"period", 2},
                              {"mixer", {"attn", "conv"}},
                              {"position", {"none", "rope"}}}}});
  const auto text = closing_table(RunSummary(long_));
  expect_words(text, {"  attn{position=rope}/conv  ", "  2*attn{position=rope}  ",
                      "mechanisms are named without the frame model{norm=rms}\n"});
  EXPECT_THAT(text, Not(HasSubstr("slot0")));
}

TEST_F(LongNamesTest, WhatTheSpaceFixesTellsNoCandidateFromAnother) {
  long_.add({evaluation("w", 101.0, "dot|softmax|none|fixed|bias|0.1")});
  long_.set_meta("baseline", {{"evaluations", {"w"}}, {"fitness", {101.0}}});
  const auto text = closing_table(RunSummary(long_));
  expect_words(text, {"  position=rope ", "  sparsemax+highway+kv_heads=1 "});
  EXPECT_THAT(text, Not(HasSubstr("norm=rms")));
}

TEST_F(LongNamesTest, NamesAreNeverCutAndTablesFitTheWidth) {
  long_.set_meta("config", {{"name", "of no space"}});
  const RunSummary run(long_);
  const auto longest =
      run.label("model{norm=rms}/2*attn{kv_heads=1,normalization=sparsemax,gating=highway}");
  ASSERT_GT(width_of(longest), 60U);
  expect_words(closing_table(run), {"  " + longest + "  ", "params"});
  for (const std::size_t width : {60U, 80U, 100U}) {
    const auto text = closing_table(run, width);
    expect_no_words(text, {"\u2026"});
    EXPECT_THAT(text, HasSubstr("  perplexity"));
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) EXPECT_LE(width_of(line), width) << line;
  }
  // A table that does not fit is not torn: each row has its last column.
  expect_rows(closing_table(run, 20), {"\n  +1 .*  1 +1\n"});
}

TEST_F(LongNamesTest, TheDigestSaysWhatEachHas) {
  const auto json = test::results_json(RunSummary(long_));
  EXPECT_EQ(json.at("models").at("genes").back(), "position");
  const std::string windowed = "model{norm=rms}/2*attn{position=rope}";
  EXPECT_EQ(json.at("candidates").at(windowed).at("choices").back(), "rope");
  EXPECT_EQ(json.at("candidates").at(windowed).at("difference"), "position=rope");
  EXPECT_EQ(json.at("genes").size(), 9U);
  EXPECT_EQ(json.at("genes")[7].at("options"), (nlohmann::json{"1", "4"}));
  EXPECT_TRUE(test::results_json(RunSummary(*store_)).at("models").is_null());
}

TEST_F(LongNamesTest, ListedMechanismsNeedNotBeOfASpace) {
  long_.set_meta("config", {{"mechanisms", {"2*mqa"}}, {"space", {{"match_parameters", true}}}});
  const RunSummary run(long_);
  EXPECT_TRUE(test::results_json(run).at("models").is_null());
  EXPECT_THAT(evaluations_csv(run), HasSubstr("candidate,replicate,"));
}

TEST_F(LongNamesTest, ARatioHasNoEffectWhereParametersAreMatched) {
  const auto choice = [&](bool matched) {
    long_.set_meta("config", {{"space", {{"ratio", {2, 4}}, {"match_parameters", matched}}}});
    return choices_json(RunSummary(long_), "model{norm=rms}/2*attn", {"ratio"});
  };
  EXPECT_EQ(choice(false), nlohmann::json::array({"4"}));
  EXPECT_EQ(choice(true), nlohmann::json::array({nullptr}));
}

}  // namespace
}  // namespace nas
