// What every search algorithm of the registry must do, found there and not listed by hand.

#include "search/algorithm.hpp"

#include <atomic>
#include <csignal>
#include <ostream>
#include <thread>

#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>
#include <unistd.h>

#include "core/seed.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"
#include "search/search.hpp"
#include "unit/asked_batches.hpp"
#include "unit/data_fixture.hpp"
#include "unit/forked.hpp"
#include "unit/forked_search.hpp"
#include "unit/paper_components.hpp"

namespace nas::testing {
namespace {

constexpr int kSeeds = 5;

/// A stand-in for training: perplexities made from the mechanism's parts and their neighbours, a
/// cost against which they can be traded, one mechanism in nine failing.
class StandInTraining : public Measurement {
 public:
  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    return candidate_of(mechanism_of(genotype, Semantics::corrected), Semantics::corrected);
  }
  [[nodiscard]] nlohmann::json identity() const override { return {}; }
  void measure(const Task& task, Evaluation& evaluation) override {
    if (on_measure_) on_measure_(++measured_);
    const auto part = [&task](std::size_t gene) {
      std::size_t from = 0;
      for (std::size_t i = 0; i < gene; ++i) from = task.candidate.name.find('|', from) + 1;
      return RandomEngine(derive_seed(1, 0, "part",
                                      task.candidate.name.substr(
                                          from, task.candidate.name.find('|', from) - from)))
          .uniform();
    };
    if (RandomEngine(derive_seed(2, 0, "failure", task.candidate.name)).below(9) == 0) {
      evaluation.status = Status::diverged;
      evaluation.reason = "unlucky";
      return;
    }
    evaluation.status = Status::ok;
    evaluation.values["perplexity"] =
        80 + 10 * (part(0) + part(1) * part(2) + part(3)) +
        std::stod(task.candidate.name.substr(task.candidate.name.rfind('|') + 1));
    evaluation.values["cost"] = 10 - 3 * part(0) - 2 * part(2) + part(4);
  }
  std::function<void(int)> on_measure_;
  std::atomic<int> measured_ = 0;
};

ChosenObjective objective(const std::string& name, Range range) {
  return {.name = name,
          .key = name,
          .settings = {},
          .objective = {.unit = "1",
                        .trained =
                            [name](const Evaluation& evaluation) {
                              return evaluation.values.at(name);
                            }},
          .range = range};
}

/// An algorithm of the registry, with one of its choices other than the default, several asks out at
/// once, or neither.
struct Variant {
  std::string key;
  std::string setting{};
  std::string choice{};

  friend void PrintTo(const Variant& variant, std::ostream* out) {
    *out << variant.key;
    if (!variant.setting.empty()) *out << ' ' << variant.setting << ": " << variant.choice;
  }
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const auto& key : algorithms().keys()) {
    all.push_back({key});
    for (const auto& setting : algorithms().at(key).description.settings) {
      if (setting.name == "in_flight") all.push_back({key, setting.name, "7"});
      if (setting.name == "order") continue;  // of arrival is another each time: conversation_test
      for (std::size_t i = 1; i < setting.choices.size(); ++i) {
        all.push_back({key, setting.name, setting.choices[i]});
      }
    }
  }
  return all;
}

std::string name_of(const Variant& variant) {
  std::string name = variant.key;
  if (!variant.setting.empty()) name += "_" + variant.setting + "_" + variant.choice;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// Without the real gene for algorithms that take choices alone.
SearchSpace space_for(const Variant& variant) {
  auto genes = paper_space().genes();
  if (algorithms().at(variant.key).make().layers)
    std::erase_if(genes, [](const Gene& gene) { return !gene.categorical(); });
  return SearchSpace(std::move(genes));
}

/// An algorithm with its default settings fitted to a space, made as short as it can be.
struct Fitted {
  Fitted(const Variant& variant, const SearchSpace& space, std::size_t num_objectives)
      : algorithm(algorithms().at(variant.key).make()),
        settings(algorithms().at(variant.key).description.settings) {
    if (variant.setting == "in_flight") {
      settings.set(variant.setting, Integer{std::stoll(variant.choice)});
    } else if (!variant.setting.empty()) {
      settings.set(variant.setting, variant.choice);
    }
    facts = {.num_genes = space.num_varying(),
             .dimension = space.bounds(algorithm.encoding).first.size(),
             .num_objectives = num_objectives,
             .num_combinations = space.num_combinations()};
    population = algorithm.fitted_population ? algorithm.fitted_population(facts)
                                             : algorithm.default_population;
    settings.set("population", population);
    if (settings.contains("generations")) settings.set("generations", Integer{8});
    if (settings.contains("temperatures")) settings.set("temperatures", Integer{3});
    if (settings.contains("points")) {
      const auto of = [this](char digit) { return std::string(facts.dimension, digit); };
      settings.set("points", of('0') + " " + of('1'));
    }
    if (algorithm.fit) misfits = algorithm.fit(settings, facts);
  }
  [[nodiscard]] pagmo::algorithm make(std::uint32_t seed) const {
    return algorithm.make(settings, facts, seed);
  }
  Algorithm algorithm;
  Parameters settings;
  SearchFacts facts;
  Integer population = 0;
  std::vector<Misfit> misfits;
};

class AlgorithmContract : public ::testing::TestWithParam<Variant> {
 protected:
  [[nodiscard]] static std::size_t num_objectives() {
    return algorithms().at(GetParam().key).make().objectives == Algorithm::Objectives::one ? 1 : 2;
  }
};

INSTANTIATE_TEST_SUITE_P(, AlgorithmContract, ::testing::ValuesIn(variants()),
                         [](const auto& variant) { return name_of(variant.param); });

/// Keeps every decision vector that it is asked for.
struct Recorder {
  SearchSpace space = paper_space();
  Encoding encoding = Encoding::integers;
  std::size_t objectives = 1;
  std::shared_ptr<std::vector<std::vector<double>>> asked =
      std::make_shared<std::vector<std::vector<double>>>();

  [[nodiscard]] std::vector<double> fitness(const std::vector<double>& x) const {
    asked->push_back(x);
    double sum = 0.0, other = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += (x[i] - 0.3) * (x[i] - 0.3) * static_cast<double>(i + 1);
      other += (x[i] - 1.2) * (x[i] - 1.2);
    }
    return objectives == 1 ? std::vector{sum} : std::vector{sum, other};
  }
  [[nodiscard]] std::vector<double> batch_fitness(const std::vector<double>& xs) const {
    const auto width = static_cast<std::ptrdiff_t>(get_bounds().first.size());
    std::vector<double> all;
    for (auto begin = xs.begin(); begin != xs.end(); begin += width) {
      for (const double value : fitness({begin, begin + width})) all.push_back(value);
    }
    return all;
  }
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> get_bounds() const {
    return space.bounds(encoding);
  }
  [[nodiscard]] std::size_t get_nobj() const { return objectives; }
  [[nodiscard]] std::size_t get_nix() const { return space.num_integers(encoding); }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}
};

TEST_P(AlgorithmContract, AsksOnlyForWholeCandidatesInsideTheSpaceAndSurvivesArchives) {
  Recorder recorder{.space = space_for(GetParam())};
  const Fitted fitted(GetParam(), recorder.space, num_objectives());
  ASSERT_TRUE(fitted.misfits.empty()) << fitted.misfits.front().message;
  recorder.encoding = fitted.algorithm.encoding;
  recorder.objectives = num_objectives();
  const pagmo::population begin(pagmo::problem(recorder),
                                static_cast<std::size_t>(fitted.population), 1);
  const auto made = fitted.make(1), copy = archived(made);
  const auto expected = made.evolve(begin).get_x();
  EXPECT_EQ(copy.evolve(begin).get_x(), expected);
  recorder.asked->clear();
  const auto [lower, upper] = recorder.get_bounds();
  const std::size_t first_integer = lower.size() - recorder.get_nix();
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const auto engine = fitted.make(seed);
    engine.evolve(pagmo::population(pagmo::problem(recorder),
                                    static_cast<std::size_t>(fitted.population), seed));
  }
  ASSERT_GT(recorder.asked->size(), static_cast<std::size_t>(fitted.population * kSeeds));
  for (const auto& x : *recorder.asked) {
    ASSERT_EQ(x.size(), lower.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(x[i] >= lower[i] && x[i] <= upper[i]) << "entry " << i << " = " << x[i];
      if (i >= first_integer) {
        ASSERT_EQ(x[i], std::round(x[i])) << "entry " << i;
      }
    }
    ASSERT_NO_THROW((void)recorder.space.encode(recorder.space.decode(x, recorder.encoding)));
  }
}

/// One search on the stand-in, as it is run in earnest.
struct SearchRun {
  SearchRun(const Variant& variant, std::size_t num_objectives, const fs::path& file,
            std::uint32_t search_seed = 5, Store::Mode mode = Store::Mode::write_cheap)
      : seed(search_seed),
        space(space_for(variant)),
        fitted(variant, space, num_objectives),
        store(file, mode) {
    objectives.objectives = {objective("perplexity", {.best = 80, .worst = 120})};
    if (num_objectives > 1) {
      objectives.objectives.push_back(objective("cost", {.best = 0, .worst = 12}));
    }
    RecordingEvaluator::Options options;
    options.workers = 2;
    options.budget.evaluations = 90;
    options.on_progress = [this](const Progress& progress) {
      if (progress.kind == Progress::Kind::evaluation_finished) ++stored;
    };
    evaluator = std::make_shared<RecordingEvaluator>(
        training, store, [this](Objective::Evaluations e) { return objectives.judge(e); }, options);
  }
  SearchResult search() {
    return run_search(space, evaluator, objectives, fitted.make(seed),
                      {.population = fitted.population,
                       .seed = seed,
                       .encoding = fitted.algorithm.encoding,
                       .on_indicator = [this](const Indicator& i) { store.add_indicator(i); }});
  }
  [[nodiscard]] std::string record() const {
    std::string text;
    for (const auto& ask : store.asks()) {
      text += ask.genotype + " " + nlohmann::json(ask.evaluations).dump() +
              nlohmann::json(ask.fitness).dump() + std::to_string(ask.batch) + "\n";
    }
    for (const auto& evaluation : store.evaluations()) text += canonical_json(evaluation).dump();
    for (const auto& i : store.indicators()) {
      text += std::to_string(i.asked) + " " + nlohmann::json(i.value).dump() + "\n";
    }
    return text;
  }
  std::atomic<int> stored{0};  ///< evaluations
  std::uint32_t seed;
  SearchSpace space;
  Fitted fitted;
  Store store;
  ObjectiveSet objectives;
  std::shared_ptr<StandInTraining> training = std::make_shared<StandInTraining>();
  std::shared_ptr<Evaluator> evaluator;
};

TEST_P(AlgorithmContract, KilledAndResumedItEndsLikeAnUninterruptedRun) {
  const TemporaryFolder folder;
  const auto killed = folder.path() / "killed.sqlite";
  RandomEngine random(derive_seed(3, 0, "kills", name_of(GetParam())));
  for (int kill_number = 0; kill_number < 3; ++kill_number) {
    const int last = 1 + static_cast<int>(random.below(25));
    in_child([&] {
      SearchRun run(GetParam(), num_objectives(), killed, 5, Store::Mode::write);
      run.training->on_measure_ = [&](int number) {
        if (number != last) return;
        // What finished before is stored by another thread: all but what the other worker is at.
        while (run.stored < last - 2) std::this_thread::yield();
        kill(getpid(), SIGKILL);
      };
      run.search();
      return 0;
    });
  }
  SearchRun whole(GetParam(), num_objectives(), folder.path() / "whole.sqlite");
  whole.search();
  SearchRun resumed(GetParam(), num_objectives(), killed);
  EXPECT_FALSE(resumed.store.evaluations().empty());
  resumed.search();
  EXPECT_EQ(resumed.record(), whole.record());
  EXPECT_GT(whole.evaluator->num_asked(), whole.fitted.population);
  SearchRun other(GetParam(), num_objectives(), folder.path() / "other.sqlite", 6);
  other.search();
  if (whole.fitted.population > 0) EXPECT_NE(other.record(), whole.record());  // its seed decides
}

TEST_P(AlgorithmContract, TheArchiveIsEverythingThatWasAskedUntilAHardBudgetEndsIt) {
  const TemporaryFolder folder;
  SearchRun run(GetParam(), num_objectives(), folder.path() / "store.sqlite");
  const auto result = run.search();
  std::set<std::string> usable;
  Points points;
  for (const auto& ask : run.store.asks()) {
    const auto evaluation = *run.store.find(ask.evaluations.front());
    if (!is_usable(evaluation) || !usable.insert(evaluation.candidate).second) continue;
    points.push_back(run.objectives.scaled(ask.fitness));
  }
  EXPECT_EQ(result.archive.size(), usable.size());
  std::set<Point> expected;
  for (const auto i : non_dominated(points)) expected.insert(points[i]);
  const auto front = result.archive.front_points();
  EXPECT_EQ(std::set<Point>(front.begin(), front.end()), expected);
  const auto indicators = run.store.indicators();
  ASSERT_FALSE(indicators.empty());
  for (std::size_t i = 1; i < indicators.size(); ++i) {
    if (num_objectives() > 1) {
      EXPECT_GE(indicators[i].value, indicators[i - 1].value);
    } else {
      EXPECT_LE(indicators[i].value, indicators[i - 1].value);
    }
  }
  EXPECT_LE(run.store.evaluations().size(), 90U);
  if (result.ended_by != "the algorithm's end") {
    EXPECT_EQ(result.ended_by, "90 evaluations");
    EXPECT_EQ(run.store.evaluations().size(), 90U);
  }
}

}  // namespace
}  // namespace nas::testing
