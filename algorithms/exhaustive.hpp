#pragma once

#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

namespace nas {

/// Every combination of the integers, with a grid for the real variables.
///
/// A real variable takes `levels` equally spaced values, its bounds included (one level: the
/// middle). Lexicographic, the last variable fastest; points of the initial population are not
/// asked for again; batches as large as the population. Any number of objectives; deterministic,
/// box-bounded problems, integers at the tail, at most 10^7 points.
class Exhaustive {
 public:
  struct Options {
    unsigned levels = 1;  ///< values of a real variable; >= 1

    template <class Archive>
    void serialize(Archive& archive, unsigned /*version*/) {
      archive& levels;
    }
  };

  Exhaustive() : Exhaustive(Options{}) {}
  /// @throws std::invalid_argument naming the option, its value and what is allowed.
  explicit Exhaustive(const Options& options);

  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// empty.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const;
  [[nodiscard]] std::string get_extra_info() const;

  template <class Archive>
  void serialize(Archive& archive, unsigned /*version*/) {
    archive& options_;
  }

 private:
  Options options_;
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::Exhaustive)
