#include "study/stages/rates.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

#include "genotype/architecture.hpp"
#include "report/json_number.hpp"
#include "statistics/statistics.hpp"
#include "store/replicates.hpp"
#include "study/session/set_up.hpp"

namespace nas {

namespace {

using Numbers = std::vector<double>;
using Tried = std::vector<std::pair<double, Numbers>>;

/// A candidate whose rates are being tried.
struct Search {
  Candidate candidate;
  Numbers next;  ///< rates to be tried
  Tried tried{};
};

std::string key_of(Measure measure) {
  return measure == Measure::accuracy ? "valid_accuracy" : "valid_nll";
}

/// The rates beyond the ends of those that were tried, where the best one is there and the grid may grow.
Numbers beyond(const Tried& tried, double beginning, const RateGrid& grid) {
  const auto best = best_rate(tried, beginning);
  const double most = std::pow(kRateStep, kRateGrowths);
  Numbers next;
  const double low = best.rate / kRateStep;
  const double high = best.rate * kRateStep;
  if (best.rate == tried.front().first && low >= beginning * grid.factors.front() / most) {
    next.push_back(low);
  }
  if (best.rate == tried.back().first && high <= beginning * grid.factors.back() * most) {
    next.push_back(high);
  }
  return next;
}

/// That of a row which is not to be looked for.
std::optional<double> given_rate(const Experiment& experiment, const RateRow& row) {
  const auto* model = row.candidate.architecture.get();
  const double gene = model == nullptr ? 0.0 : model->genes.real("training.learning_rate");
  if (gene > 0.0) return gene;
  // Where rates are searched, one who says none has the section's.
  const bool searched =
      row.name == row.candidate.name && experiment.section.real("training.learning_rate") > 0.0;
  if (searched || !experiment.retest.get<bool>("tune"))
    return experiment.training.get<double>("learning_rate");
  const auto given = experiment.rates.find(row.name);
  return given == experiment.rates.end() ? std::nullopt : std::optional(given->second);
}

}  // namespace

RateGrid race_of_rates() { return {.factors = {1.0 / kRateStep, 1.0, kRateStep}, .seeds = 2}; }

TunedRate best_rate(Tried tried, double beginning) {
  const auto rank = [beginning](const std::pair<double, Numbers>& one) {
    const auto& [rate, values] = one;
    const bool whole = std::all_of(values.begin(), values.end(),
                                   [](double value) { return std::isfinite(value); });
    return std::tuple(whole ? estimate(values).mean : std::numeric_limits<double>::infinity(),
                      std::abs(std::log(rate / beginning)));
  };
  const auto best = std::min_element(
      tried.begin(), tried.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  const bool at_end = best == tried.begin() || std::next(best) == tried.end();
  return {.rate = best->first, .at_end = at_end, .tried = std::move(tried)};
}

double valid_value(Measure measure, const Evaluation& evaluation) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (!is_usable(evaluation) || evaluation.curve.empty()) return kNone;
  const auto& valid = evaluation.curve.back().valid;
  if (valid.tokens <= 0) return kNone;
  return measure == Measure::accuracy ? 1.0 - valid.accuracy()
                                      : valid.nll / static_cast<double>(valid.tokens);
}

double Rates::own() const { return work_.experiment.training.get<double>("learning_rate"); }

std::shared_ptr<Problem> Rates::at(double rate, bool score_test) {
  auto& problem = problems_[{rate, score_test}];
  if (problem) return problem;
  if (!earlier_) earlier_ = work_.store.evaluations();
  auto training = work_.experiment.training;
  training.set("learning_rate", rate);
  training.set("score_test", score_test);
  training.set("early_stop_after", std::int64_t{0});
  problem = work_.setup.problem->with_training(training);
  problem->begin_batch(pointers(*earlier_));
  return problem;
}

std::map<std::string, TunedRate> find_rates(const StageWork& work, Rates& rates,
                                            const std::vector<Candidate>& candidates,
                                            double beginning, const RateGrid& grid) {
  const auto measure = measure_of(work.setup.objectives);
  std::vector<Search> searches;
  for (const auto& candidate : candidates) {
    auto& search = searches.emplace_back(Search{.candidate = candidate, .next = {}});
    for (const double factor : grid.factors) search.next.push_back(factor * beginning);
  }
  while (true) {
    std::vector<FurtherTraining> trainings;
    for (const auto& search : searches) {
      for (const double rate : search.next) {
        trainings.push_back(
            {rates.at(rate, false), search.candidate, replicates_from(0, grid.seeds)});
      }
    }
    if (trainings.empty()) break;
    train_further(trainings, work, "learning rates");
    auto trained = trainings.begin();
    for (auto& search : searches) {
      if (search.next.empty()) continue;
      for (const double rate : search.next) {
        auto& values = search.tried.emplace_back(rate, Numbers{}).second;
        for (const auto& one : trained->evaluations) values.push_back(valid_value(measure, one));
        ++trained;
      }
      std::sort(search.tried.begin(), search.tried.end());
      search.next = beyond(search.tried, beginning, grid);
    }
  }
  std::map<std::string, TunedRate> found;
  for (auto& search : searches) {
    found.emplace(search.candidate.name, best_rate(std::move(search.tried), beginning));
  }
  return found;
}

std::map<std::string, TunedRate> rates_of(const StageWork& work, Rates& rates,
                                          const std::vector<RateRow>& rows) {
  std::map<std::string, TunedRate> found;
  std::vector<Candidate> unknown;
  for (const auto& row : rows) {
    if (const auto given = given_rate(work.experiment, row)) {
      found.insert_or_assign(row.candidate.name, TunedRate{.rate = *given});
    } else {
      unknown.push_back(row.candidate);
    }
  }
  const auto beginning = given_rate(work.experiment, {.name = "baseline", .candidate = {}});
  found.merge(find_rates(work, rates, unknown, beginning.value_or(rates.own()), race_of_rates()));
  return found;
}

std::int64_t rate_trainings(const Experiment& experiment, const std::vector<RateRow>& rows) {
  const auto unknown = std::count_if(rows.begin(), rows.end(),
                                     [&](const auto& row) { return !given_rate(experiment, row); });
  const auto grid = race_of_rates();
  return unknown * std::ssize(grid.factors) * grid.seeds;
}

nlohmann::json to_json(Measure measure, const TunedRate& rate) {
  auto list = nlohmann::json::array();
  for (const auto& [tried, values] : rate.tried) {
    auto numbers = nlohmann::json::array();
    for (const double value : values) {
      numbers.push_back(json_number(measure == Measure::accuracy ? 1.0 - value : value));
    }
    list.push_back({{"learning_rate", tried}, {key_of(measure), std::move(numbers)}});
  }
  return {{"learning_rate", rate.rate}, {"rate_at_end", rate.at_end}, {"rates", std::move(list)}};
}

}  // namespace nas
