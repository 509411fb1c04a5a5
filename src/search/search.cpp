#include "search/search.hpp"

#include <stdexcept>

#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>

#include "core/error.hpp"
#include "core/seed.hpp"

namespace nas {

SearchProblem::SearchProblem(std::shared_ptr<const SearchSpace> space,
                             std::shared_ptr<Evaluator> evaluator)
    : space_(std::move(space)), evaluator_(std::move(evaluator)) {}

std::vector<double> SearchProblem::fitness(const std::vector<double>& decision_vector) const {
  return evaluator_->ask({space_->decode(decision_vector)}).front();
}

std::vector<double> SearchProblem::batch_fitness(
    const std::vector<double>& decision_vectors) const {
  const auto length = static_cast<std::ptrdiff_t>(space_->genes().size());
  std::vector<Genotype> batch;
  for (auto begin = decision_vectors.begin(); begin != decision_vectors.end(); begin += length) {
    batch.push_back(space_->decode({begin, begin + length}));
  }
  std::vector<double> fitness;
  for (const auto& values : evaluator_->ask(batch)) {
    fitness.insert(fitness.end(), values.begin(), values.end());
  }
  return fitness;
}

std::pair<std::vector<double>, std::vector<double>> SearchProblem::get_bounds() const {
  // pagmo asks a default-constructed problem for its bounds before the archive fills it.
  if (!space_) return {{0.0}, {1.0}};
  return space_->bounds();
}

std::size_t SearchProblem::get_nobj() const {
  return evaluator_ ? evaluator_->num_objectives() : 1;
}
std::size_t SearchProblem::get_nix() const { return space_ ? space_->num_integers() : 0; }

namespace {

std::vector<double> random_decision_vector(const SearchSpace& space, RandomEngine& random) {
  auto [vector, upper] = space.bounds();
  const std::size_t num_reals = vector.size() - space.num_integers();
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (i < num_reals) {
      vector[i] += random.uniform() * (upper[i] - vector[i]);
    } else {
      vector[i] += static_cast<double>(random.below(static_cast<std::int64_t>(upper[i]) + 1));
    }
  }
  return vector;
}

}  // namespace

void run_search(const SearchSpace& space, std::shared_ptr<Evaluator> evaluator,
                pagmo::algorithm algorithm, const SearchSettings& settings) {
  const SearchProblem asker(std::make_shared<SearchSpace>(space), std::move(evaluator));
  RandomEngine random(derive_seed(settings.seed, 0, "initial population", 0));
  const auto size = static_cast<std::size_t>(settings.population);
  std::vector<std::vector<double>> initial;
  for (std::size_t i = 0; i < size; ++i) {
    initial.push_back(i < settings.initial.size() ? space.encode(settings.initial[i])
                                                  : random_decision_vector(space, random));
  }
  std::vector<double> joined;
  for (const auto& vector : initial) joined.insert(joined.end(), vector.begin(), vector.end());
  const auto fitness = asker.batch_fitness(joined);

  pagmo::population population(pagmo::problem(asker), 0, settings.seed);
  const std::size_t num_objectives = asker.get_nobj();
  for (std::size_t i = 0; i < size; ++i) {
    const auto begin = fitness.begin() + static_cast<std::ptrdiff_t>(i * num_objectives);
    population.push_back(initial[i], {begin, begin + static_cast<std::ptrdiff_t>(num_objectives)});
  }
  algorithm.evolve(population);
}

}  // namespace nas
