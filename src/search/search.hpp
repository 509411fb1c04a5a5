#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>

#include "core/visibility.hpp"
#include "evaluation/evaluator.hpp"
#include "genotype/search_space.hpp"
#include "indicators/archive.hpp"
#include "search/objective_set.hpp"
#include "search/rungs.hpp"
#include "store/store.hpp"

namespace NAS_PUBLIC nas {

/// How several objectives, each scaled by its range, become the one of an algorithm that knows only one.
struct Decomposition {
  /// "weighted", "tchebycheff" or "bi" (boundary intersection), as in pagmo; but in Tchebycheff's,
  /// the largest weighted value, a value that is better than its range's best counts as better.
  std::string method;
  std::vector<double> weights;  ///< one per objective, not negative, of sum 1
};

/// Names of the genes of a genotype that have an effect: see Problem::active.
using Conditions = std::function<std::vector<std::string>(const Genotype&)>;

/// How a search runs, whatever its algorithm.
struct SearchSettings {
  std::int64_t population = 12;
  std::uint32_t seed = 42;
  /// Known-good genotypes, the first individuals of the initial population (at most `population`); the rest are random.
  std::vector<Genotype> initial{};
  Encoding encoding = Encoding::integers;
  /// Which genes variation may as well leave alone; empty: all have an effect.
  Conditions conditions{};
  std::optional<Decomposition> decomposition{};
  /// How far candidates are trained; empty: to the end. Algorithms hear of each candidate once, of
  /// how it is at its first rung, where all can be compared.
  std::optional<Fidelity> fidelity{};
  bool mean_of_answers = false;    ///< what is believed of a candidate, see Belief
  std::int64_t stagnation = 0;     ///< asks without progress after which the search ends; 0 = never
  std::optional<double> target{};  ///< ends when the only objective is not worse
  /// Asks between two indicators: at the end of each batch in which so many have accumulated, and at the end of the search.
  std::int64_t indicator_interval = 1;
  std::function<void(const Indicator&)> on_indicator{};  ///< may be empty
};

/// The result of a search. The archive holds, in scaled objectives, every candidate that is ok by
/// its latest answer (with mean_of_answers by any): neither failed nor rejected, and trained to the
/// end, since what was stopped early has not shown what it can do.
struct SearchResult {
  Archive archive;
  std::string ended_by;  ///< "the algorithm's end", "500 evaluations", ...
  /// Scaled objectives of the algorithm's last population; empty where the search was cut short.
  Points last_population;
};

/// The reference point of every hypervolume, in scaled objectives: a tenth of the range beyond its
/// worst end. @see Ishibuchi et al. (2018), on reference points.
inline constexpr double kReferencePoint = 1.1;

/// The one pagmo user-defined problem: decodes decision vectors and asks an evaluator that it does
/// not own. Copies share their state; it looks deterministic to pagmo (replicates are handled
/// inside) and is not thread-safe (parallelism lies in the evaluator's batches).
///
/// Several objectives are scaled by their ranges. A candidate that was asked for before is slightly worse each time, so that
/// pagmo's crowding distance, which is NaN for equal points and ranks NaN first, does not fill the population with clones.
class SearchProblem {
 public:
  struct State;
  SearchProblem() = default;  ///< for pagmo; not usable
  explicit SearchProblem(std::shared_ptr<State> state) : state_(std::move(state)) {}

  [[nodiscard]] std::vector<double> fitness(const std::vector<double>& decision_vector) const;
  [[nodiscard]] std::vector<double> batch_fitness(
      const std::vector<double>& decision_vectors) const;
  /// Begins to evaluate a decision vector while others are out; for Conversation, as is next().
  /// @return its number among all that have begun.
  [[nodiscard]] std::int64_t begin(const std::vector<double>& decision_vector,
                                   TellOrder order) const;
  /// Begins to train a candidate on that has paused, where one is to go on beside what is out.
  /// @return its number.
  [[nodiscard]] std::optional<std::int64_t> promote(TellOrder order) const;
  /// Waits for an answer; something is out. @return the number, and the fitness.
  [[nodiscard]] std::pair<std::int64_t, std::vector<double>> next() const;
  /// A point with its fitness.
  using Observation = std::pair<std::vector<double>, std::vector<double>>;
  /// What is known of candidates at the highest rung, the end included, that so many have come to;
  /// nothing where that is the first one, or there are none. In the order of answers.
  [[nodiscard]] std::vector<Observation> at_highest_rung(std::size_t least) const;
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> get_bounds() const;
  [[nodiscard]] std::size_t get_nobj() const;
  [[nodiscard]] std::size_t get_nix() const;
  /// The decision vector with the values that are evaluated: real ones with the gene's decimals.
  [[nodiscard]] std::vector<double> evaluated(const std::vector<double>& decision_vector) const;
  /// Whether each variable of a decision vector belongs to a gene that has an effect.
  [[nodiscard]] std::vector<bool> active(const std::vector<double>& decision_vector) const;
  [[nodiscard]] std::string get_name() const { return "attnas search problem"; }
  [[nodiscard]] pagmo::thread_safety get_thread_safety() const {
    return pagmo::thread_safety::none;
  }

  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}

 private:
  std::shared_ptr<State> state_;
};

/// One search: the initial population as one batch, then one evolve() of the algorithm, until it
/// ends by itself, the evaluator's budget is spent, the target is reached or progress ends.
///
/// Equal seeds have equal initial populations, whatever the algorithm and its encoding.
/// @throws StopRequested if a stop was asked for; running it again on the same store continues by replay.
SearchResult run_search(const SearchSpace& space, const std::shared_ptr<Evaluator>& evaluator,
                        const ObjectiveSet& objectives, const pagmo::algorithm& algorithm,
                        const SearchSettings& settings);

}  // namespace nas
