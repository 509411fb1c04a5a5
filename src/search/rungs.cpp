#include "search/rungs.hpp"

#include <utility>

#include "core/error.hpp"

namespace nas {

Promote parse_promote(std::string_view text) {
  if (text == "asha") return Promote::asha;
  if (text == "successive_halving") return Promote::successive_halving;
  throw InputError("promote = " + std::string(text) + ", must be asha or successive_halving");
}

double Rungs::eta(std::size_t rung) const {
  if (fidelity_.eta > 0.0) return fidelity_.eta;
  const auto next = until(rung + 1);
  return static_cast<double>(next > 0 ? next : fidelity_.steps) / static_cast<double>(until(rung));
}

void Rungs::reach(std::size_t rung, const std::string& name, const Genotype& genotype,
                  Reached reached) {
  auto& there = rungs_.at(rung);
  if (!there.names.insert(name).second) return;
  there.reached.push_back(std::move(reached));
  there.genotypes.push_back(genotype);
}

std::optional<Rungs::Promoted> Rungs::promote() {
  for (auto rung = rungs_.size(); rung-- > 0;) {
    auto& there = rungs_[rung];
    const auto next = next_promoted(there.reached, eta(rung), fidelity_.spread);
    if (!next) continue;
    there.reached[*next].promoted = true;
    return Promoted{.genotype = there.genotypes[*next], .rung = rung + 1};
  }
  return std::nullopt;
}

void Rungs::clear() { rungs_.assign(rungs_.size(), {}); }

}  // namespace nas
