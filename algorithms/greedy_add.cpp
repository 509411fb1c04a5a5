#include "search/layer_selection.hpp"

namespace nas {
namespace {

void greedy_add(LayerPlacements& layers, std::mt19937& /*engine*/) {
  auto point = layers.replaced();
  layers.ask({point});
  for (std::size_t step = 0; step < layers.layers(); ++step) {
    std::vector<LayerPlacements::Point> points;
    for (std::size_t i = 0; i < layers.layers(); ++i) {
      if (point[i] != 0.0) points.push_back(LayerPlacements::with(point, i, 0.0));
    }
    if (points.empty()) break;
    layers.ask(points);
    point = points.front();
    for (const auto& other : points) {
      if (layers.score(other) < layers.score(point)) point = other;
    }
  }
}

NAS_REGISTER_SELECTOR(
    "greedy_add",
    "from all layers replaced, the layer that brings back most is restored, again "
    "and again",
    ({"score"}), greedy_add);

}  // namespace
}  // namespace nas
