// How busy workers are, by the way in which a search asks: searches of a table in simulated time, in
// which each training takes the seconds that were recorded. Everything else is as in earnest.
//
//   fleet TABLE WORKERS...   a line of JSON for each way and number of workers

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/temporary_folder.hpp"
#include "study/session/session.hpp"
#include "unit/paper_components.hpp"
#include "unit/simulated_executor.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

constexpr Integer kRounds = 32;  ///< asks for each worker

/// A way to ask.
struct Way {
  std::string algorithm;
  double in_flight = 0.0;  ///< for each worker; 0: generations of as many as there are workers
  std::string order = "virtual";
  std::string cost = "flops";  ///< by which it expects a training to take: or "known"
};

/// A table's problem that knows how long its candidates' trainings take: in sum over the replicates.
class KnownCosts final : public Measurement {
 public:
  explicit KnownCosts(std::shared_ptr<Problem> problem)
      : problem_(std::move(problem)), replicates_(problem_->facts().at("table").at("replicates")) {}

  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    return problem_->canonical(genotype);
  }
  [[nodiscard]] nlohmann::json identity() const override { return problem_->identity(); }
  [[nodiscard]] bool expensive() const override { return problem_->expensive(); }
  [[nodiscard]] double expected_cost(const Candidate& candidate) const override {
    const auto [found, fresh] = seconds_.try_emplace(candidate.name);
    for (Integer replicate = 0; fresh && replicate < replicates_; ++replicate) {
      Evaluation evaluation;
      problem_->measure(make_task(*problem_, candidate, replicate), evaluation);
      found->second += evaluation.measured.at("train_seconds").get<double>();
    }
    return found->second;
  }
  void screen(const Task& task, Evaluation& evaluation) override {
    problem_->screen(task, evaluation);
  }
  void measure(const Task& task, Evaluation& evaluation) override {
    problem_->measure(task, evaluation);
  }

 private:
  std::shared_ptr<Problem> problem_;
  Integer replicates_;
  mutable std::map<std::string, double> seconds_{};
};

double efficiency(const std::string& table_file, const Way& way, Integer workers) {
  const auto text = [](Integer number) { return std::to_string(number); };
  // Every ask is a training: what is known takes no time, and would tell about the table's size.
  std::vector<std::string> overrides{
      "problem.table=" + table_file, "algorithm.name=" + way.algorithm,
      "algorithm.population=" + text(workers), "evaluation.repeated=retrain"};
  if (way.in_flight > 0.0) {
    const auto in_flight = static_cast<Integer>(way.in_flight * static_cast<double>(workers));
    overrides.insert(overrides.end(),
                     {"algorithm.in_flight=" + text(in_flight), "algorithm.order=" + way.order,
                      "algorithm.evaluations=" + text((kRounds + 1) * workers)});
  } else {
    overrides.push_back("algorithm.generations=" + text(kRounds + 1));
  }
  const TemporaryFolder folder;
  const auto config = folder.path() / "fleet.yaml";
  std::ofstream(config) << "problem: tabular\nobjectives: [perplexity, attention_flops]\n";
  const auto experiment = load_experiment(config, overrides);
  auto objectives = experiment.objectives;
  for (auto& objective : objectives.objectives) {
    if (!objective.range) objective.range = Range{.best = 0.0, .worst = 100.0};
  }
  const auto table = make_problem(experiment, objectives, {});
  std::shared_ptr<Measurement> problem = table;
  if (way.cost == "known") problem = std::make_shared<KnownCosts>(table);
  Store store(folder.path() / "store.sqlite", Store::Mode::write_cheap);
  const auto executor =
      std::make_shared<testing::SimulatedExecutor>(*problem, static_cast<std::size_t>(workers));
  auto options = evaluator_options(experiment);
  options.executor = executor;
  options.budget = {};
  const auto evaluator = std::make_shared<RecordingEvaluator>(
      problem, store, [&objectives](Objective::Evaluations e) { return objectives.judge(e); },
      options);
  (void)search(experiment, objectives, evaluator, {}, {});
  return executor->efficiency();
}

int run(const std::vector<std::string>& arguments) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const Integer workers = std::stoll(arguments[i]);
    for (const Way& way :
         {Way{"nsga2"}, Way{"nsga2_async", 1.5}, Way{"nsga2_async", 4.0},
          Way{"nsga2_async", 1.0, "virtual", "known"}, Way{"nsga2_async", 1.5, "virtual", "known"},
          Way{"nsga2_async", 1.0, "arrival"}}) {
      std::cout << nlohmann::json{{"algorithm", way.algorithm},
                                  {"in_flight", way.in_flight},
                                  {"order", way.order},
                                  {"cost", way.cost},
                                  {"workers", workers},
                                  {"efficiency", efficiency(arguments.front(), way, workers)}}
                       .dump()
                << std::endl;
    }
  }
  return EXIT_SUCCESS;
}

}  // namespace

}  // namespace nas

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "fleet TABLE WORKERS...\n";
    return 2;
  }
  return nas::run({argv + 1, argv + argc});
}
