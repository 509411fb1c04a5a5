#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/corpus.hpp"

namespace nas {

/// A window as training reads it.
struct DrawnWindow {
  std::int64_t index = 0;   ///< of the split's windows
  std::int64_t offset = 0;  ///< by which it is shifted, see Windows::shift
};

/// Every window of a split once, not shifted.
std::vector<DrawnWindow> all_windows(const Windows& windows);

/// Orders of count models: 1, which looks at no history, to 6, which looks at five tokens.
inline constexpr int kMostOrder = 6;

/// Sums over the targets of a split.
struct CountScores {
  double nll = 0.0;  ///< nats
  std::int64_t tokens = 0;
  std::int64_t correct =
      0;  ///< targets that the model ranks first; of equals the least id is first

  [[nodiscard]] double mean_nll() const;  ///< nats per target; NaN for none
  [[nodiscard]] double accuracy() const;  ///< in [0, 1]; NaN for none
};

/// What counts of a text say of others.
struct CountedScores {
  std::int64_t tokens = 0;                                    ///< targets counted
  std::vector<std::array<CountScores, kMostOrder>> scores{};  ///< by split, then by order - 1
};

/// Interpolated Witten-Bell models of the orders 1 to 6 of what training reads, and their scores:
/// the least that a model of as many tokens of history has to beat.
///
///   p_n(w | h) = (c(h w) + T(h) p_{n-1}(w | h')) / (c(h) + T(h)),   p_0 = 1 / V
///
/// h are the n - 1 tokens before w, h' all of them but the oldest, c counts, T(h) is the number of
/// different tokens seen after h. Where h was never seen, p_n = p_{n-1}. History ends where the
/// window begins, as a model's does: the target of position t has t + 1 tokens of it, and longer
/// histories are neither counted nor looked up there. Targets that are not scored, or that are the
/// windows' last_target, do not count. A target that is read again, in a later epoch or an
/// overlapping window, counts once, as it was first read: counts of repeated text would be sure of
/// what was seen once.
///
/// Cost: two seconds for 2.5 million bytes of English; up to 200 bytes per counted target where no
/// two histories are equal.
///
/// @param train       what was read of it is counted.
/// @param read        may name windows several times.
/// @param vocabulary  V; every token is below it.
/// @param judged      splits to be scored, not shifted.
/// @throws InputError where more than 2^31 - 1 targets are to be counted.
/// @see Witten & Bell (1991), The zero-frequency problem, doi:10.1109/18.87000, method C; Chen &
/// Goodman (1999), An empirical study of smoothing techniques for language modeling,
/// doi:10.1006/csla.1999.0128, section 2.5, for the interpolated form.
CountedScores count_scores(const Windows& train, std::span<const DrawnWindow> read,
                           std::int64_t vocabulary, std::span<const Windows* const> judged);

/// A count model's scores on a corpus.
struct CountModel {
  int order = 1;
  std::int64_t tokens = 0;  ///< targets counted
  CountScores valid, test;
};

/// The models of all orders, from 1 on.
std::vector<CountModel> count_models(const Corpus& corpus, std::span<const DrawnWindow> read);

}  // namespace nas
