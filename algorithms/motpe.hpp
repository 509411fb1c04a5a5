#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Where decision vectors lie: reals first, then `num_integers` categories.
struct ParzenDomain {
  std::vector<double> lower;
  std::vector<double> upper;
  std::size_t num_integers = 0;
};

/// A density around n observations: a mixture of n products of kernels and one uniform component,
/// so that it knows which values occur together (the multivariate form of Watanabe 2023):
///
///   p(x) = 1 / (n + 1) (sum_i w_i prod_d k_d(x_d, x_id) + prod_d u_d),  sum_i w_i = n
///
/// Of a category with c options k = 1 - b where x_d = x_id, else b / (c - 1) (Aitchison & Aitken
/// 1976); b is at most (c - 1) / c, the uniform distribution. Left to be fitted, b = (c - 1) /
/// (n + 1 + c): one pseudo-count of 1 / (n + 1) for each option.
/// Of a real k is a Gaussian truncated to the bounds with the standard deviation 1.059 s n^(-1 /
/// (d + 4)) (Scott 1992; s is that of the observations, d the number of genes that vary), but at
/// least range / min(100, n + 1).
class ParzenEstimator {
 public:
  /// @param points  n >= 0 decision vectors.
  /// @param weights  of the points, >= 0, any sum > 0; empty = all alike.
  /// @param categorical_bandwidth  b, 0 = fitted.
  ParzenEstimator(const ParzenDomain& domain, std::vector<std::vector<double>> points,
                  std::vector<double> weights, double categorical_bandwidth);

  /// @return ln p(x); genes of one value do not count.
  [[nodiscard]] double log_density(const std::vector<double>& x) const;
  [[nodiscard]] std::vector<double> sample(std::mt19937& engine) const;

 private:
  struct Gene {
    std::size_t index;
    double lower, upper;
    bool real;
    double num_options;            // of a category
    double bandwidth;              // b, or a standard deviation
    double log_same, log_other;    // of a category
    double log_bandwidth;          // of a real
    double log_uniform;            // of the uniform component
    std::vector<double> centres;   // of the components that have a share
    std::vector<double> log_mass;  // of a real: of each Gaussian of these within the bounds
  };

  void note_components();

  ParzenDomain domain_;
  std::vector<std::vector<double>> points_;
  std::vector<Gene> genes_;
  std::vector<double> shares_;      // of the components, the uniform one last; sum 1
  std::vector<double> log_shares_;  // of those that have one
};

/// @return the `count` best of some fitness vectors, best first: fronts, and within the one that
/// fits only in part the greedy choice of the largest hypervolume for 2 to 4 objectives, a random
/// one for more. Ties go to the older; what is not finite is last.
std::vector<std::size_t> best_first(const std::vector<std::vector<double>>& fitness,
                                    std::size_t count, std::mt19937& engine);

/// @return how much hypervolume is lost without each point, scaled to mean 1; all 1 where nothing
/// is lost without any, with one objective and with more than 4. The reference point is worse than
/// the worst by a tenth of the range of each objective.
std::vector<double> contribution_weights(const std::vector<std::vector<double>>& fitness);

/// Parameters of Motpe.
struct MotpeOptions {
  unsigned evaluations = 100;  ///< all of them, the initial population included; >= 1
  /// Candidates before the model is used, the initial population included; 0 = the larger of the
  /// population and twice the genes that vary.
  unsigned startup = 0;
  double gamma = 0.1;                ///< share of the observations that is good, (0, 1)
  unsigned candidates = 24;          ///< draws of which the best is asked, >= 1
  unsigned batch = 1;                ///< asked at once, all of the same model; >= 1
  double categorical_bandwidth = 0;  ///< [0, 1); 0 = fitted, see ParzenEstimator
  unsigned in_flight = 1;  ///< candidates that are out at once; >= 1, and 1 with batch > 1
  bool arrival = false;    ///< whether answers are told as they arrive

  static void each(auto& options, auto&& field) {
    field("evaluations", options.evaluations);
    field("startup", options.startup);
    field("gamma", options.gamma);
    field("candidates", options.candidates);
    field("batch", options.batch);
    field("categorical_bandwidth", options.categorical_bandwidth);
    field("in_flight", options.in_flight);
    field("arrival", options.arrival);
  }
  void check() const;
};

/// Tree-structured Parzen estimator for one or several objectives (MOTPE).
///
/// First random candidates, none twice, until `startup` are known. Then of N distinct observations
/// the best min(ceil(gamma N), 25) are a density l(x), in which with several objectives each weighs
/// what hypervolume it contributes, the others a density g(x): see best_first(),
/// contribution_weights() and ParzenEstimator. Of `candidates` draws from l that are not known yet
/// the one with the largest l(x) / g(x) is asked; where l gives nothing new, a random point. A
/// purely categorical space that has been asked for completely ends the search.
///
/// With in_flight > 1 that many are out at once, from the first random candidate on, and each is
/// asked of a model of what is told by then. What is out counts as an observation of g: a constant
/// liar that makes up no value, so that other places are looked at. In a search by rungs the
/// observations are those at the highest rung that `startup` candidates have come to.
///
/// For deterministic, box-bounded problems, integers at the tail, which are treated as categories.
///
/// @see Watanabe (2023), arXiv:2304.11127; Ozaki, Tanigaki, Watanabe, Nomura & Onishi (2022),
/// JAIR 73, doi:10.1613/jair.1.13188.
class Motpe : public Seeded<MotpeOptions> {
 public:
  using Seeded::Seeded;

  /// @return the best points seen, best first, each once as far as there are enough.
  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// empty or larger than `evaluations`.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const {
    return "motpe: tree-structured Parzen estimator, one or several objectives";
  }
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::Motpe)
