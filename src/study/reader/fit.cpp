#include "study/reader/fit.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "study/reader/rules.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;
using Numbers = std::vector<double>;
using Objectives = Algorithm::Objectives;

/// Whether an algorithm takes so many objectives as they are.
bool takes(const Algorithm& algorithm, std::size_t number) {
  return algorithm.objectives == Objectives::any ||
         (algorithm.objectives == Objectives::one) == (number == 1);
}

void check_number_of_objectives(const Algorithm& algorithm, std::size_t number,
                                std::vector<Misfit>& misfits) {
  if (takes(algorithm, number)) return;
  const bool wants_one = algorithm.objectives == Objectives::one;
  std::vector<std::string> others;
  for (const auto& key : algorithms().keys()) {
    if (takes(algorithms().at(key).make(), number)) others.push_back(key);
  }
  std::string message = std::string("minimises ") +
                        (wants_one ? "one objective" : "two objectives or more") +
                        ", the experiment has " + std::to_string(number);
  message += wants_one ? "; set algorithm.decomposition, or " : "; name further objectives, or ";
  misfits.push_back({"name", message + "take one of " + join(others)});
}

/// Reads how several objectives become one, and holds their number to the algorithm's.
void decompose(const Algorithm& algorithm, Experiment& experiment, std::vector<Misfit>& misfits) {
  auto& settings = experiment.algorithm_settings;
  const auto number = experiment.objectives.objectives.size();
  const auto method = settings.get<std::string>("decomposition");
  for (const auto& breach : breaches(RuleStage::algorithm, {.experiment = experiment})) {
    misfits.push_back({breach.setting.substr(breach.setting.find('.') + 1), breach.must});
  }
  if (method == "none") check_number_of_objectives(algorithm, number, misfits);
  if (method == "none" || !misfits.empty()) return;
  auto weights = settings.get<Numbers>("weights");
  if (weights.empty()) weights.assign(number, 1.0 / static_cast<double>(number));
  double sum = 0.0;
  for (const double weight : weights) sum += weight;
  for (auto& weight : weights) weight /= sum;
  settings.set("weights", weights);
  experiment.decomposition = Decomposition{.method = method, .weights = std::move(weights)};
}

void fit_population(const Algorithm& algorithm, Experiment& experiment,
                    std::vector<Misfit>& misfits) {
  auto& settings = experiment.algorithm_settings;
  auto population = settings.get<Integer>("population");
  const auto evaluations = settings.contains("evaluations") ? settings.get<Integer>("evaluations")
                                                            : std::numeric_limits<Integer>::max();
  if (population == 0) {
    population = algorithm.fitted_population ? algorithm.fitted_population(experiment.search_facts)
                                             : algorithm.default_population;
    const auto most = evaluations - evaluations % algorithm.population_multiple;
    population = std::max(std::min(population, most), algorithm.min_population);
  }
  settings.set("population", population);
  experiment.population = population;
  if (population >= algorithm.min_population && population % algorithm.population_multiple == 0) {
    if (evaluations < population) {
      misfits.push_back(
          {"evaluations", "must be at least algorithm.population = " + std::to_string(population)});
    }
    return;
  }
  std::string message = "must be at least " + std::to_string(algorithm.min_population);
  if (algorithm.population_multiple > 1) {
    message += " and a multiple of " + std::to_string(algorithm.population_multiple);
  }
  misfits.push_back({"population", message + " for " + experiment.algorithm});
}

}  // namespace

std::vector<Misfit> fit_algorithm(Experiment& experiment) {
  const auto algorithm = algorithms().at(experiment.algorithm).make();
  std::vector<Misfit> misfits;
  decompose(algorithm, experiment, misfits);
  experiment.search_facts = {
      .num_genes = experiment.space.num_varying(),
      .dimension = experiment.space.bounds(algorithm.encoding).first.size(),
      .num_objectives = experiment.decomposition ? 1 : experiment.objectives.objectives.size(),
      .num_combinations = experiment.space.num_combinations()};
  fit_population(algorithm, experiment, misfits);
  if (algorithm.fit && misfits.empty()) {
    misfits = algorithm.fit(experiment.algorithm_settings, experiment.search_facts);
  }
  return misfits;
}

}  // namespace nas
