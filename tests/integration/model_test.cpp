// nas-model: scores and texts of an exported model, without the run that it is of.

#include <cstddef>
#include <cstring>

#include "integration/program.hpp"

namespace nas::testing {
namespace {

class ModelTest : public ProgramTest {
 protected:
  /// Exports the baseline of a small run, which then is removed. @return its digest.
  nlohmann::json export_model(Texts settings = {}) {
    settings.emplace_back("evaluation.keep_models=1000");
    const auto run_folder = small_run(settings);
    EXPECT_TRUE(ran("nas-export",
                    {run_folder, "--format", "pytorch", "--mechanism", "baseline", "-o", model()}));
    EXPECT_THAT(text(), HasSubstr("written to " + model() + "; nas-model evaluate " + model()));
    auto digest = results_of(run_folder);
    fs::remove_all(run_folder);
    return digest;
  }
  [[nodiscard]] std::string model() const { return (folder_ / "model").string(); }

  /// As of an earlier version. @return config.json.
  nlohmann::json drop_digests() {
    const auto file = folder_ / "model" / "config.json";
    auto config = nlohmann::json::parse(read_file(file));
    config.erase("sha256");
    std::ofstream(file) << config.dump();
    return config;
  }

  std::string words(int lines) {
    const auto path = folder_ / (std::to_string(lines) + ".txt");
    std::ofstream stream(path);
    for (int line = 0; line < lines; ++line) {
      for (int i = 0; i < 15 + 3 * (line % 4); ++i) {
        stream << "w" << (line * line + i * i) % 17 << ' ';
      }
      stream << '\n';
    }
    return path.string();
  }
  Texts of_words() {
    return {"data={corpus: text_file, vocabulary: 12, train: " + words(60) +
            ", valid: " + words(9) + ", test: " + words(5) + "}"};
  }

  /// The number that the last program has printed behind a name.
  [[nodiscard]] double said(const std::string& name) const {
    const auto all = "\n" + text();
    const auto place = all.find("\n" + name + " ");
    if (place == std::string::npos) {
      ADD_FAILURE() << name << " is not in" << all;
      return 0.0;
    }
    return std::stod(all.substr(place + name.size() + 1));
  }
  /// The scores of the baseline, as the run has recorded them.
  static nlohmann::json recorded(const nlohmann::json& digest) {
    for (const auto& evaluation : digest.at("evaluations")) {
      if (evaluation.at("candidate") == digest.at("baseline").at("candidate")) {
        return evaluation.at("curve").back().at("valid");
      }
    }
    return {};
  }
};

TEST_F(ModelTest, ScoresSplitsAndTexts) {
  SKIP_WITHOUT_TORCH();
  for (const bool published : {false, true}) {
    SCOPED_TRACE(published);
    auto settings = of_words();
    if (published) {
      settings.insert(settings.end(), {"semantics=published", "data.layout=published"});
    }
    const auto valid = recorded(export_model(settings));
    const Texts of_valid{"evaluate", model(), "--split", "valid"};
    expect_refusal("nas-model", of_valid,
                   "config.json has the names of files alone: give --text FILE");
    const auto beside_them = [this] { fs::current_path(folder_); };
    ASSERT_TRUE(ran("nas-model", of_valid, beside_them));
    const auto tokens = valid.at("tokens").get<double>();
    const auto nll = valid.at("nll").get<double>() / tokens;
    EXPECT_NEAR(said("nll"), nll, 1e-6 * nll);
    EXPECT_NEAR(said("perplexity"), std::exp(nll), 1e-4 + 1e-6 * std::exp(nll));
    EXPECT_EQ(said("tokens"), tokens);
    EXPECT_NEAR(said("unknown"), 100.0 * valid.at("unknown_tokens").get<double>() / tokens, 0.01);
    EXPECT_NEAR(said("accuracy"), 100.0 * valid.at("correct").get<double>() / tokens, 0.01);
    const auto expect_same = [&](const std::string& file) {
      const auto of_split = text();
      const Texts names{"perplexity", "nll", "accuracy", "tokens", "unknown"};
      std::vector<double> scores;
      for (const auto& name : names) scores.push_back(said(name));
      ASSERT_EQ(run("nas-model", {"evaluate", model(), "--text", (folder_ / file).string()}), 0);
      for (std::size_t i = 0; i < names.size(); ++i) {
        EXPECT_NEAR(said(names[i]), scores[i], 1e-4 * scores[i]) << names[i];
      }
      EXPECT_EQ(text().size(), of_split.size());
    };
    expect_same("9.txt");
    ASSERT_TRUE(ran("nas-model", {"evaluate", model()}, beside_them));
    EXPECT_NE(said("tokens"), tokens);
    expect_same("5.txt");
    fs::remove_all(model());
  }
}

TEST_F(ModelTest, ContinuesTexts) {
  SKIP_WITHOUT_TORCH();
  export_model(of_words());
  const Texts prompt{"generate", model(), "--prompt", "w1 w4 nobody"};
  const auto with = [&](Texts more) {
    more.insert(more.begin(), prompt.begin(), prompt.end());
    EXPECT_TRUE(ran("nas-model", more));
    return text();
  };
  const auto greedy = with({"--greedy", "--tokens", "5"});  // where it ends, a line may
  EXPECT_THAT(greedy, StartsWith("note: the model does not know 1 of the prompt's words\n"
                                 "w1 w4 nobody"));
  const auto words = greedy.substr(0, std::min(greedy.find("\nnote: ends"), greedy.size() - 1));
  EXPECT_THAT(with({"--greedy"}), StartsWith(words));
  const auto drawn = with({"--tokens", "15"});
  EXPECT_EQ(with({"--tokens", "15", "--seed", "1"}), drawn) << "unless said otherwise";
  EXPECT_NE(with({"--tokens", "15", "--seed", "2"}), drawn);
  EXPECT_TRUE(ran("nas-model", {"generate", model()}));
  EXPECT_THAT(text(), Not(HasSubstr("does not know")));
  ASSERT_EQ(run("nas-model", {"generate", model(), "--tokens", "500"}), 0);
  EXPECT_THAT(text(), Not(HasSubstr("<unk>"))) << "which stands for no text";
}

TEST_F(ModelTest, SaysHowManyEndsOfALineFollow) {
  SKIP_WITHOUT_TORCH();
  export_model(of_words());
  const auto file = folder_ / "model" / "model.safetensors";
  auto bytes = read_file(file);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  // All words are equally likely, the first of them is the end of a line.
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(sizeof(header) + header), bytes.end(), 0);
  std::ofstream(file) << bytes;
  expect_refusal("nas-model", {"generate", model(), "--prompt", "w1", "--tokens", "10"},
                 "model.safetensors: is damaged, its SHA-256 is ");
  drop_digests();
  ASSERT_EQ(run("nas-model", {"generate", model(), "--prompt", "w1", "--tokens", "10", "--greedy"}),
            0);
  EXPECT_EQ(text(), "w1\nnote: ends of a line that follow the text: 10\n");
}

TEST_F(ModelTest, RefusesScoresThatAreNotFinite) {
  SKIP_WITHOUT_TORCH();
  export_model(of_words());
  const auto file = folder_ / "model" / "model.safetensors";
  const auto bytes = read_file(file);
  drop_digests();
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (const float weight : {1e14F, std::numeric_limits<float>::quiet_NaN()}) {
    auto other = bytes;
    for (auto at = sizeof(header) + header; at < other.size(); at += sizeof(weight)) {
      const float one = at % 3 == 0 ? weight : -weight;
      std::memcpy(other.data() + at, &one, sizeof(one));
    }
    std::ofstream(file) << other;
    for (const auto* command : {"evaluate", "generate"}) {
      Texts arguments{command, model()};
      if (command == std::string("evaluate"))
        arguments.insert(arguments.end(), {"--text", words(5)});
      EXPECT_EQ(run("nas-model", arguments), 2) << weight << ": " << text();
    }
  }
}

TEST_F(ModelTest, SaysWhatHeadsLookAtInASentence) {
  SKIP_WITHOUT_TORCH();
  export_model(of_words());
  const auto to = (folder_ / "attention").string();
  ASSERT_TRUE(
      ran("nas-model", {"attention", model(), "--text", "w8 w1 w4", "--text", "w4", "-o", to}));
  const auto sentences =
      nlohmann::json::parse(read_file(fs::path(to) / "attention.json")).at("sentences");
  ASSERT_EQ(sentences.size(), 2U);
  const auto& tokens = sentences[0].at("tokens");
  EXPECT_EQ(tokens.back(), "w4");
  for (const auto& layer : sentences[0].at("layers")) {
    for (const auto& head : layer.at("maps")) {
      ASSERT_EQ(head.size(), tokens.size());
      for (std::size_t query = 0; query < head.size(); ++query) {
        ASSERT_EQ(head[query].size(), query + 1) << "causal";
        double sum = 0.0;
        for (const double weight : head[query]) sum += weight;
        EXPECT_NEAR(sum, 1.0, 0.01);
      }
    }
  }
  std::string longest;
  for (int i = 0; i < 50; ++i) longest += "w1 ";
  expect_refusal("nas-model", {"attention", model(), "--text", longest},
                 "tokens, must have at most ");
}

TEST_F(ModelTest, HasTheNamesOfItsFilesAlone) {
  export_model(of_words());
  EXPECT_THAT(read_file(folder_ / "model" / "config.json"), HasSubstr("\"train\": \"60.txt\""));
  for (const auto& each : fs::directory_iterator(folder_ / "model")) {
    EXPECT_THAT(read_file(each.path()), Not(HasSubstr(folder_.string()))) << each.path();
  }
}

TEST_F(ModelTest, ScoresClassesAmongTheClassesAlone) {
  for (const auto* split : {"train", "valid", "test"}) {
    std::string images;
    for (int i = 0; i < 40; ++i) {
      images += static_cast<char>(i % 10) + std::string(784, static_cast<char>(25 * (i % 10)));
    }
    fs::create_directories(folder_ / "data" / "fashion_mnist");
    std::ofstream(folder_ / "data" / "fashion_mnist" / (std::string(split) + ".txt")) << images;
  }
  setenv("NAS_DATA_DIR", (folder_ / "data").c_str(), 1);
  const auto valid =
      recorded(export_model({"data={corpus: fashion_mnist, side: 7}", "model.context=49",
                             "objectives=[accuracy]", "training.steps=5", "model.width=8"}));
  ASSERT_TRUE(ran("nas-model", {"evaluate", model(), "--split", "valid"}));
  EXPECT_EQ(said("labels"), 40.0);
  EXPECT_NEAR(said("nll"), valid.at("nll").get<double>() / 40.0, 1e-6);
  EXPECT_THAT(text(), HasSubstr(" nats per label"));
  EXPECT_THAT(read_file(folder_ / "model/config.json"), HasSubstr("\"labels\": 10"));
  EXPECT_THAT(read_file(folder_ / "model/README.md"), HasSubstr("- classes from 0: T-shirt/top, "));
  unsetenv("NAS_DATA_DIR");
}

TEST_F(ModelTest, ScoresATaskWithoutText) {
  const auto valid = recorded(export_model());
  ASSERT_TRUE(ran("nas-model", {"evaluate", model(), "--split", "valid"}));
  EXPECT_EQ(said("tokens"), valid.at("tokens").get<double>());
  EXPECT_THAT(text(), Not(HasSubstr("unknown")));
  if (python_has_torch()) {
    expect_refusal("nas-model", {"evaluate", model(), "--text", words(5)},
                   "the tokens of this model are no text; --split test scores it");
    expect_refusal("nas-model", {"generate", model()}, "the tokens of this model are no text");
  }
  const auto file = folder_ / "model" / "config.json";
  auto config = drop_digests();
  const auto with_data = [&](const std::string& key, const nlohmann::json& value) {
    auto changed = config;
    changed["data"][key] = value;
    std::ofstream(file) << changed.dump();
    EXPECT_EQ(run("nas-model", {"evaluate", model()}), 2);
    return text();
  };
  EXPECT_THAT(with_data("hash", "abc"), HasSubstr(", must be abc as in the training run"));
  EXPECT_THAT(with_data("corpus", "mqa"), HasSubstr("unknown corpus 'mqa'"));
  EXPECT_THAT(with_data("settings", {{"pears", 2}}),
              HasSubstr("pears is no setting of this corpus"));
  EXPECT_THAT(with_data("settings", {{"pairs", 0}}), HasSubstr("pairs = 0, must be"));
  EXPECT_THAT(with_data("settings", {{"pairs", "many"}}), HasSubstr("settings: "));
}

TEST_F(ModelTest, PrintsTheGenesOfAName) {
  ASSERT_EQ(run("nas-model",
                {"genes", "dot|sparsemax|none|fixed|bias|0.1", "--width", "16", "--heads", "2"}),
            0);
  EXPECT_EQ(nlohmann::json::parse(text()).at(0).at("normalization"), "sparsemax");
  ASSERT_EQ(run("nas-model", {"genes", "dot|sparsemax|none|fixed|bias|0.1", "--width", "16",
                              "--heads", "2", "--semantics", "published"}),
            0);
  EXPECT_EQ(nlohmann::json::parse(text()).at(0).at("normalization"), "topk_quarter");
  const Texts window{"genes", "attn{pattern=window,window=300}", "--width", "16", "--heads", "2"};
  ASSERT_EQ(run("nas-model", window), 0);
  EXPECT_EQ(nlohmann::json::parse(text()).at(0).at("window"), 300);
  expect_refusal("nas-model",
                 {"genes", "dot|sparsmax|none|fixed|bias|0.1", "--width", "16", "--heads", "2"},
                 "sparsmax");
  expect_refusal("nas-model", {"genes", "mqa"}, "genes needs --width and --heads");
}

TEST_F(ModelTest, SaysWhatIsWrong) {
  SKIP_WITHOUT_TORCH();
  const auto refused = [&](const Texts& arguments) {
    EXPECT_EQ(run("nas-model", arguments), 2) << text();
    return text();
  };
  EXPECT_THAT(refused({}), HasSubstr("give a command and a folder"));
  EXPECT_THAT(refused({"chat", "x"}),
              HasSubstr("unknown command 'chat', known: evaluate, generate"));
  EXPECT_THAT(refused({"evaluate", folder_.string()}),
              HasSubstr("config.json: no such file; give a"));
  EXPECT_THAT(refused({"evaluate", "x", "--text", "a", "--split", "test"}),
              HasSubstr("give --text or --split, not both"));
  EXPECT_THAT(refused({"evaluate", "x", "--split", "train"}),
              HasSubstr("--split train, must be valid or test"));
  EXPECT_THAT(refused({"generate", "x", "--tokens", "-1"}), HasSubstr("--tokens -1, must be >= 0"));
  EXPECT_THAT(refused({"evaluate", "x", "--tokens", "3"}),
              HasSubstr("unrecognised option '--tokens'; nas-model --help lists"));
  EXPECT_THAT(refused({"evaluate", "x", "--replicat", "3"}),
              HasSubstr("'--replicat'; did you mean --replicate?; nas-model --help lists"));
  EXPECT_THAT(refused({"evaluate", "x", "--seed", "3"}),
              HasSubstr("'--seed'; settings are written without dashes: seed=VALUE"));
  EXPECT_THAT(refused({"evaluate", "x", "--width", "3"}),
              HasSubstr("--width belongs to nas-model genes"));
  EXPECT_THAT(refused({"evaluat", "x"}), HasSubstr("did you mean evaluate?"));
  EXPECT_THAT(refused({"generate", "x", "--greedy", "--seed", "3"}),
              HasSubstr("--seed draws, must be left out beside --greedy"));
  EXPECT_THAT(refused({"generate", "x", "--seed", "-1"}), HasSubstr("--seed -1, must be >= 0"));
  EXPECT_THAT(refused({"generate", "x", "--profile"}),
              HasSubstr("nas-model: command line: unrecognized arguments: --profile"));
  EXPECT_EQ(run("nas-model", {"--help"}), 0);
  EXPECT_THAT(text(), HasSubstr("\n  evaluate FOLDER [--text FILE | --split SPLIT]"));

  export_model(of_words());
  EXPECT_THAT(refused({"evaluate", model(), "--text", "nowhere"}), HasSubstr("nowhere"));
  const auto empty = (folder_ / "empty").string();
  std::ofstream{empty};
  EXPECT_THAT(refused({"evaluate", model(), "--text", empty}), HasSubstr("empty: has no text"));
  fs::remove(folder_ / "5.txt");
  EXPECT_EQ(run("nas-model", {"evaluate", model()}, [this] { fs::current_path(folder_); }), 2);
  expect_text("5.txt");
  fs::resize_file(folder_ / "model" / "model.safetensors", 1000);
  EXPECT_THAT(refused({"generate", model()}), HasSubstr("model.safetensors: "));
}

/// A file of safetensors of which one tensor is called otherwise.
void rename_tensor(const fs::path& from, const fs::path& to, const std::string& name,
                   const std::string& other) {
  auto bytes = read_file(from);
  bytes.replace(bytes.find("\"" + name + "\""), name.size() + 2, "\"" + other + "\"");
  std::ofstream(to, std::ios::binary) << bytes;
}

TEST_F(ModelTest, ChecksImportedModels) {
  SKIP_WITHOUT_TORCH();
  const char* golden = std::getenv("NAS_GOLDEN_CHECKPOINTS");
  if (golden == nullptr) GTEST_SKIP() << "NAS_GOLDEN_CHECKPOINTS names no checkpoints";
  int imported = 0;
  for (const auto& entry : fs::directory_iterator(golden)) {
    SCOPED_TRACE(entry.path());
    const auto answer = nlohmann::json::parse(read_file(entry.path() / "case.json")).at("answer");
    fs::remove_all(model());
    const int code = run("nas-model", {"import", entry.path(), "-o", model()});
    if (answer != "import" && code == 2) continue;
    ASSERT_EQ(code, 0) << text();
    const auto expected = entry.path() / "expected.safetensors";
    ASSERT_TRUE(ran("nas-model", {"check", model(), "--expected", expected}));
    expect_text("greedy  12 tokens, all equal\n");
    if (++imported > 1) continue;
    // What is behind another layer is no longer the same, nor what is of no name.
    const auto other = folder_ / "other.safetensors";
    rename_tensor(expected, other, "hidden.1", "hidden.9");
    expect_refusal("nas-model", {"check", model(), "--expected", other},
                   "tensor hidden.9 is none of ids, logits, nll, greedy and hidden.0 to hidden.");
    rename_tensor(expected, other, "ids", "idx");
    expect_refusal("nas-model", {"check", model(), "--expected", other}, "tensor ids is missing");
    rename_tensor(expected, folder_ / "between", "hidden.1", "hidden.x");
    rename_tensor(folder_ / "between", other, "hidden.2", "hidden.1");
    rename_tensor(other, folder_ / "between", "hidden.x", "hidden.2");
    EXPECT_EQ(run("nas-model", {"check", model(), "--expected", folder_ / "between"}), 1);
    expect_text("tensor hidden.1 differs by ");
  }
  EXPECT_GE(imported, 10);
}

}  // namespace
}  // namespace nas::testing
