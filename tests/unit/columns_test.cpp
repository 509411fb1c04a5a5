// Tables and texts that fit a terminal.

#include "report/columns.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

std::vector<Column> columns() {
  return {{.header = "", .cells = {"1", "baseline"}},
          {.header = "mechanism", .cells = {"sparsemax, highway, kv_heads=1", "-"}, .left = true},
          {.header = "perplexity", .cells = {"81.50", "100.00"}},
          {.header = "params", .cells = {"154 k", ""}, .spare = true},
          {.header = "trained", .cells = {"6.1 s", "6.0 s"}, .spare = true}};
}

TEST(Aligned, ShowsEverythingWhereNothingLimitsIt) {
  EXPECT_EQ(aligned(columns()),
            "            mechanism                       perplexity  params  trained\n"
            "         1  sparsemax, highway, kv_heads=1       81.50   154 k    6.1 s\n"
            "  baseline  -                                   100.00       -    6.0 s\n");
}

TEST(Aligned, LeavesOutSpareColumnsTheLastFirst) {
  const auto without_one = aligned(columns(), 70);
  EXPECT_NE(without_one.find("params"), std::string::npos);
  EXPECT_EQ(without_one.find("trained"), std::string::npos);
  EXPECT_EQ(aligned(columns(), 54),
            "            mechanism                       perplexity\n"
            "         1  sparsemax, highway, kv_heads=1       81.50\n"
            "  baseline  -                                   100.00\n");
}

TEST(Aligned, FoldsTheWidestColumns) {
  EXPECT_EQ(aligned(columns(), 45),
            "            mechanism              perplexity\n"
            "         1  sparsemax, highway,         81.50\n"
            "            kv_heads=1\n"
            "  baseline  -                          100.00\n");
}

TEST(Aligned, PutsNamesAboveTheirRowsWhereTheyWouldBeBroken) {
  auto named = columns();
  named[1].name = true;
  EXPECT_EQ(aligned(named, 45), aligned(columns(), 45)) << "two lines are no more than two";
  EXPECT_EQ(aligned(named, 36),
            "            mechanism\n"
            "            perplexity  params\n"
            "         1  sparsemax, highway,\n"
            "            kv_heads=1\n"
            "                 81.50   154 k\n"
            "  baseline  -\n"
            "                100.00       -\n")
      << "what was left out for their sake is there again";
}

TEST(Folded, DividesLongWordsOnlyIfItMay) {
  const std::string name = "a dot|softmax|highway name";
  EXPECT_THAT(folded(name, 10, 0, /*whole_words=*/false),
              ElementsAre("a", "dot|", "softmax|", "highway", "name"));
  EXPECT_THAT(folded(name, 10, 2, /*whole_words=*/true),
              ElementsAre("a", "  dot|softmax|highway", "  name"));
  EXPECT_THAT(folded("abcdefghij", 4, 0, /*whole_words=*/false), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(folded("\u00e9\u00e8 \u00ea\u00eb", 2, 0, /*whole_words=*/true),
              ElementsAre("\u00e9\u00e8", "\u00ea\u00eb"));
}

TEST(Wrapped, GoesOnBelowTheLastColumn) {
  const std::string text =
      "  nsga2   NSGA-II: rank and crowding\n"
      "  pso     particle swarm\n";
  EXPECT_EQ(wrapped(text, kAnyWidth), text);
  EXPECT_EQ(wrapped(text, 26),
            "  nsga2   NSGA-II: rank\n"
            "          and crowding\n"
            "  pso     particle swarm\n");
  EXPECT_EQ(wrapped("  a setting  of  meaning enough\n", 20),
            "  a setting  of\n    meaning enough\n")
      << "where the last column leaves less than half";
  EXPECT_EQ(wrapped("  $ nas-run own.yaml --dry-run\n", 22),
            "  $ nas-run own.yaml\n    --dry-run\n");
}

TEST(Wrapped, RefillsParagraphs) {
  const std::string text =
      "Runs, or continues, an experiment. CONFIG is a\n"
      "YAML file.\n"
      "\n"
      "  list    algorithms, problems, objectives and\n"
      "          engines\n"
      "  schema  for editors\n";
  EXPECT_EQ(wrapped(text, 40, /*paragraphs=*/true),
            "Runs, or continues, an experiment.\n"
            "CONFIG is a YAML file.\n"
            "\n"
            "  list    algorithms, problems,\n"
            "          objectives and engines\n"
            "  schema  for editors\n");
  EXPECT_EQ(wrapped("two lines of results\nstay two\n", 12), "two lines of\nresults\nstay two\n");
}

}  // namespace
}  // namespace nas
