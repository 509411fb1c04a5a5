#include <algorithm>

#include "core/error.hpp"
#include "core/words.hpp"
#include "search/layer_selection.hpp"

namespace nas {
namespace {

void listed(LayerPlacements& layers, std::mt19937& /*engine*/) {
  std::vector<LayerPlacements::Point> points;
  for (const auto text : split(layers.options().points, ' ')) {
    if (text.empty()) continue;
    LayerPlacements::Point point;
    for (const char digit : text) point.push_back(digit - '0');
    if (point.size() != layers.layers() || !layers.is_one(point)) {
      throw InputError("algorithm.points = " + std::string(text) +
                       ", must have a digit for each of " + std::to_string(layers.layers()) +
                       " layers, at most the number of its blocks");
    }
    points.push_back(std::move(point));
  }
  layers.ask(points);
}

NAS_REGISTER_SELECTOR("listed", "the placements that are given, to be measured on other documents",
                      {"points"}, listed);

}  // namespace
}  // namespace nas
