#include <cstdint>

#include <pagmo/algorithms/pso_gen.hpp>
#include <pagmo/bfe.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

/// In the ring a particle has half of its neighbours on either side, of which pagmo looks for one and
/// finds none below 2, and reads beyond the population above it.
std::vector<Misfit> fit(Parameters& settings, const SearchFacts& /*facts*/) {
  constexpr Integer kRing = 2;
  const auto neighbours = settings.get<Integer>("neighbours");
  const auto most = 2 * settings.get<Integer>("population") - 1;
  if (settings.get<Integer>("neighbourhood") != kRing || (neighbours >= 2 && neighbours <= most)) {
    return {};
  }
  if (most < 2) return {{"neighbourhood", "must not be 2, a ring, of a population of 1"}};
  return {{"neighbours", "must be in [2, " + std::to_string(most) + "] in a ring"}};
}

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  pagmo::pso_gen pso(further_generations(settings), settings.get<double>("inertia"),
                     settings.get<double>("own_pull"), settings.get<double>("group_pull"),
                     settings.get<double>("largest_velocity"),
                     static_cast<unsigned>(settings.get<Integer>("variant")),
                     static_cast<unsigned>(settings.get<Integer>("neighbourhood")),
                     static_cast<unsigned>(settings.get<Integer>("neighbours")), /*memory=*/false,
                     seed);
  pso.set_bfe(pagmo::bfe());
  return pagmo::algorithm(std::move(pso));
}

NAS_REGISTER_ALGORITHM(
    {.key = "pso",
     .summary = "particle swarm (Kennedy & Eberhart 1995; Clerc 2002), all particles of a "
                "generation moved at once",
     .settings =
         {generations_setting(20),
          number_setting("inertia", 0.7298, 0, 1,
                         "inertia weight omega, or the constriction factor"),
          number_setting("own_pull", 2.05, 0, 4,
                         "weight of the pull towards a particle's own best"),
          number_setting("group_pull", 2.05, 0, 4,
                         "weight of the pull towards its neighbours' best"),
          number_setting("largest_velocity", 0.5, 1e-6, 1,
                         "largest step of a particle, as a share of the range"),
          integer_setting(
              "variant", 5, 1, 6,
              "of the velocity update: 1 canonical, 2-4 other distributions of the pulls, 5 "
              "constriction, 6 fully informed"),
          integer_setting("neighbourhood", 2, 1, 4,
                          "topology: 1 all, 2 ring, 3 von Neumann, 4 adaptive random"),
          integer_setting("neighbours", 4, 1, 1e6,
                          "neighbours of a particle in a ring or an adaptive random topology")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::relaxed,
                       .batches = true,
                       .fit = fit,
                       .make = make};
    });

}  // namespace

}  // namespace nas
