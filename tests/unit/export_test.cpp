#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "report/csv.hpp"
#include "report/exports.hpp"
#include "report/files.hpp"
#include "report/recorded_asks.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// What a call complains about when it is given bad input.
template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// A small made-up search of attention mechanisms: a and b are usable, c diverged, and the third
/// ask was answered by the evaluation of a.
class ExportTest : public ::testing::Test {
 protected:
  static Evaluation evaluation(const std::string& id, const std::string& candidate,
                               const std::string& started, double seconds, double perplexity) {
    Evaluation made;
    made.id = id;
    made.candidate = candidate;
    made.measured = {{"started", started}, {"train_seconds", seconds}};
    made.status = Status::diverged;
    made.reason = "not finite";
    if (perplexity == 0) return made;
    made.status = Status::ok;
    made.reason = "";
    CurvePoint point;
    point.step = 5;
    point.valid.tokens = 1;
    point.valid.nll = std::log(perplexity);
    made.curve = {point};
    return made;
  }

  /// @param several  perplexity and accuracy, else accuracy alone.
  RunSummary run(bool several, std::int64_t seed = 7, const std::string& file = "store",
                 std::int64_t trainings = 100, bool rejected = false) {
    Store store(folder_ / (file + ".sqlite"));
    if (rejected) {  // instead of c
      auto screened = evaluation("c", "dot|softmax|none|learned|bias|0.2", "", 0, 0);
      screened.status = Status::rejected;
      screened.reason = "flops = 5e+06, must be <= 4e+06";
      screened.measured.erase("train_seconds");
      store.add({screened});
    }
    store.add(
        {evaluation("a", "dot|softmax|none|fixed|bias|0.1", "2026-01-31T23:59:59Z", 1.25, 64),
         evaluation("b", "cosine|softmax|none|fixed|bias|0", "2026-02-01T00:00:10Z", 2, 32),
         evaluation("c", "dot|softmax|none|learned|bias|0.2", "2026-02-01T00:00:20Z", 0.5, 0)});
    const auto fitness = [several](double perplexity, double accuracy) {
      return several ? std::vector<double>{perplexity, -accuracy} : std::vector<double>{-accuracy};
    };
    const std::string a = "dot|softmax|none|fixed|bias|0.1";
    store.add_asks({{.number = 0, .genotype = a, .evaluations = {"a"}, .fitness = fitness(64, 0.5)},
                    {.number = 1,
                     .genotype = "cosine|softmax|none|fixed|bias|0",
                     .evaluations = {"b"},
                     .fitness = fitness(32, 0.25)},
                    {.number = 2,
                     .batch = 1,
                     .genotype = a,
                     .evaluations = {"a"},
                     .reused = true,
                     .fitness = fitness(64, 0.5)},
                    {.number = 3,
                     .batch = 1,
                     .genotype = "dot|softmax|none|learned|bias|0.2",
                     .evaluations = {"c"},
                     .fitness = fitness(1e9, -4)}});
    auto objectives = nlohmann::json::array();
    if (several) objectives.push_back({{"name", "perplexity"}, {"unit", "1"}});
    objectives.push_back({{"name", "accuracy"}, {"unit", "share"}, {"maximise", true}});
    store.set_meta("objectives", objectives);
    store.set_meta("config", {{"name", "small"},
                              {"seed", seed},
                              {"problem", {{"type", "attention_search"}}},
                              {"algorithm", {{"name", "nsga2"}, {"population", 2}}},
                              {"space",
                               {{"similarity", {"cosine", "dot"}},
                                {"bias", {true, false}},
                                {"attention_dropout", {{"min", 0}, {"max", 0.3}}}}}});
    if (rejected) {
      auto config = *store.meta("config");
      config["constraints"] = {"flops <= 4e+06"};
      store.set_meta("config", config);
    }
    store.set_meta("facts", {{"corpus", "brown"}});
    store.set_meta("labels", {{a, "the \"usual\", a"}});
    return RunSummary(store, trainings);
  }

  std::vector<RunSummary> runs(bool several) {
    std::vector<RunSummary> made;
    made.push_back(run(several, 7, "one"));
    made.push_back(run(several, 8, "two"));
    return made;
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

TEST_F(ExportTest, GenesComeFromTheConfigurationAndElseFromTheAsks) {
  const auto genes = recorded_genes(run(true));
  ASSERT_EQ(genes.size(), 6U);
  EXPECT_EQ(genes[0].name, "similarity");
  EXPECT_THAT(genes[0].options, ElementsAre("cosine", "dot"));
  EXPECT_THAT(genes[3].options, ElementsAre("fixed", "learned"));
  EXPECT_THAT(genes[4].options, ElementsAre("bias", "no_bias"));
  EXPECT_EQ(genes[5].min, 0);
  EXPECT_EQ(genes[5].max, 0.3);
  EXPECT_EQ(gene_number(genes[0], "dot"), 1);
  EXPECT_EQ(gene_number(genes[5], "0.25"), 0.25);
}

TEST_F(ExportTest, NumbersWithoutASpaceAreRealGenes) {
  Store store(folder_ / "synthetic.sqlite");
  store.add({evaluation("a", "1|2", "", 0, 1)});
  store.add_asks({{.number = 0, .genotype = "0.5|-2", .evaluations = {"a"}, .fitness = {1}},
                  {.number = 1, .genotype = "0.25|3e+06", .evaluations = {"a"}, .fitness = {1}}});
  const auto genes = recorded_genes(RunSummary(store));
  ASSERT_EQ(genes.size(), 2U);
  EXPECT_EQ(genes[0].name, "x1");
  EXPECT_EQ(genes[0].min, 0.25);
  EXPECT_EQ(genes[0].max, 0.5);
  EXPECT_EQ(genes[1].max, 3e6);
  EXPECT_FALSE(genes[1].categorical());
}

TEST_F(ExportTest, CsvLineQuotesWhatNeedsIt) {
  EXPECT_EQ(csv_line({"a b", "a,b", "a\"b", "a\nb", ""}), "a b,\"a,b\",\"a\"\"b\",\"a\nb\",\r\n");
}

TEST_F(ExportTest, CsvHasOneLinePerAsk) {
  EXPECT_EQ(asks_csv(run(true)),
            "number,batch,candidate,label,similarity,normalization,gating,temperature,bias,"
            "attention_dropout,replicates,status,perplexity,accuracy,fitness_perplexity,"
            "fitness_accuracy,trained,train_seconds,reused\r\n"
            "1,0,dot|softmax|none|fixed|bias|0.1,\"the \"\"usual\"\", a\",dot,softmax,none,fixed,"
            "bias,0.1,1,ok,64,0.5,64,-0.5,1,1.25,false\r\n"
            "2,0,cosine|softmax|none|fixed|bias|0,cosine|softmax|none|fixed|bias|0,cosine,softmax,"
            "none,fixed,bias,0,1,ok,32,0.25,32,-0.25,2,3.25,false\r\n"
            "3,1,dot|softmax|none|fixed|bias|0.1,\"the \"\"usual\"\", a\",dot,softmax,none,fixed,"
            "bias,0.1,1,ok,64,0.5,64,-0.5,2,3.25,true\r\n"
            "4,1,dot|softmax|none|learned|bias|0.2,dot|softmax|none|learned|bias|0.2,dot,softmax,"
            "none,learned,bias,0.2,1,diverged,,,1e+09,4,3,3.75,false\r\n");
}

TEST_F(ExportTest, PointSetsAreMinimisedAndSeparated) {
  const auto both = runs(true);
  EXPECT_EQ(point_sets(both, false),
            "# small, seed 7: non-dominated 2 of 2 candidates after 3 evaluations\n"
            "# small, seed 8: non-dominated 2 of 2 candidates after 3 evaluations\n"
            "# all minimised: perplexity, -accuracy (share)\n"
            "32 -0.25\n64 -0.5\n\n32 -0.25\n64 -0.5\n");
}

TEST_F(ExportTest, PointSetsHoldTheFrontOrAllPoints) {
  const std::vector<RunSummary> one = [this] {
    std::vector<RunSummary> made;
    made.push_back(run(false));
    return made;
  }();
  const std::string columns = "# all minimised: -accuracy (share)\n";
  EXPECT_EQ(point_sets(one, false),
            "# small, seed 7: non-dominated 1 of 2 candidates after 3 evaluations\n" + columns +
                "-0.5\n");
  EXPECT_EQ(point_sets(one, true), "# small, seed 7: all 2 of 2 candidates after 3 evaluations\n" +
                                       columns + "-0.5\n-0.25\n");
}

TEST_F(ExportTest, ANumberOfTrainingRunsCutsARunShort) {
  EXPECT_EQ(run(true, 7, "0", 3).asks.size(), 4U);
  EXPECT_EQ(run(true, 7, "1", 2).asks.size(), 3U);  // the reused one is free
  const auto cut = run(true, 7, "2", 1);
  EXPECT_EQ(cut.asks.size(), 1U);
  EXPECT_EQ(point_sets({&cut, 1}, true),
            "# small, seed 7: all 1 of 1 candidates after 1 evaluations\n"
            "# all minimised: perplexity, -accuracy (share)\n64 -0.5\n");
}

TEST_F(ExportTest, EmptyPointSetsAreRefused) {
  const auto none = run(true, 7, "none", 0);
  EXPECT_EQ(refusal_of([&] {
              point_sets({&none, 1}, true);
            }),
            "small, seed 7: no candidate could be evaluated");
  EXPECT_EQ(refusal_of([&] { ioh_files({&none, 1}); }), "small, seed 7: nothing was asked for");
}

TEST_F(ExportTest, IohFilesOfSeveralObjectivesAreMinimised) {
  const auto files = ioh_files(runs(true));
  ASSERT_EQ(files.size(), 2U);
  const std::string lines =
      "evaluations raw_y F2 trained seconds\n"
      "1 64 -0.5 1 1.25\n2 32 -0.25 2 3.25\n3 64 -0.5 2 3.25\n4 1e+09 4 3 3.75\n";
  EXPECT_EQ(files.at("nsga2/data_f1_attention_search_brown/IOHprofiler_f1_DIM6.dat"),
            lines + lines);
  const auto meta =
      nlohmann::json::parse(files.at("nsga2/IOHprofiler_f1_attention_search_brown.json"));
  EXPECT_EQ(meta, nlohmann::json::parse(R"({
    "version": "0.3.17", "suite": "attnas", "function_id": 1,
    "function_name": "attention_search_brown", "maximization": false,
    "algorithm": {"name": "nsga2", "info": "population=2"},
    "run_attributes": ["seed"],
    "attributes": ["evaluations", "raw_y", "F2", "trained", "seconds"],
    "scenarios": [{
      "dimension": 6, "path": "data_f1_attention_search_brown/IOHprofiler_f1_DIM6.dat",
      "runs": [
        {"instance": 1, "evals": 4, "seed": 7,
         "best": {"evals": 2, "y": 32, "x": [0, 0, 0, 0, 0, 0]}},
        {"instance": 1, "evals": 4, "seed": 8,
         "best": {"evals": 2, "y": 32, "x": [0, 0, 0, 0, 0, 0]}}]}]})"));
}

TEST_F(ExportTest, IohFilesOfOneObjectiveKeepItsSense) {
  const auto one = run(false);
  const auto files = ioh_files({&one, 1});
  EXPECT_EQ(files.at("nsga2/data_f1_attention_search_brown/IOHprofiler_f1_DIM6.dat"),
            "evaluations raw_y raw_y_best trained seconds\n"
            "1 0.5 0.5 1 1.25\n2 0.25 0.5 2 3.25\n3 0.5 0.5 2 3.25\n4 -4 0.5 3 3.75\n");
  const auto meta =
      nlohmann::json::parse(files.at("nsga2/IOHprofiler_f1_attention_search_brown.json"));
  EXPECT_EQ(meta["maximization"], true);
  EXPECT_EQ(meta["scenarios"][0]["runs"][0]["best"],
            nlohmann::json::parse(R"({"evals": 1, "y": 0.5, "x": [1, 0, 0, 0, 0, 0.1]})"));
}

TEST_F(ExportTest, WhatConstraintsRejectedHasNoLineInIohFiles) {
  const auto one = run(false, 7, "rejected", 100, true);
  const auto files = ioh_files({&one, 1});
  EXPECT_EQ(files.at("nsga2/data_f1_attention_search_brown/IOHprofiler_f1_DIM6.dat"),
            "evaluations raw_y raw_y_best trained seconds\n"
            "1 0.5 0.5 1 1.25\n2 0.25 0.5 2 3.25\n3 0.5 0.5 2 3.25\n");
}

TEST_F(ExportTest, WhatConstraintsRejectedIsAnInfeasibleTrial) {
  const auto one = run(false, 7, "rejected", 100, true);
  const auto text = optuna_journal({&one, 1});
  EXPECT_THAT(text, HasSubstr(R"("state":1,"value":-4.0)"));
  EXPECT_THAT(text, HasSubstr(R"("status":"rejected","reason":"flops = 5e+06, must be <= 4e+06")"));
  EXPECT_THAT(text, HasSubstr(R"("system_attrs":{"constraints":[1.0]})"));
  EXPECT_THAT(text, HasSubstr(R"("system_attrs":{"constraints":[0.0]})"));
  EXPECT_THAT(text, Not(HasSubstr(R"("state":3)")));
}

TEST_F(ExportTest, OtherSettingsOfAnAlgorithmAreAnotherFolder) {
  auto both = runs(true);
  both[1].config["algorithm"]["population"] = 4;
  const auto files = ioh_files(both);
  EXPECT_EQ(files.size(), 4U);
  const auto meta =
      nlohmann::json::parse(files.at("nsga2-2/IOHprofiler_f1_attention_search_brown.json"));
  EXPECT_EQ(meta["algorithm"]["name"], "nsga2-2");
  EXPECT_EQ(meta["algorithm"]["info"], "population=4");
}

TEST_F(ExportTest, OptunaJournalHasOneLinePerAsk) {
  auto one = run(false);
  one.asks.erase(one.asks.begin() + 1);
  for (auto& evaluation : one.evaluations) {
    for (auto& point : evaluation.curve) point.valid.nll = 0;
  }
  const auto record = [](const std::string& times, const std::string& result,
                         const std::string& position, const std::string& attributes,
                         const std::string& curve) {
    const auto choice = [](const std::string& gene, const std::string& options) {
      return "\"" + gene +
             R"(":"{\"name\":\"CategoricalDistribution\",\"attributes\":{\"choices\":[)" + options +
             "]}}\",";
    };
    return R"({"op_code":4,"worker_id":"attnas","study_id":0,)" + times + R"(,"state":)" + result +
           R"(,"values":null,"distributions":{)" + choice("similarity", R"(\"cosine\",\"dot\")") +
           choice("normalization", R"(\"softmax\")") + choice("gating", R"(\"none\")") +
           choice("temperature", R"(\"fixed\",\"learned\")") +
           choice("bias", R"(\"bias\",\"no_bias\")") +
           R"("attention_dropout":"{\"name\":\"FloatDistribution\",\"attributes\":)"
           R"({\"step\":null,\"low\":0.0,\"high\":0.3,\"log\":false}}"},"params":{)" +
           position + R"(},"user_attrs":{)" + attributes +
           R"(},"system_attrs":{},"intermediate_values":{)" + curve + "}}\n";
  };
  const std::string a =
      R"("similarity":1.0,"normalization":0.0,"gating":0.0,"temperature":0.0,"bias":0.0,)"
      R"("attention_dropout":0.1)";
  const std::string label =
      R"("candidate":"dot|softmax|none|fixed|bias|0.1","label":"the \"usual\", a","status":"ok",)"
      R"("reason":"",)";
  EXPECT_EQ(optuna_journal({&one, 1}),
            R"({"op_code":0,"worker_id":"attnas","study_name":"small, seed 7","directions":[2]})"
            "\n"
            R"({"op_code":3,"worker_id":"attnas","study_id":0,)"
            R"("system_attr":{"study:metric_names":["accuracy"]}})"
            "\n"
            R"({"op_code":2,"worker_id":"attnas","study_id":0,)"
            R"("user_attr":{"function":"attention_search brown"}})"
            "\n"
            R"({"op_code":2,"worker_id":"attnas","study_id":0,)"
            R"("user_attr":{"algorithm":{"name":"nsga2","population":2}}})"
            "\n" +
                record(R"("datetime_start":"2026-01-31T23:59:59.000000",)"
                       R"("datetime_complete":"2026-02-01T00:00:00.250000")",
                       R"(1,"value":0.5)", a, label + R"("batch":0,"replicates":1,"reused":false)",
                       R"("5":1.0)") +
                record(R"("datetime_start":"2026-02-01T00:00:00.250000",)"
                       R"("datetime_complete":"2026-02-01T00:00:00.250000")",
                       R"(1,"value":0.5)", a, label + R"("batch":1,"replicates":1,"reused":true)",
                       R"("5":1.0)") +
                record(R"("datetime_start":"2026-02-01T00:00:20.000000",)"
                       R"("datetime_complete":"2026-02-01T00:00:20.500000")",
                       R"(3,"value":null)",
                       R"("similarity":1.0,"normalization":0.0,"gating":0.0,"temperature":1.0,)"
                       R"("bias":0.0,"attention_dropout":0.2)",
                       R"("candidate":"dot|softmax|none|learned|bias|0.2",)"
                       R"("label":"dot|softmax|none|learned|bias|0.2","status":"diverged",)"
                       R"("reason":"not finite","batch":1,"replicates":1,"reused":false)",
                       ""));
}

TEST_F(ExportTest, OptunaJournalHasOneStudyPerRun) {
  std::vector<RunSummary> both;
  both.push_back(run(true, 7, "one"));
  both.push_back(run(true, 7, "two"));
  both[1].evaluations[0].measured.erase("started");
  const auto text = optuna_journal(both);
  EXPECT_THAT(text, HasSubstr(R"("study_name":"small, seed 7","directions":[1,2]})"));
  EXPECT_THAT(text, HasSubstr(R"x("study_name":"small, seed 7 (2)","directions":[1,2]})x"));
  EXPECT_THAT(text, HasSubstr(R"("value":null,"values":[32.0,0.25])"));
  EXPECT_THAT(text, HasSubstr(R"("study_id":1,"datetime_start":null,"state":1)"));
}

TEST_F(ExportTest, FolderIsReplacedWholeOrRefused) {
  const fs::path folder = folder_ / "export" / "";
  write_folder(folder, {{"a.txt", "old"}, {"in/b.txt", "old"}});
  write_folder(folder, {{"a.txt", "new"}, {"in/b.txt", "new"}, {"c.txt", "new"}});
  EXPECT_EQ(read(folder / "a.txt"), "new");
  EXPECT_EQ(read(folder / "in/b.txt"), "new");
  const auto target = (folder_ / "export").string();
  EXPECT_EQ(refusal_of([&] {
              write_folder(folder, {{"a.txt", "x"}, {"in/b.txt", "x"}});
            }),
            target + " holds c.txt, which would be lost; remove the folder or give another");
  EXPECT_EQ(read(folder / "a.txt"), "new");
  EXPECT_EQ(refusal_of([&] { write_folder(folder / "a.txt", {}); }),
            target + "/a.txt is a file, must be a folder");
  try {
    write_folder(folder / "a.txt" / "b", {{"c", "text"}});
    FAIL() << "a file was taken for a folder";
  } catch (const fs::filesystem_error& error) {
    EXPECT_EQ(error.path1(), target + "/a.txt/b");
    EXPECT_EQ(error.code(), std::errc::not_a_directory);
  }
  EXPECT_FALSE(fs::exists(target + ".tmp"));
}

}  // namespace
}  // namespace nas
