// Training runs that pause at rungs, through store, evaluator and checkpoints.

#include "core/temporary_folder.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "ops/memory.hpp"
#include "places.hpp"
#include "prelude.hpp"
#include "search/problem.hpp"
#include "study/reader/experiment.hpp"

namespace nas {
namespace {

class RungsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { nn::install_cpu_allocator(); }

  /// A folder with its problem and store, as of one process.
  struct Process {
    Process(const Experiment& experiment, const fs::path& folder, int workers = 1,
            std::int64_t checkpoint_space = std::int64_t{1} << 30)
        : objectives(experiment.objectives),
          problem(problems()
                      .at(experiment.problem)
                      .make()
                      .make({.semantics = experiment.semantics,
                             .seed = experiment.seed,
                             .settings = experiment.problem_settings,
                             .model = experiment.model,
                             .corpus = experiment.corpus,
                             .data = experiment.data,
                             .training = experiment.training,
                             .evaluation = experiment.evaluation,
                             .objectives = &objectives,
                             .folder = folder,
                             .checkpoint_space = checkpoint_space})),
          store(folder / "store.sqlite"),
          evaluator(problem, store,
                    [this](Objective::Evaluations e) { return objectives.judge(e); },
                    {.workers = workers}) {}

    std::vector<Evaluation> train(const Texts& names, std::int64_t until = 0) {
      std::vector<Task> tasks;
      for (const auto& name : names) {
        tasks.push_back(make_task(*problem, problem->parse(name), 0));
        tasks.back().until = until;
      }
      return evaluator.evaluate(tasks);
    }

    ObjectiveSet objectives;
    std::shared_ptr<Problem> problem;
    Store store;
    RecordingEvaluator evaluator;
  };

  [[nodiscard]] fs::path folder(const std::string& name) const {
    fs::create_directories(temporary_.path() / name);
    return temporary_.path() / name;
  }
  static std::size_t num_checkpoints(const fs::path& folder) {
    const auto checkpoints = folder / "checkpoints";
    return fs::exists(checkpoints)
               ? static_cast<std::size_t>(
                     std::distance(fs::directory_iterator(checkpoints), fs::directory_iterator()))
               : 0;
  }
  static Texts comparable(const std::vector<Evaluation>& evaluations) {
    Texts texts;
    for (const auto& one : evaluations) texts.push_back(canonical_json(one).dump());
    return texts;
  }

  const TemporaryFolder temporary_;
  const Experiment experiment_ =
      load_experiment(fs::path(source_folder()) / "configs" / "smoke.yaml",
                      {"training.steps=6", "training.checkpoints=[2, 4]", "evaluation.array=4"});
  const Texts names_{"dot|softmax|none|fixed|bias|0.1", "additive|sparsemax|none|fixed|bias|0",
                     "cosine|softmax|highway|learned|bias|0"};
};

TEST_F(RungsTest, APausedTrainingRunGoesOnInAnotherProcessAsIfItHadNot) {
  const auto whole = folder("whole");
  const auto expected = comparable(Process(experiment_, whole).train(names_));
  EXPECT_EQ(num_checkpoints(whole), 0U);

  const auto rungs = folder("rungs");
  std::vector<Evaluation> at_2;
  {
    Process process(experiment_, rungs);
    at_2 = process.train(names_, 2);
    for (const auto& one : at_2) {
      EXPECT_EQ(one.status, Status::paused) << one.reason;
      EXPECT_EQ(one.curve.size(), 1U);
      EXPECT_EQ(one.values.count("perplexity"), 1U);
      EXPECT_EQ(one.values.count("flops"), 1U);
    }
    EXPECT_EQ(process.store.partials().size(), 3U);
  }
  EXPECT_EQ(num_checkpoints(rungs), 3U);
  {
    Process process(experiment_, rungs, /*workers=*/2);
    EXPECT_EQ(comparable(process.train({names_[2], names_[0]}, 4)).size(), 2U);
    EXPECT_EQ(num_checkpoints(rungs), 3U);
  }
  fs::remove_all(rungs / "checkpoints");  // then a training run begins again
  Process process(experiment_, rungs);
  EXPECT_EQ(comparable(process.train(names_)), expected);
  EXPECT_EQ(num_checkpoints(rungs), 0U);
  EXPECT_TRUE(process.store.partials().empty());
  // What has ended answers its rungs as they were.
  Process later(experiment_, whole);
  EXPECT_EQ(comparable(later.train(names_, 2)), comparable(at_2));
  EXPECT_EQ(comparable(later.train(names_, 4)),
            comparable(Process(experiment_, folder("straight")).train(names_, 4)));
}

TEST_F(RungsTest, WhatWasMeasuredOfACandidateHoldsForItsOtherSeedsInAnotherProcess) {
  const auto experiment = load_experiment(
      fs::path(source_folder()) / "configs" / "smoke.yaml",
      {"objectives=[perplexity, latency]", "algorithm.name=nsga2", "algorithm.population=8"});
  const auto place = folder("measured");
  const auto latencies = [&](std::int64_t replicates) {
    Process process(experiment, place);
    std::vector<Task> tasks;
    for (std::int64_t i = 0; i < replicates; ++i) {
      tasks.push_back(make_task(*process.problem, process.problem->parse(names_[0]), i));
    }
    std::vector<nlohmann::json> measured;
    for (const auto& one : process.evaluator.evaluate(tasks)) {
      measured.push_back(one.measured.at("latency"));
    }
    return measured;
  };
  const auto first = latencies(1).front();
  EXPECT_THAT(latencies(2), ::testing::Each(first));
}

TEST_F(RungsTest, WhatAKilledProcessLeftOfWeightsIsRemoved) {
  const auto place = folder("killed");
  Process process(experiment_, place);
  const auto id = make_task(*process.problem, process.problem->parse(names_[0]), 0).id;
  const auto left = place / "models" / (id + ".pt.elsewhere.7.tmp");
  fs::create_directory(place / "models");
  std::ofstream(left) << "half";
  (void)process.train({names_[0]});
  EXPECT_TRUE(fs::exists(place / "models" / (id + ".pt")));
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(RungsTest, TheLeastPromisingCheckpointsGoFirst) {
  const auto all = folder("all");
  const auto paused = Process(experiment_, all).train(names_, 2);
  std::int64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(all / "checkpoints")) {
    bytes = std::max(bytes, static_cast<std::int64_t>(fs::file_size(file)));
  }
  const auto best =
      std::min_element(paused.begin(), paused.end(), [](const auto& a, const auto& b) {
        return a.values.at("perplexity") < b.values.at("perplexity");
      });
  const auto worst =
      std::max_element(paused.begin(), paused.end(), [](const auto& a, const auto& b) {
        return a.values.at("perplexity") < b.values.at("perplexity");
      });

  const auto few = folder("few");
  Process process(experiment_, few, 1, 2 * bytes + bytes / 2);
  const auto checkpoint = [&few](const Evaluation& evaluation) {
    return few / "checkpoints" / (evaluation.id + "_0.pt");
  };
  (void)process.train({worst->candidate}, 4);
  (void)process.train(names_, 2);
  EXPECT_EQ(num_checkpoints(few), 2U);
  EXPECT_TRUE(fs::exists(checkpoint(*worst))) << "it has come further";
  EXPECT_TRUE(fs::exists(checkpoint(*best)));
  EXPECT_EQ(comparable(process.train(names_)),
            comparable(Process(experiment_, folder("whole")).train(names_)));
}

}  // namespace
}  // namespace nas
