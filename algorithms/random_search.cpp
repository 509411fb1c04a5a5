#include "algorithms/random_search.hpp"

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "core/format.hpp"
#include "search/algorithm.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

const Requirement require{"random_search"};

}  // namespace

RandomSearch::RandomSearch(const Options& options, std::uint32_t seed)
    : options_(options), seed_(seed), engine_(seed) {
  require(options.evaluations >= 1, "evaluations", static_cast<double>(options.evaluations),
          ">= 1");
}

void RandomSearch::set_seed(unsigned seed) {
  seed_ = seed;
  engine_.seed(seed);
}

std::string RandomSearch::get_name() const { return "random_search: uniform random search"; }

std::string RandomSearch::get_extra_info() const {
  return "evaluations: " + std::to_string(options_.evaluations) +
         "\nseed: " + std::to_string(seed_);
}

pagmo::population RandomSearch::evolve(pagmo::population population) const {
  require_suitable("random_search", population, /*single=*/false);
  AskedPoints asked(population);
  UnseenPoints unseen(population.get_problem(), population.get_x());
  while (asked.size() < options_.evaluations) {
    std::vector<Vector> batch;
    while (batch.size() < population.size() && asked.size() + batch.size() < options_.evaluations) {
      auto point = unseen.draw(engine_);
      if (point.empty()) break;
      batch.push_back(std::move(point));
    }
    if (batch.empty()) break;
    asked.ask(batch);
  }
  return asked.best();
}

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(RandomSearch(
      {.evaluations = static_cast<unsigned long long>(settings.get<Integer>("evaluations"))},
      seed));
}

NAS_REGISTER_ALGORITHM({.key = "random_search",
                        .summary = "uniform random search, without replacement where all genes are "
                                   "categorical (Bergstra & Bengio 2012; Li & Talwalkar 2019)",
                        .settings = {integer_setting("evaluations", 100, 1, 1e9,
                                                     "asks, the initial population included")},
                        .file = __FILE__},
                       [] {
                         return Algorithm{.objectives = Algorithm::Objectives::any,
                                          .batches = true,
                                          .make = make};
                       });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::RandomSearch)
