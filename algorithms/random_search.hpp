#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

namespace nas {

/// Uniform random search.
///
/// Where all variables are integers no point is asked for twice, those of the initial population
/// included, and the search ends with the space; real variables are drawn afresh each time. Asks in
/// batches as large as the population. Any number of objectives; deterministic, box-bounded
/// problems, integers at the tail.
///
/// @see Bergstra & Bengio (2012), JMLR 13:281-305; Li & Talwalkar (2019), arXiv:1902.07638, on how
/// much of architecture search it explains.
class RandomSearch {
 public:
  struct Options {
    unsigned long long evaluations = 100;  ///< asks, the initial population included; >= 1

    template <class Archive>
    void serialize(Archive& archive, unsigned /*version*/) {
      archive& evaluations;
    }
  };

  RandomSearch() : RandomSearch(Options{}, 42) {}
  /// @throws std::invalid_argument naming the option, its value and what is allowed.
  RandomSearch(const Options& options, std::uint32_t seed);

  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// empty.
  pagmo::population evolve(pagmo::population population) const;

  void set_seed(unsigned seed);
  [[nodiscard]] std::string get_name() const;
  [[nodiscard]] std::string get_extra_info() const;

  template <class Archive>
  void serialize(Archive& archive, unsigned /*version*/) {
    archive& options_& seed_& engine_;
  }

 private:
  Options options_;
  std::uint32_t seed_;
  mutable std::mt19937 engine_;
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::RandomSearch)
