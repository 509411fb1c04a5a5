#include "search/rungs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace nas {

Promote parse_promote(std::string_view text) {
  if (text == "asha") return Promote::asha;
  if (text == "pasha") return Promote::pasha;
  if (text == "successive_halving") return Promote::successive_halving;
  if (text == "hyperband") return Promote::hyperband;
  throw InputError("promote = " + std::string(text) +
                   ", must be asha, pasha, successive_halving or hyperband");
}

bool halves_batches(Promote promote) {
  return promote == Promote::successive_halving || promote == Promote::hyperband;
}

Rungs::Rungs(Fidelity fidelity)
    : fidelity_(std::move(fidelity)),
      rungs_(end() + 1),
      open_(fidelity_.promote == Promote::pasha ? 1 : end()),
      spent_(end() + 1) {}

std::int64_t Rungs::steps_to_next(std::size_t rung) const {
  const auto next = until(rung + 1);
  return (next > 0 ? next : fidelity_.steps) - until(rung);
}

double Rungs::eta(std::size_t rung) const {
  if (fidelity_.promote == Promote::hyperband && rung < bracket_) return 1.0;
  if (fidelity_.eta > 0.0) return fidelity_.eta;
  const auto steps = static_cast<double>(until(rung));
  return (steps + static_cast<double>(steps_to_next(rung))) / steps;
}

void Rungs::begin_batch(std::size_t size) {
  std::fill(rungs_.begin(), rungs_.end() - 1, Rung{});
  const auto least = std::min_element(spent_.begin(), spent_.end());
  bracket_ = static_cast<std::size_t>(least - spent_.begin());
  *least += until(0) * static_cast<std::int64_t>(size);
}

void Rungs::reach(std::size_t rung, const std::string& name, const Genotype& genotype,
                  Reached reached) {
  auto& there = rungs_.at(rung);
  if (!there.names.emplace(name, there.reached.size()).second) return;
  there.reached.push_back(std::move(reached));
  there.genotypes.push_back(genotype);
  if (rung == open_ && rung < end() && contradicted(rung)) ++open_;
}

/// Whether the candidate that has come to a rung last was ordered otherwise at the one below.
bool Rungs::contradicted(std::size_t rung) const {
  const auto& above = rungs_[rung];
  const auto& below = rungs_[rung - 1];
  const auto last = above.reached.size() - 1;
  const auto found =
      std::find_if(above.names.begin(), above.names.end(),
                   [last](const auto& candidate) { return candidate.second == last; });
  const auto& now = above.reached[last].point;
  const auto& before = below.reached[below.names.at(found->first)].point;
  return std::any_of(above.names.begin(), above.names.end(), [&](const auto& other) {
    const auto& its_now = above.reached[other.second].point;
    const auto& its_before = below.reached[below.names.at(other.first)].point;
    for (std::size_t m = 0; m < now.size(); ++m) {
      const double epsilon = fidelity_.epsilon.empty() ? 0.0 : fidelity_.epsilon[m];
      const double ahead = its_now[m] - now[m];
      const double was_ahead = its_before[m] - before[m];
      if (ahead > epsilon && was_ahead < -epsilon) return true;
      if (ahead < -epsilon && was_ahead > epsilon) return true;
    }
    return false;
  });
}

/// Of those that came to the end the best, rounded up, so that the best of all is among them.
std::optional<Rungs::Promoted> Rungs::replicate() {
  auto& there = rungs_.back();
  const double eta = fidelity_.eta > 0.0 ? fidelity_.eta : 3.0;
  const auto count = std::ceil(static_cast<double>(there.reached.size()) / eta);
  const auto next = next_of_best(there.reached, static_cast<std::size_t>(count), fidelity_.spread);
  if (!next) return std::nullopt;
  there.reached[*next].promoted = true;
  return Promoted{.genotype = there.genotypes[*next], .rung = end() + 1};
}

std::optional<Rungs::Promoted> Rungs::promote() {
  if (fidelity_.replicated) {
    if (auto next = replicate()) return next;
  }
  for (auto rung = open_; rung-- > 0;) {
    auto& there = rungs_[rung];
    const auto count = (halves_batches(fidelity_.promote) ? num_halved : num_promoted)(
        there.reached.size(), eta(rung));
    const auto next = next_of_best(there.reached, count, fidelity_.spread);
    if (!next) continue;
    there.reached[*next].promoted = true;
    spent_[bracket_] += steps_to_next(rung);
    return Promoted{.genotype = there.genotypes[*next], .rung = rung + 1};
  }
  return std::nullopt;
}

std::vector<Rungs::Promoted> Rungs::answer() {
  for (auto rung = end(); rung-- > 0;) {
    auto& there = rungs_[rung];
    std::vector<Promoted> answer;
    Points points;
    for (const auto i : promotion_order(there.reached, fidelity_.spread)) {
      auto& reached = there.reached[i];
      if (reached.promoted) continue;
      if (!reached.feasible && !answer.empty()) break;
      const auto better = [&reached](const Point& point) {
        return point.size() == 1 || dominates(point, reached.point);
      };
      if (std::any_of(points.begin(), points.end(), better)) continue;
      points.push_back(reached.point);
      reached.promoted = true;
      answer.push_back({.genotype = there.genotypes[i], .rung = end()});
    }
    if (!answer.empty()) return answer;
  }
  return {};
}

}  // namespace nas
