#include "algorithms/regularized_evolution.hpp"

#include <algorithm>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "core/format.hpp"
#include "search/algorithm.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

const Requirement require{"regularized_evolution"};

}  // namespace

RegularizedEvolution::RegularizedEvolution(const Options& options, std::uint32_t seed)
    : options_(options), seed_(seed), engine_(seed) {
  require(options.evaluations >= 1, "evaluations", static_cast<double>(options.evaluations),
          ">= 1");
  require(options.sample >= 1, "sample", options.sample, ">= 1");
  require(options.batch >= 1, "batch", options.batch, ">= 1");
}

void RegularizedEvolution::set_seed(unsigned seed) {
  seed_ = seed;
  engine_.seed(seed);
}

std::string RegularizedEvolution::get_name() const {
  return "regularized_evolution: ageing evolution";
}

std::string RegularizedEvolution::get_extra_info() const {
  return "evaluations: " + std::to_string(options_.evaluations) +
         "\nsample: " + std::to_string(options_.sample) +
         "\nbatch: " + std::to_string(options_.batch) + "\nseed: " + std::to_string(seed_);
}

pagmo::population RegularizedEvolution::evolve(pagmo::population population) const {
  require_suitable("regularized_evolution", population, /*single=*/true);
  require(options_.sample <= population.size(), "sample", options_.sample,
          "at most the population, " + std::to_string(population.size()));
  const auto& problem = population.get_problem();
  AskedPoints asked(population);
  // The queue is the last `size` points: first in, first out.
  const std::size_t size = population.size();
  const auto child = [&] {
    const std::size_t oldest = asked.size() - size;
    std::size_t parent = oldest + below(engine_, size);
    for (unsigned i = 1; i < options_.sample; ++i) {
      const std::size_t rival = oldest + below(engine_, size);
      if (asked.value(rival) < asked.value(parent)) parent = rival;
    }
    auto point = asked.point(parent);
    redraw(point, below(engine_, point.size()), problem, engine_);
    return point;
  };
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

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(RegularizedEvolution(
      {.evaluations = static_cast<unsigned long long>(settings.get<Integer>("evaluations")),
       .sample = static_cast<unsigned>(settings.get<Integer>("sample")),
       .batch = static_cast<unsigned>(settings.get<Integer>("batch"))},
      seed));
}

std::vector<Misfit> fit(Parameters& settings, const SearchFacts& /*facts*/) {
  const auto population = settings.get<Integer>("population");
  if (settings.get<Integer>("sample") == 0) {
    settings.set("sample", std::min(population, std::max<Integer>(2, population / 4)));
  }
  if (settings.get<Integer>("sample") > population) {
    return {{"sample", "must be at most algorithm.population = " + std::to_string(population)}};
  }
  return {};
}

NAS_REGISTER_ALGORITHM(
    {.key = "regularized_evolution",
     .summary = "ageing evolution: tournament, one mutation, the oldest dies (Real et al. 2019)",
     .settings = {integer_setting("evaluations", 100, 1, 1e9,
                                  "asks, the initial population included"),
                  integer_setting("sample", 0, 0, 1e6,
                                  "individuals that compete to be the parent; 0 = fitted: a "
                                  "quarter of the population, at least 2"),
                  integer_setting("batch", 1, 1, 1e6,
                                  "children of one state of the population, for several workers")},
     .file = __FILE__},
    [] {
      return Algorithm{
          .objectives = Algorithm::Objectives::one, .batches = true, .fit = fit, .make = make};
    });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::RegularizedEvolution)
