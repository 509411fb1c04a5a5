// Listed mechanisms against the baseline, with real trainings: paired seeds, verdict, resume.

#include <numbers>

#include "integration/program.hpp"
#include "store/store.hpp"

namespace nas::testing {
namespace {

constexpr const char* kSparse = "dot|sparsemax|none|fixed|bias|0.1";
constexpr const char* kShared = "attn{kv_heads=1}+swiglu";  // in no space of the configuration

class TrainTest : public ProgramTest {
 protected:
  static std::set<std::string> ids(const fs::path& folder) {
    std::set<std::string> found;
    const auto digest = results_of(folder);
    for (const auto& evaluation : digest["evaluations"]) found.insert(evaluation["id"]);
    return found;
  }
};

/// A paired t-test of two pairs, by hand: Student's t of one degree of freedom is Cauchy's.
struct TwoPairs {
  double mean, half, p;
  TwoPairs(double first, double second)
      : mean((first + second) / 2.0),
        half(std::tan(0.475 * std::numbers::pi) * std::abs(first - second) / 2.0),
        p(1.0 - 2.0 / std::numbers::pi * std::atan(std::abs(mean / ((first - second) / 2.0)))) {}
};

TEST_F(TrainTest, TheVerdictIsThatOfPairedSeeds) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-train",
                  {kSparse, kShared, config("smoke.yaml"), "retest.tune=false", "--output",
                   out.string(), "--seeds", "2", "objectives=[perplexity, flops]", "--no-report"}));
  expect_text("trained on 2 fresh seeds");
  expect_text("differences from the baseline on the validation split");
  expect_text(
      "All are trained at one learning rate. Both have too few seeds in common with the baseline "
      "for a");
  const auto found = results_of(out);
  EXPECT_TRUE(found["asks"].empty()) << "nothing is searched";
  ASSERT_EQ(found["evaluations"].size(), 6U);

  std::map<std::string, std::map<std::int64_t, nlohmann::json>> by_seed;  // of each candidate
  for (const auto& evaluation : found["evaluations"]) {
    EXPECT_EQ(evaluation["identity"], 0) << "all are trained alike, but for mechanism and seed";
    EXPECT_EQ(evaluation["status"], "ok");
    by_seed[evaluation["candidate"]][evaluation["replicate"]] = evaluation["values"];
  }
  const auto& candidates = found["retest"]["candidates"];
  ASSERT_EQ(candidates.size(), 3U);
  EXPECT_EQ(candidates[2]["role"], "baseline");
  const auto& baseline = by_seed.at(candidates[2]["candidate"]);
  const auto differences = [&](const std::string& candidate, const char* value) {
    std::vector<double> pairs;
    for (const auto& [replicate, values] : by_seed.at(candidate)) {
      pairs.push_back(values.at(value).get<double>() -
                      baseline.at(replicate).at(value).get<double>());
    }
    EXPECT_EQ(pairs.size(), 2U);
    return TwoPairs(pairs.at(0), pairs.at(1));
  };
  const auto expect_contrast = [](const nlohmann::json& record, const TwoPairs& own, double other) {
    const double holm = std::min(1.0, own.p <= other ? 2.0 * own.p : std::max(own.p, 2.0 * other));
    EXPECT_EQ(record["n"], 2);
    EXPECT_NEAR(record["difference"], own.mean, 1e-12);
    EXPECT_NEAR(record["low"], own.mean - own.half, 1e-9);
    EXPECT_NEAR(record["high"], own.mean + own.half, 1e-9);
    EXPECT_NEAR(record["p"], own.p, 1e-9);
    EXPECT_NEAR(record["p_holm"], holm, 1e-9);
  };
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string name = candidates[i]["candidate"];
    const std::string other = candidates[1 - i]["candidate"];
    EXPECT_EQ(name, i == 0 ? kSparse : kShared);
    EXPECT_EQ(candidates[i]["role"], "listed");
    EXPECT_EQ(by_seed.at(name).begin()->first, baseline.begin()->first) << "the same seeds";
    expect_contrast(candidates[i]["against_baseline"], differences(name, "test_nll"),
                    differences(other, "test_nll").p);
    expect_contrast(candidates[i]["differences"][0], differences(name, "perplexity"),
                    differences(other, "perplexity").p);
    EXPECT_TRUE(candidates[i]["differences"][1].is_null()) << "FLOPs have no noise";
    EXPECT_EQ(candidates[i]["retest"][1]["mean"], by_seed.at(name).begin()->second["flops"]);
  }
  ASSERT_TRUE(ran("nas-train", {out.string(), "--seeds", "1", "--no-report"}));
  expect_text("of each there are 2 fresh seeds, more than retest.replicates = 1: all count");
  EXPECT_EQ(results_of(out)["retest"], found["retest"]);
}

TEST_F(TrainTest, KilledAndContinuedByItsFolderEndsLikeAnUninterruptedRun) {
  const auto command = [this](const fs::path& folder, const std::string& workers) {
    return Texts{kSparse,
                 kShared,
                 config("smoke.yaml"),
                 "retest.tune=false",
                 "-o",
                 folder.string(),
                 "--seeds",
                 "3",
                 "--no-report",
                 "training.steps=100",
                 "evaluation.array=2",
                 "evaluation.workers=" + workers};
  };
  const auto whole = folder_ / "whole" / "run";
  ASSERT_TRUE(ran("nas-train", command(whole, "1")));
  const auto killed = folder_ / "killed";
  auto words = command(killed, "2");
  for (const std::string moment : {"training 2/9", "training 5/9"}) {
    kill_at(moment, "nas-train", words);
    EXPECT_FALSE(fs::exists(killed / "results.json")) << "killed too late";
    words = {killed.string(), "--no-report"};
  }
  ASSERT_TRUE(ran("nas-train", words));
  EXPECT_EQ(results_of(killed)["retest"], results_of(whole)["retest"]);
  EXPECT_EQ(canonical_export(killed), canonical_export(whole));
}

TEST_F(TrainTest, SeedsUntilADecisionAreThoseOfAnyWorkersAndOfAContinuedRun) {
  const auto command = [this](const fs::path& folder, const std::string& workers) {
    return Texts{"sparsemax",
                 "additive+highway",
                 config("smoke.yaml"),
                 "retest.tune=false",
                 "-o",
                 folder.string(),
                 "--until",
                 "2%",
                 "--seeds",
                 "7",
                 "--no-report",
                 "training.steps=60",
                 "evaluation.array=2",
                 "evaluation.workers=" + workers};
  };
  const auto whole = folder_ / "whole" / "run";
  ASSERT_TRUE(ran("nas-train", command(whole, "1")));
  EXPECT_THAT(text(),
              ::testing::ContainsRegex(": between .* and .* after 4 seeds, (goes on|decided)"));
  EXPECT_EQ(text().find("training 1/"), std::string::npos) << "one stage";
  const auto retest = results_of(whole)["retest"];
  EXPECT_EQ(retest["until"], 0.02);
  EXPECT_EQ(retest["candidates"][0]["candidate"], kSparse) << "the baseline with that changed";
  const auto seeds = [&](std::size_t i) { return retest["candidates"][i]["evaluations"].size(); };
  EXPECT_GE(std::max(seeds(0), seeds(1)), 4U);
  EXPECT_EQ(seeds(2), std::max(seeds(0), seeds(1))) << "the baseline has all";
  const auto killed = folder_ / "killed";
  kill_at(" after 4 seeds, ", "nas-train", command(killed, "2"));
  EXPECT_FALSE(fs::exists(killed / "results.json")) << "killed too late";
  const auto so_far = Store(killed / "store.sqlite", Store::Mode::read_only).meta("retest").value();
  EXPECT_GE(so_far["replicates"], 4) << "those of the last whole group";
  for (const auto* name : {"baseline", "sparsemax"}) {
    const auto model = (folder_ / name).string();
    EXPECT_TRUE(ran("nas-export", {killed.string(), "--format", "pytorch", "--mechanism", name,
                                   "--output", model}));
  }
  ASSERT_TRUE(ran("nas-train", {killed.string(), "--no-report"}));
  EXPECT_EQ(results_of(killed)["retest"], retest);
  EXPECT_EQ(canonical_export(killed), canonical_export(whole));
  // A further mechanism begins at the first seed, and what was decided stays decided by its own.
  ASSERT_TRUE(ran("nas-train", {"cosine", killed.string(), "--no-report"}));
  const auto more = results_of(killed)["retest"]["candidates"];
  EXPECT_EQ(more.size(), 4U);
  EXPECT_GE(more[2]["evaluations"].size(), 4U);
}

TEST_F(TrainTest, UntilNeedsAListAndAPercentage) {
  expect_refusal("nas-train", {config("smoke.yaml"), "--gates", "--until", "3%"},
                 "--until 3%, must be left out beside --gates, whose seeds are fixed");
  expect_refusal("nas-train", {"sparsemax", config("smoke.yaml"), "--gates"},
                 "command line: sparsemax, must be left out beside --gates");
  expect_refusal("nas-train", {"sparsemax", config("smoke.yaml"), "--until", "much"},
                 "retest.until = much");
  expect_refusal("nas-train", {"sparsemax", config("smoke.yaml"), "--until", "0 %"},
                 "--until = 0 %, must be above 0 %");
  expect_refusal("nas-run", {config("smoke.yaml"), "retest.until=3", "-o", folder_.string() + "/x"},
                 "retest.until = 3, must be 0 unless mechanisms are listed");
  expect_refusal("nas-train", {"fixed", config("smoke.yaml")},
                 "'fixed' may mean several things, write one of temperature=fixed, decay=fixed");
}

TEST_F(TrainTest, SeedsStayWhereWhatComesToThemIsKilled) {
  const auto out = folder_ / "run";
  Texts words{kSparse,
              config("smoke.yaml"),
              "retest.tune=false",
              "-o",
              out.string(),
              "--seeds",
              "2",
              "--no-report",
              "training.steps=100",
              "evaluation.workers=1",
              "evaluation.array=1"};
  ASSERT_TRUE(ran("nas-train", words));
  words[6] = "1";
  words.insert(words.begin(), kShared);
  kill_at("training 5/6", "nas-train", words);
  ASSERT_TRUE(Store(out / "store.sqlite").meta("retest")->is_null()) << "killed too late";
  ASSERT_TRUE(ran("nas-train", words));
  EXPECT_EQ(results_of(out)["retest"]["replicates"], 2);
  EXPECT_TRUE(Store(out / "store.sqlite").meta("retest_seeds").value_or(nullptr).is_null());
}

TEST_F(TrainTest, MechanismsAndSeedsMayComeToARun) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-train", {kSparse, config("smoke.yaml"), "retest.tune=false", "-o",
                                out.string(), "--seeds", "2", "--no-report"}));
  const auto before = ids(out);
  EXPECT_EQ(before.size(), 4U);
  ASSERT_TRUE(ran("nas-train", {kShared, out.string(), "--seeds", "3", "--no-report"}));
  const auto after = ids(out);
  // The same command continues.
  EXPECT_TRUE(ran("nas-train", {kShared, out.string(), "--seeds", "3", "--no-report"}));
  EXPECT_EQ(ids(out), after);
  expect_refusal("nas-train", {"attn{kv=1}", out.string()},
                 "character 6: unknown gene of mixer attn 'kv'");
  EXPECT_EQ(after.size(), 9U);
  EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
  EXPECT_EQ(results_of(out)["retest"]["candidates"].size(), 3U);
  // What was trained is not left out of the comparisons.
  expect_refusal("nas-train", {kShared, config("smoke.yaml"), "-o", out.string()},
                 "holds a run of another configuration:\n  mechanisms: ");
  EXPECT_EQ(ids(out), after);
}

TEST_F(TrainTest, ModelsThatMatchInParametersDoSoInEveryProcess) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(
      ran("nas-train", {kShared, config("smoke.yaml"), "retest.tune=false", "-o", out.string(),
                        "--seeds", "1", "--no-report", "space.match_parameters=true",
                        "objectives=[perplexity, flops]", "evaluation.keep_models=9"}));
  const auto before = ids(out);
  const auto flops_of_shared = [&] {
    const auto found = results_of(out);
    std::set<double> flops;
    for (const auto& evaluation : found["evaluations"]) {
      if (evaluation["candidate"] != kShared) continue;
      flops.insert(evaluation["values"]["flops"].get<double>());
    }
    return flops;
  };
  ASSERT_TRUE(ran("nas-train", {out.string(), "--seeds", "2", "--no-report"}));
  const auto after = ids(out);
  EXPECT_EQ(after.size(), 4U);
  EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
  EXPECT_EQ(flops_of_shared().size(), 1U);
  const auto taken = (folder_ / "taken").string();
  EXPECT_TRUE(ran("nas-model", {"take", out.string(), kShared, "-o", taken}));
}

TEST_F(TrainTest, LayeredNamesAreThoseWrittenOut) {
  const auto train = [this](Texts words, const std::string& folder) {
    words.insert(words.end(), {config("smoke.yaml"), "retest.tune=false", "--seeds", "2",
                               "--no-report", "-o", (folder_ / folder).string(), "model.layers=2",
                               "baseline=2*attn{conv=4,dropout=0}"});
    return run("nas-train", words);
  };
  const auto trained = [this](const char* folder) {
    std::vector<std::pair<std::string, nlohmann::json>> found;
    const auto digest = results_of(folder_ / folder);
    for (const auto& candidate : digest["retest"]["candidates"])
      found.emplace_back(candidate["candidate"], candidate["evaluations"]);
    return found;
  };
  ASSERT_EQ(train({"gdn/attn", "gdn@1", "=/swa{window=4}", "2*attn{conv=0}"}, "short"), 0)
      << text();
  const std::string attention = "attn{conv=4,dropout=0}";
  ASSERT_EQ(train({"model{}/gdn/" + attention, attention + "/gdn",
                   attention + "/swa{window=4,conv=4,dropout=0}", "model{}/2*attn{dropout=0}"},
                  "whole"),
            0)
      << text();
  auto found = trained("short");
  EXPECT_EQ(found, trained("whole")) << "the same models, trained once more to the same values";
  ASSERT_TRUE(ran("nas-train", {"mqa@0", (folder_ / "short").string(), "--no-report"}));
  const auto more = trained("short");
  ASSERT_EQ(more.size(), found.size() + 1);
  for (const auto& one : found) {
    EXPECT_EQ(std::count(more.begin(), more.end(), one), 1) << one.first << " is still that";
  }
  ASSERT_EQ(train({"model{}/gdn/attn"}, "without"), 0) << text();
  const auto record = results_of(folder_ / "without").at("retest").at("candidates");
  EXPECT_EQ(record[0]["differs"], "dropout, conv");
  EXPECT_EQ(record[1].value("differs", ""), "") << "the baseline";
  ASSERT_EQ(train({"model{}/attn/gdn", "attn/gdn", "--dry-run"}, "plan"), 0);
  expect_text("differs from the baseline also in dropout, conv");
}

TEST_F(TrainTest, APlanSaysWhatIsTrained) {
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-train", {kSparse, config("smoke.yaml"), "-o", out.string(), "--dry-run"}));
  expect_text(
      "22 training runs: 1 mechanism and the baseline dot|softmax|none|fixed|bias|0.1, on "
      "the same 5 seeds, 12 of them to find learning rates");
  expect_text("per training run");
  expect_text("in the largest training run (weights ");
  EXPECT_EQ(text().find("algorithm"), std::string::npos);
  EXPECT_FALSE(fs::exists(out));
}

/// A tenth of it in each size, and ten thousand times as fast.
TEST_F(TrainTest, Gpt2SmallIsTrainedBesideOneOfTodaysParts) {
  const auto words = folder_ / "text.txt";
  std::ofstream text(words);
  for (int i = 0; i < 4000; ++i) text << "word" << i % 37 << (i % 11 == 0 ? ".\n" : " ");
  text.close();
  const auto out = folder_ / "run";
  ASSERT_TRUE(ran("nas-run",
                  {config("gpt2_small.yaml"), "--output", out.string(), "--no-report",
                   "data={corpus: text_file, path: " + words.string() + ", tokenizer: bpe}",
                   "data.vocabulary=300", "model.width=96", "model.context=102", "training.steps=2",
                   "training.batch_size=3", "training.warmup_steps=1", "training.checkpoints=[]"}));
  const auto found = results_of(out);
  ASSERT_EQ(found["evaluations"].size(), 2U);
  for (const auto& evaluation : found["evaluations"]) {
    EXPECT_EQ(evaluation["status"], "ok") << evaluation;
    EXPECT_GT(evaluation["measured"]["peak_bytes"], 0);
  }
  EXPECT_EQ(found["config"]["training"]["recompute"], "layers");
}

TEST_F(TrainTest, MistakesExitWith2AndNothingIsWritten) {
  const auto out = folder_ / "run";
  const auto smoke = config("smoke.yaml");
  const std::pair<Texts, const char*> mistakes[] = {
      {{"dot|\xe9", smoke}, "command line: 'dot|\uFFFD', must be text in UTF-8"},
      {{"attn{kv=1}", smoke}, "character 6: unknown gene of mixer attn 'kv'"},
      {{"dot|softmax|none|fixed|bias|0.1", smoke}, "it is the baseline, which is trained anyway"},
      {{"mqa", smoke, "constraints=[flops <= 1000]"},
       "mqa would not be trained, it breaks a constraint: flops = "},
      {{"mqa", config("nsga2_zdt.yaml")}, "the problem zdt trains nothing"},
      {{smoke}, "no mechanism given before"},
      {{"mqa"}, "no configuration and no run given: mqa is neither; nas-train --help"},
      {{"mqa", "quikstart"}, "quikstart is neither, did you mean quickstart?"},
  };
  for (auto [words, message] : mistakes) {
    words.insert(words.end(), {"-o", out.string()});
    EXPECT_EQ(run("nas-train", words), 2) << message;
    expect_text(message);
    EXPECT_FALSE(fs::exists(out)) << message;
  }
  ASSERT_EQ(run("nas-run", {smoke, "-o", out.string(), "--no-report", "budget.evaluations=1"}), 0);
  expect_refusal("nas-train", {"mqa", out.string()}, "holds no run of listed mechanisms");
  expect_refusal("nas-train", {kSparse, smoke, kShared, "-o", out.string()},
                 "must be key.path=value, and a mechanism before " + smoke);
  expect_refusal("nas-train", {"mqa", smoke, "-o", out.string()},
                 "holds a search, not a run of listed mechanisms");
}

}  // namespace
}  // namespace nas::testing
