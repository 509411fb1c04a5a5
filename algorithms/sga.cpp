#include <cstdint>
#include <string>

#include <pagmo/algorithms/sga.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(
      pagmo::sga(further_generations(settings), settings.get<double>("crossover_rate"),
                 settings.get<double>("eta_c"), settings.get<double>("mutation"),
                 settings.get<double>("mutation_parameter"),
                 static_cast<unsigned>(settings.get<Integer>("selection_parameter")),
                 settings.get<std::string>("crossover"), settings.get<std::string>("mutation_kind"),
                 settings.get<std::string>("selection"), seed));
}

std::vector<Misfit> fit(Parameters& settings, const SearchFacts& facts) {
  fit_mutation(settings, facts);
  std::vector<Misfit> misfits;
  const auto population = settings.get<Integer>("population");
  if (settings.get<Integer>("selection_parameter") > population) {
    misfits.push_back({"selection_parameter",
                       "must be at most algorithm.population = " + std::to_string(population)});
  }
  if (settings.get<std::string>("crossover") == "sbx" && population % 2 != 0) {
    misfits.push_back({"crossover", "must be another where algorithm.population is odd"});
  }
  const auto parameter = settings.get<double>("mutation_parameter");
  const auto& kind = settings.get<std::string>("mutation_kind");
  if (kind == "polynomial" ? parameter < 1.0 : parameter > 1.0) {
    misfits.push_back({"mutation_parameter", std::string("must be in ") +
                                                 (kind == "polynomial" ? "[1, 100]" : "(0, 1]") +
                                                 " for " + kind});
  }
  return misfits;
}

NAS_REGISTER_ALGORITHM(
    {.key = "sga",
     .summary = "simple genetic algorithm, (mu + lambda): tournament or truncation, crossover, "
                "uniform reset of categories",
     .settings =
         {generations_setting(20),
          number_setting("crossover_rate", 0.9, 0, 1, "probability of crossover"),
          choice_setting("crossover", {"exponential", "binomial", "single", "sbx"},
                         "kind of crossover"),
          number_setting("eta_c", 1.0, 1, 100,
                         "distribution index of simulated binary crossover (sbx)"),
          number_setting("mutation", 0.0, 0, 1,
                         "mutation probability per gene; 0 = 1 / number of genes, one gene of a "
                         "child on average"),
          choice_setting(
              "mutation_kind", {"uniform", "gaussian", "polynomial"},
              "uniform and polynomial redraw categories, gaussian moves them to neighbours"),
          number_setting("mutation_parameter", 1.0, 1e-6, 100,
                         "width of a gaussian mutation, or distribution index of a polynomial one"),
          choice_setting("selection", {"tournament", "truncated"}, "how parents are selected"),
          integer_setting("selection_parameter", 2, 1, 1e6,
                          "size of a tournament, or number of best individuals to draw from")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::integers,
                       .batches = false,
                       .min_population = 2,
                       .fit = fit,
                       .make = make};
    });

}  // namespace

}  // namespace nas
