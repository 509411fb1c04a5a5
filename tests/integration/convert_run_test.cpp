// Searches of what layers of a trained model may become.

#include <regex>

#include "integration/program.hpp"

namespace nas::testing {
namespace {

class ConvertRunTest : public ProgramTest {
 protected:
  ConvertRunTest() {
    std::ofstream stream(folder_ / "text.txt");
    for (int line = 0; line < 300; ++line) {
      for (int i = 0; i < 15 + 3 * (line % 4); ++i)
        stream << "w" << (line * line + i * i) % 17 << ' ';
      stream << '\n';
    }
    stream.close();
    const auto run = small_run({data(), "model.layers=3", "model.context=32", "training.steps=20",
                                "evaluation.keep_models=1000"});
    EXPECT_TRUE(
        ran("nas-export", {run, "--format", "pytorch", "--mechanism", "baseline", "-o", model()}));
  }
  [[nodiscard]] std::string data() const {
    return "data={corpus: text_file, vocabulary: 20, path: " + (folder_ / "text.txt").string() +
           "}";
  }
  [[nodiscard]] std::string model() const { return (folder_ / "model").string(); }
  [[nodiscard]] fs::path path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] Texts words(const std::string& name, const Texts& more = {}) const {
    Texts words{config("convert.yaml"),
                "--output",
                path(name).string(),
                "--no-report",
                "name=search",
                "problem.base=" + model(),
                data(),
                "problem.blocks=['window{4,2}', drop]",
                "problem.context=32",
                "problem.cache_context=32",
                "problem.probes=['copy{4}']",
                "evaluation.replicates=2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(ConvertRunTest, FindsAFrontAlikeHoweverItIsRun) {
  ASSERT_TRUE(ran("nas-run", words("one")));
  const auto whole = canonical_export(path("one"));
  EXPECT_THAT(whole, HasSubstr("full 0-2"));
  EXPECT_THAT(whole, HasSubstr("drop 0-2"));
  ASSERT_TRUE(ran("nas-run", words("two", {"evaluation.workers=2"})));
  EXPECT_EQ(canonical_export(path("two")), whole);
  kill_at_random_moments("nas-run", words("killed"), path("killed"));
  ASSERT_TRUE(ran("nas-run", words("killed")));
  EXPECT_EQ(canonical_export(path("killed")), whole);
}

TEST_F(ConvertRunTest, RungsAreTheSumAndTheWhole) {
  const Texts rungs{"problem.fidelity=both", "fidelity={rungs: [1]}",
                    "algorithm={name: nsga2_async, population: 6, evaluations: 14}"};
  ASSERT_TRUE(ran("nas-run", words("rungs", rungs)));
  const auto whole = canonical_export(path("rungs"));
  EXPECT_THAT(whole, HasSubstr("\"paused\""));
  EXPECT_THAT(whole, HasSubstr("kl@1"));
  kill_at_random_moments("nas-run", words("killed", rungs), path("killed"));
  ASSERT_TRUE(ran("nas-run", words("killed", rungs)));
  EXPECT_EQ(canonical_export(path("killed")), whole);
}

TEST_F(ConvertRunTest, ABudgetRejectsWithoutMeasuring) {
  ASSERT_TRUE(ran("nas-run", words("small", {"constraints=['cache_share <= 0.5']",
                                             "algorithm={name: random_layers}"})));
  EXPECT_THAT(canonical_export(path("small")), HasSubstr("cache_share = 1, must be <= 0.5"));
}

TEST_F(ConvertRunTest, TimesOfDecodingAreAnObjective) {
  ASSERT_TRUE(
      ran("nas-run", words("timed", {"objectives=[kl, decode_ms]", "algorithm={name: uniform}",
                                     "problem.blocks=[drop]"})));
  std::map<std::string, double> times;
  const auto results = results_of(path("timed"));
  for (const auto& one : results.at("evaluations"))
    times[one.at("candidate")] = one.at("values").at("decode_ms");
  ASSERT_THAT(times, SizeIs(::testing::Ge(4)));
  EXPECT_LT(times.at("drop 0-2"), times.at("full 0-2"));
  EXPECT_GT(times.at("drop 0-2"), 0.0);
}

TEST_F(ConvertRunTest, BlocksLearnAlikeHoweverTheyAreRun) {
  const Texts learning{"problem.blocks=[gdn, 'window{2,0}', drop]", "problem.stage1_tokens=3200",
                       "problem.stage1_batch=2", "problem.stage1_seeds=2"};
  ASSERT_TRUE(ran("nas-run", words("one", learning)));
  const auto whole = canonical_export(path("one"));
  const auto results = results_of(path("one"));
  for (const auto& one : results.at("evaluations")) {
    const auto& values = one.at("values");
    if (!one.at("candidate").get<std::string>().starts_with("gdn{4,1} 0-2")) continue;
    EXPECT_LT(values.at("stage1_loss"), 0.9 * values.at("stage1_before").get<double>());
  }
  auto two = learning;
  two.push_back("evaluation.workers=2");
  ASSERT_TRUE(ran("nas-run", words("two", two)));
  EXPECT_EQ(canonical_export(path("two")), whole);
  auto open = learning;
  open.push_back("problem.layers=1");
  ASSERT_TRUE(ran("nas-run", words("open", open)));
  const auto learned = fs::directory_iterator(path("open") / "stage1")->path() / "1";
  EXPECT_TRUE(fs::exists(learned / "1.gdn{4,1}.safetensors"));
  EXPECT_FALSE(fs::exists(learned / "0.gdn{4,1}.safetensors"));
  const auto opened = results_of(path("open"));
  for (const auto& one : opened.at("evaluations"))
    EXPECT_THAT(one.at("candidate").get<std::string>(), HasSubstr("full 0"));
  const auto trained = fs::directory_iterator(path("one") / "stage1")->path() / "1";
  ASSERT_TRUE(ran("nas-model", {"place", model(), "full 1; gdn{4,1} 0; window{2,0} 2", "--trained",
                                trained.string(), "-o", path("placed").string()}));
  EXPECT_THAT(read_file(path("placed") / "model.safetensors"),
              HasSubstr("layers.0.recurrent.q_proj"));
  expect_refusal("nas-model",
                 {"place", model(), "full 0-1; gdn{2,1} 2", "--trained", trained.string(), "-o",
                  path("no").string()},
                 "2.gdn{2,1}.safetensors");
  EXPECT_FALSE(fs::exists(path("no")));
}

TEST_F(ConvertRunTest, HybridsLearnAsAWholeAlikeHoweverTheyAreRun) {
  const Texts learning{"problem.blocks=[gdn, drop]",
                       "problem.stage1_tokens=1600",
                       "problem.stage1_batch=2",
                       "problem.stage1_seeds=2",
                       "problem.fidelity=all",
                       "problem.stage2_tokens=2560",
                       "problem.stage2_batch=2",
                       "problem.stage2_rate=1e-3",
                       "problem.stage2_documents=2",
                       "problem.stage2_weights=low_rank",
                       "fidelity={rungs: [1, 3]}",
                       "algorithm={name: nsga2_async, population: 6, evaluations: 14}"};
  ASSERT_TRUE(ran("nas-run", words("one", learning)));
  const auto whole = canonical_export(path("one"));
  auto listed = learning;
  std::erase_if(listed, [](const auto& word) { return word.find("rungs") != std::string::npos; });
  listed.back() = "algorithm={name: listed, points: '001 111'}";
  ASSERT_TRUE(ran("nas-run", words("listed", listed)));
  const auto measured = results_of(path("listed")).at("evaluations");
  EXPECT_EQ(measured.size(), 4U) << "two placements, each learned twice";
  std::map<std::string, double> sums;
  for (const auto& one : measured)
    for (const auto* of : {"kl", "kl@2", "kl@3"}) sums[of] += one.at("values").at(of).get<double>();
  EXPECT_LT(sums.at("kl"), sums.at("kl@2"));
  EXPECT_LT(sums.at("kl"), sums.at("kl@3"));
  auto two = learning;
  two.push_back("evaluation.workers=2");
  ASSERT_TRUE(ran("nas-run", words("two", two)));
  EXPECT_EQ(canonical_export(path("two")), whole);
  kill_at_random_moments("nas-run", words("killed", learning), path("killed"));
  ASSERT_TRUE(ran("nas-run", words("killed", learning)));
  EXPECT_EQ(canonical_export(path("killed")), whole);
}

TEST_F(ConvertRunTest, TenKillsInBothStagesChangeNothing) {
  const auto learning = [this](const std::string& name) {
    return words(
        name, {"problem.blocks=[gdn, 'window{2,0}']", "problem.room=1e-6",
               "problem.stage1_tokens=6400", "problem.stage1_batch=2", "problem.fidelity=all",
               "problem.stage2_tokens=2560", "problem.stage2_batch=2", "problem.stage2_documents=2",
               "problem.stage2_folder=" + path("second").string(),
               "algorithm={name: listed, points: '001 010 111 121 222'}"});
  };
  const auto files = [this](const fs::path& folder, const std::string& extension = ".safetensors") {
    std::map<std::string, std::string> found;
    if (!fs::exists(path(folder))) return found;
    for (const auto& entry : fs::recursive_directory_iterator(path(folder))) {
      if (entry.path().extension() == extension)
        found[fs::relative(entry.path(), path(folder))] = read_file(entry.path());
    }
    return found;
  };
  ASSERT_TRUE(ran("nas-run", learning("one")));
  const auto first = files("one/stage1"), second = files("second");
  fs::remove_all(path("second"));
  ASSERT_THAT(first, SizeIs(6));
  ASSERT_THAT(second, SizeIs(::testing::Ge(10)));
  RandomEngine random(7);
  int in_first = 0;
  std::size_t checkpoints = 0;
  for (std::size_t kill = 0; kill < 10; ++kill) {
    Program program("nas-run", learning("killed"), path("killed.txt"));
    int code = -1;
    const auto wait = [&](std::int64_t milliseconds) {
      return program.wait_for(std::chrono::milliseconds(milliseconds), code);
    };
    const auto reached = [&] {  // each further than the one before
      return kill < 4 ? files("killed/stage1").size() > kill : files("second").size() > kill - 4;
    };
    while (!reached()) ASSERT_FALSE(wait(1)) << read_file(path("killed.txt"));
    ASSERT_FALSE(wait(random.below(40))) << read_file(path("killed.txt"));
    in_first += files("killed/stage1").size() < first.size() ? 1 : 0;
    program.kill(kill % 2 == 0 ? SIGKILL : SIGTERM);
    (void)program.wait();
    checkpoints += files("killed", ".pt").size();
  }
  EXPECT_THAT(in_first, ::testing::AllOf(::testing::Ge(2), ::testing::Le(6)));
  EXPECT_GT(checkpoints, 0U);
  ASSERT_TRUE(ran("nas-run", learning("killed")));
  const auto whole = canonical_export(path("one"));
  EXPECT_EQ(canonical_export(path("killed")), whole);
  EXPECT_TRUE(files("killed/stage1") == first);
  EXPECT_TRUE(files("second") == second);
}

TEST_F(ConvertRunTest, APlanSaysWhatTheStagesTake) {
  Texts learning =
      words("planned",
            {"problem.blocks=[gdn, 'window{2,0}']", "problem.stage1_tokens=128000",
             "problem.fidelity=trained", "problem.stage2_tokens=6400", "problem.stage2_documents=2",
             "evaluation.workers=1", "algorithm={name: listed, points: '000 111 222'}"});
  const auto begin = std::chrono::steady_clock::now();
  Program whole("nas-run", learning, path("whole.txt"));
  ASSERT_EQ(whole.wait(), 0) << read_file(path("whole.txt"));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto peak = static_cast<double>(whole.peak_kib()) / 1024.0;
  fs::remove_all(path("planned"));
  learning.emplace_back("--dry-run");
  ASSERT_TRUE(ran("nas-run", learning));
  EXPECT_FALSE(fs::exists(path("planned")));
  const auto plan = text();
  std::smatch said;
  const std::regex before(R"((?:([0-9]+)\s+min\s+)?([0-9]+)\s+s\s+of\s+it\s+before\s+the\s+first)");
  ASSERT_TRUE(std::regex_search(plan, said, before)) << plan;
  const double seconds = std::stod(said[2]) + (said[1].matched ? 60.0 * std::stod(said[1]) : 0.0);
  EXPECT_GT(seconds, 0.02 * took.count());
  EXPECT_LT(seconds, 10.0 * took.count());
  double most = 0.0;
  for (const auto* stage : {"1", "2"}) {
    const std::regex words("([0-9.]+) MiB\\s+in\\s+stage\\s+" + std::string(stage));
    ASSERT_TRUE(std::regex_search(plan, said, words)) << plan;
    most = std::max(most, std::stod(said[1]));
  }
  EXPECT_NEAR(most, peak, 0.1 * peak);
}

TEST_F(ConvertRunTest, OneCommandTrainsItsChoice) {
  const auto folder = path("command");
  Texts words{model(),       "--blocks",    "window{4,0}",   "-o",          folder,
              "--stage1=1k", "--stage2=1k", "--trainings=4", "--verdict=8", "--replicates=2"};
  words.push_back("data.path=" + path("text.txt").string());
  words.emplace_back("--stage2=2x");
  expect_refusal("nas-convert", words, "--stage2 2x, must be a number from 0");
  words.back() = "--dry-run";
  ASSERT_TRUE(ran("nas-convert", words));
  for (const auto* said : {"in stage 1, about", "for blocks, at most", "both: about"})
    EXPECT_THAT(text(), HasSubstr(said));
  EXPECT_FALSE(fs::exists(folder));
  words.pop_back();
  ASSERT_TRUE(ran("nas-convert", words));
  EXPECT_THAT(read_file(folder / "convert.json"),
              HasSubstr("On 4 trainings, each on 2 held-out documents, a text"));
  EXPECT_TRUE(fs::exists(folder / "model" / "config.json"));
}

TEST_F(ConvertRunTest, APlacementIsAModelOfItsOwn) {
  const auto placed = path("placed").string();
  ASSERT_TRUE(ran("nas-model", {"place", model(), "full 1; window{4,2} 0; drop 2", "-o", placed}));
  const auto config = nlohmann::json::parse(read_file(path("placed") / "config.json"));
  EXPECT_EQ(config.at("placement"), "full 1; window{4,2} 0; drop 2");
  EXPECT_EQ(config.at("layers")[0].at("window"), 4);
  EXPECT_EQ(config.at("layers")[2].at("mixer"), "none");
  const auto weights = read_file(path("placed") / "model.safetensors");
  EXPECT_THAT(weights, HasSubstr("layers.1.attention.q_proj"));
  EXPECT_THAT(weights, Not(HasSubstr("layers.2.attention.q_proj")));
  if (python_has_torch()) {
    EXPECT_TRUE(ran("nas-model", {"evaluate", placed, "--text", path("text.txt").string()}));
    expect_text("perplexity");
  }
  expect_refusal("nas-model", {"place", model(), "full 0-2", "-o", placed}, "is there already");
  expect_refusal("nas-model", {"place", model(), "full 0-3", "-o", path("no").string()},
                 "must be in [0, 2]");
  EXPECT_FALSE(fs::exists(path("no")));
}

TEST_F(ConvertRunTest, RefusesWhatCannotBe) {
  for (const auto& [setting, said] : std::vector<std::pair<std::string, std::string>>{
           {"problem.blocks=[]", "must name a block"},
           {"problem.blocks=[windw]", "did you mean window"},
           {"problem.blocks=[drop, drop]", "is there twice"},
           {"problem.blocks=['window{32,0}']", "no layer of"},
           {"problem.layers=2-3", "layers 2-3, must be in [0, 2]"},
           {"problem.probes=['copy{5000}']", "more tokens than the vocabulary"},
           {"problem.context=64", "must have at most the model's 32"},
           {"problem.base=" + path("nothing").string(), "nothing"},
           {"problem.fidelity=trained", "stage2_tokens = 0, must be more"},
           {"problem={fidelity: trained, stage2_tokens: 10, stage2_weights: low_rank, stage2_rank: "
            "1000}",
            "stage2_rank = 1000, must be at most the model's width"},
           {"data={corpus: mqar}", "data"},
           {"algorithm={name: listed, points: '012 3'}",
            "must have a digit for each of 3 layers"}}) {
    SCOPED_TRACE(setting);
    expect_refusal("nas-run", words("refused", {setting}), said);
  }
}

}  // namespace
}  // namespace nas::testing
