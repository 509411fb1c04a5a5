#include <cmath>
#include <limits>
#include <map>

#include "search/layer_selection.hpp"

namespace nas {
namespace {

using Point = LayerPlacements::Point;

/// Sums of scores and the points that have them, by cost: none has a lower score at no higher cost.
struct Sum {
  double score = 0.0;
  std::vector<Point> points;
};
using Front = std::map<double, Sum>;

constexpr std::size_t kMostTies = 64;

/// To 40 significant bits, so that sums that are equal but for their order are one.
double rounded(double sum) {
  if (sum == 0.0 || !std::isfinite(sum)) return sum;
  const int exponent = 40 - std::ilogb(sum);
  return std::scalbn(std::round(std::scalbn(sum, exponent)), -exponent);
}

void remove_dominated(Front& front) {
  double least = std::numeric_limits<double>::infinity();
  std::erase_if(front, [&least](const auto& entry) {
    if (entry.second.score >= least) return true;
    least = entry.second.score;
    return false;
  });
}

void one_block(LayerPlacements& layers, std::mt19937& /*engine*/) {
  const auto whole = layers.whole();
  std::vector<Point> singles{whole};
  for (std::size_t i = 0; i < layers.layers(); ++i) {
    for (const auto value : layers.values(i))
      singles.push_back(LayerPlacements::with(whole, i, value));
  }
  layers.ask(singles);
  const auto cost = layers.options().cost;
  Front front{{layers.objective(whole, cost), {layers.score(whole), {whole}}}};
  for (std::size_t i = 0; i < layers.layers(); ++i) {
    auto wider = front;
    for (const auto value : layers.values(i)) {
      const auto single = LayerPlacements::with(whole, i, value);
      const double score = layers.score(single) - layers.score(whole);
      const double spent = layers.objective(single, cost) - layers.objective(whole, cost);
      for (const auto& [at, sum] : front) {
        auto& there =
            wider.try_emplace(rounded(at + spent), Sum{std::numeric_limits<double>::infinity(), {}})
                .first->second;
        const double reached = rounded(sum.score + score);
        if (reached > there.score) continue;
        if (reached < there.score) there = {reached, {}};
        for (const auto& point : sum.points) {
          if (there.points.size() < kMostTies)
            there.points.push_back(LayerPlacements::with(point, i, value));
        }
      }
    }
    remove_dominated(wider);
    front = std::move(wider);
  }
  std::vector<Point> chosen;
  for (const auto& [at, sum] : front)
    chosen.insert(chosen.end(), sum.points.begin(), sum.points.end());
  layers.ask(chosen);
}

NAS_REGISTER_SELECTOR(
    "one_block",
    "what each block costs alone, added up: of every cost the sets with the least "
    "sum, all ties included, exact by dynamic programming (Puzzle, 2411.19146)",
    ({"score", "cost"}), one_block);

}  // namespace
}  // namespace nas
