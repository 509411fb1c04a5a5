// What --until says, replayed on packed tables: sequences of recorded training runs, as they are, in random orders.

#include <iomanip>
#include <iostream>
#include <random>

#include "places.hpp"
#include "prelude.hpp"
#include "report/retest_outcome.hpp"
#include "table/table.hpp"

namespace nas {
namespace {

using Numbers = std::vector<double>;
constexpr std::size_t kSeeds = 20;
constexpr double kShare = 0.03;
constexpr const char* kVanilla = "dot|softmax|none|fixed|bias|0";

/// Test nll of the mechanisms of a table that have been trained with 20 seeds, and the best mean of a control that
/// needs no attention, of the task's gates.
struct Rows {
  std::vector<Numbers> nll;
  std::size_t baseline = 0;
  double plateau = std::numeric_limits<double>::infinity();
};

Rows rows_of(const std::string& name, const std::string& baseline = kVanilla) {
  const Table table(source_folder() + "/problems/tables/" + name + ".table");
  Rows rows;
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    Numbers row;
    for (std::int64_t k = 0; k < std::int64_t{kSeeds} && table.has(i, k); ++k) {
      row.push_back(table.evaluation(i, k).values.at("test_nll"));
    }
    if (row.size() != kSeeds) continue;
    if (table.mechanism(i) == baseline) rows.baseline = rows.nll.size();
    rows.nll.push_back(std::move(row));
  }
  std::ifstream file(source_folder() + "/analysis/results/task_gates/attnbench_" + name + ".json");
  const auto record = nlohmann::json::parse(file);
  for (const auto& model : record.at("models")) {
    const bool bare = std::find(std::begin(kPlateaus), std::end(kPlateaus),
                                model.at("name").get<std::string>()) != std::end(kPlateaus);
    if (!bare) continue;
    rows.plateau = std::min(rows.plateau, estimate(model.at("valid_nll").get<Numbers>()).mean);
  }
  EXPECT_TRUE(std::isfinite(rows.plateau));
  return rows;
}

/// How often something is said, and how often that is wrong.
struct Said {
  int better = 0, worse = 0, within = 0, wrong_better = 0, wrong_worse = 0, wrong_within = 0;

  Said& operator+=(const Said& other) {
    better += other.better;
    worse += other.worse;
    within += other.within;
    wrong_better += other.wrong_better;
    wrong_worse += other.wrong_worse;
    wrong_within += other.wrong_within;
    return *this;
  }
  [[nodiscard]] int wrong() const { return wrong_better + wrong_worse + wrong_within; }
};

Said said_of(Decision decision, double truth, double bound) {
  Said said;
  said.better = decision == Decision::better;
  said.worse = decision == Decision::worse;
  said.within = decision == Decision::within;
  said.wrong_better = said.better == 1 && truth >= 0.0;
  said.wrong_worse = said.worse == 1 && truth <= 0.0;
  said.wrong_within = said.within == 1 && std::abs(truth) > bound;
  return said;
}

/// A sequence of several mechanisms beside the baseline, as judge() sees it.
class Sequence {
 public:
  Sequence(const Rows& rows, const std::vector<std::size_t>& chosen,
           const std::vector<std::size_t>& order)
      : rows_(rows), order_(order), chosen_(chosen), seeds_(chosen.size(), 0) {
    outcome_.until = kShare;
    decisions_.resize(chosen.size(), Decision::open);
  }

  /// @return what is decided of each in the end.
  const std::vector<Decision>& run() {
    for (auto n = kFirstSeeds;; n = next_seeds(n, kSeeds)) {
      look(n);
      const bool open = std::count(decisions_.begin(), decisions_.end(), Decision::open) > 0;
      if (!open || n == std::int64_t{kSeeds}) return decisions_;
    }
  }

 private:
  [[nodiscard]] Numbers runs(std::size_t row, std::int64_t n) const {
    Numbers values;
    for (std::size_t i = 0; std::ssize(values) < n; ++i) {
      values.push_back(rows_.nll[row][order_[i]]);
    }
    return values;
  }

  void look(std::int64_t n) {
    outcome_.candidates.assign(1, RetestedCandidate{});
    outcome_.candidates.front().role = Role::baseline;
    outcome_.candidates.front().runs = runs(rows_.baseline, n);
    std::vector<Numbers> all{outcome_.candidates.front().runs};
    Numbers p;
    Numbers beyond;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      if (decisions_[i] == Decision::open) seeds_[i] = n;
      auto values = runs(chosen_[i], seeds_[i]);
      const auto compared = compare_anytime(values, runs(rows_.baseline, seeds_[i]));
      p.push_back(compared.p);
      beyond.push_back(p_beyond(compared.difference, outcome_.bound(kShare)));
      auto& candidate = outcome_.candidates.emplace_back();
      candidate.role = Role::listed;
      candidate.runs = values;
      candidate.against_baseline = Contrast{.paired = compared};
      all.push_back(std::move(values));
    }
    outcome_.failures = failures_of(all, rows_.plateau);
    p = holm(p);
    beyond = holm(beyond);
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      auto& contrast = *outcome_.candidates[i + 1].against_baseline;
      contrast.p_holm = p[i];
      contrast.p_beyond = beyond[i];
      if (decisions_[i] == Decision::open) {
        decisions_[i] = outcome_.decision(outcome_.candidates[i + 1]);
      }
    }
  }

  const Rows& rows_;
  const std::vector<std::size_t>& order_;
  const std::vector<std::size_t>& chosen_;
  std::vector<std::int64_t> seeds_;
  std::vector<Decision> decisions_;
  RetestOutcome outcome_;
};

struct Replayed {
  Said said;                                                ///< of all mechanisms
  int families = 0;                                         ///< in which anything is wrong
  std::map<std::size_t, std::pair<int, int>> by_mechanism;  ///< wrong, and how often it came
};

Replayed replay(const Rows& rows, std::size_t together, int orders) {
  std::mt19937_64 random(20);  // NOLINT: the same orders every time
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < rows.nll.size(); ++i) {
    if (i != rows.baseline) others.push_back(i);
  }
  std::vector<std::size_t> order(kSeeds);
  for (std::size_t i = 0; i < kSeeds; ++i) order[i] = i;
  Replayed replayed;
  for (int i = 0; i < orders; ++i) {
    std::shuffle(others.begin(), others.end(), random);
    std::shuffle(order.begin(), order.end(), random);
    const std::vector<std::size_t> chosen(others.begin(),
                                          others.begin() + static_cast<std::ptrdiff_t>(together));
    Sequence sequence(rows, chosen, order);
    const auto& decisions = sequence.run();
    Said family;
    for (std::size_t k = 0; k < together; ++k) {
      double truth = 0.0;
      for (std::size_t s = 0; s < kSeeds; ++s) {
        truth += (rows.nll[chosen[k]][s] - rows.nll[rows.baseline][s]) / kSeeds;
      }
      const auto said = said_of(decisions[k], truth, std::log1p(kShare));
      auto& [wrong, of] = replayed.by_mechanism[chosen[k]];
      wrong += said.wrong();
      ++of;
      family += said;
    }
    replayed.families += family.wrong() > 0;
    replayed.said += family;
  }
  return replayed;
}

/// A table, and the mechanism that is the baseline.
using Case = std::pair<const char*, const char*>;

class Replays : public ::testing::TestWithParam<Case> {};

TEST_P(Replays, OfRecordedRunsAreWrongInOneOfTwentyAtMost) {
  const auto& [table, baseline] = GetParam();
  const auto rows = rows_of(table, baseline);
  ASSERT_GT(rows.nll.size(), 50U);
  for (const auto& [together, orders] :
       {std::pair<std::size_t, int>{1, 1000}, {5, 200}, {15, 60}}) {
    const auto found = replay(rows, together, orders);
    const double all = static_cast<double>(together) * orders / 100.0;
    const auto& said = found.said;
    std::cout << std::setprecision(3) << table << " beside " << baseline << ", " << together
              << " together, " << orders << " orders: % better " << said.better / all << " (wrong "
              << said.wrong_better / all << "), worse " << said.worse / all << " ("
              << said.wrong_worse / all << "), within " << said.within / all << " ("
              << said.wrong_within / all << "); anything wrong in a family "
              << 100.0 * found.families / orders << '\n';
    EXPECT_LE(20 * said.wrong_better, static_cast<int>(together) * orders);
    EXPECT_LE(20 * said.wrong_worse, static_cast<int>(together) * orders);
    EXPECT_LE(20 * said.wrong_within, static_cast<int>(together) * orders);
    EXPECT_LE(20 * found.families, orders);
    if (together > 1) continue;
    Numbers worst;
    for (const auto& [mechanism, counts] : found.by_mechanism) {
      worst.push_back(100.0 * counts.first / counts.second);
    }
    std::sort(worst.rbegin(), worst.rend());
    worst.resize(10);
    std::cout << "  % wrong of the worst ten mechanisms:";
    for (const double share : worst) std::cout << ' ' << share;
    std::cout << '\n';
  }
}
INSTANTIATE_TEST_SUITE_P(Tables, Replays,
                         ::testing::Values(Case{"text", kVanilla}, Case{"recall", kVanilla},
                                           Case{"recall",
                                                "cosine|sigmoid_norm|none|fixed|no_bias|0"}));

TEST(ReplaysOfRecall, ErrWhereFailuresAreThoughtToCostNothing) {
  auto rows = rows_of("recall");
  rows.plateau = 0.0;
  const auto said = replay(rows, 1, 500).said;
  EXPECT_GT(20 * said.wrong_within, 500);
}

TEST(ReplaysOfText, AreDecidedSoon) {
  const auto rows = rows_of("text");
  const auto said = replay(rows, 1, 500).said;
  EXPECT_GT(said.better + said.worse + said.within, 450) << "of 500, all its runs being alike";
}

}  // namespace
}  // namespace nas
