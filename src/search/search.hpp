#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>

#include "evaluation/evaluator.hpp"
#include "genotype/search_space.hpp"

namespace nas {

/// The one pagmo user-defined problem: decodes decision vectors and asks an evaluator that it does
/// not own. Copies share the evaluator; it looks deterministic to pagmo (replicates are handled
/// inside) and is not thread-safe (parallelism lies in the evaluator's batches).
class SearchProblem {
 public:
  SearchProblem() = default;  ///< for pagmo; not usable
  SearchProblem(std::shared_ptr<const SearchSpace> space, std::shared_ptr<Evaluator> evaluator);

  [[nodiscard]] std::vector<double> fitness(const std::vector<double>& decision_vector) const;
  [[nodiscard]] std::vector<double> batch_fitness(
      const std::vector<double>& decision_vectors) const;
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> get_bounds() const;
  [[nodiscard]] std::size_t get_nobj() const;
  [[nodiscard]] std::size_t get_nix() const;
  [[nodiscard]] std::string get_name() const { return "attnas search problem"; }
  [[nodiscard]] pagmo::thread_safety get_thread_safety() const {
    return pagmo::thread_safety::none;
  }

  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}

 private:
  std::shared_ptr<const SearchSpace> space_;
  std::shared_ptr<Evaluator> evaluator_;
};

/// One search: initial population, then one evolve() of the algorithm.
struct SearchSettings {
  std::int64_t population = 12;
  std::uint32_t seed = 42;
  /// Known-good genotypes, the first individuals of the initial population (at most `population`);
  /// the rest are random.
  std::vector<Genotype> initial{};
};

/// Runs the search to its end. The initial population is one batch.
/// @throws StopRequested if a stop was asked for; running it again on the same store continues by
/// replay.
void run_search(const SearchSpace& space, std::shared_ptr<Evaluator> evaluator,
                pagmo::algorithm algorithm, const SearchSettings& settings);

}  // namespace nas
