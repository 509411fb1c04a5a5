#include "algorithms/random_search.hpp"

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "search/algorithm.hpp"
#include "search/conversation.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

const Requirement require{"random_search"};

}  // namespace

void RandomSearchOptions::check() const {
  require(evaluations >= 1, "evaluations", static_cast<double>(evaluations), ">= 1");
  require(in_flight >= 1, "in_flight", in_flight, ">= 1");
}

pagmo::population RandomSearch::evolve(pagmo::population population) const {
  require_suitable("random_search", population, /*single=*/false);
  AskedPoints asked(population);
  UnseenPoints unseen(population.get_problem(), population.get_x());
  if (options_.in_flight > 1 && asked.size() < options_.evaluations) {
    Conversation conversation(population.get_problem(), options_.in_flight, options_.arrival);
    conversation.run(
        options_.evaluations - asked.size(), [&] { return unseen.draw(engine_); },
        [&asked](const Vector& point, const Vector& fitness) { asked.add(point, fitness); });
    return asked.best();
  }
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

NAS_REGISTER_ALGORITHM({.key = "random_search",
                        .summary = "uniform random search, without replacement where all genes are "
                                   "categorical (Bergstra & Bengio 2012; Li & Talwalkar 2019)",
                        .settings = with_conversation({evaluations_setting()}, 1),
                        .file = __FILE__},
                       [] {
                         return Algorithm{.objectives = Algorithm::Objectives::any,
                                          .batches = true,
                                          .make = make_seeded<RandomSearch>};
                       });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::RandomSearch)
