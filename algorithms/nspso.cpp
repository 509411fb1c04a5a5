#include <cstdint>
#include <string>
#include <utility>

#include <pagmo/algorithms/nspso.hpp>
#include <pagmo/bfe.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  pagmo::nspso nspso(further_generations(settings), settings.get<double>("inertia"),
                     settings.get<double>("own_pull"), settings.get<double>("leader_pull"), 1.0,
                     settings.get<double>("largest_velocity"),
                     static_cast<unsigned>(settings.get<Integer>("leaders")),
                     settings.get<std::string>("diversity"), /*memory=*/false, seed);
  nspso.set_bfe(pagmo::bfe());
  return pagmo::algorithm(std::move(nspso));
}

Setting pull_setting(std::string name, std::string help) {
  auto setting = number_setting(std::move(name), 2.0, 0, 4, std::move(help));
  setting.min_exclusive = true;
  return setting;
}

NAS_REGISTER_ALGORITHM(
    {.key = "nspso",
     .summary = "non-dominated sorting particle swarm (Li 2003)",
     .settings = {generations_setting(20),
                  number_setting("inertia", 0.6, 0, 1, "inertia weight omega"),
                  pull_setting("own_pull", "weight c1 of the pull towards a particle's own best"),
                  pull_setting("leader_pull", "weight c2 of the pull towards a leader"),
                  number_setting("largest_velocity", 0.5, 1e-6, 1,
                                 "largest step of a particle, as a share of the range"),
                  integer_setting("leaders", 60, 1, 100,
                                  "percentage of best particles from which leaders are drawn"),
                  choice_setting("diversity", {"crowding distance", "niche count", "max min"},
                                 "by what leaders are chosen, so that the front stays diverse")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::several,
                       .encoding = Encoding::relaxed,
                       .batches = true,
                       .min_population = 2,
                       .make = make};
    });

}  // namespace

}  // namespace nas
