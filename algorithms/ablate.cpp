#include "search/layer_selection.hpp"

namespace nas {
namespace {

void ablate(LayerPlacements& layers, std::mt19937& /*engine*/) {
  std::vector<LayerPlacements::Point> points;
  for (std::size_t i = 0; i < layers.layers(); ++i) {
    points.push_back(
        LayerPlacements::with(layers.whole(), i, layers.block(i, layers.options().ablation)));
  }
  layers.ask(points);
  std::vector<double> worth;
  for (const auto& point : points) worth.push_back(layers.score(point));
  layers.ask_nested(LayerPlacements::by_worth(worth));
}

NAS_REGISTER_SELECTOR(
    "ablate",
    "layers by what is lost where `ablation` takes their place alone: with drop and "
    "recall as score the ablation of retrieval",
    ({"score", "ablation"}), ablate);

}  // namespace
}  // namespace nas
