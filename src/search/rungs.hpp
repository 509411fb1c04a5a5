#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/search_space.hpp"
#include "search/promotion.hpp"

namespace NAS_PUBLIC nas {

/// Which candidates are promoted, and when.
enum class Promote {
  asha,                ///< whenever a candidate may be out: the best of a rung, else a new one
  pasha,               ///< the same, to a further rung only once the two highest ones disagree
  successive_halving,  ///< the best of a batch, once the whole batch has come to a rung
  hyperband,           ///< the same, where not each batch is halved from its first rung on
};
/// @throws InputError unless "asha", "pasha", "successive_halving" or "hyperband".
Promote parse_promote(std::string_view text);
/// Whether whole batches are waited for.
bool halves_batches(Promote promote);

/// How far candidates are trained: each to the first rung, the best third (say) of those that have
/// come to a rung to the next one, and to the end; the best of these with further seeds.
struct Fidelity {
  Promote promote = Promote::asha;
  std::vector<std::int64_t> rungs{};  ///< validation steps before the end, ascending, at least one
  std::int64_t steps = 0;             ///< of a whole training run
  double eta = 0.0;  ///< one of so many goes on, > 1; 0: the ratio of a rung's steps and the next's
  Spread spread = Spread::crowding;
  /// Of pasha: differences that say nothing of two candidates, by objective; empty: none.
  std::vector<double> epsilon{};
  /// Whether the best of those that came to the end are asked for once more, which trains their
  /// further replicates. As many as would go on from a rung with eta (0: 3), rounded up.
  bool replicated = false;
  /// Whether those of a batch that came to the end are asked for once more together: for a race.
  bool raced = false;
};

/// The candidates of a search at its rungs. All are compared by their first replicate.
///
/// Hyperband: each batch is a bracket, which is halved from one rung on; before it, all go on. The
/// next bracket is that which has taken the fewest steps so far, the earliest of equal ones, so that
/// all cost alike whatever the size of a batch.
///
/// PASHA: candidates go on to the second rung at first. A further rung is open once two candidates
/// that came to the highest open one differ there by more than epsilon in an objective, and by as
/// much the other way round at the rung below.
///
/// @see Li et al. (2020), A system for massively parallel hyperparameter tuning, arXiv:1810.05934
/// (ASHA); Jamieson & Talwalkar (2016), successive halving, arXiv:1502.07943; Li et al. (2018),
/// Hyperband, JMLR 18(185); Bohdal et al. (2023), PASHA, arXiv:2207.06940.
class Rungs {
 public:
  /// @param fidelity  its epsilon in the scale of Reached::point.
  explicit Rungs(Fidelity fidelity);

  [[nodiscard]] const Fidelity& fidelity() const { return fidelity_; }
  /// The rung that is the end.
  [[nodiscard]] std::size_t end() const { return fidelity_.rungs.size(); }
  /// Task::until of a rung; 0 at the end.
  [[nodiscard]] std::int64_t until(std::size_t rung) const {
    return rung < fidelity_.rungs.size() ? fidelity_.rungs[rung] : 0;
  }

  /// A candidate that is to go on.
  struct Promoted {
    Genotype genotype;
    std::size_t rung = 0;  ///< to which; one beyond the end: to further replicates
  };
  /// Forgets all candidates but those that came to the end: none of them is promoted any more. So many begin in their place.
  void begin_batch(std::size_t size);
  /// A candidate is paused at a rung, or has come to the end. One that has come there before changes nothing.
  /// @param name  of the candidate.
  void reach(std::size_t rung, const std::string& name, const Genotype& genotype, Reached reached);
  /// The next promotion: of the highest rung that allows one (num_promoted; of batches num_halved), and only once.
  std::optional<Promoted> promote();
  /// Candidates promoted to the end by themselves, where no other came there: those of the highest rung that anybody came to
  /// which no other there dominates; of one objective the best. After them, the next ones.
  std::vector<Promoted> answer();

 private:
  /// Candidates that have come to a rung, by order of arrival.
  struct Rung {
    std::vector<Reached> reached{};
    std::vector<Genotype> genotypes{};
    std::map<std::string, std::size_t> names{};  ///< with their places
  };
  [[nodiscard]] std::int64_t steps_to_next(std::size_t rung) const;
  [[nodiscard]] double eta(std::size_t rung) const;
  [[nodiscard]] bool contradicted(std::size_t rung) const;
  std::optional<Promoted> replicate();

  Fidelity fidelity_;
  std::vector<Rung> rungs_;  ///< and the end
  std::size_t open_;         ///< rungs from which candidates may go on
  std::vector<std::int64_t>
      spent_;                ///< steps of hyperband's brackets, by the rung where they begin
  std::size_t bracket_ = 0;  ///< where that of the batch begins
};

}  // namespace nas
