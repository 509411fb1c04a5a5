#include "evaluation/model_selection.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/durable_file.hpp"

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

void PausedRuns::keep(const std::string& id, Run run) {
  runs_[id] = std::move(run);
  std::erase_if(runs_,
                [](const auto& one) { return !std::filesystem::exists(one.second.checkpoint); });
  while (bytes() > space_) drop_least_promising();
}

std::int64_t PausedRuns::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [id, run] : runs_) {
    bytes += static_cast<std::int64_t>(std::filesystem::file_size(run.checkpoint));
  }
  return bytes;
}

void PausedRuns::drop_least_promising() {
  const auto first = std::min_element(runs_.begin(), runs_.end(), [](const auto& a, const auto& b) {
    return a.second.step < b.second.step;
  });
  std::vector<std::string> ids;
  std::vector<ScoredModel> models;
  for (const auto& [id, run] : runs_) {
    if (run.step != first->second.step) continue;
    ids.push_back(id);
    models.push_back(run.model);
  }
  const auto least = runs_.find(ids[models_to_keep(models, models.size()).back()]);
  remove_file(least->second.checkpoint);
  runs_.erase(least);
}

}  // namespace nas
