#pragma once

#include "algorithms/evo_ga.hpp"
#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "search/search.hpp"
#include "unit/fake_measurement.hpp"

namespace nas::testing {

/// What many tests ask for: four candidates, of falling cost.
inline const std::vector<std::vector<double>> kFour{
    {0, 3, 0, 0}, {0, 2, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}};

/// Searches on a FakeMeasurement, each in a store of its own.
class EvaluatorTest : public ::testing::Test {
 protected:
  void TearDown() override { request_stop(false); }

  struct Run {
    explicit Run(const fs::path& file, RecordingEvaluator::Options options = {})
        : store(file),
          fake(std::make_shared<FakeMeasurement>()),
          evaluator(std::make_shared<RecordingEvaluator>(
              fake, store, [set = objectives](Objective::Evaluations e) { return set.judge(e); },
              std::move(options))) {}
    std::vector<double> ask(const std::vector<std::vector<double>>& vectors) const {
      std::vector<Genotype> batch;
      for (const auto& vector : vectors) batch.push_back(FakeMeasurement::space().decode(vector));
      std::vector<double> values;
      for (const auto& answer : evaluator->ask(batch)) values.push_back(answer.fitness.front());
      return values;
    }
    void search(unsigned seed = 1) const {
      search(pagmo::algorithm(EvoGa({}, seed)), {.population = 12, .seed = seed});
    }
    SearchResult search(const pagmo::algorithm& algorithm, const SearchSettings& settings) const {
      return run_search(FakeMeasurement::space(), evaluator, objectives, algorithm, settings);
    }
    ObjectiveSet objectives = fake_objectives();
    Store store;
    std::shared_ptr<FakeMeasurement> fake;
    std::shared_ptr<RecordingEvaluator> evaluator;
  };

  static std::string comparable(const Store& store) {
    std::string text;
    for (const auto& ask : store.asks()) {
      text += std::to_string(ask.number) + " " + std::to_string(ask.batch) + " " + ask.genotype +
              " " + nlohmann::json(ask.evaluations).dump() + " " + std::to_string(ask.reused) +
              " " + nlohmann::json(ask.fitness).dump() + "\n";
    }
    for (const auto& evaluation : store.evaluations())
      text += canonical_json(evaluation).dump() + "\n";
    return text;
  }

  /// Its evaluations, one of each first letter of a candidate.
  static std::map<char, Evaluation> by_letter(const Store& store) {
    std::map<char, Evaluation> evaluations;
    for (auto& one : store.evaluations()) evaluations[one.candidate[0]] = one;
    return evaluations;
  }

  std::string uninterrupted(int workers = 1) {
    const auto file = folder_ / ("whole" + std::to_string(workers) + ".sqlite");
    const Run run(file, {.workers = workers});
    run.search();
    return comparable(run.store);
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

}  // namespace nas::testing
