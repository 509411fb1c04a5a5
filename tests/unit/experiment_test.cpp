#include "study/reader/experiment.hpp"

#include "core/installed.hpp"
#include "core/temporary_folder.hpp"
#include "experiment_fixture.hpp"
#include "places.hpp"
#include "prelude.hpp"
#include "study/reader/engines.hpp"
#include "study/session/session.hpp"

namespace nas {
namespace {

using Integers = std::vector<std::int64_t>;
using ::testing::Contains;

TEST_F(ExperimentTest, AWarmUpIsShortenedWhereAnOverrideShortensTheTrainingRun) {
  const std::string file = "training: {steps: 1000, warmup_steps: 100}\n";
  const auto shortened = load(file, {"training.steps=50"});
  EXPECT_EQ(shortened.training.get<Integer>("warmup_steps"), 5);
  EXPECT_EQ(shortened.notes, Texts{"training.warmup_steps = 100 is shortened to 5, a tenth of "
                                   "training.steps = 50"});
  EXPECT_EQ(shortened.resolved["training"]["warmup_steps"], 5);
  const auto fits = load(file, {"training.steps=100"});
  EXPECT_EQ(fits.training.get<Integer>("warmup_steps"), 100);
  EXPECT_TRUE(fits.notes.empty());
  EXPECT_EQ(mistakes(file, {"training.steps=50", "training.warmup_steps=60"}),
            "command line: training.warmup_steps = 60, must be <= training.steps = 50");
}

TEST_F(ExperimentTest, ValidationsThatNeverComeAreSaid) {
  const std::string file =
      "training: {steps: 1000, checkpoints: [100, 500], early_stop_after: 400}\n";
  EXPECT_TRUE(load(file).notes.empty());
  EXPECT_EQ(
      load(file, {"training.steps=500"}).notes,
      Texts{"training.early_stop_after = 400 stops no candidate: training.checkpoints has no step "
            "from there on before the last one"});
  const auto cut = load(file, {"training.steps=300", "training.early_stop_after=100"});
  EXPECT_EQ(cut.notes, Texts{"training.checkpoints beyond training.steps = 300 are left out"});
  EXPECT_EQ(cut.training.get<std::vector<Integer>>("checkpoints"), std::vector<Integer>{100});
  EXPECT_TRUE(recorded_experiment(cut.resolved).notes.empty());
}

TEST_F(ExperimentTest, AnEmptySectionOfTheCommandLineIsNotOneOfDefaults) {
  for (const std::string section : {"retest", "fidelity", "training"}) {
    const auto refused = "command line: " + section + " is empty, must be a map of settings";
    EXPECT_EQ(mistakes("", {section + "="}), refused);
    EXPECT_EQ(mistakes("training: {steps: 9}\n", {section + "="}), refused);
  }
  EXPECT_EQ(mistakes("", {"baseline="}),
            "command line: baseline is empty, must be a mechanism, or a map of settings");
  EXPECT_EQ(mistakes("space: {bias: true}\n", {"space="}),
            "command line: space = (empty), must be a map of genes");
  EXPECT_EQ(load("retest:\n").retest.get<Integer>("replicates"), 5);
}

TEST_F(ExperimentTest, AClusterChangesNothingOfARunButWhoMeasures) {
  const auto alone = load("");
  EXPECT_FALSE(has_cluster(alone));
  EXPECT_FALSE(alone.resolved.contains("cluster")) << "records are as before there was one";
  const auto elsewhere = load("cluster: {engine: dask, silence: 5}\n");
  EXPECT_TRUE(has_cluster(elsewhere));
  EXPECT_EQ(elsewhere.resolved["cluster"]["silence"], 5.0);
  EXPECT_EQ(elsewhere.resolved["cluster"]["grace"], 25.0);
  EXPECT_EQ(recorded_experiment(elsewhere.resolved).resolved, elsewhere.resolved);
  EXPECT_EQ(differing_keys(alone.resolved, elsewhere.resolved), Texts{});
  EXPECT_EQ(differing_keys(elsewhere.resolved, alone.resolved), Texts{});
  EXPECT_FALSE(has_cluster(load("cluster: {engine: dask}\n", {"cluster.engine=''"})));
}

TEST_F(ExperimentTest, TheDeviceOfAClusterIsThatOfTheRunsFirstResult) {
  const TemporaryFolder folder;
  Store store(folder.path() / "store.sqlite");
  const auto any = load("cluster: {engine: dask}\n");
  Evaluation evaluation;
  evaluation.id = "here";
  evaluation.measured = {{"device", "cpu"}};
  store.add({evaluation});
  evaluation.id = "of another run";
  evaluation.measured = {{"model", "slide rule"}, {"reused_from", "runs/x"}};
  store.add({evaluation});
  EXPECT_EQ(device_of_workers(any, store), "auto");
  evaluation.id = "of a worker";
  evaluation.measured = {{"model", "abacus"}};
  store.add({evaluation});
  EXPECT_EQ(device_of_workers(any, store), "abacus");
  EXPECT_EQ(device_of_workers(load("cluster: {engine: dask, device: mixed}\n"), store), "mixed");
}

TEST_F(ExperimentTest, AnEngineIsAFileOfTheProgramsOrACommand) {
  const auto command = engine_command(load("cluster: {engine: dask}\n"));
  ASSERT_EQ(command.size(), 3U);
  EXPECT_TRUE(command.back().ends_with("python/attnas/engines/dask.py")) << command.back();
  EXPECT_EQ(engine_command(load("cluster: {command: [my_engine, a b]}\n")),
            (Texts{"my_engine", "a b"}));
  EXPECT_THAT(mistakes("cluster: {engine: dusk}\n"),
              AllOf(StartsWith("a.yaml:1:19: cluster.engine: unknown engine 'dusk'; did you mean "
                               "dask? Known: "),
                    HasSubstr("dask")));
}

TEST_F(ExperimentTest, ATextInPlaceOfACorpusIsRefusedWithTheRightForm) {
  EXPECT_THAT(mistakes("data: {corpus: mytext.txt}\n"),
              EndsWith("; for a text of your own: data: {corpus: text_file, path: "
                       "mytext.txt}"));
  EXPECT_THAT(mistakes("data: texts/mine\n"), HasSubstr("path: texts/mine}"));
  EXPECT_THAT(mistakes("data: {corpus: brwn}\n"), Not(HasSubstr("a text of your own")));
}

TEST_F(ExperimentTest, ATextThatIsNotThereIsNamedWithItsPlace) {
  write("folder/a.txt", "text");
  EXPECT_EQ(mistakes("data:\n  corpus: text_file\n  path: " + path("folder") + "\n"),
            "a.yaml:3:9: data.path = folder, must be a text file, is a folder");
  EXPECT_EQ(mistakes("data: {corpus: text_file, path: /dev/zero}\n"),
            "a.yaml:1:33: data.path = /dev/zero, must be a text file, is a device");
  EXPECT_EQ(mistakes("data: {corpus: text_file, train: none.txt}\n"),
            "a.yaml:1:34: data.train = none.txt, must be a text file, there is none" +
                places_of_file("none.txt", path("a.yaml")));
  EXPECT_EQ(mistakes("data: {corpus: text_file, path: " + path("folder/a.txt") + "}\n"), "");
}

TEST_F(ExperimentTest, AnEmptyFileIsThePapersSearch) {
  const auto experiment = load("");
  EXPECT_EQ(experiment.name, "a");
  EXPECT_EQ(experiment.seed, 42U);
  EXPECT_EQ(experiment.semantics, Semantics::corrected);
  EXPECT_EQ(experiment.problem, "attention_search");
  EXPECT_EQ(objective_names(experiment), Texts{"perplexity"});
  EXPECT_EQ(experiment.corpus, "wikitext-2");
  EXPECT_EQ(experiment.algorithm, "evo_ga");
  EXPECT_EQ(experiment.population, 12);
  EXPECT_EQ(experiment.baseline, "dot|softmax|none|fixed|bias|0.1");
  EXPECT_EQ(experiment.model.get<Integer>("width"), 128);
  EXPECT_EQ(experiment.training.get<Integer>("steps"), 5000);
  EXPECT_EQ(experiment.algorithm_settings.get<Integer>("generations"), 10);
  EXPECT_EQ(experiment.data.get<Integer>("vocabulary"), 10000);
}

TEST_F(ExperimentTest, EverySectionIsRead) {
  const auto experiment = load(
      "name: mine\nseed: 7\nsemantics: published\nobjectives: [flops, perplexity]\n"
      "baseline: cosine|relu_norm|highway|learned|no_bias|0\nmodel: {width: 64}\n"
      "data: {corpus: stand_in_corpus, path: x}\ntraining: {steps: 10, checkpoints: [5]}\n"
      "evaluation: {workers: 3, device: 'cuda:1'}\n"
      "algorithm: {name: stand_in_search, population: 5, rate: 0.5}\n");
  EXPECT_EQ(experiment.name, "mine");
  EXPECT_EQ(experiment.seed, 7U);
  EXPECT_EQ(experiment.semantics, Semantics::published);
  EXPECT_EQ(objective_names(experiment), (Texts{"flops", "perplexity"}));
  EXPECT_EQ(experiment.model.get<Integer>("width"), 64);
  EXPECT_EQ(experiment.corpus, "stand_in_corpus");
  EXPECT_EQ(experiment.data.get<std::string>("path"), "x");
  EXPECT_EQ(experiment.data.get<Integer>("lines"), 100);
  EXPECT_EQ(experiment.training.get<Integers>("checkpoints"), Integers{5});
  EXPECT_EQ(experiment.evaluation.get<std::string>("workers"), "3");
  EXPECT_EQ(experiment.evaluation.get<std::string>("device"), "cuda:1");
  EXPECT_EQ(experiment.algorithm, "stand_in_search");
  EXPECT_EQ(experiment.population, 5);
  EXPECT_EQ(experiment.algorithm_settings.get<double>("rate"), 0.5);
}

TEST_F(ExperimentTest, OneTextStandsForAPlugInOrAList) {
  const auto experiment =
      load("problem: attention_search\nobjectives: flops\nalgorithm: stand_in_search\n");
  EXPECT_EQ(experiment.problem, "attention_search");
  EXPECT_EQ(objective_names(experiment), Texts{"flops"});
  EXPECT_EQ(experiment.algorithm, "stand_in_search");
}

TEST_F(ExperimentTest, AnotherAlgorithmKeepsThePopulation) {
  write("base.yaml", "algorithm: {population: 9, generations: 3}\n");
  const auto experiment = load("extends: base.yaml\nalgorithm: {name: stand_in_search}\n");
  EXPECT_EQ(experiment.population, 9);
  EXPECT_FALSE(experiment.algorithm_settings.contains("generations"));
}

TEST_F(ExperimentTest, EveryMistakeIsReportedWithItsPlace) {
  EXPECT_EQ(
      mistakes("seed: -1\nsemantic: corrected\nmodel:\n  widht: 64\n  heads: 0\n"
               "training:\n  learning_rate: 0\n  schedule: cosin\n"
               "algorithm:\n  crossover: 1.4\n  population: -1\n",
               {"evaluation.threads=two"}),
      "a.yaml:1:7: seed = -1, must be >= 0\n"
      "a.yaml:2:1: semantic: unknown key; did you mean semantics? Known: name, seed, "
      "semantics, mechanisms, controls, rates, plugins, baseline, problem, objectives, "
      "constraints, space, model, data, training, evaluation, budget, fidelity, algorithm, "
      "retest, cluster\n"
      "a.yaml:4:3: model.widht: unknown key; did you mean width? Known: layers, width, heads, "
      "context, feed_forward, dropout\n"
      "a.yaml:5:10: model.heads = 0, must be >= 1\n"
      "a.yaml:7:18: training.learning_rate = 0, must be > 0\n"
      "a.yaml:8:13: training.schedule = cosin, must be one of constant, cosine, linear, "
      "wsd; did you mean cosine?\n"
      "a.yaml:10:14: algorithm.crossover = 1.4, must be in [0, 1]\n"
      "a.yaml:11:15: algorithm.population = -1, must be in [0, 1e+06]\n"
      "command line: evaluation.threads = two, must be an integer, got text");
}

TEST_F(ExperimentTest, UnknownPlugInsNameTheNearest) {
  EXPECT_EQ(mistakes("data:\n  corpus: wikitext2\n  anything: 1\n").substr(0, 52),
            "a.yaml:2:11: data.corpus: unknown corpus 'wikitext2'");
  const auto text = mistakes("algorithm:\n  name: stand_in_serch\n  rate: 5\n  population: -1\n");
  EXPECT_EQ(text.substr(0, 63), "a.yaml:2:9: algorithm.name: unknown algorithm 'stand_in_serch';");
  EXPECT_NE(text.find(" did you mean stand_in_search? Known: "), std::string::npos) << text;
  EXPECT_NE(text.find("a.yaml:4:15: algorithm.population = -1, must be in [0, 1e+06]"),
            std::string::npos)
      << text;
  EXPECT_EQ(mistakes("problem: atention_search\n").substr(0, 50),
            "a.yaml:1:10: problem.type: unknown problem 'atenti");
  EXPECT_EQ(mistakes("data: {corpus: [x]}\n"),
            "a.yaml:1:16: data.corpus = [x], must be text, got a list");
  EXPECT_EQ(mistakes("data: [x]\n"), "a.yaml:1:7: data = [x], must be a map of settings");
}

TEST_F(ExperimentTest, PlugInSettingsAreChecked) {
  EXPECT_EQ(mistakes("data: {corpus: stand_in_corpus}\n"),
            "a.yaml:1:7: data.path: is missing, must be text (folder of the text)");
  EXPECT_EQ(mistakes("algorithm: {name: stand_in_search, schedule: fallin}\n"),
            "a.yaml:1:46: algorithm.schedule = fallin, must be one of constant, falling; did you "
            "mean falling?");
  EXPECT_EQ(mistakes("algorithm: {name: stand_in_search, crossover: 0.5}\n"),
            "a.yaml:1:36: algorithm.crossover: unknown key, known: name, population, informed, "
            "informed_share, decomposition, weights, rate, schedule");
}

TEST_F(ExperimentTest, FilesLieBesideTheConfigurationThatNamesThem) {
  const auto text = write("texts/mine.txt", "a text");
  (void)write("base.yaml", "data: {corpus: stand_in_corpus, path: texts/mine.txt}\n");
  const auto path = [this](const std::string& name, const std::string& config,
                           const Texts& overrides = {}) {
    return load_experiment(write(name, config), overrides).data.get<std::string>("path");
  };
  EXPECT_EQ(path("a.yaml", "extends: base.yaml\n"), text);
  EXPECT_EQ(path("deeper/b.yaml", "extends: ../base.yaml\n"), text);
  EXPECT_EQ(path("c.yaml", "data: {corpus: stand_in_corpus, path: " + text + "}\n"), text);
  // Given on the command line, it counts from the current folder; what is nowhere stays as written.
  EXPECT_EQ(path("d.yaml", "extends: base.yaml\n", {"data.path=texts/mine.txt"}), "texts/mine.txt");
  EXPECT_EQ(path("e.yaml", "data: {corpus: stand_in_corpus, path: texts/other.txt}\n"),
            "texts/other.txt");
}

TEST_F(ExperimentTest, AFileWhosePathNoRecordCanHoldIsRefused) {
  (void)write("caf\xe9/mine.txt", "a text");
  const auto config =
      write("caf\xe9/a.yaml", "data: {corpus: stand_in_corpus, path: mine.txt, sise: 3}\n");
  EXPECT_THAT(
      error_of([&] { (void)load_experiment(config, {}); }),
      AllOf(HasSubstr("caf\xe9/a.yaml:1:39: data.path = mine.txt, found as caf\xe9/mine.txt, "
                      "must have a path in UTF-8"),
            HasSubstr("data.sise: unknown key")));
}

TEST_F(ExperimentTest, FilesThatComeWithTheProgramsAreFoundFromAnyFolder) {
  const auto config =
      write("a.yaml", "data: {corpus: stand_in_corpus, path: configs/smoke.yaml}\n");
  const auto before = fs::current_path();
  const auto path = [&config](const fs::path& folder) {
    fs::current_path(folder);
    return load_experiment(config, {}).data.get<std::string>("path");
  };
  const auto here = path(source_folder());
  const auto elsewhere = path(fs::path(config).parent_path());
  fs::current_path(before);
  EXPECT_EQ(here, "configs/smoke.yaml");
  EXPECT_EQ(elsewhere, source_folder() + "/configs/smoke.yaml");
}

TEST_F(ExperimentTest, AComparisonIsNoSearch) {
  EXPECT_EQ(mistakes("algorithms: [stand_in_search]\n"),
            "a.yaml:1:13: algorithms: a search has one, under the key algorithm; nas-compare "
            "compares several");
}

TEST_F(ExperimentTest, RungsAreRecorded) {
  const std::string asha = "algorithm: {name: nsga2_async}\nobjectives: [perplexity, flops]\n";
  const std::string rungs = "fidelity: {rungs: [50, 150]}\n";
  const auto read = load(asha + rungs, {"training.steps=400"});
  EXPECT_EQ(read.resolved["fidelity"]["promote"], "asha");
  EXPECT_EQ(read.notes, Texts{});
  EXPECT_EQ(recorded_experiment(read.resolved).resolved, read.resolved);
  const auto without = load(asha, {"training.steps=400"});
  EXPECT_FALSE(without.resolved.contains("fidelity")) << "records are as before there was one";
  EXPECT_NE(differing_keys(without.resolved, read.resolved), Texts{});
  const auto more = load(asha + rungs, {"training.steps=400", "fidelity.checkpoint_space=5"});
  EXPECT_EQ(differing_keys(read.resolved, more.resolved), Texts{});
  EXPECT_EQ(load(asha + rungs, {"training.steps=601"}).notes,
            Texts{"fidelity: steps 150 and 601 are more than 4 times apart: what is best at the "
                  "first may not be at the second"});
  auto former = read.resolved;
  former["fidelity"]["audit"] = 0.5;  // as version 0.1.0 had it
  EXPECT_EQ(differing_keys(former, read.resolved), Texts{});
  EXPECT_EQ(recorded_experiment(former).resolved, read.resolved);
}

TEST_F(ExperimentTest, DecompositionMakesOneObjectiveOfSeveral) {
  const std::string two = "objectives: [perplexity, flops]\n";
  const auto experiment = load(two +
                               "algorithm: {name: cmaes, decomposition: tchebycheff, weights: [3, "
                               "1]}\n");
  EXPECT_EQ(experiment.decomposition->method, "tchebycheff");
  EXPECT_EQ(experiment.decomposition->weights, (std::vector<double>{0.75, 0.25}));
  EXPECT_EQ(experiment.search_facts.num_objectives, 1U);
  EXPECT_EQ(load(two + "algorithm: {name: cmaes, decomposition: bi}\n").decomposition->weights,
            (std::vector<double>{0.5, 0.5}));
}

TEST_F(ExperimentTest, SettingsAreFittedToTheSearch) {
  const std::string two = "objectives: [perplexity, flops]\n";
  const auto nsga2 = load(two + "algorithm: nsga2\n");
  EXPECT_EQ(nsga2.population, 12);
  EXPECT_DOUBLE_EQ(nsga2.algorithm_settings.get<double>("mutation"), 1.0 / 6);
  EXPECT_EQ(nsga2.resolved["algorithm"]["mutation"], 1.0 / 6);
  const auto moead = load(two + "algorithm: moead\n");
  EXPECT_EQ(moead.algorithm_settings.get<Integer>("neighbours"), 11);
  EXPECT_EQ(moead.algorithm_settings.get<std::string>("weight_generation"), "grid");
  const auto cmaes = load("algorithm: cmaes\n");
  EXPECT_EQ(cmaes.search_facts.dimension, 18U);
  EXPECT_EQ(cmaes.population, 12);  // 4 + 3 ln 18
}

TEST_F(ExperimentTest, TheNameIsOneOfAFolder) {
  EXPECT_EQ(
      mistakes("name: a/b\n"),
      "a.yaml:1:7: name = a/b, must be the name of a folder: no '/', no '.' in front, all of it "
      "printable, at most 200 bytes");
  EXPECT_THAT(mistakes("name: " + std::string(201, 'a') + "\n"), HasSubstr("at most 200 bytes"));
  for (const auto* name : {"..", R"("x\e]0;owned\a")", R"("a\nb")", R"("a\x9b2J")"}) {
    EXPECT_THAT(mistakes("name: " + std::string(name) + "\n"), HasSubstr("all of it printable"))
        << name;
  }
}

TEST_F(ExperimentTest, TheBaselineIsAMechanism) {
  EXPECT_EQ(mistakes("baseline: dot|sofmax|none|fixed|bias|0.1\n"),
            "a.yaml:1:11: baseline: mechanism 'dot|sofmax|none|fixed|bias|0.1': unknown "
            "normalization 'sofmax'; did you mean softmax? Known: relu_norm, sigmoid_norm, "
            "softmax, sparsemax, topk_quarter");
}

TEST_F(ExperimentTest, ABaselineIsATextOrAMap) {
  const auto experiment = load("baseline: {mechanism: dot|softmax|none|fixed|bias|0}\n");
  EXPECT_EQ(experiment.baseline, "dot|softmax|none|fixed|bias|0");
  EXPECT_EQ(load(experiment.resolved.dump()).resolved, experiment.resolved);
  EXPECT_THAT(mistakes("baseline:\n  mechanism: dot|sofmax\n"),
              HasSubstr("a.yaml:2:14: baseline: mechanism 'dot|sofmax': 2 f"));
}

TEST_F(ExperimentTest, RatesAreThoseOfBaselineControlsAndMechanisms) {
  const std::string given = "rates: [baseline 0.004, no mixer 1e-2, window 4 0.008, mqa 2e-3]\n";
  const auto experiment = load(given);
  EXPECT_EQ(experiment.rates, (std::map<std::string, double>{{"2*attn{kv_heads=1}", 2e-3},
                                                             {"baseline", 0.004},
                                                             {"no mixer", 0.01},
                                                             {"window 4", 0.008}}));
  EXPECT_EQ(load(experiment.resolved.dump()).rates, experiment.rates);
  EXPECT_TRUE(load(given, {"rates=[]"}).rates.empty());
  const auto other = load(given, {"training.learning_rate=0.001"});
  EXPECT_TRUE(other.rates.empty());
  EXPECT_EQ(other.notes, Texts{"rates is left out, since training.learning_rate is given"});
  EXPECT_EQ(load("", {"training.learning_rate=0.001", "rates=[baseline 0.002]"}).rates.size(), 1U);
  EXPECT_EQ(mistakes("rates: [baseline, window 4 -1, mqa 1e-3, 2*mqa 2e-3]\n"),
            "a.yaml:1:9: rates = baseline, must be a name and a number > 0\n"
            "a.yaml:1:19: rates = window 4 -1, must be a name and a number > 0\n"
            "a.yaml:1:42: rates = 2*mqa 2e-3, is given twice");
  EXPECT_THAT(mistakes("rates: [sofmax 1e-3]\n"), HasSubstr("did you mean softmax?"));
}

TEST_F(ExperimentTest, RecordsOfOneRateStaySo) {
  const auto recorded = load("mechanisms: mqa\n").resolved;
  EXPECT_TRUE(recorded_experiment(recorded).retest.get<bool>("tune"));
  EXPECT_EQ(load("mechanisms: mqa\n", {"retest.tune=false"}).resolved["retest"]["tune"], false);
}

TEST_F(ExperimentTest, ARetestIsThereWhereItsSectionIs) {
  EXPECT_EQ(load("").retest.get<Integer>("replicates"), 0);
  EXPECT_EQ(load("retest: {top: 2}\n").retest.get<Integer>("replicates"), 5);
  EXPECT_EQ(load("retest: {replicates: 0}\n").resolved["retest"].dump(),
            R"({"confidence":0.95,"replicates":0,"top":3})");
}

TEST_F(ExperimentTest, ListedMechanismsAreTrainedInPlaceOfASearch) {
  const auto experiment = load(
      "mechanisms: [dot|sparsemax|none|fixed|bias|0.1, 2*mqa]\n"
      "objectives: [perplexity, accuracy]\n"  // more than the default algorithm takes
      "space: {similarity: [dot], normalization: [softmax], gating: [none], temperature: [fixed], "
      "bias: [true], attention_dropout: 0.1}\n"
      "training: {early_stop_after: 50}\n");
  EXPECT_EQ(experiment.mechanisms,
            (Texts{"dot|sparsemax|none|fixed|bias|0.1", "2*attn{kv_heads=1}"}))
      << "by canonical name, whether in the space or not";
  EXPECT_EQ(experiment.retest.get<Integer>("replicates"), 5);
  EXPECT_EQ(experiment.training.get<Integer>("early_stop_after"), 0);
  EXPECT_TRUE(experiment.training.get<bool>("score_test"));
  EXPECT_EQ(experiment.notes,
            Texts{"training.early_stop_after is left out, since mechanisms are listed"});
  EXPECT_EQ(load("mechanisms: 2*mqa\nevaluation: {replicates: 2}\nbudget: {asks: 9}\n",
                 {"budget.asks=10", "evaluation.replicates=3", "space.bias=true"})
                .notes,
            (Texts{"budget is left out, since mechanisms are listed",
                   "evaluation.replicates is left out, since mechanisms are listed"}))
      << "of what the command line says";
  const auto& resolved = experiment.resolved;
  EXPECT_EQ(resolved["mechanisms"], experiment.mechanisms);
  for (const auto* section : {"algorithm", "budget", "space"}) {
    EXPECT_FALSE(resolved.contains(section)) << section;
  }
  EXPECT_FALSE(resolved["evaluation"].contains("replicates"));
  EXPECT_EQ(load(resolved.dump()).resolved, resolved);
  EXPECT_EQ(load("mechanisms: 2*mqa\nretest: {replicates: 3}\n").retest.get<Integer>("replicates"),
            3);
  EXPECT_FALSE(load("").resolved.contains("mechanisms"));
}

TEST_F(ExperimentTest, TheRecordOfListedMechanismsSaysThatTheyMatchInParameters) {
  const auto matched = load("mechanisms: 2*mqa\nspace: {match_parameters: true, gating: none}\n");
  EXPECT_EQ(matched.resolved["space"].dump(), R"({"match_parameters":true})");
  const auto recorded = recorded_experiment(matched.resolved);
  EXPECT_TRUE(recorded.match_parameters);
  EXPECT_EQ(recorded.resolved, matched.resolved);
}

TEST_F(ExperimentTest, ListedMechanismsAreModelsEachOnceAndNotTheBaseline) {
  EXPECT_THAT(mistakes("mechanisms:\n  - dot|sofmax|none|fixed|bias|0.1\n  - 2*attn{kv=1}\n"),
              AllOf(HasSubstr("a.yaml:2:5: mechanisms: mechanism 'dot|sofmax|none|fixed|bias|0.1': "
                              "unknown normalization 'sofmax'"),
                    HasSubstr("a.yaml:3:5: mechanisms: model '2*attn{kv=1}': character 8: unknown "
                              "gene of mixer attn 'kv'")));
  EXPECT_EQ(
      mistakes("mechanisms: [2*mqa, dot|softmax|none|fixed|bias|0.1]\n",
               {R"(mechanisms=["2*mqa", "2*attn{kv_heads=1}"])"}),
      "command line: mechanisms = 2*attn{kv_heads=1}, must be left out: in effect it is 2*mqa, "
      "which is trained anyway");
  EXPECT_THAT(mistakes("mechanisms: window=4\n"), HasSubstr("in effect it is the baseline"));
  EXPECT_EQ(mistakes("mechanisms: [2*mqa, 2*mqa]\n"),
            "a.yaml:1:21: mechanisms = 2*mqa, is given twice");
  EXPECT_EQ(
      mistakes("mechanisms: [2*mqa, dot|softmax|none|fixed|bias|0.1]\n"),
      "a.yaml:1:21: mechanisms = dot|softmax|none|fixed|bias|0.1, must be left out: in effect "
      "it is the baseline, which is trained anyway");
  EXPECT_EQ(mistakes("mechanisms: mqa{conv=4}\n"),
            "a.yaml:1:13: mechanisms: 'mqa{conv=4}' has 1 layer, must have model.layers = 2; did "
            "you mean 2*mqa{conv=4}?");
}

TEST_F(ExperimentTest, ShorthandIsTheBaselineChanged) {
  const auto listed = load(
      "baseline: dot|softmax|highway|fixed|bias|0\n"
      "mechanisms: [mqa, sparsemax+kv_heads=1, output_gate]\n");
  EXPECT_EQ(listed.mechanisms,
            (Texts{"2*attn{kv_heads=1,gating=highway,dropout=0}",
                   "2*attn{kv_heads=1,normalization=sparsemax,gating=highway,dropout=0}",
                   "dot|softmax|output_gate|fixed|bias|0"}));
  EXPECT_EQ(listed.baseline, "dot|softmax|highway|fixed|bias|0") << "a name stays as it is";
  EXPECT_EQ(load("baseline: highway\n").baseline, "dot|softmax|highway|fixed|bias|0.1");
  EXPECT_EQ(load("mechanisms: mqa\n").mechanisms, Texts{"2*attn{kv_heads=1}"});
  EXPECT_EQ(load("algorithm: {informed_share: 0.5, informed: highway}\n").informed,
            Texts{"dot|softmax|highway|fixed|bias|0.1"});
  EXPECT_THAT(mistakes("mechanisms: softmax\n"), HasSubstr("in effect it is the baseline, which is "
                                                           "trained anyway"));
  EXPECT_THAT(mistakes("mechanisms: spasemax\n"),
              AllOf(HasSubstr("a.yaml:1:13: mechanisms: model 'spasemax': character 1: nothing is "
                              "called 'spasemax'; did you mean sparsemax? Known: "),
                    HasSubstr(", sparsemax")));
}

TEST_F(ExperimentTest, LayeredNamesKeepTheBaselinesFrame) {
  const std::string file =
      "baseline: model{norm=rms}/2*attn{dropout=0,position=rope}\n"
      "mechanisms: ['mqa/=', 'sparsemax@1', '2*attn{position=none}', 'model{}/2*mqa']\n";
  const auto listed = load(file);
  EXPECT_EQ(listed.baseline, "model{norm=rms}/2*attn{dropout=0,position=rope}");
  const std::string frame = "model{norm=rms}/";
  EXPECT_EQ(listed.mechanisms,
            (Texts{frame + "attn{kv_heads=1,dropout=0,position=rope}/attn{dropout=0,position=rope}",
                   frame + "attn{dropout=0,position=rope}/"
                           "attn{normalization=sparsemax,dropout=0,position=rope}",
                   frame + "2*attn{dropout=0}", "2*attn{kv_heads=1}"}));
  EXPECT_EQ(recorded_experiment(listed.resolved).mechanisms, listed.mechanisms)
      << "a record's names are full, with or without a head";
  EXPECT_EQ(load("baseline: 2*attn{dropout=0}\n"
                 "algorithm: {informed_share: 0.5, informed: '2*attn{bias=no_bias}'}\n")
                .informed,
            Texts{"dot|softmax|none|fixed|no_bias|0"});
  EXPECT_THAT(mistakes(file, {R"(mechanisms=["2*="])"}), HasSubstr("in effect it is the baseline"));
  EXPECT_THAT(mistakes(file, {R"(mechanisms=["mqa/=/="])"}),
              HasSubstr("has 3 layers, must have model.layers = 2"));
  EXPECT_THAT(mistakes("baseline: =/mqa\n"),
              HasSubstr("'=' is the baseline's layer, must be written out in a full name"));
}

TEST_F(ExperimentTest, MoreMechanismsMayBeListedAndNoneLeftOut) {
  const auto listed = [this](const std::string& names) {
    return load("mechanisms: [" + names + "]\n").resolved;
  };
  const auto one = listed("2*mqa");
  EXPECT_EQ(differing_keys(one, listed("dot|sparsemax|none|fixed|bias|0.1, 2*mqa")), Texts{});
  EXPECT_EQ(differing_keys(one, listed("dot|sparsemax|none|fixed|bias|0.1")),
            Texts{"mechanisms: [\"2*attn{kv_heads=1}\"] -> "
                  "[\"dot|sparsemax|none|fixed|bias|0.1\"]"});
  EXPECT_EQ(differing_keys(one, load("mechanisms: 2*mqa\nretest: {replicates: 9}\n").resolved),
            Texts{});
  EXPECT_THAT(differing_keys(one, load("").resolved),
              Contains("mechanisms: [\"2*attn{kv_heads=1}\"] -> absent"));
}

TEST_F(ExperimentTest, ResolvedIsCompleteAndTyped) {
  const auto resolved = load("training: {weight_decay: 1}\nspace: {bias: [false]}\n").resolved;
  EXPECT_EQ(resolved["algorithm"]["name"], "evo_ga");
  EXPECT_EQ(resolved["algorithm"]["population"], 12);
  EXPECT_EQ(resolved["data"]["corpus"], "wikitext-2");
  EXPECT_EQ(resolved["problem"]["type"], "attention_search");
  EXPECT_EQ(resolved["space"]["bias"].dump(), "[false]");
  EXPECT_EQ(resolved["space"]["attention_dropout"].dump(), R"({"decimals":2,"max":0.3,"min":0.0})");
  EXPECT_EQ(resolved["training"]["weight_decay"].dump(), "1.0");
  EXPECT_EQ(resolved["training"]["learning_rate"].dump(), "0.0003");
  EXPECT_EQ(nlohmann::json::parse(resolved.dump()), resolved);
}

TEST_F(ExperimentTest, ResolvedIsAConfigurationOfTheSameExperiment) {
  const auto first = load(
      "semantics: published\nspace: {gating: [none], bias: [false]}\n"
      "objectives: [{name: flops, context: 64, as: short_flops}]\nconstraints: [parameters <= "
      "3e6]\n"
      "budget: {evaluations: 7, target: 3}\n"
      "training: {checkpoints: [1, 2], learning_rate: 1e-5}\n"
      "algorithm: {informed: [dot|softmax|none|fixed|no_bias|0.1], informed_share: 0.1}\n");
  EXPECT_EQ(load(first.resolved.dump()).resolved, first.resolved);
  EXPECT_EQ(load(first.resolved.dump(2)).resolved, first.resolved);
}

TEST_F(ExperimentTest, DifferingKeysSayOldAndNew) {
  const auto recorded = load("training: {checkpoints: [50]}\n").resolved;
  const auto given = load(
                         "seed: 1\nmodel: {width: 64}\ntraining: {checkpoints: [50, 60]}\n"
                         "algorithm: {name: stand_in_search}\n")
                         .resolved;
  EXPECT_EQ(differing_keys(recorded, recorded), Texts{});
  const auto keys = differing_keys(recorded, given);
  const auto has = [&keys](const std::string& text) {
    return std::find(keys.begin(), keys.end(), text) != keys.end();
  };
  EXPECT_TRUE(has("seed: 42 -> 1"));
  EXPECT_TRUE(has("model.width: 128 -> 64"));
  EXPECT_TRUE(has("training.checkpoints: [50] -> [50,60]"));
  EXPECT_TRUE(has("algorithm.name: \"evo_ga\" -> \"stand_in_search\""));
  EXPECT_TRUE(has("algorithm.rate: absent -> 0.25"));
  EXPECT_TRUE(has("algorithm.generations: 10 -> absent"));
}

TEST_F(ExperimentTest, DifferencesWithoutEffectAreLeftOut) {
  const auto recorded = load("").resolved;
  const auto given = load(
                         "name: other\ntraining: {checkpoint_minutes: 1}\n"
                         "evaluation: {workers: 7, array: 2, device: cpu, keep_models: 3,\n"
                         "  retry_failed: 1, retry_crashed: 2, retry_lost: 0, failure_window: 7}\n"
                         "budget: {evaluations: 5}\n"
                         "retest: {top: 2}\n")
                         .resolved;
  EXPECT_EQ(differing_keys(recorded, given), Texts{});
  EXPECT_EQ(differing_keys(recorded, load("baseline: dot|softmax|none|fixed|bias|0\n").resolved),
            Texts{"baseline.mechanism: \"dot|softmax|none|fixed|bias|0.1\" -> "
                  "\"dot|softmax|none|fixed|bias|0\""});
  EXPECT_EQ(differing_keys(recorded, load("evaluation: {threads: 2}\n").resolved),
            Texts{"evaluation.threads: 1 -> 2"});
}

TEST_F(ExperimentTest, WhereAFileLiesIsNoDifference) {
  (void)write("mine.txt", "a text\n");
  (void)write("elsewhere/mine.txt", "a text\n");
  const auto of = [this](const std::string& settings) {
    return load("data: {corpus: text_file, " + settings + "}\n").resolved;
  };
  const auto recorded = of("path: mine.txt, valid_share: 0.2");
  EXPECT_EQ(differing_keys(recorded, of("path: elsewhere/mine.txt, valid_share: 0.2")), Texts{});
  EXPECT_EQ(differing_keys(recorded, of("path: mine.txt, valid_share: 0.3")),
            Texts{"data.valid_share: 0.2 -> 0.3"});
  EXPECT_EQ(differing_keys(of("train: mine.txt, valid: mine.txt, test: mine.txt"),
                           of("train: elsewhere/mine.txt, valid: elsewhere/mine.txt, test: "
                              "elsewhere/mine.txt")),
            Texts{});
  const auto problem = [&recorded](const char* type, const char* table) {
    auto config = recorded;
    config["problem"] = {{"type", type}, {"table", table}};
    return config;
  };
  EXPECT_EQ(differing_keys(problem("tabular", "a.table"), problem("tabular", "/b.table")), Texts{});
  EXPECT_EQ(differing_keys(problem("another", "a.table"), problem("another", "/b.table")),
            Texts{"problem.table: \"a.table\" -> \"/b.table\""})
      << "nobody knows whether its identity holds the contents";
}

// The configurations of the project.

class Configuration : public ConfigTest {
 protected:
  static Experiment load(const std::string& name) {
    return load_experiment(fs::path(source_folder()) / "configs" / (name + ".yaml"), {});
  }
};

TEST_F(Configuration, BaselineWritesTheDefaultsDown) {
  const auto defaults = load_experiment(write("empty.yaml", ""), {});
  EXPECT_EQ(differing_keys(defaults.resolved, load("ga_baseline").resolved),
            Texts{"training.checkpoints: [] -> [50,100,200,350,600,1000,1800,3000,5000]"});
}

TEST_F(Configuration, PublishedDiffersOnlyInWhatThePublishedCodeDoes) {
  EXPECT_EQ(
      differing_keys(load("ga_baseline").resolved, load("ga_published").resolved),
      (Texts{
          "algorithm.binary: \"redraw\" -> \"flip\"", "data.layout: \"standard\" -> \"published\"",
          "evaluation.repeated: \"reuse\" -> \"retrain\"",
          R"(objectives: [{"as":"perplexity","goal":"minimise","name":"perplexity","range":[]}] -> )"
          R"([{"as":"published_perplexity","goal":"minimise","name":"published_perplexity","range":[]}])",
          "semantics: \"corrected\" -> \"published\"",
          "space.attention_dropout.decimals: 2 -> -1"}));
}

}  // namespace
}  // namespace nas
