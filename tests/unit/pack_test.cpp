#include "table/pack.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "small_table.hpp"
#include "unit/message_of.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PackTest : public ::testing::Test {
 protected:
  fs::path store(const std::string& name, const std::vector<Evaluation>& evaluations,
                 const nlohmann::json& facts = small_facts()) const {
    fs::create_directories(folder_.path() / name);
    write_small_store(folder_.path() / name / "store.sqlite", evaluations, facts);
    return folder_.path() / name;
  }
  Table table(const std::vector<fs::path>& stores) const {
    const auto file = folder_.path() / "small.table";
    write_table(pack(stores, "small").content, file);
    return Table(file);
  }
  static std::string refusal(const std::vector<fs::path>& stores, const fs::path& measured = {}) {
    return message_of<InputError>([&] { (void)pack(stores, "small", measured); });
  }
  /// The small cells after a change of each identity.
  template <class Change>
  static std::vector<Evaluation> changed(Change change) {
    auto cells = small_cells();
    for (auto& cell : cells) {
      change(cell.identity);
      cell.id = sha256(cell.identity.dump());
    }
    return cells;
  }

  TemporaryFolder folder_;
};

TEST_F(PackTest, ATableIsWhatTheStoreSays) {
  const auto run = store("run", small_cells());
  const auto packed = pack({run}, "small");
  EXPECT_EQ(packed.content.cells.size(), 36U);
  EXPECT_THAT(packed.left_out, IsEmpty());
  EXPECT_THAT(packed.missing, IsEmpty());
  EXPECT_THAT(packed.unfinished, IsEmpty());
  const auto small = table({run});
  EXPECT_EQ(small.facts().at("sources").at(0).at("name"), "run");
  EXPECT_EQ(small.facts().at("bytes_per_token"), 5.5);
  const auto checked = check_table(small, run / "store.sqlite");
  EXPECT_EQ(checked.cells, 36);
  EXPECT_THAT(checked.differences, IsEmpty());
}

TEST_F(PackTest, WhatARunSaysOfItsComponentsGoesAlong) {
  const auto old = store("old", small_cells());
  EXPECT_FALSE(table({old}).facts().contains("schema"));
  const auto run = store("run", small_cells());
  const nlohmann::json schema{{"reference_point", 1.1}};
  Store(run / "store.sqlite").set_meta("schema", schema);
  EXPECT_EQ(table({old, run}).facts().at("schema"), schema);
}

TEST_F(PackTest, MeasurementsMayComeFromAnotherRun) {
  const auto run = store("run", small_cells());
  auto elsewhere = changed([](nlohmann::json& identity) { identity["training"]["steps"] = 1; });
  for (auto& cell : elsewhere) cell.measured["latency"] = {{"value", 77.0}, {"device", "other"}};
  const auto other = store("quiet", elsewhere);
  const auto file = folder_.path() / "small.table";
  write_table(pack({run}, "small", other).content, file);
  const Table measured(file);
  const auto plain = table({run});
  for (std::int64_t i = 0; i < plain.num_mechanisms(); ++i) {
    EXPECT_EQ(measured.measured(i).at("latency").at("value"), 77.0);
    EXPECT_NE(plain.measured(i).at("latency").at("value"), 77.0);
    EXPECT_EQ(canonical_json(measured.evaluation(i, 0)), canonical_json(plain.evaluation(i, 0)));
  }
  const auto& source = measured.facts().at("sources").at(1);
  EXPECT_EQ(source.at("name"), "quiet");
  EXPECT_EQ(source.at("measured"), nlohmann::json::array({"latency"}));

  const auto wider = changed([](nlohmann::json& identity) {
    identity["model"] = {{"width", 999}};
  });
  EXPECT_THAT(refusal({run}, store("wider", wider)), HasSubstr("wider: model is {\"width\":999}"));
  auto nothing = small_cells();
  for (auto& cell : nothing) cell.measured.erase("latency");
  EXPECT_THAT(refusal({run}, store("nothing", nothing)),
              HasSubstr("nothing: nothing was measured there"));
}

TEST_F(PackTest, WhatFollowedTheSearchIsLeftOut) {
  auto cells = small_cells();
  auto held_out = small_evaluation(cells.front().candidate, kFirstHeldOutReplicate);
  auto tuned = cells.front();
  tuned.identity["training"]["learning_rate"] = 0.5;
  tuned.id = sha256(tuned.identity.dump());
  cells.insert(cells.end(), {held_out, tuned});
  const auto run = store("run", cells);
  Store(run / "store.sqlite").set_meta("config", {{"training", {{"learning_rate", 3e-4}}}});
  const auto packed = pack({run}, "small");
  EXPECT_EQ(packed.content.cells.size(), 36U);
  EXPECT_THAT(packed.missing, IsEmpty());
  EXPECT_EQ(check_table(table({run}), run).cells, 36);
}

TEST_F(PackTest, RunsOfSeveralMachinesAreOneTable) {
  const auto cells = small_cells();
  const auto whole = table({store("whole", cells)});
  // The parts overlap in the middle.
  const auto merged = table({store("b", {cells.begin() + 10, cells.end()}),
                             store("a", {cells.begin(), cells.begin() + 20})});
  ASSERT_EQ(merged.num_mechanisms(), whole.num_mechanisms());
  for (const auto& cell : cells) {
    const auto i = *merged.find(cell.candidate);
    EXPECT_EQ(canonical_json(merged.evaluation(i, cell.replicate)),
              canonical_json(whole.evaluation(i, cell.replicate)));
  }
  EXPECT_EQ(merged.facts().at("sources").size(), 2U);
  EXPECT_EQ(merged.facts().at("sources").at(0).at("cells"), 26);
}

TEST_F(PackTest, AFactThatOneRunDoesNotKnowContradictsNothing) {
  const auto cells = small_cells();
  auto facts = small_facts();
  facts["test_bytes_per_token"] = 5.25;
  const auto older = store("older", {cells.begin(), cells.begin() + 20});
  const auto newer = store("newer", {cells.begin() + 10, cells.end()}, facts);
  EXPECT_EQ(table({older, newer}).facts().at("test_bytes_per_token"), 5.25);
  EXPECT_EQ(table({newer, older}).facts().at("test_bytes_per_token"), 5.25);
  facts["test_bytes_per_token"] = 5.5;
  EXPECT_EQ(refusal({newer, older, store("other", cells, facts)}),
            "these runs are no one table, they differ in\n  test_bytes_per_token: 5.25 -> 5.5");
}

TEST_F(PackTest, RunsThatDifferAreRefusedWithEveryKey) {
  const auto a = store("a", small_cells());
  auto facts = small_facts();
  facts["device"] = "cuda";
  const auto b = store("b", changed([](auto& identity) {
                         identity["run_seed"] = 43;
                         identity["training"]["steps"] = 50;
                         identity["causality_gate"] = true;
                       }),
                       facts);
  EXPECT_EQ(refusal({a, b}),
            "these runs are no one table, they differ in\n"
            "  causality_gate: absent -> true\n"
            "  device: \"cpu\" -> \"cuda\"\n"
            "  run_seed: 42 -> 43\n"
            "  training.steps: 40 -> 50");
}

TEST_F(PackTest, AMixtureWithinOneRunIsRefused) {
  auto cells = small_cells();
  cells[3].identity["stop_above_nll"] = {{"20", 3.5}};
  cells[3].id = sha256(cells[3].identity.dump());
  EXPECT_THAT(refusal({store("a", cells)}), HasSubstr(R"(stop_above_nll: absent -> {"20":3.5})"));
}

TEST_F(PackTest, DifferingDuplicatesAreRefused) {
  auto cells = small_cells();
  const auto a = store("a", cells);
  cells[4].values["perplexity"] = 1.5;
  const auto b = store("b", cells);
  const auto text = refusal({a, b});
  EXPECT_THAT(text, HasSubstr("a and "));
  EXPECT_THAT(text, HasSubstr("b differ in " + cells[4].candidate + ", replicate 1:\n"));
  EXPECT_THAT(text, HasSubstr("values.perplexity: "));
  EXPECT_THAT(text, HasSubstr(" -> 1.5"));
}

TEST_F(PackTest, MeasuredNumbersOfDuplicatesMayDiffer) {
  auto cells = small_cells();
  const auto a = store("a", cells);
  cells[0].measured["cpu_seconds"] = 1e6;
  const auto b = store("b", cells);
  EXPECT_LT(table({a, b}).seconds(0, 0), 1e6);
  EXPECT_THAT(check_table(table({a}), b).differences,
              ElementsAre(cells[0].candidate + ", replicate 0: measured.cpu_seconds"));
}

TEST_F(PackTest, WhatOneOfTwoRunsMeasuredIsKept) {
  const auto with = store("with", small_cells());
  auto cells = small_cells();
  for (auto& cell : cells) cell.measured.erase("latency");
  const auto without = store("without", cells);
  for (const auto& runs : {std::vector{with, without}, std::vector{without, with}}) {
    const auto merged = table(runs);
    EXPECT_EQ(merged.measured(0), table({with}).measured(0)) << runs.front();
    EXPECT_TRUE(merged.measured(0).contains("latency"));
  }
}

TEST_F(PackTest, MechanismsWithDropoutAreLeftOut) {
  const std::string vanilla = "dot|softmax|none|fixed|bias|0.1";
  auto cells = small_cells();
  cells.push_back(small_evaluation(vanilla, 0));
  const auto run = store("run", cells);
  EXPECT_THAT(pack({run}, "small").left_out, ElementsAre(vanilla));
  EXPECT_EQ(table({run}).num_mechanisms(), 12);
  EXPECT_EQ(check_table(table({run}), run).cells, 36);
  const auto other = store("other", {small_evaluation(vanilla, 0)});
  EXPECT_EQ(message_of<InputError>([&] { (void)check_table(table({run}), other); }),
            other.string() +
                ": holds nothing that a table could have: training runs of a search, of mechanisms "
                "of the paper's six genes without attention dropout");
  EXPECT_THAT(
      refusal({other}),
      HasSubstr("no run holds a training of a mechanism that a table can have, of the paper's six "
                "genes and with attention_dropout 0: nothing to pack; they have " +
                vanilla));
}

TEST_F(PackTest, MissingCellsAndUnfinishedRunsAreListed) {
  auto cells = small_cells();
  const auto gone = cells[7].candidate;
  cells.erase(cells.begin() + 7);
  const auto run = store("run", cells);
  EXPECT_THAT(pack({run}, "small").missing, ElementsAre(gone + ", replicate 1"));
  fs::create_directories(folder_.path() / "half");
  {
    Store half(folder_.path() / "half" / "store.sqlite");
    half.set_meta("facts", small_facts());
    half.add(cells);
  }
  EXPECT_THAT(pack({folder_.path() / "half"}, "small").unfinished,
              ElementsAre((folder_.path() / "half").string()));
  EXPECT_THAT(check_table(table({run}), store("whole", small_cells())).differences,
              ElementsAre(gone + ", replicate 1: not in the table"));
}

TEST_F(PackTest, CellsThatNoRunHasAreNamed) {
  const auto cells = small_cells();
  const auto whole = table({store("whole", cells)});
  const auto first = check_table(whole, store("first", {cells.begin(), cells.begin() + 20}));
  const auto second = check_table(whole, store("second", {cells.begin() + 22, cells.end()}));
  EXPECT_THAT(first.differences, IsEmpty());
  EXPECT_THAT(unmet_cells(whole, {first, second}),
              UnorderedElementsAre(
                  cells[20].candidate + ", replicate " + std::to_string(cells[20].replicate),
                  cells[21].candidate + ", replicate " + std::to_string(cells[21].replicate)));
  EXPECT_EQ(unmet_cells(whole, {first}).size(), 16U);
  EXPECT_THAT(unmet_cells(whole, {check_table(whole, store("again", cells))}), IsEmpty());
}

TEST_F(PackTest, OtherProblemsAreRefused) {
  const auto run = store("run", changed([](auto& identity) { identity["problem"] = "sphere"; }));
  EXPECT_THAT(refusal({run}),
              HasSubstr("run: a run of the problem sphere, must be of attention_search"));
  EXPECT_THAT(refusal({folder_.path() / "nowhere"}), HasSubstr("nowhere: no such store"));
}

}  // namespace
}  // namespace nas
