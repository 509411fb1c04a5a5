#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

namespace nas {

/// Steepest descent with restarts.
///
/// All neighbours of the current point are asked for as one batch, in random order; the best of
/// them is next if it is better, else a random point that is not known. Neighbours differ in one
/// variable: an integer in any other value, a real by `step` of its range in either direction. What
/// is known is not asked for again; where all variables are integers the search ends with the
/// space. One objective; deterministic, box-bounded problems, integers at the tail.
///
/// @see White, Nolen & Savani (2021), Exploring the Loss Landscape in NAS, arXiv:2005.02960.
class LocalSearch {
 public:
  struct Options {
    unsigned long long evaluations = 100;  ///< asks, the initial population included; >= 1
    double step = 0.1;                     ///< of a real variable, as a share of its range; (0, 1]

    template <class Archive>
    void serialize(Archive& archive, unsigned /*version*/) {
      archive& evaluations& step;
    }
  };

  LocalSearch() : LocalSearch(Options{}, 42) {}
  /// @throws std::invalid_argument naming the option, its value and what is allowed.
  LocalSearch(const Options& options, std::uint32_t seed);

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

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::LocalSearch)
