#include <algorithm>
#include <cmath>

#include "core/setting_forms.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {

AlgorithmRegistry& algorithms() {
  static AlgorithmRegistry registry("algorithm");
  return registry;
}

ObjectiveRegistry& objectives() {
  static ObjectiveRegistry registry("objective");
  return registry;
}

ProblemRegistry& problems() {
  static ProblemRegistry registry("problem");
  return registry;
}

Setting integer_setting(std::string name, std::int64_t value, double min, double max,
                        std::string help) {
  return setting::integer(std::move(name), value, min, max, std::move(help));
}

Setting number_setting(std::string name, double value, double min, double max, std::string help) {
  return setting::number(std::move(name), value, min, max, std::move(help));
}

Setting choice_setting(std::string name, std::vector<std::string> choices, std::string help) {
  auto first = choices.front();
  return setting::choice(std::move(name), std::move(first), std::move(choices), std::move(help));
}

Setting generations_setting(std::int64_t default_value, double min) {
  return integer_setting("generations", default_value, min, 1e9,
                         "generations, the initial population included");
}

Setting evaluations_setting() {
  return integer_setting("evaluations", 100, 1, 1e9,
                         "candidates asked for, the initial population included");
}

unsigned further_generations(const Parameters& settings) {
  return static_cast<unsigned>(settings.get<std::int64_t>("generations") - 1);
}

void fit_mutation(Parameters& settings, const SearchFacts& facts) {
  if (settings.get<double>("mutation") > 0.0) return;
  settings.set("mutation", 1.0 / static_cast<double>(std::max<std::size_t>(facts.num_genes, 1)));
}

std::vector<Setting> ant_colony_settings() {
  return {
      generations_setting(20),
      integer_setting("kernel", 0, 0, 1e6,
                      "solutions in the archive that guides the ants; 0 = 63, or the population "
                      "where that is smaller"),
      number_setting("convergence", 1.0, 0, 100,
                     "convergence speed q before the generation `threshold`, and so without effect "
                     "where that is 1: the smaller, the more weight the best solutions have"),
      integer_setting("threshold", 1, 1, 1e9,
                      "generation from which the convergence speed q is 0.01"),
      number_setting("focus", 0.0, 0, 1e6, "pull of the ants towards the best solution; 0 = none")};
}

std::vector<Misfit> fit_kernel(Parameters& settings, const SearchFacts& /*facts*/) {
  using Integer = std::int64_t;
  const auto population = settings.get<Integer>("population");
  if (settings.get<Integer>("kernel") == 0) {
    settings.set("kernel", std::min<Integer>(63, population));
  }
  if (const auto kernel = settings.get<Integer>("kernel"); kernel < 2 || kernel > population) {
    return {{"kernel",
             "must be in [2, " + std::to_string(population) + "], at most algorithm.population"}};
  }
  const auto further = settings.get<Integer>("generations") - 1;
  if (further > 0 && settings.get<Integer>("threshold") > further) {
    return {{"threshold", "must be at most " + std::to_string(further) +
                              ", the generations after the initial population"}};
  }
  return {};
}

std::vector<Setting> evolution_strategy_settings() {
  return {
      generations_setting(20),
      number_setting("sigma0", 0.5, 1e-6, 1,
                     "initial standard deviation, as a share of each variable's range"),
      number_setting("ftol", 0.0, 0, 1,
                     "the search ends when the values of a generation differ by less, as on a "
                     "plateau; 0 = never"),
      number_setting("xtol", 0.0, 0, 1, "the search ends when its steps are smaller; 0 = never"),
      setting::any("force_bounds", true,
                   "keep candidates within the bounds; else they are clamped when decoded, and the "
                   "algorithm adapts to points other than those evaluated")};
}

std::int64_t evolution_strategy_population(const SearchFacts& facts) {
  const double dimension = static_cast<double>(std::max<std::size_t>(facts.dimension, 1));
  return std::max<std::int64_t>(5, 4 + static_cast<std::int64_t>(3.0 * std::log(dimension)));
}

Setting context_setting() {
  return {.name = "context",
          .default_value = std::int64_t{0},
          .help = "length of the sequences, tokens; 0 = the model's",
          .min = 0,
          .max = 1e6};
}

Objective at_context(const Parameters& settings, std::string unit,
                     std::function<double(const Architecture&)> cost) {
  const auto context = settings.get<std::int64_t>("context");
  return {.unit = std::move(unit),
          .analytic = [context, cost = std::move(cost)](const Subject& subject) {
            auto architecture = subject.architecture;
            if (context > 0) architecture.context = context;
            return cost(architecture);
          }};
}

std::optional<Range> expected_perplexity(const nlohmann::json& facts) {
  double worst = facts.value("unigram_perplexity", 0.0);
  if (worst <= 1.0) worst = facts.value("vocabulary", 0.0);
  if (worst <= 1.0) return std::nullopt;
  return Range{.best = 1.0, .worst = worst};
}

}  // namespace nas
