#include "search/layer_selection.hpp"

namespace nas {
namespace {

void restore_one(LayerPlacements& layers, std::mt19937& /*engine*/) {
  const auto all = layers.replaced();
  std::vector<LayerPlacements::Point> points{all};
  for (std::size_t i = 0; i < layers.layers(); ++i)
    points.push_back(LayerPlacements::with(all, i, 0.0));
  layers.ask(points);
  std::vector<double> worth;
  for (std::size_t i = 0; i < layers.layers(); ++i) worth.push_back(-layers.score(points[i + 1]));
  layers.ask_nested(LayerPlacements::by_worth(worth));
}

NAS_REGISTER_SELECTOR("restore_one",
                      "layers by what each brings back where it alone stays as it is (2512.20569, "
                      "there with training)",
                      ({"score"}), restore_one);

}  // namespace
}  // namespace nas
