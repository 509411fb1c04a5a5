#include "study/session/ranges.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

namespace {

constexpr std::int64_t kMostCombinations = 20000;

}  // namespace

std::vector<Genotype> shown_combinations(const SearchSpace& space) {
  std::vector<Genotype> genotypes;
  const auto combinations = space.num_combinations();
  if (combinations > kMostCombinations) {
    RandomEngine random(1);
    while (genotypes.size() < static_cast<std::size_t>(kMostCombinations)) {
      genotypes.push_back(space.draw(random));
    }
    return genotypes;
  }
  for (std::int64_t number = 0; number < static_cast<std::int64_t>(combinations); ++number) {
    std::int64_t rest = number;
    std::vector<std::pair<std::string, GeneValue>> values;
    for (const auto& gene : space.genes()) {
      if (!gene.categorical()) {
        values.emplace_back(gene.name, gene.min);
        continue;
      }
      const auto options = static_cast<std::int64_t>(gene.options.size());
      values.emplace_back(gene.name, gene.options[static_cast<std::size_t>(rest % options)]);
      rest /= options;
    }
    genotypes.emplace_back(std::move(values));
  }
  return genotypes;
}

namespace {

/// A genotype with the largest values of its real genes.
Genotype with_largest_reals(const Genotype& genotype, const SearchSpace& space) {
  auto values = genotype.values();
  for (auto& [name, value] : values) {
    if (const auto& gene = space.gene(name); !gene.categorical()) value = gene.max;
  }
  return Genotype(std::move(values));
}

}  // namespace

ShownCandidates shown_candidates(const SearchSpace& space, const Problem& problem) {
  ShownCandidates shown{.candidates = {}, .whole = space.num_combinations() <= kMostCombinations};
  const auto& genes = space.genes();
  const bool reals_vary = std::any_of(genes.begin(), genes.end(), [](const Gene& gene) {
    return !gene.categorical() && gene.min < gene.max;
  });
  bool reals_decide = false;
  for (const auto& genotype : shown_combinations(space)) {
    shown.candidates.push_back(problem.canonical(genotype));
    const auto& refusal = shown.candidates.back().refusal;
    if (refusal.empty() || !shown.whole || !reals_vary || reals_decide) continue;
    reals_decide = problem.canonical(with_largest_reals(genotype, space)).refusal != refusal;
  }
  if (!reals_decide) return shown;
  shown = {.candidates = {}, .whole = false};
  RandomEngine random(1);
  for (std::int64_t i = 0; i < kMostCombinations; ++i) {
    shown.candidates.push_back(problem.canonical(space.draw(random)));
  }
  return shown;
}

namespace {

/// From the least to the largest value over the space, for objectives that a formula computes.
void set_ranges_over_space(const std::vector<ChosenObjective*>& objectives,
                           const ShownCandidates& shown, const Problem& problem) {
  if (objectives.empty() || shown.candidates.empty()) return;
  std::vector<double> least(objectives.size(), std::numeric_limits<double>::infinity());
  std::vector<double> most(objectives.size(), -std::numeric_limits<double>::infinity());
  std::string refusal;
  for (const auto& candidate : shown.candidates) {
    if (!candidate.refusal.empty()) {
      refusal = candidate.refusal;
      continue;
    }
    const auto subject = problem.subject(candidate);
    if (!subject) throw std::logic_error("a problem without subjects has an analytic objective");
    for (std::size_t i = 0; i < objectives.size(); ++i) {
      const double value = objectives[i]->objective.analytic(*subject);
      least[i] = std::min(least[i], value);
      most[i] = std::max(most[i], value);
    }
  }
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    auto& objective = *objectives[i];
    if (least[i] > most[i]) {
      throw InputError("objectives: nothing is known of the range of " + objective.name +
                       ", since no combination of the space that was looked at is a model (" +
                       refusal + "); give objectives." + objective.key + ".range");
    }
    if (!(least[i] < most[i])) {
      throw InputError("objectives: " + objective.name + " is " + shortest(least[i]) +
                       " for every candidate of this space; leave it out");
    }
    objective.range = objective.maximise ? Range{.best = most[i], .worst = least[i]}
                                         : Range{.best = least[i], .worst = most[i]};
  }
}

}  // namespace

void set_expected_ranges(ObjectiveSet& objectives, const ShownCandidates& shown,
                         const Problem& problem, const nlohmann::json& facts) {
  const auto require_available = [&facts](const ChosenObjective& objective) {
    // What was recorded elsewhere need not be measurable here.
    if (objective.objective.measured && facts.contains("table")) return;
    const auto& unavailable = objective.objective.unavailable;
    const auto why = unavailable ? unavailable(facts) : std::string();
    if (!why.empty()) throw InputError("objectives: " + objective.name + " is unavailable: " + why);
  };
  for (const auto& constraint : objectives.constraints) require_available(constraint.quantity);
  std::vector<ChosenObjective*> by_formula;
  for (auto& objective : objectives.objectives) {
    require_available(objective);
    if (objective.range) continue;
    if (objective.objective.range) objective.range = objective.objective.range(facts);
    if (objective.range && objective.maximise != objective.objective.maximise) {
      std::swap(objective.range->best, objective.range->worst);
    }
    if (!objective.range && objective.objective.analytic) by_formula.push_back(&objective);
  }
  set_ranges_over_space(by_formula, shown, problem);
}

void set_ranges_from_baseline(ObjectiveSet& objectives, Objective::Evaluations baseline) {
  const bool usable = std::any_of(baseline.begin(), baseline.end(),
                                  [](const auto* evaluation) { return is_usable(*evaluation); });
  for (auto& objective : objectives.objectives) {
    if (objective.range) continue;
    if (!usable) {
      throw InputError("objectives: nothing is known of the range of " + objective.name +
                       ", since the baseline could not be evaluated" +
                       (baseline.empty() ? "" : " (" + baseline.front()->reason + ")") +
                       "; give objectives." + objective.key + ".range");
    }
    const double value = objective.value(baseline);
    const double twice = value > 0.0 ? 2.0 * value : 1.0;
    objective.range = objective.maximise ? Range{.best = twice, .worst = 0.0}
                                         : Range{.best = 0.0, .worst = twice};
  }
}

void set_recorded_ranges(ObjectiveSet& objectives, const nlohmann::json& record) {
  for (auto& objective : objectives.objectives) {
    for (const auto& item : record) {
      if (item.at("name") != objective.name) continue;
      objective.range = Range{.best = item.at("best"), .worst = item.at("worst")};
    }
  }
}

}  // namespace nas
