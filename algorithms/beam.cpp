#include <algorithm>

#include "search/layer_selection.hpp"

namespace nas {
namespace {

void beam(LayerPlacements& layers, std::mt19937& /*engine*/) {
  using Points = std::vector<LayerPlacements::Point>;
  Points sets{layers.whole()};
  layers.ask(sets);
  for (std::size_t step = 0; step < layers.layers(); ++step) {
    Points points;
    for (const auto& set : sets) {
      for (std::size_t i = 0; i < layers.layers(); ++i) {
        const auto next = LayerPlacements::with(set, i, layers.block(i, layers.options().block));
        if (set[i] == 0.0 && next != set &&
            std::find(points.begin(), points.end(), next) == points.end())
          points.push_back(next);
      }
    }
    if (points.empty()) break;
    layers.ask(points);
    std::stable_sort(points.begin(), points.end(), [&](const auto& a, const auto& b) {
      return layers.score(a) < layers.score(b);
    });
    points.resize(std::min<std::size_t>(points.size(), layers.options().width));
    sets = std::move(points);
  }
}

NAS_REGISTER_SELECTOR(
    "beam",
    "from all layers as they are one more is replaced, the `width` best sets go on; "
    "a width of 1 is greedy removal (2601.11667)",
    ({"score", "width"}), beam);

}  // namespace
}  // namespace nas
