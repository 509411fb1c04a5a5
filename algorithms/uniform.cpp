#include "search/layer_selection.hpp"

namespace nas {
namespace {

void uniform(LayerPlacements& layers, std::mt19937& /*engine*/) {
  const auto n = layers.layers();
  std::vector<LayerPlacements::Point> points;
  for (std::size_t k = 0; k <= n; ++k) {
    auto point = layers.replaced();
    for (std::size_t i = 0; i < k; ++i) point[(2 * i + 1) * n / (2 * k)] = 0.0;
    points.push_back(std::move(point));
  }
  layers.ask(points);
}

NAS_REGISTER_SELECTOR("uniform",
                      "k layers at equal distances stay as they are, for each k: a control", {},
                      uniform);

}  // namespace
}  // namespace nas
