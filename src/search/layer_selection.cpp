#include "search/layer_selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "algorithms/user_defined.hpp"
#include "core/setting_forms.hpp"

namespace nas {

namespace {

const Requirement require{"selection of layers"};

std::map<std::string, LayerSelector>& selectors() {
  static std::map<std::string, LayerSelector> known;
  return known;
}

struct Options : LayerSelectionOptions {
  void check() const {
    require(score >= 1, "score", score, ">= 1");
    require(beside >= 1, "beside", beside, ">= 1");
    require(block >= 1, "block", block, ">= 1");
    require(width >= 1, "width", width, ">= 1");
    require(steps >= 1, "steps", steps, ">= 1");
    require(penalty >= 0.0, "penalty", penalty, ">= 0");
    require(floor > 0.0, "floor", floor, "> 0");
  }
};

std::vector<Setting> settings_of(const std::vector<std::string>& names) {
  using setting::integer;
  const std::vector<Setting> all{
      integer("score", 1, 1, 100, "objective by which layers are chosen, from 1"),
      integer("beside", 2, 1, 100, "objective that it is divided by"),
      integer("cost", 0, 0, 100, "objective that is spent; 0: the last"),
      integer("block", 1, 1, 1000, "which block of problem.blocks takes a layer's place, from 1"),
      integer("ablation", 1, 1, 1000, "which block layers are judged by, from 1"),
      integer("width", 4, 1, 1000, "sets that go on, or are asked for, together"),
      integer("steps", 16, 1, 10000, "of gates: of `width` sets each"),
      setting::number("penalty", 0.5, 0.0, 100.0,
                      "what keeping a layer costs: of what one is worth on average"),
      setting::text("points", "",
                    "placements, a digit for each layer: 0 as it is, 1 the first block, ...; "
                    "blanks between them"),
      setting::positive(setting::number("floor", 0.01, 0.0, 1e6, "least that is divided by"))};
  std::vector<Setting> chosen;
  for (auto one : all) {
    if (one.name != "block" && std::find(names.begin(), names.end(), one.name) == names.end())
      continue;
    one.effect = Effect::search;
    chosen.push_back(std::move(one));
  }
  return chosen;
}

}  // namespace

LayerPlacements::LayerPlacements(const pagmo::population& population, LayerSelectionOptions options)
    : asked_(population), options_(std::move(options)) {
  const auto& problem = population.get_problem();
  require_suitable(options_.selector, population, /*single=*/false, /*least=*/0);
  require(problem.get_ncx() == 0, "real variables", static_cast<double>(problem.get_ncx()),
          "0: each variable is a layer");
  for (const auto number : {options_.score, options_.beside, options_.cost}) {
    require(number <= std::max<std::size_t>(problem.get_nobj(), 2), "objective", number,
            "at most " + std::to_string(problem.get_nobj()));
  }
  require(options_.score <= problem.get_nobj(), "score", options_.score,
          "at most " + std::to_string(problem.get_nobj()));
  if (options_.cost == 0) options_.cost = static_cast<unsigned>(problem.get_nobj());
  upper_ = problem.get_ub();
  for (std::size_t i = 0; i < asked_.size(); ++i)
    known_.emplace(asked_.point(i), asked_.fitness(i));
}

LayerPlacements::Point LayerPlacements::replaced() const {
  Point point;
  for (std::size_t i = 0; i < layers(); ++i) point.push_back(block(i, options_.block));
  return point;
}

double LayerPlacements::block(std::size_t layer, unsigned number) const {
  return std::min(static_cast<double>(number), upper_[layer]);
}

LayerPlacements::Point LayerPlacements::with(Point point, std::size_t layer, double value) {
  point[layer] = value;
  return point;
}

std::vector<double> LayerPlacements::values(std::size_t layer) const {
  std::vector<double> values;
  for (double value = 1.0; value <= upper_[layer]; value += 1.0) values.push_back(value);
  return values;
}

bool LayerPlacements::is_one(const Point& point) const {
  for (std::size_t i = 0; i < layers(); ++i) {
    if (!(point[i] >= 0.0 && point[i] <= upper_[i])) return false;
  }
  return true;
}

void LayerPlacements::ask(const std::vector<Point>& points) {
  std::vector<Point> batch;
  for (const auto& point : points) {
    if (!known_.contains(point) && std::find(batch.begin(), batch.end(), point) == batch.end())
      batch.push_back(point);
  }
  if (batch.empty()) return;
  const auto first = asked_.size();
  asked_.ask(batch);
  for (auto i = first; i < asked_.size(); ++i) known_.emplace(asked_.point(i), asked_.fitness(i));
}

double LayerPlacements::objective(const Point& point, unsigned number) const {
  const double value = known_.at(point).at(number - 1);
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

void LayerPlacements::ask_nested(const Order& order) {
  std::vector<Point> points{replaced()};
  for (const auto layer : order) points.push_back(with(points.back(), layer, 0.0));
  ask(points);
}

LayerPlacements::Order LayerPlacements::by_worth(const std::vector<double>& worth) {
  Order order(worth.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return worth[a] > worth[b]; });
  return order;
}

/// Chooses layers by the selector that its options name.
class LayerSelection : public Seeded<Options> {
 public:
  using Seeded::Seeded;

  pagmo::population evolve(const pagmo::population& population) const {
    LayerPlacements layers(population, options_);
    selectors().at(options_.selector)(layers, engine_);
    return layers.best();
  }
  [[nodiscard]] std::string get_name() const {
    return options_.selector + ": a selector of layers";
  }
};

bool add_layer_selector(const std::string& key, const std::string& summary,
                        const std::vector<std::string>& settings, const char* file,
                        LayerSelector selector) {
  selectors().insert_or_assign(key, std::move(selector));
  const auto make = [key](const Parameters& given, const SearchFacts& /*facts*/,
                          std::uint32_t seed) {
    Options options;
    Options::each(options, [&given](const char* name, auto& value) {
      if (!given.contains(name)) return;
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_floating_point_v<T>) {
        value = given.get<double>(name);
      } else if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(given.get<std::int64_t>(name));
      } else {
        value = given.get<std::string>(name);
      }
    });
    options.selector = key;
    return pagmo::algorithm(LayerSelection(options, seed));
  };
  return algorithms().add(
      {.key = key, .summary = summary, .settings = settings_of(settings), .file = file}, [make] {
        return Algorithm{.objectives = Algorithm::Objectives::any,
                         .batches = true,
                         .layers = true,
                         .default_population = 0,  // they ask for all that they look at
                         .min_population = 0,
                         .make = make};
      });
}

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT(nas::LayerSelection)
