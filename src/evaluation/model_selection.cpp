#include "evaluation/model_selection.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace nas {

std::vector<std::size_t> models_to_keep(const std::vector<ScoredModel>& models, std::size_t most) {
  std::vector<std::ptrdiff_t> dominators;
  for (const auto& model : models) {
    dominators.push_back(
        std::count_if(models.begin(), models.end(), [&model](const ScoredModel& other) {
          return other.feasible == model.feasible && dominates(other.values, model.values);
        }));
  }
  const auto key = [&](std::size_t i) {
    const auto& values = models[i].values;
    return std::tuple(!models[i].feasible, dominators[i], values.empty() ? 0.0 : values.front());
  };
  std::vector<std::size_t> order(models.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&key](std::size_t a, std::size_t b) { return key(a) < key(b); });
  const auto beyond_front = std::find_if(order.begin(), order.end(), [&](std::size_t i) {
    return !models[i].feasible || dominators[i] > 0 || models[i].values.size() < 2;
  });
  const auto front = static_cast<std::size_t>(beyond_front - order.begin());
  const auto baseline =
      std::find_if(order.begin(), order.end(), [&](std::size_t i) { return models[i].baseline; });
  const auto best_baseline = static_cast<std::size_t>(baseline - order.begin());
  std::vector<std::size_t> kept;
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (place < std::max(most, front) || place == best_baseline) kept.push_back(order[place]);
  }
  return kept;
}

}  // namespace nas
