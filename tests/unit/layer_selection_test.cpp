// Selectors of layers on problems whose answer is known.

#include "search/layer_selection.hpp"

#include <pagmo/algorithm.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "prelude.hpp"

namespace nas {
namespace {

using Vector = std::vector<double>;

/// Layers whose blocks 1 and 2 cost so much each, and save 3 and 5 of the bytes; costs add up but for `together`, of layers
/// 0 and 1 both replaced.
struct Layers {
  std::vector<std::pair<double, double>> costs;
  double together = 0.0;
  std::shared_ptr<std::vector<Vector>> asked = std::make_shared<std::vector<Vector>>();

  [[nodiscard]] Vector fitness(const Vector& x) const {
    asked->push_back(x);
    double loss = x[0] > 0 && x[1] > 0 ? together : 0.0, bytes = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      loss += x[i] == 1.0 ? costs[i].first : x[i] == 2.0 ? costs[i].second : 0.0;
      bytes += x[i] == 1.0 ? 4.0 : x[i] == 2.0 ? 2.0 : 7.0;
    }
    return {loss, 1.0 + loss * loss, bytes};
  }
  [[nodiscard]] static Vector::size_type get_nobj() { return 3; }
  [[nodiscard]] std::pair<Vector, Vector> get_bounds() const {
    return {Vector(costs.size(), 0.0), Vector(costs.size(), 2.0)};
  }
  [[nodiscard]] Vector::size_type get_nix() const { return costs.size(); }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}
};

std::vector<Vector> asked_by(const std::string& key, const Layers& layers,
                             const std::map<std::string, Value>& given = {}) {
  const auto& entry = algorithms().at(key);
  Parameters settings(entry.description.settings);
  for (const auto& [name, value] : given) settings.set(name, value);
  pagmo::population population{pagmo::problem(layers)};
  if (key != "listed") population.push_back(Vector(layers.costs.size(), 0.0));
  layers.asked->clear();
  (void)entry.make().make(settings, {}, 5).evolve(population);
  return *layers.asked;
}

const Layers kFour{.costs = {{1, 2}, {8, 9}, {3, 30}, {3, 4}}};

TEST(LayerSelection, ControlsDoNotLookAtScores) {
  EXPECT_THAT(asked_by("first_last", kFour), ElementsAre(Vector{1, 1, 1, 1}, Vector{0, 1, 1, 1},
                                                         Vector{0, 1, 1, 0}, Vector{0, 0, 1, 0}));
  EXPECT_THAT(
      asked_by("uniform", kFour, {{"block", Integer{2}}}),
      ElementsAre(Vector{2, 2, 2, 2}, Vector{2, 2, 0, 2}, Vector{2, 0, 2, 0}, Vector{0, 2, 0, 0}));
  EXPECT_THAT(asked_by("listed", kFour, {{"points", "0120 1111"}}),
              ElementsAre(Vector{0, 1, 2, 0}, Vector{1, 1, 1, 1}));
  EXPECT_THAT(asked_by("listed", kFour), ::testing::IsEmpty());
  EXPECT_THAT(asked_by("random_layers", kFour, {{"width", Integer{3}}}), SizeIs(::testing::Le(13)));
}

TEST(LayerSelection, KeepsWhatIsWorthMost) {
  for (const auto* key : {"restore_one", "greedy_add", "ablate", "halo"}) {
    SCOPED_TRACE(key);
    // Bytes are never lost: halo divides by its floor.
    const auto asked = std::string(key) == "halo" ? asked_by(key, kFour, {{"beside", Integer{3}}})
                                                  : asked_by(key, kFour);
    // Block 1 costs most in layer 1, then in 2 and 3 alike, and least in 0.
    for (const auto& set : {Vector{1, 0, 1, 1}, Vector{1, 0, 0, 1}, Vector{1, 0, 0, 0}})
      EXPECT_THAT(asked, ::testing::Contains(set));
  }
  EXPECT_THAT(asked_by("halo", kFour), ::testing::Contains(Vector{0, 1, 1, 1}))
      << "over its own square the least loss is worth most";
  const auto asked = asked_by("ablate", kFour, {{"ablation", Integer{2}}});
  EXPECT_THAT(asked, ::testing::Contains(Vector{1, 1, 0, 1})) << "by block 2 layer 2 is worth most";
}

TEST(LayerSelection, GatesLearnAllLayersAtOnce) {
  Layers layers;
  for (const double cost : {5.0, 1.0, 0.2, 9.0, 0.1, 3.0, 0.3, 7.0, 0.4, 0.05, 2.0, 0.6})
    layers.costs.emplace_back(cost, 0.0);
  const auto expect_best = [&] {
    const auto asked = asked_by("gates", layers, {{"width", Integer{8}}, {"steps", Integer{24}}});
    EXPECT_THAT(asked, SizeIs(::testing::Le(8 * 24 + 13)));
    Vector set(12, 1.0);
    for (const std::size_t next : {3U, 7U, 0U, 5U, 10U}) {
      set[next] = 0.0;
      EXPECT_THAT(asked, ::testing::Contains(set)) << next;
    }
    EXPECT_EQ(asked_by("gates", layers, {{"width", Integer{8}}, {"steps", Integer{24}}}), asked);
    return asked;
  };
  const auto asked = expect_best();
  const auto kept = [&](std::size_t first, std::size_t last) {
    double sum = 0.0;
    for (std::size_t i = first; i < last; ++i)
      sum += static_cast<double>(std::count(asked[i].begin(), asked[i].end(), 0.0));
    return sum / static_cast<double>(last - first);
  };
  ASSERT_GT(asked.size(), 40U);
  const auto last = asked.size() - 13;
  EXPECT_LT(kept(last - 10, last), kept(0, 10));  // most layers are not worth the penalty
  layers.together = std::numeric_limits<double>::infinity();  // what fails says nothing
  layers.costs[0].first = 20.0;
  EXPECT_THAT(asked_by("gates", layers, {{"width", Integer{8}}}), ::testing::Contains([] {
                Vector set(12, 1.0);
                set[0] = set[3] = set[7] = 0.0;
                return set;
              }()));
}

TEST(LayerSelection, ABeamSeesWhatGreedMisses) {
  // Layers 0 and 1 are cheapest alone and dear together.
  const Layers layers{.costs = {{1, 9}, {1.5, 9}, {2, 9}, {9, 9}}, .together = 50.0};
  const auto best_pair = [&](Integer width) {
    double best = 1e9;
    for (const auto& set : asked_by("beam", layers, {{"width", width}})) {
      if (std::count(set.begin(), set.end(), 1.0) == 3)
        best = std::min(best, layers.fitness(set)[0]);
    }
    return best;
  };
  EXPECT_LT(best_pair(6), best_pair(1) + 1e-12);
  EXPECT_DOUBLE_EQ(best_pair(6), 12.0);
}

TEST(LayerSelection, OneBlockFindsEveryBestSumWithItsTies) {
  const auto asked = asked_by("one_block", kFour);
  std::map<double, std::pair<double, std::set<Vector>>>
      best;  // by bytes: the least loss and its sets
  for (int code = 0; code < 81; ++code) {
    Vector point;
    for (int rest = code, i = 0; i < 4; ++i, rest /= 3) point.push_back(rest % 3);
    const auto fitness = kFour.fitness(point);
    auto& there = best.try_emplace(fitness[2], std::pair{1e9, std::set<Vector>{}}).first->second;
    if (fitness[0] < there.first) there = {fitness[0], {}};
    if (fitness[0] == there.first) there.second.insert(point);
  }
  double least = 1e9;
  std::size_t sets = 0;
  for (const auto& [bytes, found] : best) {
    if (found.first >= least) continue;  // more bytes for no less loss
    least = found.first;
    for (const auto& set : found.second) {
      ++sets;
      EXPECT_TRUE(set == Vector(4, 0.0) ||
                  std::find(asked.begin(), asked.end(), set) != asked.end())
          << ::testing::PrintToString(set);
    }
  }
  EXPECT_GT(sets, 8U);
  EXPECT_LE(asked.size(), 8 + sets);
}

TEST(LayerSelection, RefusesWhatHasNoSuchObjective) {
  EXPECT_THAT(message_of<std::invalid_argument>([] {
                (void)asked_by("ablate", kFour, {{"score", Integer{4}}});
              }),
              HasSubstr("must be at most 3"));
}

}  // namespace
}  // namespace nas

PAGMO_S11N_PROBLEM_EXPORT(nas::Layers)
