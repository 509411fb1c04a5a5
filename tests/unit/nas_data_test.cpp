#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "data_fixture.hpp"
#include "places.hpp"
#include "small_table.hpp"
#include "table/table.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Output {
  int code = 0;
  std::string text;  // stdout and stderr
};

// Runs a command of the shell.
Output output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  Output output;
  std::array<char, 4096> buffer{};
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), size);
  }
  output.code = WEXITSTATUS(pclose(pipe));
  return output;
}

// Runs nas-data with NAS_DATA_DIR at `data`.
Output nas_data(const fs::path& data, const std::string& arguments) {
  return output_of("NAS_DATA_DIR='" + data.string() + "' '" + program_folder() + "/nas-data' " +
                   arguments + " 2>&1");
}

class NasData : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(program_folder()) / "nas-data"))
      GTEST_SKIP() << "nas-data is not built";
  }
  Output run(const std::string& arguments) const {
    return nas_data(folder_.path() / "data", arguments);
  }
  [[nodiscard]] std::string write_own() const {
    folder_.write("own/train.txt", "a b a c\n");
    folder_.write("own/valid.txt", "a b\n");
    folder_.write("own/test.txt", "c\n");
    return (folder_.path() / "own").string();
  }

  TemporaryFolder folder_;
};

TEST_F(NasData, WithoutAVariableTheFolderIsDataHereOrTheUsersCache) {
  const auto own = write_own();
  const auto cache = folder_.path() / "cache";
  const auto get = [&](const std::string& environment) {
    return output_of("cd '" + folder_.path().string() + "' && env -u NAS_DATA_DIR " + environment +
                     " '" + program_folder() + "/nas-data' get wikitext-2 --from '" + own +
                     "' 2>&1");
  };
  const auto here = [](const fs::path& folder) {
    return HasSubstr("is now in " + folder.string());
  };
  EXPECT_THAT(get("XDG_CACHE_HOME='" + cache.string() + "'").text,
              here(cache / "attnas/wikitext-2\n"));
  const std::string home = "HOME='" + folder_.path().string() + "/home' ";
  for (const std::string without : {"-u XDG_CACHE_HOME ", "XDG_CACHE_HOME=relative "}) {
    EXPECT_THAT(get(without + home).text, here(folder_.path() / "home/.cache/attnas/wikitext-2\n"));
    fs::remove_all(folder_.path() / "home");
  }
  fs::create_directory(folder_.path() / "data");
  EXPECT_THAT(get(home).text, here("data/wikitext-2\n"));
}

TEST_F(NasData, WrongWordsEndWith2) {
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("fetch").code, 2);
  EXPECT_THAT(
      run("fetch").text,
      StartsWith("nas-data: unknown command 'fetch', known: gates, get, info, list, table"));
  EXPECT_EQ(run("get").code, 2);
  const Output unknown = run("get wikitext2");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.text, HasSubstr("did you mean wikitext-2?"));
  EXPECT_THAT(run("get brown extra").text, HasSubstr("'extra' is not understood"));
  EXPECT_THAT(run("get brown --from").text, HasSubstr("--from has no value"));
  EXPECT_THAT(run("tabel info x").text, HasSubstr("did you mean table?"));
  EXPECT_THAT(run("table pack x --ouput y").text,
              HasSubstr("unrecognised option '--ouput'; did you mean --output?"));
  EXPECT_THAT(run("info mqar --context 0").text, HasSubstr("--context = 0, must be at least 1"));
  for (const std::string asks : {"--help", "table info --help", "get brown -h"}) {
    EXPECT_EQ(run(asks).code, 0) << asks;
    EXPECT_THAT(run(asks).text, HasSubstr("Usage: nas-data COMMAND")) << asks;
  }
}

TEST_F(NasData, InfoOfAnOwnTextSaysWhatWasAskedFor) {
  folder_.write("mine.txt", std::string(40, 'a') + "\nb c d\ne f g h\nb c\nd e f\ng\nb\nc\n");
  const Output info =
      run("info text_file --context 2 path=" + (folder_.path() / "mine.txt").string() +
          " valid_share=0.2 test_share=0.2");
  EXPECT_EQ(info.code, 0) << info.text;
  EXPECT_THAT(info.text, HasSubstr("standard layout"));
  EXPECT_THAT(info.text, HasSubstr("  2-gram    perplexity "));
  EXPECT_THAT(info.text, HasSubstr("  6-gram    perplexity "));
  EXPECT_THAT(info.text, ::testing::Not(HasSubstr("published")));
}

TEST_F(NasData, GetFromAFolderThenListAndInfo) {
  const Output missing = run("info wikitext-2");
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.text, HasSubstr("nas-data get wikitext-2"));
  EXPECT_THAT(run("list").text, HasSubstr("nas-data get wikitext-2"));

  const Output got = run("get wikitext-2 --from " + write_own());
  EXPECT_EQ(got.code, 0) << got.text;
  EXPECT_THAT(got.text, HasSubstr("wikitext-2 is now in "));
  const Output again = run("get wikitext-2");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.text, StartsWith("wikitext-2 is already in "));
  EXPECT_THAT(run("list").text, HasSubstr((folder_.path() / "data/wikitext-2").string()));

  const Output info = run("info wikitext-2 --context 2 layout=standard");
  EXPECT_EQ(info.code, 0) << info.text;
  EXPECT_THAT(info.text, HasSubstr("train     4 tokens in 1 lines"));
  EXPECT_THAT(info.text, HasSubstr("types     5 in train"));
  EXPECT_THAT(info.text, HasSubstr("valid     2 windows, 3 scored targets"));
  EXPECT_THAT(info.text, HasSubstr("unknown   0 % of the targets of train are <unk>, 0 % of"));
  EXPECT_THAT(info.text, Not(HasSubstr("warning")));
  EXPECT_THAT(info.text, HasSubstr("source    " + (folder_.path() / "own").string()));
  EXPECT_THAT(info.text, HasSubstr("licence   CC BY-SA"));
  // Of two windows a, <unk>, a, <unk>.
  EXPECT_THAT(run("info wikitext-2 --context 2 layout=standard vocabulary=3").text,
              AllOf(HasSubstr("unknown   50 % of the targets of train are <unk>, 33.33 % of valid"),
                    HasSubstr("warning: 50 % of the targets of train are <unk>, ")));
}

TEST_F(NasData, FailedGetWritesNothing) {
  const Output output = run("get wikitext-2 --from /no/such");
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.text, "nas-data: --from /no/such: no such folder or archive\n");
  EXPECT_EQ(num_entries(folder_.path()), 0U);
}

TEST_F(NasData, BuiltInCorporaNeedNoDownload) {
  EXPECT_EQ(run("get mqar").text, "mqar needs no download\n");
  EXPECT_THAT(run("info mqar --context 64 train_examples=7").text,
              HasSubstr("train     7 windows, 28 scored targets"));
}

TEST_F(NasData, SettingsOfInfoAreChecked) {
  EXPECT_THAT(run("info mqar pairs=x").text, HasSubstr("pairs = x, must be an integer"));
  EXPECT_THAT(run("info mqar pairs=0").text, HasSubstr("pairs=0: must be"));
  EXPECT_THAT(run("info mqar pears=1").text,
              HasSubstr("unknown setting 'pears', known: vocabulary"));
  EXPECT_EQ(run("info mqar pears=1").code, 2);
  EXPECT_THAT(
      run("info mqar --context 16").text,
      HasSubstr("chance    guessing among the values shown, by the place of the query: nll"));
  EXPECT_THAT(run("info mqar power=1e").text, HasSubstr("power = 1e, must be a number"));
  EXPECT_THAT(run("info mqar random_non_queries=1").text,
              HasSubstr("random_non_queries = 1, must be true or false"));
  EXPECT_THAT(run("info mqar --context x").text, HasSubstr("--context = x, must be an integer"));
  EXPECT_THAT(run("info mqar pairs").text, HasSubstr("'pairs' is not understood"));
}

class NasDataTable : public NasData {
 protected:
  void SetUp() override {
    NasData::SetUp();
    testing::write_small_store(store_, testing::small_cells());
  }
  [[nodiscard]] Output table(const std::string& arguments) const {
    return run("table " + arguments);
  }

  fs::path store_ = folder_.path() / "small.sqlite";
  fs::path file_ = folder_.path() / "small.table";
};

TEST_F(NasDataTable, PackVerifyAndInfo) {
  const Output packed = table("pack " + store_.string() + " --output " + file_.string());
  EXPECT_EQ(packed.code, 0) << packed.text;
  EXPECT_THAT(packed.text,
              HasSubstr("small.table: 12 mechanisms x 3 replicates, 36 cells, 0 missing"));
  const Output verified = table("verify " + file_.string() + " " + store_.string());
  EXPECT_EQ(verified.code, 0) << verified.text;
  EXPECT_THAT(verified.text, EndsWith("36 of 36 cells as recorded\n"));
  const Output info = table("info " + file_.string());
  EXPECT_EQ(info.code, 0) << info.text;
  EXPECT_THAT(info.text, StartsWith("small: 12 mechanisms x 3 replicates\n"));
  EXPECT_THAT(info.text, HasSubstr("  cells       36 cells, 0 missing\n"));
  EXPECT_THAT(info.text, HasSubstr("  steps       [10, 20, 40]\n"));
  EXPECT_THAT(info.text, HasSubstr("  best        dot|softmax|none|learned|bias|0: nll 2.6"));
  EXPECT_THAT(info.text, HasSubstr("  worst       additive|relu_norm|none|fixed|"));
  EXPECT_THAT(info.text, HasSubstr("between mechanisms (ICC)"));
  EXPECT_THAT(info.text, HasSubstr("over 3 pairs"));
  EXPECT_THAT(info.text, HasSubstr("  nll         2.6"));
  EXPECT_THAT(info.text,
              HasSubstr("chance      guessing by how often each token occurs: nll 3.689\n"));
}

TEST_F(NasDataTable, InfoHasADashWhereNothingVaries) {
  for (const bool mechanisms_differ : {false, true}) {
    auto content = testing::small_content();
    for (auto& cell : content.cells) {
      cell.curve.back().valid.nll =
          1000.0 * (mechanisms_differ ? static_cast<double>(cell.candidate.size()) : 1.0);
    }
    write_table(content, file_);
    const auto text = table("info " + file_.string()).text;
    EXPECT_THAT(text, HasSubstr("  variance    -\n"));
    EXPECT_THAT(text, Not(HasSubstr("nan")));
  }
}

TEST_F(NasDataTable, InfoSaysWhereMechanismsDoNotDiffer) {
  auto content = testing::small_content();
  for (auto& cell : content.cells) {
    cell.curve.back().valid.nll = 1000.0 * (1.0 + static_cast<double>(cell.replicate));
  }
  write_table(content, file_);
  EXPECT_THAT(table("info " + file_.string()).text,
              HasSubstr("  variance    nothing of that of the final validation nll is between "
                        "mechanisms (ICC -0.500)\n"));
  // Replicates that do more to all of them than these differ by, and then some.
  for (auto& cell : content.cells) {
    const auto own = static_cast<double>(cell.candidate.size());
    const auto replicate = static_cast<double>(cell.replicate);
    cell.curve.back().valid.nll =
        1000.0 * (own + 100.0 * replicate) + std::fmod(own * replicate, 7.0);
  }
  write_table(content, file_);
  EXPECT_THAT(table("info " + file_.string()).text,
              AllOf(HasSubstr("nothing of that of the final validation nll"),
                    HasSubstr("; 1.000 without what a replicate does")));
  std::erase_if(content.cells, [](const Evaluation& cell) { return cell.replicate > 0; });
  write_table(content, file_);
  const auto single = table("info " + file_.string());
  EXPECT_EQ(single.code, 0) << single.text;
  EXPECT_THAT(single.text, Not(HasSubstr("variance")));
}

TEST_F(NasDataTable, FurtherReplicatesOfTheBestAreNoneThatTheOthersLack) {
  const auto raced = (folder_.path() / "raced.sqlite").string();
  std::vector<Evaluation> cells;
  // A race: more than half go on to its second round, and one to its end.
  const auto& mechanisms = testing::small_mechanisms();
  const std::vector<std::size_t> survivors{8, 2, 2, 1};
  for (std::size_t round = 0; round < survivors.size(); ++round) {
    for (std::size_t i = 0; i < survivors[round]; ++i) {
      cells.push_back(testing::small_evaluation(mechanisms[mechanisms.size() - 1 - i],
                                                static_cast<std::int64_t>(3 + round)));
    }
  }
  testing::write_small_store(raced, cells);
  const std::string size = "12 mechanisms x 3 replicates, 8 of them up to 7";
  const auto both = store_.string() + " " + raced;
  EXPECT_THAT(table("pack " + both + " --output " + file_.string()).text,
              HasSubstr("small.table: " + size + ", 49 cells, 0 missing"));
  const auto verified = table("verify " + file_.string() + " " + raced);
  EXPECT_EQ(verified.code, 0) << verified.text;
  EXPECT_THAT(verified.text,
              HasSubstr("13 of 13 cells as recorded\n36 cells of the table that none of these "
                        "runs has:\n  additive|relu_norm|none|fixed|bias|0, replicate 0\n"));
  EXPECT_THAT(verified.text, EndsWith("\n  and 16 more\n"));
  const auto info = table("info " + file_.string()).text;
  EXPECT_THAT(info, StartsWith("small: " + size + "\n"));
  EXPECT_THAT(info, HasSubstr("  cells       49 cells, 0 missing\n"));
  EXPECT_THAT(info, HasSubstr("over 3 pairs")) << "of the replicates that most have";
}

TEST_F(NasDataTable, InfoSaysWhatIsBetterThanChance) {
  const auto info_of = [this](const nlohmann::json& facts) {
    auto content = testing::small_content();
    for (auto& cell : content.cells) {  // nll of 1, 2 or 3 by its replicate, half of them right
      auto& valid = cell.curve.back().valid;
      valid.nll = 1000.0 * (1.0 + static_cast<double>(cell.replicate));
      valid.correct = 500;
      if (cell.candidate.starts_with("dot")) valid.nll *= 2.0;
    }
    content.identity.erase("corpus");
    content.facts.update(facts);
    write_table(content, file_);
    return table("info " + file_.string());
  };
  const auto stated = [](double nll) {
    return nlohmann::json{{"corpus", "x"},
                          {"chance", {{"by", "tossing a coin"}, {"nll", nll}, {"accuracy", 0.5}}}};
  };
  const auto half = info_of(stated(3.0)).text;
  EXPECT_THAT(half, HasSubstr("  nll         2.000 best mechanism, 3.000 median"));
  EXPECT_THAT(half, HasSubstr("  accuracy    50.0 % best mechanism, 50.0 % median\n"));
  EXPECT_THAT(half, HasSubstr("  chance      tossing a coin: nll 3.000, accuracy 50.0 %\n"));
  EXPECT_THAT(half, HasSubstr("6 of 12 mechanisms (50.0 %) do better than tossing a coin"));
  EXPECT_THAT(info_of(stated(1.5)).text, HasSubstr("no mechanism does better than tossing a coin"));
  const auto described =
      info_of({{"corpus", "mqar"},
               {"corpus_description", "multi-query associative recall; 4 pairs in 32"}});
  EXPECT_THAT(described.text,
              HasSubstr("guessing among the values shown: nll 1.386, accuracy 25.0 %"));
}

TEST_F(NasDataTable, TheTablesHereSayWhatTheyAreWorth) {
  const Output recall = table("info " + source_folder() + "/problems/tables/recall.table");
  EXPECT_EQ(recall.code, 0) << recall.text;
  EXPECT_THAT(recall.text, HasSubstr("nll 0.693, accuracy 50.1 %"));
  EXPECT_THAT(recall.text, HasSubstr("87 of 320 mechanisms (27.2 %) reach 90.0 % accuracy, mean "
                                     "over replicates, 139 (43.4 %) do so with most replicates"));
  EXPECT_THAT(recall.text, HasSubstr("best of the other (35 divisions)"));
  EXPECT_THAT(recall.text, HasSubstr("  model       context=8, dropout=0.0, feed_forward=4, "));
  const Output text = table("info " + source_folder() + "/problems/tables/text.table");
  EXPECT_EQ(text.code, 0) << text.text;
  EXPECT_THAT(text.text, HasSubstr("chance      guessing by how often each token occurs: nll 3.0"));
  EXPECT_THAT(text.text, HasSubstr("320 of 320 mechanisms (100.0 %) do better than guessing"));
  EXPECT_THAT(
      text.text,
      HasSubstr("\n  its terms   Brown corpus: redistribution permitted by the copyright holder"));
}

TEST_F(NasDataTable, InfoSaysUnderWhichTermsATableIsPublished) {
  auto content = testing::small_content();
  content.publication = {{"licence", "CC BY 4.0"},
                         {"version", "1.1.0"},
                         {"corpus_licence", "as the corpus says"},
                         {"changelog",
                          {{{"version", "1.1.0"}, {"date", "2026-02-28"}, {"text", "more seeds"}},
                           {{"version", "1.0.0"}, {"date", "2026-01-31"}, {"text", "first"}}}}};
  write_table(content, file_);
  const auto said = table("info " + file_.string());
  EXPECT_THAT(said.text, HasSubstr("\n  version     1.1.0\n              1.1.0 (2026-02-28): more "
                                   "seeds\n              1.0.0 (2026-01-31): first\n"
                                   "  licence     CC BY 4.0\n"));
  EXPECT_THAT(said.text, HasSubstr("\n  its terms   as the corpus says\n"));
  EXPECT_EQ(table("verify " + file_.string()).code, 0);
}

TEST_F(NasDataTable, PackRecordsTheTermsOfTheCorpus) {
  ASSERT_EQ(table("pack " + store_.string() + " --output " + file_.string()).code, 0);
  EXPECT_THAT(Table(file_).publication().value("corpus_licence", ""),
              HasSubstr("not for commercial use"));
}

TEST_F(NasDataTable, InfoSaysWhetherAttentionMattersOnTheTask) {
  auto content = testing::small_content();
  write_table(content, file_);
  EXPECT_THAT(table("info " + file_.string()).text,
              HasSubstr("\n  gates       no gates were recorded\n"));
  content.publication["gates"] = {
      {"verdict", "Not passed: better than counts."},
      {"gates", {{{"name", "better than counts"}, {"words", "perplexity 9 against 4"}}}}};
  write_table(content, file_);
  EXPECT_THAT(table("info " + file_.string()).text,
              HasSubstr("\n  gates       Not passed: better than counts.\n"
                        "              better than counts: perplexity 9 against 4\n"));
}

TEST_F(NasDataTable, InfoSaysWhichFunctionsAreMissing) {
  auto content = testing::small_content();
  const auto gene = [](const char* name, const char* vanilla) {
    return nlohmann::json{{"name", name}, {"vanilla", {vanilla}}};
  };
  auto temperature = gene("temperature", "fixed");
  temperature["voided_by"] = {{"normalization", {"relu_norm"}}};
  content.facts["schema"]["genes"] = {gene("similarity", "dot"), gene("normalization", "softmax"),
                                      gene("gating", "none"),    temperature,
                                      gene("bias", "bias"),      {{"name", "dropout"}}};
  write_table(content, file_);
  EXPECT_THAT(table("info " + file_.string()).text, Not(HasSubstr("missing ")))
      << "a temperature without effect is no function of its own";
  std::erase_if(content.cells, [](const Evaluation& cell) {
    return cell.candidate == "additive|relu_norm|none|fixed|bias|0";
  });
  write_table(content, file_);
  EXPECT_THAT(table("info " + file_.string()).text,
              HasSubstr("\n  missing     1 of the 12 functions that its options make have no "
                        "training run, such as additive|relu_norm|none|fixed|bias|0\n"));
}

TEST_F(NasDataTable, PackKeepsTheGatesOfTheTask) {
  const auto record = folder_.path() / "gates.json";
  const auto pack = [&](const nlohmann::json& given) {
    std::ofstream(record) << given;
    return table("pack " + store_.string() + " --output " + file_.string() + " --gates " +
                 record.string());
  };
  EXPECT_THAT(pack({{"schema", 1}}).text, HasSubstr("must be a record of nas-data gates"));
  nlohmann::json gates{{"schema", 1}, {"verdict", "passed"}, {"gates", nlohmann::json::array()}};
  EXPECT_THAT(pack(gates).text, HasSubstr("corpus_hash is null, must be that of the runs: \"abc"));
  EXPECT_FALSE(fs::exists(file_));
  ASSERT_EQ(table("pack " + store_.string() + " --output " + file_.string()).code, 0);
  const auto before = Table(file_).sha256();
  gates["identity"] = Table(file_).facts();
  gates["identity"]["training"]["steps"] = 1000000;
  EXPECT_THAT(pack(gates).text, HasSubstr("training/steps is 1000000, must be that of the runs"));
  gates["identity"] = Table(file_).facts();
  const auto said = pack(gates);
  ASSERT_EQ(said.code, 0) << said.text;
  EXPECT_EQ(Table(file_).publication().at("gates"), gates);
  EXPECT_EQ(Table(file_).sha256(), before);
}

TEST_F(NasDataTable, ATableWithAFittingChecksumThatCannotBeEndsWith2) {
  write_table(testing::small_content(testing::small_cells()), file_);
  testing::change_table(file_, "UPDATE curves SET nll = NULL WHERE mechanism = 1 AND step = 20");
  for (const std::string command : {"info ", "verify "}) {
    const auto output = table(command + file_.string());
    EXPECT_EQ(output.code, 2) << output.text;
    EXPECT_THAT(output.text, HasSubstr("a loss at step 20 = nan, must be finite"));
  }
}

TEST_F(NasDataTable, DifferencesEndWith2) {
  ASSERT_EQ(table("pack " + store_.string() + " --output " + file_.string()).code, 0);
  auto cells = testing::small_cells();
  cells[0].values["perplexity"] = 1.5;
  testing::write_small_store(folder_.path() / "other.sqlite", cells);
  const Output output =
      table("verify " + file_.string() + " " + (folder_.path() / "other.sqlite").string());
  EXPECT_EQ(output.code, 2) << output.text;
  EXPECT_THAT(output.text, HasSubstr(cells[0].candidate + ", replicate 0: values.perplexity: 1.5"));
  EXPECT_THAT(output.text, HasSubstr("35 of 36 cells as recorded"));
}

TEST_F(NasDataTable, PackReplacesTablesOnly) {
  const auto notes = folder_.write("notes.txt", "mine\n");
  const auto copy = folder_.path() / "copy.sqlite";
  fs::copy_file(store_, copy);
  for (const auto& file : {notes, copy}) {
    const auto before = fs::file_size(file);
    const Output output = table("pack " + store_.string() + " --output " + file.string());
    EXPECT_EQ(output.code, 2) << output.text;
    EXPECT_THAT(output.text, HasSubstr("is there and no table"));
    EXPECT_EQ(fs::file_size(file), before);
  }
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(table("pack " + store_.string() + " --output " + file_.string()).code, 0);
  }
}

TEST_F(NasDataTable, ARunThatHasNoCellVerifiesNothing) {
  ASSERT_EQ(table("pack " + store_.string() + " --output " + file_.string()).code, 0);
  const auto other = (folder_.path() / "zdt.sqlite").string();
  testing::write_small_store(other, {testing::small_evaluation("zdt1 0.5 0.5", 0)});
  const Output output = table("verify " + file_.string() + " " + other);
  EXPECT_EQ(output.code, 2) << output.text;
  EXPECT_THAT(output.text,
              HasSubstr("nas-data: " + other + ": holds nothing that a table could have"));
  EXPECT_THAT(output.text, Not(HasSubstr("as recorded")));
}

TEST_F(NasDataTable, Audit) {
  ASSERT_EQ(table("pack " + store_.string() + " --output " + file_.string()).code, 0);
  const auto command = "audit " + file_.string() + " --rungs 10,40 --seeds 20 ";
  const Output text = table(command);
  EXPECT_EQ(text.code, 0) << text.text;
  EXPECT_THAT(text.text,
              StartsWith("small: 12 mechanisms x 3 replicates, rungs 10 (eta 4.00), 40\n"));
  EXPECT_THAT(text.text, HasSubstr("  *   10 "));
  EXPECT_THAT(text.text, HasSubstr("    10  halving            12    3"));
  EXPECT_THAT(text.text,
              HasSubstr("12 mechanisms do not tell whether the first rung is too early, 64 would"));
  std::istringstream lines(text.text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  const auto json = folder_.path() / "audit.json";
  EXPECT_EQ(table(command + "--eta 3 --format json --output " + json.string()).text, "");
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(json)).at("eta"), nlohmann::json({3.0}));
  EXPECT_THAT(table(command + "--promote epsilon_net --format csv").text,
              StartsWith("part,of,at,quantity,value\n"));
  EXPECT_EQ(table(command + "--format xml").text,
            "nas-data: --format xml, must be text, json or csv\n");
  EXPECT_EQ(table("audit x").text, "nas-data: table audit: --rungs STEP,STEP,... is missing\n");
  EXPECT_EQ(table(command + "another").code, 2);
  const auto nowhere = table(command + "--output " + (json / "x").string());
  EXPECT_EQ(nowhere.code, 2) << nowhere.text;
  EXPECT_EQ(table(command + "--output " + file_.string()).text,
            "nas-data: --output " + file_.string() +
                ": is a table or the record of a run, must be another file\n");
  EXPECT_EQ(table("verify " + file_.string()).code, 0);
  EXPECT_EQ(table("audit " + file_.string() + " --rungs 10,x").text,
            "nas-data: --rungs = x, must be an integer\n");
}

TEST_F(NasDataTable, WrongWordsEndWith2) {
  EXPECT_EQ(table("").text,
            "nas-data: table: no command given, known: audit, info, pack, verify\n");
  EXPECT_THAT(table("unpack").text, HasSubstr("unknown command 'unpack'"));
  EXPECT_THAT(table("pack x").text, HasSubstr("--output FILE is missing"));
  EXPECT_THAT(table("pack --output x").text, HasSubstr("no store or folder of a run is given"));
  EXPECT_THAT(table("verify").text, HasSubstr("no table is given"));
  EXPECT_THAT(table("info").text, HasSubstr("one table must be given"));
  const Output output = table("pack /no/such --output " + file_.string());
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.text, "nas-data: /no/such: no such store; give a run's folder\n");
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(table("verify " + store_.string()).code, 2);
}

TEST_F(NasDataTable, ARunIsNoTableAndATableNoRun) {
  const auto run_folder = (folder_.path() / "run").string();
  fs::create_directory(run_folder);
  fs::copy_file(store_, fs::path(run_folder) / "store.sqlite");
  for (const std::string command : {"info ", "verify ", "audit --rungs 10,40 "}) {
    EXPECT_EQ(table(command + run_folder).text,
              "nas-data: " + run_folder +
                  ": is a run, must be a table; nas-data table pack makes one of runs\n");
  }
  ASSERT_EQ(table("pack " + run_folder + " --output=" + file_.string()).code, 0);
  for (const auto& command : {std::string("pack --output x "), "verify " + file_.string() + " "}) {
    EXPECT_THAT(table(command + file_.string()).text,
                HasSubstr(file_.string() + ": is a table, must be a run's folder"));
  }
}

}  // namespace
}  // namespace nas
