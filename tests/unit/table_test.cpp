#include "table/table.hpp"

#include <cstring>
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

TEST_F(TableTest, FailedTrainingRunsKeepWhatTheyHave) {
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

TEST_F(TableTest, AThousandTrainingRunsTakeLessThanAMegabyte) {
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

/// A table whose header somebody has changed, with a checksum that fits.
class ForeignTable : public TableTest {
 protected:
  ForeignTable() {
    write(small_content());
    const auto whole = bytes();
    std::size_t length = 0;
    std::memcpy(&length, whole.data() + table_format::kLengthOffset, sizeof length);
    header_ = nlohmann::json::parse(whole.substr(table_format::kHeaderOffset, length));
    columns_ = whole.substr(table_format::kHeaderOffset + length);
  }

  /// The words of a column, to be changed.
  [[nodiscard]] char* words(const std::string& name) {
    for (const auto& column : header_.at("columns")) {
      if (column.at("name") != name) continue;
      return columns_.data() + 8 * column.at("offset").get<std::size_t>();
    }
    throw std::logic_error("no column " + name);
  }
  template <class Number>
  void set(const std::string& column, std::size_t word, Number number) {
    static_assert(sizeof(number) == 8);
    std::memcpy(words(column) + 8 * word, &number, sizeof number);
  }

  /// What opening it complains about.
  [[nodiscard]] std::string refusal() const { return refusal(header_.dump()); }
  [[nodiscard]] std::string refusal(std::string header) const {
    header.resize((header.size() + 7) / 8 * 8, ' ');
    std::string checked(8, '\0');
    const std::size_t length = header.size();
    std::memcpy(checked.data(), &length, sizeof length);
    checked += header + columns_;
    std::string version(8, '\0');
    version[0] = static_cast<char>(table_format::kTableVersion);
    return TableTest::refusal(std::string(table_format::kTableMagic) + version + sha256(checked) +
                              checked);
  }
  [[nodiscard]] std::string refusal_with(const std::string& pointer,
                                         const nlohmann::json& value) const {
    auto header = header_;
    header[nlohmann::json::json_pointer(pointer)] = value;
    return refusal(header.dump());
  }

  nlohmann::json header_;
  std::string columns_;
};

TEST_F(ForeignTable, OpensUnchanged) { EXPECT_EQ(refusal(), "nothing was thrown"); }

TEST_F(ForeignTable, SizesMustFitTheFile) {
  const std::string file = "small.table: header: ";
  EXPECT_THAT(refusal_with("/replicates", std::int64_t{1} << 31),
              HasSubstr(file + "replicates = 2147483648, must be an integer in [1, 999999]"));
  EXPECT_THAT(
      refusal_with("/replicates", 999999),
      HasSubstr("replicates = 999999, must be so few that there are at most 10000000 cells"));
  EXPECT_THAT(refusal_with("/replicates", 4), HasSubstr("words must end within the file's"));
  EXPECT_THAT(refusal_with("/replicates", 2),
              HasSubstr("must be 24, where the column before it ends"));
  EXPECT_THAT(refusal_with("/columns/0/offset", 1000000000),
              HasSubstr("columns.cpu_seconds.offset = 1000000000, its 36 words must end within"));
  EXPECT_THAT(
      refusal_with("/columns/0/offset", std::numeric_limits<std::uint64_t>::max()),
      HasSubstr("columns.cpu_seconds.offset = 18446744073709551615, must be an integer in"));
  EXPECT_THAT(refusal_with("/columns/0/offset", -1), HasSubstr("must be an integer in [0, "));
  EXPECT_THAT(refusal_with("/steps", {10, 20, 40, 80}),
              HasSubstr("must be 218, where the column before it ends"));
  columns_.resize(columns_.size() / 16 * 8);
  EXPECT_THAT(refusal(), HasSubstr("words must end within the file's"));
}

/// Of every part of the header: it is missing, or something else stands there.
TEST_F(ForeignTable, EveryKeyIsCheckedForItsType) {
  int refused = 0;
  const auto expect_refusal = [&](const std::string& place, const std::string& complaint) {
    EXPECT_THAT(complaint, HasSubstr("small.table: ")) << place;
    EXPECT_THAT(complaint, ::testing::Not(HasSubstr("json.exception"))) << place;
    ++refused;
  };
  const auto mutate = [&](const std::string& place, bool required) {
    const nlohmann::json::json_pointer pointer(place);
    const auto given = header_.at(pointer);
    auto without = header_;
    without.at(pointer.parent_pointer()).erase(pointer.back());
    if (required) expect_refusal(place + " missing", refusal(without.dump()));
    for (const nlohmann::json& other :
         {nlohmann::json("x"), nlohmann::json(nullptr), nlohmann::json(true), nlohmann::json(-1),
          nlohmann::json(0.5), nlohmann::json::array({nullptr}), nlohmann::json::array(),
          nlohmann::json::object({{"x", "y"}})}) {
      if (other.type() == given.type()) continue;
      if (other.is_number() && given.is_number_float()) continue;
      expect_refusal(place + " = " + other.dump(), refusal_with(place, other));
    }
  };
  for (const auto* key : {"name", "identity", "facts", "sources", "mechanisms", "replicates",
                          "steps", "reasons", "measured", "columns"}) {
    mutate(std::string("/") + key, true);
  }
  mutate("/identity/semantics", true);
  mutate("/identity/model", true);
  for (const auto& item : header_.at("identity").at("model").items()) {
    mutate("/identity/model/" + item.key(), true);
  }
  for (const auto* key : {"bytes_per_token", "unigram_perplexity", "device"}) {
    mutate(std::string("/facts/") + key, false);
  }
  for (const auto* key : {"name", "type", "per", "offset"}) {
    mutate(std::string("/columns/3/") + key, true);
  }
  mutate("/measured/0/latency", false);
  mutate("/measured/0/latency/value", true);
  EXPECT_GT(refused, 150);
  EXPECT_THAT(refusal("{\"name\": "), HasSubstr("small.table: header: it is no JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("small.table: header: it is no JSON"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("small.table: header: is not JSON of an object"));
}

TEST_F(ForeignTable, DeeplyNestedJsonIsAnError) {
  constexpr int kDepth = 200000;
  for (const std::string key : {"\"facts\":{", "\"identity\":{"}) {
    auto header = header_.dump();
    header.insert(header.find(key) + key.size(),
                  "\"deep\":" + std::string(kDepth, '[') + std::string(kDepth, ']') + ",");
    EXPECT_THAT(refusal(header), HasSubstr("small.table: header: its JSON is nested more than"));
  }
}

TEST_F(ForeignTable, EveryColumnIsNeededInItsType) {
  for (std::size_t i = 0; i < header_.at("columns").size(); ++i) {
    const auto name = header_.at("columns")[i].at("name").get<std::string>();
    const bool real = header_.at("columns")[i].at("type") == "f64";
    const auto place = "/columns/" + std::to_string(i);
    EXPECT_THAT(refusal_with(place + "/type", real ? "i64" : "f64"),
                HasSubstr("header: column " + name + " has type"));
    if (name.starts_with(table_format::kValuePrefix)) continue;
    auto without = header_;
    without.at("columns").erase(i);
    EXPECT_THAT(refusal(without.dump()), HasSubstr("header: column " + name + " is missing"));
  }
  EXPECT_THAT(refusal_with("/columns/1/name", "cpu_seconds"),
              HasSubstr("there are two columns cpu_seconds"));
  EXPECT_THAT(refusal_with("/columns/1/per", "row"),
              HasSubstr("per = \"row\", must be table, cell or point"));
}

TEST_F(ForeignTable, MechanismsStepsAndReasonsAreInOrder) {
  auto header = header_;
  std::swap(header.at("mechanisms")[0], header.at("mechanisms")[1]);
  EXPECT_THAT(refusal(header.dump()), HasSubstr("must be greater than the one before it"));
  EXPECT_THAT(refusal_with("/steps", {10, 40, 20}),
              HasSubstr("an entry of steps = 20, must be greater than the one before it"));
  EXPECT_THAT(refusal_with("/reasons", nlohmann::json::array()), HasSubstr("must be at least one"));
  auto fewer = header_;
  fewer.at("measured").erase(0);
  EXPECT_THAT(refusal(fewer.dump()),
              HasSubstr("measured has 11 entries, must have one for each of the 12 mechanisms"));
}

/// Columns whose words agree have one word, so that it is one for all cells.
TEST_F(ForeignTable, CellsThatCannotBeAreRefused) {
  const auto complaint = [this](const std::string& column, std::size_t word, auto number) {
    const auto before = columns_;
    set(column, word, number);
    auto text = refusal();
    columns_ = before;
    return text;
  };
  const std::string cell = small_mechanisms().front() + ", replicate ";
  EXPECT_THAT(complaint("status", 0, std::int64_t{6}),
              HasSubstr("small.table: " + cell + "0: status = 6, must be in [-1, 5]"));
  EXPECT_THAT(complaint("status", 0, std::int64_t{-2}), HasSubstr("status = -2"));
  EXPECT_THAT(complaint("reason", 0, std::int64_t{1}), HasSubstr("reason = 1, must be in [0, 0]"));
  EXPECT_THAT(complaint("points", 0, std::int64_t{4}), HasSubstr("points = 4, must be in [0, 3]"));
  EXPECT_THAT(complaint("points", 0, std::int64_t{-1}), HasSubstr("points = -1"));
  EXPECT_THAT(complaint("points", 0, std::int64_t{0}),
              HasSubstr("it was finished, but its curve has no point"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(complaint("valid.nll", 4, nan),
              HasSubstr(cell + "1: a loss at step 20 = nan, must be finite"));
  EXPECT_THAT(complaint("train_nll", 0, -1.0 / 0.0), HasSubstr("a loss at step 10 = -inf"));
  EXPECT_THAT(complaint("valid.tokens", 0, std::int64_t{0}),
              HasSubstr("targets in 10 batches) cannot be"));
  EXPECT_THAT(complaint("valid.correct", 0, std::int64_t{1001}), HasSubstr("1001 correct of 1000"));
  EXPECT_THAT(complaint("train_seconds", 1, nan), HasSubstr("its train_seconds are missing"));
  EXPECT_THAT(complaint("cpu_seconds", 2, -1.0),
              HasSubstr(cell + "2: cpu_seconds = -1, must be finite and at least 0"));
  EXPECT_THAT(complaint("seconds", 0, nan), HasSubstr("its seconds at step 10 must be finite"));
}

/// Whatever stands in a file: it is refused in words, or everything in it can be read.
TEST_F(ForeignTable, AnyChangedByteIsRefusedOrHarmless) {
  const auto whole = header_.dump();
  RandomEngine random(3);
  for (int i = 0; i < 500; ++i) {
    auto header = whole;
    header[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(whole.size())))] =
        static_cast<char>(random.below(256));
    const auto before = columns_;
    columns_[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(before.size())))] ^=
        static_cast<char>(random.below(256));
    const auto text = refusal(header);
    columns_ = before;
    if (text != "nothing was thrown") {
      EXPECT_THAT(text, HasSubstr("small.table: "));
      continue;
    }
    const Table table(file_);
    for (std::int64_t mechanism = 0; mechanism < table.num_mechanisms(); ++mechanism) {
      for (std::int64_t replicate = 0; replicate < table.num_replicates(); ++replicate) {
        if (table.has(mechanism, replicate)) (void)table.evaluation(mechanism, replicate);
      }
    }
  }
}

TEST_F(TableTest, UnwritableFilesAreNamed) {
  EXPECT_THAT([&] { write_table(small_content(), folder_.path() / "no" / "x.table"); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("no/x.table: cannot be written")));
}

}  // namespace
}  // namespace nas
