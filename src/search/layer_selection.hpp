#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "search/algorithm.hpp"
#include "search/variation.hpp"

namespace nas {

/// What selectors of layers are told.
struct LayerSelectionOptions {
  std::string selector = "uniform";  ///< key of the selector
  unsigned score = 1;                ///< number of the objective by which layers are chosen, from 1
  unsigned beside = 2;               ///< of the one that it is divided by, of selectors that divide
  unsigned cost = 0;                 ///< number of the objective that a choice spends; 0: the last
  unsigned block = 1;  ///< value of a variable whose layer is replaced; at most its upper bound
  unsigned ablation =
      1;               ///< value by which layers are judged, of selectors that judge by another one
  unsigned width = 1;  ///< sets that go on, or are asked for, together
  unsigned steps = 1;  ///< of selectors that learn
  double penalty = 0.0;  ///< what keeping a layer costs, in mean worths of one
  double floor = 0.01;   ///< least that is divided by
  std::string points{};  ///< placements by digits, a layer each, separated by blanks

  static void each(auto& options, auto&& field) {
    field("selector", options.selector);
    field("score", options.score);
    field("beside", options.beside);
    field("cost", options.cost);
    field("block", options.block);
    field("ablation", options.ablation);
    field("width", options.width);
    field("steps", options.steps);
    field("penalty", options.penalty);
    field("floor", options.floor);
    field("points", options.points);
  }
};

/// The placements that a selector asks for. A variable is a layer, 0 the layer as it is, any other value a block in its
/// place; none is asked for twice.
class LayerPlacements {
 public:
  using Point = std::vector<double>;
  using Order = std::vector<std::size_t>;

  /// @throws std::invalid_argument unless all variables are integers from 0 and the options name objectives that there are.
  LayerPlacements(const pagmo::population& population, LayerSelectionOptions options);

  [[nodiscard]] std::size_t layers() const { return upper_.size(); }
  [[nodiscard]] const LayerSelectionOptions& options() const { return options_; }
  /// With each layer as it is; with each replaced.
  [[nodiscard]] Point whole() const { return Point(layers(), 0.0); }
  [[nodiscard]] Point replaced() const;
  /// The block of a layer, as far as it has so many.
  [[nodiscard]] double block(std::size_t layer, unsigned number) const;
  /// A point with another value at a layer.
  [[nodiscard]] static Point with(Point point, std::size_t layer, double value);
  /// Whether each layer has such a value.
  [[nodiscard]] bool is_one(const Point& point) const;
  /// All values of a layer but 0.
  [[nodiscard]] std::vector<double> values(std::size_t layer) const;

  /// Asks for those that are not known yet, together.
  void ask(const std::vector<Point>& points);
  /// An objective of a point that was asked for, from 1. Not finite: infinite.
  [[nodiscard]] double objective(const Point& point, unsigned number) const;
  [[nodiscard]] double score(const Point& point) const { return objective(point, options_.score); }

  /// Asks for the sets that keep the first k layers of an order as they are, of each k.
  void ask_nested(const Order& order);
  /// Layers by what keeping them is worth, the most first, equals in their order.
  [[nodiscard]] static Order by_worth(const std::vector<double>& worth);
  [[nodiscard]] pagmo::population best() const { return asked_.best(); }

 private:
  AskedPoints asked_;
  LayerSelectionOptions options_;
  std::vector<double> upper_;
  std::map<Point, std::vector<double>> known_;
};

/// A selector asks for what it looks at, and at the end for what it chooses.
using LayerSelector = std::function<void(LayerPlacements& layers, std::mt19937& engine)>;

/// Registers a selector as an algorithm. @param settings  names of the options that it has, besides `block`.
bool add_layer_selector(const std::string& key, const std::string& summary,
                        const std::vector<std::string>& settings, const char* file,
                        LayerSelector selector);

/// From its own .cpp in algorithms/: `NAS_REGISTER_SELECTOR("uniform", summary, {"score"}, function);`
#define NAS_REGISTER_SELECTOR(key, summary, settings, ...)                                \
  [[maybe_unused]] static const bool nas_registered_selector = ::nas::add_layer_selector( \
      key, summary, std::vector<std::string> settings, __FILE__, __VA_ARGS__)

}  // namespace nas
