#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>
#include <pagmo/s11n.hpp>

#include "algorithms/user_defined.hpp"
#include "search/algorithm.hpp"
#include "search/conversation.hpp"
#include "search/genetic_variation.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

const Requirement require{"nsga2_async"};

struct Nsga2AsyncOptions {
  unsigned long long evaluations = 100;  ///< asks, the initial population included; >= 1
  double crossover = 0.95;               ///< probability for a child, [0, 1]
  double eta_c = 10;                     ///< distribution index of the crossover of reals, >= 0
  double mutation = 0;  ///< probability for each gene, [0, 1]; 0 = 1 / genes that vary
  double eta_m = 50;    ///< distribution index of the mutation of reals, >= 0
  unsigned in_flight = 16;
  bool arrival = false;

  static void each(auto& options, auto&& field) {
    field("evaluations", options.evaluations);
    field("crossover", options.crossover);
    field("eta_c", options.eta_c);
    field("mutation", options.mutation);
    field("eta_m", options.eta_m);
    field("in_flight", options.in_flight);
    field("arrival", options.arrival);
  }
  void check() const {
    require(evaluations >= 1, "evaluations", static_cast<double>(evaluations), ">= 1");
    VariationOptions::of(*this).check(require);
    require(in_flight >= 1, "in_flight", in_flight, ">= 1");
  }
};

/// NSGA-II without generations, (mu + 1): each told candidate joins the population, of which the worst
/// by non-domination rank and crowding distance leaves. A child has two parents, winners of binary
/// tournaments, and is new (GeneticVariation). What is out takes no part.
///
/// For deterministic, box-bounded problems with two or more objectives, integers at the tail.
///
/// @see Deb et al. (2002), IEEE Trans. Evol. Comput. 6(2), doi:10.1109/4235.996017; Durillo, Nebro,
/// Luna & Alba (2008), PPSN X, doi:10.1007/978-3-540-87700-4_66, on its steady-state form.
class Nsga2Async : public Seeded<Nsga2AsyncOptions> {
 public:
  using Seeded::Seeded;

  /// @return the last population.
  pagmo::population evolve(pagmo::population population) const {
    require_suitable("nsga2_async", population, /*single=*/false);
    const auto& problem = population.get_problem();
    const auto size = population.size();
    require(problem.get_nobj() >= 2, "objectives of the problem",
            static_cast<double>(problem.get_nobj()), ">= 2");
    require(size >= 2, "population", static_cast<double>(size), ">= 2");

    auto individuals = population.get_x();
    auto fitness = population.get_f();
    GeneticVariation variation(problem, VariationOptions::of(options_), engine_, individuals);
    CrowdedRanking ranking(fitness);
    const auto parent = [&] {
      const auto first = below(engine_, size);
      const auto second = below(engine_, size);
      return individuals[ranking.winner(first, second, engine_)];
    };
    const auto child = [&] {
      auto first = parent();
      auto second = parent();
      return variation.child(std::move(first), std::move(second));
    };
    const auto enter = [&](const Vector& point, const Vector& value) {
      individuals.push_back(point);
      fitness.push_back(value);
      const auto worst = static_cast<std::ptrdiff_t>(CrowdedRanking(fitness).worst());
      individuals.erase(individuals.begin() + worst);
      fitness.erase(fitness.begin() + worst);
      ranking = CrowdedRanking(fitness);
    };
    const auto asks = options_.evaluations > size ? options_.evaluations - size : 0;
    Conversation(problem, options_.in_flight, options_.arrival).run(asks, child, enter);
    for (std::size_t i = 0; i < size; ++i) population.set_xf(i, individuals[i], fitness[i]);
    return population;
  }

  [[nodiscard]] std::string get_name() const { return "nsga2_async: NSGA-II without generations"; }
};

std::vector<Misfit> fit(Parameters& settings, const SearchFacts& facts) {
  fit_mutation(settings, facts);
  return {};
}

NAS_REGISTER_ALGORITHM(
    {.key = "nsga2_async",
     .summary = "NSGA-II without generations: each answer changes the population, and no worker "
                "waits for the slowest of a generation",
     .settings = with_conversation(
         {evaluations_setting(),
          number_setting("crossover", 0.95, 0, 1, "probability of crossover"),
          number_setting("eta_c", 10.0, 1, 99, "distribution index of the crossover of real genes"),
          number_setting("mutation", 0.0, 0, 1,
                         "mutation probability per gene with an effect; 0 = 1 / number of genes"),
          number_setting("eta_m", 50.0, 1, 99, "distribution index of the mutation of real genes")},
         16),
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::several,
                       .batches = true,
                       .min_population = 4,
                       .fit = fit,
                       .make = make_seeded<Nsga2Async>};
    });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT(nas::Nsga2Async)
