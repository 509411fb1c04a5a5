#include <algorithm>

#include "search/layer_selection.hpp"

namespace nas {
namespace {

void halo(LayerPlacements& layers, std::mt19937& /*engine*/) {
  std::vector<LayerPlacements::Point> points{layers.whole()};
  for (std::size_t i = 0; i < layers.layers(); ++i) {
    points.push_back(
        LayerPlacements::with(layers.whole(), i, layers.block(i, layers.options().block)));
  }
  layers.ask(points);
  const auto lost = [&](std::size_t i, unsigned objective) {
    return layers.objective(points[i], objective) - layers.objective(points[0], objective);
  };
  std::vector<double> worth;
  for (std::size_t i = 1; i < points.size(); ++i) {
    worth.push_back(lost(i, layers.options().score) /
                    std::max(layers.options().floor, lost(i, layers.options().beside)));
  }
  layers.ask_nested(LayerPlacements::by_worth(worth));
}

NAS_REGISTER_SELECTOR("halo",
                      "layers by what is lost of one objective over what is lost of another, which "
                      "is `floor` at least (2601.22156)",
                      ({"score", "beside", "floor"}), halo);

}  // namespace
}  // namespace nas
