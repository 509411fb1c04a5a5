#pragma once

#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"
#include "search/search.hpp"
#include "unit/fake_measurement.hpp"
#include "unit/shuffled_executor.hpp"

namespace nas::testing {

/// What is searched with.
struct Searcher {
  std::string key;
  std::int64_t in_flight = 5;
  std::string order = "virtual";
  std::int64_t evaluations = 60;
  Promote promote = in_flight > 1 ? Promote::asha : Promote::successive_halving;

  [[nodiscard]] bool several() const {
    return algorithms().at(key).make().objectives != Algorithm::Objectives::one;
  }
};

inline void PrintTo(const Searcher& searcher, std::ostream* out) { *out << searcher.key; }

/// One search on the fake measurement, in a store of its own.
struct Search {
  Search(const Searcher& searcher, const fs::path& file, RecordingEvaluator::Options options = {},
         std::shared_ptr<FakeMeasurement> measurement = std::make_shared<FakeMeasurement>(),
         Store::Mode mode = Store::Mode::write_cheap)
      : fake(std::move(measurement)),
        objectives(fake_objectives(searcher.several())),
        settings(algorithms().at(searcher.key).description.settings),
        kind(algorithms().at(searcher.key).make()),
        store(file, mode) {
    const auto space = FakeMeasurement::space();
    const SearchFacts facts{.num_genes = space.num_varying(),
                            .dimension = space.bounds(kind.encoding).first.size(),
                            .num_objectives = objectives.objectives.size(),
                            .num_combinations = space.num_combinations()};
    settings.set("population", std::int64_t{8});
    settings.set("evaluations", searcher.evaluations);
    settings.set("in_flight", searcher.in_flight);
    settings.set("order", searcher.order);
    if (kind.fit) {
      EXPECT_TRUE(kind.fit(settings, facts).empty());
    }
    algorithm = kind.make(settings, facts, 3);
    if (auto* executor = dynamic_cast<ShuffledExecutor*>(options.executor.get())) {
      executor->measurement = fake.get();
    }
    evaluator = std::make_shared<RecordingEvaluator>(
        fake, store, [this](Objective::Evaluations e) { return objectives.judge(e); },
        std::move(options));
  }

  SearchResult run(const SearchSettings& more = {}) {
    auto search = more;
    search.population = 8;
    search.seed = 3;
    search.on_indicator = [this](const Indicator& indicator) { store.add_indicator(indicator); };
    return run_search(FakeMeasurement::space(), evaluator, objectives, algorithm, search);
  }

  [[nodiscard]] std::string record() const {
    std::string text;
    for (const auto& ask : store.asks()) {
      text += std::to_string(ask.number) + " " + std::to_string(ask.batch) + " " + ask.genotype +
              " " + nlohmann::json(ask.evaluations).dump() + " " + std::to_string(ask.reused) +
              " " + nlohmann::json(ask.fitness).dump() + " " + std::to_string(ask.until) + "\n";
    }
    for (const auto& evaluations : {store.evaluations(), store.partials()}) {
      for (const auto& evaluation : evaluations) text += canonical_json(evaluation).dump() + "\n";
    }
    for (const auto& i : store.indicators()) {
      text += std::to_string(i.asked) + " " + std::to_string(i.evaluated) + " " +
              nlohmann::json(i.value).dump() + "\n";
    }
    return text;
  }

  std::shared_ptr<FakeMeasurement> fake;
  ObjectiveSet objectives;
  Parameters settings;
  Algorithm kind;
  Store store;
  pagmo::algorithm algorithm;
  std::shared_ptr<RecordingEvaluator> evaluator;
};

inline RecordingEvaluator::Options shuffled(std::size_t workers, std::uint64_t seed) {
  return {.workers = static_cast<int>(workers),
          .executor = std::make_shared<ShuffledExecutor>(workers, seed)};
}

class AsynchronousSearch : public ::testing::TestWithParam<Searcher> {
 protected:
  void TearDown() override { request_stop(false); }
  fs::path file(const std::string& name) const { return temporary_.path() / (name + ".sqlite"); }

  /// Evaluations of all asks that are recorded, each number once, from 0.
  static void expect_contiguous(const Store& store) {
    std::int64_t number = 0;
    for (const auto& ask : store.asks()) EXPECT_EQ(ask.number, number++);
  }

  const TemporaryFolder temporary_;
};

}  // namespace nas::testing
