#include "table/table.hpp"

#include <fstream>
#include <iterator>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "small_table.hpp"
#include "table/format.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::HasSubstr;

class TableTest : public ::testing::Test {
 protected:
  Table write(const TableContent& content) const {
    write_table(content, file_);
    return Table(file_);
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// What reading these bytes complains about.
  [[nodiscard]] std::string refusal(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary) << bytes;
    try {
      (void)Table(file_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  TemporaryFolder folder_;
  fs::path file_ = folder_.path() / "small.table";
};

void expect_same(const Evaluation& recorded, const Evaluation& replayed) {
  EXPECT_EQ(canonical_json(recorded), canonical_json(replayed));
  for (const auto* name : {"train_seconds", "cpu_seconds", "peak_bytes"}) {
    EXPECT_EQ(recorded.measured.contains(name), replayed.measured.contains(name)) << name;
    if (recorded.measured.contains(name)) {
      EXPECT_EQ(recorded.measured.at(name), replayed.measured.at(name)) << name;
    }
  }
  for (std::size_t i = 0; i < recorded.curve.size(); ++i) {
    EXPECT_EQ(recorded.curve[i].seconds, replayed.curve[i].seconds);
  }
}

TEST_F(TableTest, GivesBackEveryEvaluation) {
  const auto table = write(small_content());
  EXPECT_EQ(table.num_mechanisms(), 12);
  EXPECT_EQ(table.num_replicates(), 3);
  EXPECT_EQ(table.steps(), (std::vector<std::int64_t>{10, 20, 40}));
  for (const auto& cell : small_cells()) {
    const auto mechanism = table.find(cell.candidate);
    ASSERT_TRUE(mechanism);
    EXPECT_EQ(table.mechanism(*mechanism), cell.candidate);
    EXPECT_TRUE(table.has(*mechanism, cell.replicate));
    expect_same(cell, table.evaluation(*mechanism, cell.replicate));
  }
  EXPECT_FALSE(table.find("dot"));
}

TEST_F(TableTest, FailedTrainingsKeepWhatTheyHave) {
  auto cells = small_cells();
  auto& diverged = cells[4];
  diverged.status = Status::diverged;
  diverged.reason = "validation loss is not finite at step 20";
  diverged.curve.pop_back();
  diverged.curve[1].valid.nll = std::numeric_limits<double>::quiet_NaN();
  diverged.curve[1].train_nll = std::numeric_limits<double>::infinity();
  diverged.values = {{"parameters", 7.0}};
  auto& rejected = cells[5];
  rejected.status = Status::rejected;
  rejected.reason = "sees later tokens";
  rejected.curve.clear();
  rejected.measured = {{"pid", 3}};
  const auto table = write(small_content(cells));
  expect_same(cells[4], table.evaluation(*table.find(cells[4].candidate), cells[4].replicate));
  expect_same(cells[5], table.evaluation(*table.find(cells[5].candidate), cells[5].replicate));
  EXPECT_EQ(table.seconds(*table.find(rejected.candidate), rejected.replicate), 0.0);
}

TEST_F(TableTest, MissingCellsAreExplicit) {
  auto cells = small_cells();
  const auto gone = cells[7];
  cells.erase(cells.begin() + 7);
  const auto table = write(small_content(cells));
  const auto mechanism = *table.find(gone.candidate);
  EXPECT_FALSE(table.has(mechanism, gone.replicate));
  EXPECT_TRUE(table.has(mechanism, 0));
  const auto complaint = "the table has no replicate 1 of " + gone.candidate;
  EXPECT_THAT([&] { (void)table.evaluation(mechanism, 1); },
              ::testing::ThrowsMessage<InputError>(complaint));
  EXPECT_THAT([&] { (void)table.seconds(mechanism, 1); },
              ::testing::ThrowsMessage<InputError>(complaint));
}

TEST_F(TableTest, FactsAreThoseOfEveryCell) {
  auto content = small_content();
  content.sources.push_back({{"cells", 36}});
  const auto table = write(content);
  EXPECT_EQ(table.facts().at("name"), "small");
  EXPECT_EQ(table.facts().at("semantics"), "corrected");
  EXPECT_EQ(table.facts().at("unigram_perplexity"), 40.0);
  EXPECT_EQ(table.facts().at("sources").at(0).at("cells"), 36);
  EXPECT_EQ(table.sha256().size(), 64U);
}

TEST_F(TableTest, ChargesProcessorSecondsWhereRecorded) {
  auto cells = small_cells();
  cells[0].measured.erase("cpu_seconds");
  const auto table = write(small_content(cells));
  EXPECT_EQ(table.seconds(0, 0), cells[0].measured.at("train_seconds"));
  EXPECT_EQ(table.seconds(0, 1), cells[1].measured.at("cpu_seconds"));
}

TEST_F(TableTest, MeasuredObjectivesAreTheMedianOverReplicates) {
  auto cells = small_cells();
  std::swap(cells[0].measured["latency"], cells[2].measured["latency"]);
  cells[3].measured.erase("latency");
  const auto table = write(small_content(cells));
  EXPECT_EQ(table.evaluation(0, 0).measured.at("latency"), cells[1].measured.at("latency"));
  EXPECT_EQ(table.evaluation(1, 0).measured.at("latency"), cells[4].measured.at("latency"));
}

TEST_F(TableTest, EqualContentGivesEqualBytes) {
  write(small_content());
  const auto once = bytes();
  auto cells = small_cells();
  std::reverse(cells.begin(), cells.end());
  write(small_content(cells));
  EXPECT_EQ(bytes(), once);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(TableTest, AThousandTrainingsAreBelowAMegabyte) {
  std::vector<Evaluation> cells;
  for (int i = 0; i < 320; ++i) {
    for (std::int64_t replicate = 0; replicate < 3; ++replicate) {
      auto name = "dot|softmax|output_gate|learned" + std::to_string(i) + "|no_bias|0";
      auto& cell = cells.emplace_back(small_evaluation(name, replicate));
      while (cell.curve.size() < 9) {
        auto point = small_evaluation(name + std::to_string(cell.curve.size()), replicate).curve[1];
        point.step = cell.curve.back().step + 10;
        cell.curve.push_back(point);
      }
    }
  }
  EXPECT_EQ(write(small_content(cells)).steps().size(), 9U);
  EXPECT_LT(fs::file_size(file_), 800000U);
}

TEST_F(TableTest, OtherStepsAreRefused) {
  auto cells = small_cells();
  cells[3].curve[1].step = 21;
  EXPECT_THAT([&] { write_table(small_content(cells), file_); },
              ::testing::ThrowsMessage<InputError>(
                  HasSubstr("replicate 0: its curve has step 21, must have step 20 there")));
  EXPECT_THAT([&] { write_table(small_content({}), file_); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("at least one cell")));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(TableTest, DamagedFilesAreRefused) {
  write(small_content());
  const auto whole = bytes();
  EXPECT_EQ(whole.size() % 8, 0U);
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 8)),
              HasSubstr("small.table: its content does not fit its checksum"));
  EXPECT_THAT(refusal(whole + "x"), HasSubstr("does not fit its checksum"));
  for (const std::size_t place :
       {std::size_t{20}, std::size_t{82}, whole.size() / 2, whole.size() - 1}) {
    auto flipped = whole;
    flipped[place] = static_cast<char>(flipped[place] ^ 1);
    EXPECT_THAT(refusal(flipped), HasSubstr("does not fit its checksum")) << place;
  }
  auto newer = whole;
  newer[8] = 2;
  EXPECT_THAT(refusal(newer), HasSubstr("small.table: a table of version 2, must be of version 1"));
  EXPECT_THAT(refusal(whole.substr(0, 80)), HasSubstr("small.table: not a table"));
  EXPECT_THAT(refusal("M" + whole.substr(1)), HasSubstr("not a table"));
  EXPECT_THAT(refusal(""), HasSubstr("cannot be read as a table"));
  EXPECT_EQ(refusal(whole), "nothing was thrown");
  fs::remove(file_);
  EXPECT_THAT([&] { (void)Table(file_); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("no such table")));
  EXPECT_THAT([&] { (void)Table(folder_.path()); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("cannot be read as a table")));
}

TEST_F(TableTest, UnwritableFilesAreNamed) {
  EXPECT_THAT([&] { write_table(small_content(), folder_.path() / "no" / "x.table"); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("no/x.table: cannot be written")));
}

}  // namespace
}  // namespace nas
