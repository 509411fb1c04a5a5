// Genes that other genes leave without effect: what variation changes.

#include <deque>

#include <pagmo/algorithm.hpp>
#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/problem.hpp>

#include "algorithms/evo_ga.hpp"
#include "algorithms/local_search.hpp"
#include "algorithms/motpe.hpp"
#include "algorithms/nsga2.hpp"
#include "algorithms/nsga3.hpp"
#include "algorithms/random_search.hpp"
#include "algorithms/regularized_evolution.hpp"
#include "prelude.hpp"
#include "search/search.hpp"
#include "search/variation.hpp"

namespace nas {
namespace {

using Vector = std::vector<double>;

/// A window has a size, and a decay a rate; without them these genes have no effect.
SearchSpace space() {
  const Texts sizes{"0", "1", "2", "3", "4", "5", "6", "7"};
  return SearchSpace({{.name = "pattern", .options = {"full", "window"}},
                      {.name = "window", .options = sizes},
                      {.name = "rate", .min = 0.0, .max = 1.0, .decimals = 1},
                      {.name = "decay", .options = {"none", "fixed"}},
                      {.name = "norm", .options = {"layer"}}});
}

Texts active(const Genotype& genotype) {
  Texts names{"pattern", "decay", "norm"};
  if (genotype.option("pattern") == "window") names.emplace_back("window");
  if (genotype.option("decay") == "fixed") names.emplace_back("rate");
  return names;
}

std::string function_of(const Genotype& genotype) {
  std::string name = genotype.option("pattern") + genotype.option("decay");
  if (genotype.option("pattern") == "window") name += genotype.option("window");
  if (genotype.option("decay") == "fixed") name += std::to_string(genotype.real("rate"));
  return name;
}

/// Answers by the functions' names.
class ByFunction final : public Evaluator {
 public:
  explicit ByFunction(std::size_t objectives) : objectives_(objectives) {}
  std::vector<Answer> ask(const std::vector<Genotype>& batch) override {
    ++batches_;
    std::vector<Answer> answers;
    for (const auto& genotype : batch) {
      asked.push_back(genotype);
      const auto name = function_of(genotype);
      double sum = 0.0;
      for (const char letter : name) sum += letter;
      std::vector<double> fitness{sum};
      if (objectives_ > 1) fitness.push_back(1e4 - sum * sum);
      answers.push_back({.candidate = name,
                         .fitness = std::move(fitness),
                         .status = Status::ok,
                         .earlier_asks = asks_[name]++});
    }
    return answers;
  }
  bool begin(const Genotype& genotype, std::int64_t /*until*/, bool /*anyway*/) override {
    answers_.push_back({.begun = begun_++, .answer = ask({genotype}).front()});
    return true;
  }
  std::optional<Told> next(TellOrder /*order*/) override {
    if (answers_.empty()) return std::nullopt;
    auto told = std::move(answers_.front());
    answers_.pop_front();
    return told;
  }
  [[nodiscard]] std::int64_t num_asked() const override { return std::ssize(asked); }
  [[nodiscard]] std::int64_t num_evaluated() const override { return std::ssize(asks_); }
  [[nodiscard]] std::int64_t num_batches() const override { return batches_; }
  [[nodiscard]] std::string spent() const override { return {}; }

  std::vector<Genotype> asked{};

 private:
  std::size_t objectives_;
  std::int64_t batches_ = 0;
  std::int64_t begun_ = 0;
  std::deque<Told> answers_{};
  std::map<std::string, std::int64_t> asks_{};
};

ObjectiveSet objectives(std::size_t count) {
  ObjectiveSet set;
  for (std::size_t i = 0; i < count; ++i) {
    const auto name = "f" + std::to_string(i);
    set.objectives.push_back({.name = name,
                              .key = name,
                              .settings = {},
                              .objective = {.unit = "1"},
                              .range = Range{.best = 0.0, .worst = 1e4}});
  }
  return set;
}

struct Outcome {
  SearchResult result;
  std::vector<Genotype> asked;
};

/// @param algorithm  a copy, since an algorithm's engine goes on from search to search.
Outcome run(pagmo::algorithm algorithm, std::size_t count, const Conditions& conditions,  // NOLINT
            const SearchSpace& where = space()) {
  const auto evaluator = std::make_shared<ByFunction>(count);
  auto result = run_search(where, evaluator, objectives(count), algorithm,
                           {.population = 12, .seed = 3, .conditions = conditions});
  return {std::move(result), evaluator->asked};
}

/// Each algorithm of ours that varies what it has, with the number of objectives that it is for.
std::vector<std::pair<pagmo::algorithm, std::size_t>> varying() {
  std::vector<std::pair<pagmo::algorithm, std::size_t>> all;
  all.emplace_back(pagmo::algorithm(RegularizedEvolution({.evaluations = 200, .sample = 3})), 1);
  all.emplace_back(pagmo::algorithm(EvoGa({.generations = 16})), 1);
  all.emplace_back(pagmo::algorithm(LocalSearch({.evaluations = 60})), 1);
  all.emplace_back(pagmo::algorithm(Nsga2({.generations = 8})), 2);
  all.emplace_back(pagmo::algorithm(Nsga3({.generations = 8})), 2);
  all.emplace_back(pagmo::algorithm(Motpe({.evaluations = 60})), 1);
  return all;
}

/// Looks at the problem that it is to solve.
struct Probe {
  std::function<void(const pagmo::problem&)> look;
  [[nodiscard]] pagmo::population evolve(const pagmo::population& population) const {
    look(population.get_problem());
    return population;
  }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}
};

TEST(Conditions, AreThoseOfTheVariablesInTheOrderOfADecisionVector) {
  std::vector<bool> found;
  std::vector<std::size_t> free;
  Vector effective;
  const Vector point{0.5, 0, 3, 1};  // rate; pattern full, window, decay fixed
  const Probe probe{[&](const pagmo::problem& problem) {
    found = active_variables(point, problem);
    free = changeable(point, problem);
    effective = effective_point(point, problem);
  }};
  (void)run(pagmo::algorithm(probe), 1, active);
  EXPECT_THAT(found, ElementsAre(true, true, false, true));
  EXPECT_THAT(free, ElementsAre(0, 1, 3));
  EXPECT_THAT(effective, ElementsAre(0.5, 0, 0, 1));
  (void)run(pagmo::algorithm(probe), 1, {});
  EXPECT_THAT(found, ElementsAre(true, true, true, true));
  EXPECT_EQ(effective, point);
}

TEST(Conditions, PointsOfEqualDecimalsAreOneCandidate) {
  Vector effective;
  const Probe probe{[&effective](const pagmo::problem& problem) {
    effective = effective_point({0.4567, 1, 3, 1}, problem);
  }};
  (void)run(pagmo::algorithm(probe), 1, active);
  EXPECT_THAT(effective, ElementsAre(0.5, 1, 3, 1));
}

TEST(Conditions, ChildrenAreNewAsTheyAreEvaluated) {
  // 11 rates and two other genes: few candidates that reals hide among infinitely many points.
  const SearchSpace small({{.name = "rate", .min = 0.0, .max = 1.0, .decimals = 1},
                           {.name = "decay", .options = {"none", "fixed"}},
                           {.name = "pattern", .options = {"full", "window"}},
                           {.name = "window", .options = {"0", "1", "2", "3", "4", "5"}}});
  const std::vector<std::pair<pagmo::algorithm, std::size_t>> algorithms{
      {pagmo::algorithm(Nsga2({.generations = 3}, 1)), 2},
      {pagmo::algorithm(Nsga3({.generations = 3}, 1)), 2},
      {pagmo::algorithm(Motpe({.evaluations = 36}, 1)), 1}};
  for (const auto& [algorithm, count] : algorithms) {
    const auto asked = run(algorithm, count, {}, small).asked;
    ASSERT_EQ(asked.size(), 36U) << algorithm.get_name();
    std::set<std::vector<std::pair<std::string, GeneValue>>> initial;
    std::set<std::vector<std::pair<std::string, GeneValue>>> all;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      all.insert(asked[i].values());
      if (i < 12) initial.insert(asked[i].values());
    }
    EXPECT_EQ(all.size() - initial.size(), 24U) << algorithm.get_name();
  }
}

TEST(Conditions, ThatNeverHoldBackAGeneChangeNothing) {
  const auto all = [](const Genotype& genotype) {
    Texts names;
    for (const auto& [name, value] : genotype.values()) names.push_back(name);
    return names;
  };
  for (const auto& [algorithm, count] : varying()) {
    EXPECT_TRUE(run(algorithm, count, all).asked == run(algorithm, count, {}).asked)
        << algorithm.get_name();
  }
}

/// Asks after the initial population for a new genotype of a function that is known.
int silent(const Outcome& outcome) {
  std::set<std::string> functions;
  std::set<std::vector<std::pair<std::string, GeneValue>>> genotypes;
  int several = 0;
  for (std::size_t i = 0; i < outcome.asked.size(); ++i) {
    const bool fresh = genotypes.insert(outcome.asked[i].values()).second;
    if (!functions.insert(function_of(outcome.asked[i])).second && fresh && i >= 12) ++several;
  }
  return several;
}

TEST(Conditions, KeepVariationToGenesWithEffect) {
  for (const auto& [algorithm, count] : varying()) {
    const auto blind = run(algorithm, count, {});
    const auto aware = run(algorithm, count, active);
    EXPECT_LT(silent(aware), silent(blind)) << algorithm.get_name();
    EXPECT_EQ(aware.asked.size(), blind.asked.size()) << algorithm.get_name();
  }
}

TEST(Conditions, LeaveNoSilentChildToGeneticAlgorithmsThatKnowThem) {
  Texts sizes;
  for (int i = 0; i < 200; ++i) sizes.push_back(std::to_string(i));
  const SearchSpace windows({{.name = "pattern", .options = {"full", "window"}},
                             {.name = "window", .options = sizes},
                             {.name = "decay", .options = {"none"}}});
  const auto conditions = [](const Genotype& genotype) {
    Texts names{"pattern", "decay"};
    if (genotype.option("pattern") == "window") names.emplace_back("window");
    return names;
  };
  const auto pagmos =
      run(pagmo::algorithm(pagmo::nsga2(7, 0.95, 10, 0.5, 50, 1)), 2, conditions, windows);
  EXPECT_GT(silent(pagmos), 0);
  for (const auto& algorithm : {pagmo::algorithm(Nsga2({.generations = 8}, 1)),
                                pagmo::algorithm(Nsga3({.generations = 8}, 1))}) {
    const auto outcome = run(algorithm, 2, conditions, windows);
    EXPECT_EQ(outcome.asked.size(), 96U) << algorithm.get_name();
    EXPECT_EQ(silent(outcome), 0) << algorithm.get_name();
    EXPECT_GE(outcome.result.archive.size(), pagmos.result.archive.size()) << algorithm.get_name();
  }
}

}  // namespace
}  // namespace nas
