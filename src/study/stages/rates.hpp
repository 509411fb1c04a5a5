#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/retest_outcome.hpp"
#include "study/stages/further_trainings.hpp"

namespace nas {

/// The learning rate of a row of a comparison, and what it is the best of.
struct TunedRate {
  double rate = 0.0;
  bool at_end =
      false;  ///< it is the lowest or the highest that was tried: a better one may lie beyond
  /// Learning rates, ascending, each with its values by choosing seed (valid_value); none where the
  /// configuration gives the rate, or all have one.
  std::vector<std::pair<double, std::vector<double>>> tried{};
};

/// How rates are tried.
struct RateGrid {
  std::vector<double> factors;  ///< powers of kRateStep, ascending, of the rate to begin with
  std::int64_t seeds = 0;       ///< replicates 0, 1, ...: they choose and never judge
};
/// Neighbouring rates differ by this factor; the grid grows by it, at most so often at either end.
inline constexpr double kRateStep = 2.0;
inline constexpr std::int64_t kRateGrowths = 2;
/// That of a comparison: three rates by two seeds, before the best one gets all judging seeds.
RateGrid race_of_rates();

/// The best of the rates that were tried: the lowest mean, where a failed run makes a rate worse than all
/// without; of equal ones that nearest to the beginning. @param tried  at least one.
TunedRate best_rate(std::vector<std::pair<double, std::vector<double>>> tried, double beginning);

/// Mean nll in nats per target of the last validation, or the share of wrong answers; NaN where the run
/// failed.
double valid_value(Measure measure, const Evaluation& evaluation);

/// The problem of a work at other learning rates: nobody is stopped early, and what is recorded as
/// measured of candidates (latency) is not measured again.
class Rates {
 public:
  explicit Rates(const StageWork& work) : work_(work) {}

  /// @return the same for equal arguments; at the configuration's own rate its tasks are those of
  /// the configuration's section `training`.
  std::shared_ptr<Problem> at(double rate, bool score_test);
  /// The configuration's own.
  [[nodiscard]] double own() const;

 private:
  const StageWork& work_;
  std::optional<std::vector<Evaluation>> earlier_{};
  std::map<std::pair<double, bool>, std::shared_ptr<Problem>> problems_{};
};

/// Trains candidates at the rates of a grid, which grows while the best rate of a candidate is at its end.
/// Everything is recorded and recalled. @return by canonical name.
std::map<std::string, TunedRate> find_rates(const StageWork& work, Rates& rates,
                                            const std::vector<Candidate>& candidates,
                                            double beginning, const RateGrid& grid);

/// A row of a comparison by the name under which a configuration may give its rate: "baseline", that of a
/// control, a canonical name.
struct RateRow {
  std::string name;
  Candidate candidate;
};

/// The rates of a comparison's rows: those that candidates have as a gene, and that the configuration gives (`rates`), of
/// others the best of race_of_rates() around the baseline's; where it says `retest.tune: false`, its own rate for all.
/// @return by canonical name.
std::map<std::string, TunedRate> rates_of(const StageWork& work, Rates& rates,
                                          const std::vector<RateRow>& rows);

/// For the plan: training runs that find the rates of such rows, before any grid grows.
std::int64_t rate_trainings(const Experiment& experiment, const std::vector<RateRow>& rows);

/// {learning_rate, rate_at_end, rates: [{learning_rate, valid_nll or valid_accuracy: by seed}]}.
nlohmann::json to_json(Measure measure, const TunedRate& rate);
}  // namespace nas
