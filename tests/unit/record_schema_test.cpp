#include "report/record_schema.hpp"

#include "genotype/component.hpp"
#include "genotype/slots.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

// What somebody has added: nothing but its own file names it.

[[maybe_unused]] const bool kComponent = components().add({.gene = "normalization",
                                                           .key = "squared_relu_norm",
                                                           .summary = "max(s, 0)^2 / sum of them",
                                                           .voids = {"temperature"}});
[[maybe_unused]] const bool kPattern =
    components().add({.gene = "pattern", .key = "full", .summary = "every key before"});

NAS_REGISTER_OBJECTIVE({.key = "cache_megabytes",
                        .summary = "memory of the key/value cache",
                        .settings = {},
                        .file = __FILE__},
                       [](const Parameters&) {
                         return Objective{.unit = "MB",
                                          .analytic = [](const Subject&) { return 1.0; }};
                       });

const nlohmann::json& named(const nlohmann::json& list, const char* key, const std::string& name) {
  return *std::find_if(list.begin(), list.end(),
                       [&](const auto& item) { return item.at(key) == name; });
}

TEST(RecordSchema, HasEveryGeneInTheOrderOfAName) {
  const auto genes = record_schema(Semantics::corrected, paper_space()).at("genes");
  Texts names;
  for (const auto& gene : genes) names.push_back(gene.at("name"));
  EXPECT_EQ(names, (Texts{"similarity", "normalization", "gating", "temperature", "bias",
                          "attention_dropout"}));
  EXPECT_EQ(named(genes, "name", "temperature").at("vanilla"), (nlohmann::json{"fixed", "sqrt_d"}));
  EXPECT_FALSE(genes.back().contains("options")) << "a number";
}

TEST(RecordSchema, HasTheGenesThatASpaceOffersBesides) {
  auto space = paper_space().genes();
  space.push_back({.name = "norm", .options = {"rms"}});
  space.push_back({.name = "kv_heads", .options = {"1", "4"}});
  const auto genes = record_schema(Semantics::corrected, SearchSpace(space)).at("genes");
  ASSERT_EQ(genes.size(), 8U);
  EXPECT_FALSE(genes[5].contains("paper"));
  EXPECT_EQ(genes[6].at("name"), "norm");
  EXPECT_EQ(genes[6].at("paper"), false);
  EXPECT_EQ(genes[6].at("model"), true);
  EXPECT_EQ(genes[6].at("default"), "layer");
  EXPECT_EQ(genes[7].at("kind"), "integer");
  EXPECT_EQ(genes[7].at("default"), 0);
  EXPECT_EQ(genes[7].at("bounds"),
            (nlohmann::json{{"min", 0.0}, {"max", nullptr}, {"max_exclusive", true}}));
}

TEST(RecordSchema, SaysOfWhichKindAGeneIsAndWhatItIsByDefault) {
  const auto genes = record_schema(Semantics::corrected, paper_space()).at("genes");
  Texts kinds;
  for (const auto& gene : genes) kinds.push_back(gene.at("kind"));
  EXPECT_EQ(kinds, (Texts{"component", "component", "component", "component", "word", "number"}));
  EXPECT_EQ(named(genes, "name", "similarity").at("default"), "dot");
  EXPECT_EQ(named(genes, "name", "temperature").at("default"), "fixed");
  EXPECT_EQ(named(genes, "name", "bias").at("default"), "bias");
  EXPECT_EQ(named(genes, "name", "attention_dropout").at("default"), 0.1);
  const auto published = record_schema(Semantics::published, paper_space()).at("genes");
  EXPECT_EQ(named(published, "name", "temperature").at("default"), "sqrt_d");
}

TEST(RecordSchema, SaysBesideWhichOptionsAGeneHasNoEffect) {
  const auto genes = record_schema(Semantics::corrected, paper_space()).at("genes");
  EXPECT_EQ(named(genes, "name", "temperature").at("voided_by"),
            (nlohmann::json{{"normalization", {"relu_norm", "squared_relu_norm"}}}));
  EXPECT_EQ(named(genes, "name", "gating").at("voided_by"), nlohmann::json::object());
}

TEST(RecordSchema, SaysThatTwoSimilaritiesNormQueriesAndKeysThemselves) {
  auto space = paper_space().genes();
  space.push_back({.name = "qk_norm", .options = {"none", "rms"}});
  const auto genes = record_schema(Semantics::corrected, SearchSpace(space)).at("genes");
  EXPECT_EQ(named(genes, "name", "qk_norm").at("voided_by").at("similarity"),
            (nlohmann::json{"additive", "cosine"}));
}

TEST(RecordSchema, SaysBesideWhichOptionsASizeHasNoEffect) {
  auto space = paper_space().genes();
  space.push_back({.name = "pattern", .options = {"full", "window"}});
  space.push_back({.name = "window", .options = {"4", "8"}});
  const auto genes = record_schema(Semantics::corrected, SearchSpace(space)).at("genes");
  EXPECT_EQ(named(genes, "name", "window").at("voided_by"),
            (nlohmann::json{{"pattern", {"full"}}}));
  const auto& options = named(genes, "name", "pattern").at("options");
  const auto beside_full = named(options, "key", "full").at("voids");
  const auto beside_window = named(options, "key", "window").at("voids");
  EXPECT_EQ(std::count(beside_full.begin(), beside_full.end(), "window"), 1);
  EXPECT_EQ(std::count(beside_window.begin(), beside_window.end(), "window"), 0);
}

TEST(RecordSchema, SaysWhereANumberLies) {
  const auto number = record_schema(Semantics::corrected, paper_space()).at("genes").back();
  EXPECT_EQ(number.at("bounds"),
            (nlohmann::json{{"min", 0.0}, {"max", 1.0}, {"max_exclusive", true}}));
  EXPECT_EQ(number.at("scale"), "linear");
  const auto genes = record_schema(Semantics::corrected, paper_space()).at("genes");
  EXPECT_FALSE(genes.front().contains("bounds"));
}

TEST(RecordSchema, SaysWhereAnObjectiveComesFrom) {
  const auto objectives = record_schema(Semantics::corrected, paper_space()).at("objectives");
  EXPECT_EQ(objectives.at("cache_megabytes"),
            (nlohmann::json{{"source", "analytic"}, {"unit", "MB"}, {"maximise", false}}));
  EXPECT_EQ(objectives.at("perplexity").at("source"), "trained");
  EXPECT_EQ(objectives.at("accuracy").at("maximise"), true);
}

TEST(RecordSchema, SaysWhichStatusesAreUsable) {
  const auto schema = record_schema(Semantics::corrected, paper_space());
  EXPECT_EQ(named(schema.at("statuses"), "name", "stopped_early").at("usable"), true);
  EXPECT_EQ(named(schema.at("statuses"), "name", "rejected").at("usable"), false);
  EXPECT_EQ(schema.at("reference_point"), 1.1);
}

}  // namespace
}  // namespace nas
