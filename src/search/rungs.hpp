#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/search_space.hpp"
#include "search/promotion.hpp"

namespace NAS_PUBLIC nas {

/// Who goes on, and when.
enum class Promote {
  asha,                ///< whenever a candidate may be out: the best of a rung, else a new one
  successive_halving,  ///< the best of a batch, once the whole batch has come to a rung
};
/// @throws InputError unless "asha" or "successive_halving".
Promote parse_promote(std::string_view text);

/// How far candidates are trained: each to the first rung, the best third (say) of those that have
/// come to a rung to the next one, and to the end.
struct Fidelity {
  Promote promote = Promote::asha;
  std::vector<std::int64_t> rungs{};  ///< validation steps before the end, ascending, at least one
  std::int64_t steps = 0;             ///< of a whole training run
  double eta = 0.0;  ///< one of so many goes on, > 1; 0: the ratio of a rung's steps and the next's
  Spread spread = Spread::crowding;
};

/// The candidates of a search at its rungs. All are compared by their first replicate.
///
/// @see Li et al. (2020), A system for massively parallel hyperparameter tuning, arXiv:1810.05934
/// (ASHA); Jamieson & Talwalkar (2016), successive halving, arXiv:1502.07943.
class Rungs {
 public:
  explicit Rungs(Fidelity fidelity)
      : fidelity_(std::move(fidelity)), rungs_(fidelity_.rungs.size()) {}

  [[nodiscard]] const Fidelity& fidelity() const { return fidelity_; }
  /// Task::until of a rung; one beyond the last is the end.
  [[nodiscard]] std::int64_t until(std::size_t rung) const {
    return rung < fidelity_.rungs.size() ? fidelity_.rungs[rung] : 0;
  }

  /// A candidate that is to go on.
  struct Promoted {
    Genotype genotype;
    std::size_t rung = 0;  ///< to which
  };
  /// A candidate is paused at a rung. One that has come there before changes nothing.
  /// @param name  of the candidate.
  void reach(std::size_t rung, const std::string& name, const Genotype& genotype, Reached reached);
  /// Who goes on: of the highest rung of which somebody may (next_promoted), and only once.
  std::optional<Promoted> promote();
  /// Forgets all candidates: nobody of them goes on any more.
  void clear();

 private:
  /// Whoever has come to a rung, by order of arrival.
  struct Rung {
    std::vector<Reached> reached{};
    std::vector<Genotype> genotypes{};
    std::set<std::string> names{};
  };
  [[nodiscard]] double eta(std::size_t rung) const;

  Fidelity fidelity_;
  std::vector<Rung> rungs_;
};

}  // namespace nas
