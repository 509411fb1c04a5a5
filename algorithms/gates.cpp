#include <algorithm>
#include <cmath>

#include "search/layer_selection.hpp"

namespace nas {
namespace {

constexpr double kRate = 0.3;         // of a logit, where the slope is as large as the mean
constexpr double kMostLogit = 2.2;    // so that a layer is drawn both ways: gates in [0.1, 0.9]
constexpr double kMostLearned = 0.3;  // share of a step's slopes that is taken over

/// A gate g is the probability that a layer stays as it is. Of the mean score over sets that are drawn by the gates the slope
/// in g_i is the mean of r (x_i - g_i) / (g_i (1 - g_i)), x_i = 1 where layer i stays, r the score less what the slopes so
/// far say of it, which has the same mean and less spread. Sets are drawn in pairs, of u and 1 - u. Without gradients of
/// hidden states, as FlashMorph's h = g A + (1 - g) A' has them, what is measured is always a model.
void gates(LayerPlacements& layers, std::mt19937& engine) {
  const auto n = layers.layers();
  const auto& options = layers.options();
  std::vector<double> logits(n, 0.0), slopes(n, 0.0), gates(n);
  for (unsigned step = 0; step < options.steps; ++step) {
    for (std::size_t i = 0; i < n; ++i)
      gates[i] = 1.0 / (1.0 + std::exp(-std::clamp(logits[i], -kMostLogit, kMostLogit)));
    std::vector<LayerPlacements::Point> points(options.width, layers.replaced());
    std::vector<double> drawn(n);
    for (std::size_t k = 0; k < points.size(); ++k) {
      for (std::size_t i = 0; i < n; ++i) {
        drawn[i] = k % 2 == 0 ? uniform(engine) : 1.0 - drawn[i];
        if (drawn[i] < gates[i]) points[k][i] = 0.0;
      }
    }
    layers.ask(points);
    std::erase_if(points, [&](const auto& point) { return !std::isfinite(layers.score(point)); });
    if (points.size() < 2) continue;
    const auto beyond = [&](const LayerPlacements::Point& point, std::size_t i) {
      return (point[i] == 0.0 ? 1.0 : 0.0) - gates[i];
    };
    const auto count = static_cast<double>(points.size());
    std::vector<double> rests;
    double mean = 0.0;
    for (const auto& point : points) {
      auto& rest = rests.emplace_back(layers.score(point));
      for (std::size_t i = 0; i < n; ++i) rest -= slopes[i] * beyond(point, i);
      mean += rest / count;
    }
    const double learned = std::min(kMostLearned, count / (2.0 * static_cast<double>(n)));
    double size = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      double slope = 0.0;
      for (std::size_t k = 0; k < points.size(); ++k)
        slope += (rests[k] - mean) * beyond(points[k], i);
      slopes[i] += learned * slope / ((count - 1.0) * gates[i] * (1.0 - gates[i]));
      size += std::abs(slopes[i]) / static_cast<double>(n);
    }
    if (size == 0.0) continue;
    for (std::size_t i = 0; i < n; ++i) logits[i] -= kRate * (slopes[i] / size + options.penalty);
  }
  layers.ask_nested(LayerPlacements::by_worth(logits));
}

NAS_REGISTER_SELECTOR("gates",
                      "a gate for each layer, the probability that it stays as it is, all learned "
                      "at once from sets drawn by them, less `penalty`; then the k largest "
                      "(after FlashMorph, 2606.30562, whose gates are in the model)",
                      ({"score", "width", "steps", "penalty"}), gates);

}  // namespace
}  // namespace nas
