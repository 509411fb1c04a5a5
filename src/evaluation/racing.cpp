#include "evaluation/racing.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "statistics/statistics.hpp"

namespace nas {

namespace {

enum class Verdict { worse, equal, open };

/// Whether no replicate changes it, as FLOPs.
bool constant(const std::vector<double>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

/// How a's values of an objective compare with b's, on the replicates that both have.
Verdict compare(const Racer& a, const Racer& b, std::size_t objective, double confidence) {
  std::vector<double> values;
  std::vector<double> others;
  for (std::size_t i = 0; i < std::min(a.replicates.size(), b.replicates.size()); ++i) {
    if (a.replicates[i].empty() || b.replicates[i].empty()) continue;
    values.push_back(a.replicates[i][objective]);
    others.push_back(b.replicates[i][objective]);
  }
  if (values.size() < 2) return Verdict::open;
  const auto [difference, p, effect_size] = compare_paired(values, others, confidence);
  if (difference.mean == 0.0 && difference.standard_error == 0.0) return Verdict::equal;
  const bool exact = constant(values) && constant(others);
  const bool sure = exact || p < 1.0 - confidence;
  return difference.mean > 0.0 && sure ? Verdict::worse : Verdict::open;
}

bool significantly_dominated(const Racer& a, const Racer& b, double confidence) {
  bool worse = false;
  for (std::size_t objective = 0; objective < a.mean.size(); ++objective) {
    const auto verdict = compare(a, b, objective, confidence);
    if (verdict == Verdict::open) return false;
    worse |= verdict == Verdict::worse;
  }
  return worse;
}

/// Whether a candidate that is no elite need not be looked at any further.
bool is_out(const Racer& racer, const std::vector<Racer>& racers,
            const std::vector<std::size_t>& best, const Racing& racing) {
  if (racer.mean.size() > 1) {
    return std::any_of(best.begin(), best.end(), [&](std::size_t elite) {
      return significantly_dominated(racer, racers[elite], racing.confidence);
    });
  }
  return compare(racer, racers[best.back()], 0, racing.confidence) == Verdict::worse;
}

}  // namespace

std::vector<std::size_t> elites(const std::vector<Racer>& racers, const Racing& racing) {
  std::vector<std::size_t> usable;
  Points means;
  for (std::size_t i = 0; i < racers.size(); ++i) {
    if (racers[i].mean.empty()) continue;
    usable.push_back(i);
    means.push_back(racers[i].mean);
  }
  if (usable.empty()) return {};
  if (means.front().size() > 1) {
    std::vector<std::size_t> best;
    for (const auto i : non_dominated(means)) best.push_back(usable[i]);
    return best;
  }
  std::stable_sort(usable.begin(), usable.end(), [&racers](std::size_t a, std::size_t b) {
    return racers[a].mean.front() < racers[b].mean.front();
  });
  usable.resize(std::min(usable.size(), static_cast<std::size_t>(racing.elites)));
  return usable;
}

std::vector<std::size_t> undecided(const std::vector<Racer>& racers,
                                   const std::vector<std::size_t>& entrants, const Racing& racing) {
  const auto best = elites(racers, racing);
  std::vector<bool> open(racers.size());
  for (const auto i : entrants) {
    const auto count = static_cast<std::int64_t>(racers[i].replicates.size());
    open[i] = !racers[i].mean.empty() && count < racing.replicates;
  }
  std::vector<std::size_t> round;
  std::copy_if(best.begin(), best.end(), std::back_inserter(round),
               [&open](std::size_t i) { return open[i]; });
  for (const auto i : best) open[i] = false;
  for (const auto i : entrants) {
    if (open[i] && !is_out(racers[i], racers, best, racing)) round.push_back(i);
    open[i] = false;
  }
  return round;
}

}  // namespace nas
