#include "algorithms/regularized_evolution.hpp"

#include <algorithm>
#include <set>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "search/algorithm.hpp"
#include "search/conversation.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

const Requirement require{"regularized_evolution"};

}  // namespace

void RegularizedEvolutionOptions::check() const {
  require(evaluations >= 1, "evaluations", static_cast<double>(evaluations), ">= 1");
  require(sample >= 1, "sample", sample, ">= 1");
  require(batch >= 1, "batch", batch, ">= 1");
  require(in_flight >= 1, "in_flight", in_flight, ">= 1");
  require(batch == 1 || in_flight == 1, "batch", batch, "1 with in_flight > 1");
}

pagmo::population RegularizedEvolution::evolve(pagmo::population population) const {
  require_suitable("regularized_evolution", population, /*single=*/true);
  require(options_.sample <= population.size(), "sample", options_.sample,
          "at most the population, " + std::to_string(population.size()));
  const auto& problem = population.get_problem();
  AskedPoints asked(population);
  // The queue is the last `size` points: first in, first out.
  const std::size_t size = population.size();
  // The best third of a rung beyond the first; where there is none yet, nothing.
  const auto leaders = [&] {
    auto rung = at_highest_rung(problem, options_.sample);
    std::stable_sort(rung.begin(), rung.end(), [](const auto& a, const auto& b) {
      return a.second.front() < b.second.front();
    });
    rung.resize((rung.size() + 2) / 3);
    return rung;
  };
  const auto parent = [&] {
    const std::size_t oldest = asked.size() - size;
    std::size_t best = oldest + below(engine_, size);
    for (unsigned i = 1; i < options_.sample; ++i) {
      const std::size_t rival = oldest + below(engine_, size);
      if (asked.value(rival) < asked.value(best)) best = rival;
    }
    return asked.point(best);
  };
  const auto change_one = [&](Vector& point) {
    const auto variables = changeable(point, problem);
    redraw(point, variables[below(engine_, variables.size())], problem, engine_);
  };
  std::set<Vector> known;  // what was asked, as effective points
  for (std::size_t i = 0; i < size; ++i) known.insert(effective_point(asked.point(i), problem));
  const auto child = [&] {
    const auto best = leaders();
    auto point = best.empty() ? parent() : best[below(engine_, best.size())].first;
    change_one(point);
    // Leaders are few and do not age, so that their children would soon all be known.
    for (int i = 1; !best.empty() && i < kTriesForNewPoint; ++i) {
      if (!known.contains(effective_point(point, problem))) break;
      change_one(point);
    }
    known.insert(effective_point(point, problem));
    return point;
  };
  if (options_.in_flight > 1 && asked.size() < options_.evaluations) {
    Conversation conversation(problem, options_.in_flight, options_.arrival);
    conversation.run(
        options_.evaluations - asked.size(), child,
        [&asked](const Vector& point, const Vector& fitness) { asked.add(point, fitness); });
  }
  while (asked.size() < options_.evaluations) {
    std::vector<Vector> batch;
    while (batch.size() < options_.batch && asked.size() + batch.size() < options_.evaluations) {
      batch.push_back(child());
    }
    asked.ask(batch);
  }
  return asked.best();
}

namespace {

using Integer = std::int64_t;

std::vector<Misfit> fit(Parameters& settings, const SearchFacts& /*facts*/) {
  const auto population = settings.get<Integer>("population");
  if (settings.get<Integer>("sample") == 0) {
    settings.set("sample", std::min(population, std::max<Integer>(2, population / 4)));
  }
  if (settings.get<Integer>("sample") > population) {
    return {{"sample", "must be at most algorithm.population = " + std::to_string(population)}};
  }
  if (settings.get<Integer>("batch") > 1 && settings.get<Integer>("in_flight") > 1) {
    return {{"batch", "must be 1 where algorithm.in_flight > 1: nothing waits for a batch"}};
  }
  return {};
}

NAS_REGISTER_ALGORITHM(
    {.key = "regularized_evolution",
     .summary = "ageing evolution: tournament, one mutation, the oldest dies (Real et al. 2019)",
     .settings = with_conversation(
         {evaluations_setting(),
          integer_setting("sample", 0, 0, 1e6,
                          "individuals that compete to be the parent; 0 = a "
                          "quarter of the population, at least 2"),
          integer_setting(
              "batch", 1, 1, 1e6,
              "children of the same population that are asked for together, for several workers")},
         1),
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .batches = true,
                       .fit = fit,
                       .make = make_seeded<RegularizedEvolution>};
    });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::RegularizedEvolution)
