#include "study/session/rehearsal.hpp"

#include <ctime>
#include <map>
#include <string>
#include <utility>

#include "core/seed.hpp"
#include "core/temporary_folder.hpp"
#include "search/algorithm.hpp"
#include "study/session/session.hpp"

namespace nas {

namespace {

/// A search that asks for more, or thinks for longer, is not rehearsed to its end.
constexpr std::int64_t kMostAsks = 20000;
constexpr std::clock_t kLongest = 5 * CLOCKS_PER_SEC;

/// Leaves a rehearsal that takes too long.
struct LongEnough {};

/// Answers at once with a number made from the candidate's name.
class MadeUp final : public Measurement {
 public:
  MadeUp(std::shared_ptr<Problem> problem, const ObjectiveSet& objectives, Rehearsal& rehearsal)
      : problem_(std::move(problem)), objectives_(objectives), rehearsal_(&rehearsal) {}
  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    if (std::clock() - begun_ > kLongest) throw LongEnough();
    return problem_->canonical(genotype);
  }
  [[nodiscard]] nlohmann::json identity() const override { return {}; }
  [[nodiscard]] bool expensive() const override { return false; }
  [[nodiscard]] std::vector<std::int64_t> rungs() const override { return problem_->rungs(); }
  void screen(const Task& task, Evaluation& evaluation) override {
    const auto subject = problem_->subject(task.candidate);
    if (!subject) return;
    evaluation.reason = objectives_.violation_by_formula(*subject);
    if (!evaluation.reason.empty()) evaluation.status = Status::rejected;
  }
  void measure(const Task& task, Evaluation& evaluation) override {
    evaluation.status = task.until > 0 ? Status::paused : Status::ok;
    const auto end = task.until > 0 ? task.until : steps();
    if (end > 0) evaluation.curve.emplace_back().step = end;
    const auto [taken, fresh] = taken_.try_emplace(task.id);
    rehearsal_->steps += end - std::exchange(taken->second, end);
    evaluation.values["made_up"] =
        RandomEngine(derive_seed(0, task.replicate, "rehearsal", task.candidate.name)).uniform();
    if (!fresh) return;  // it goes on
    if (task.replicate == 0) rehearsal_->candidates.push_back(task.candidate);
    ++rehearsal_->trained;
  }

 private:
  std::shared_ptr<Problem> problem_;
  const ObjectiveSet& objectives_;
  Rehearsal* rehearsal_;
  std::map<std::string, std::int64_t> taken_{};  ///< steps, by id
  std::clock_t begun_ = std::clock();            ///< processor time
};

}  // namespace

Rehearsal rehearse(const Experiment& experiment, const std::shared_ptr<Problem>& problem) {
  Rehearsal rehearsal;
  const TemporaryFolder folder;
  Store store(folder.path() / "rehearsal.sqlite", Store::Mode::write_cheap);
  auto objectives = experiment.objectives;
  for (auto& objective : objectives.objectives) {
    objective.range = objective.maximise ? Range{.best = 1.0, .worst = 0.0} : Range{};
  }
  const auto made_up = [&objectives](Objective::Evaluations evaluations) {
    if (!is_usable(*evaluations.front())) {
      return Judgement{.status = evaluations.front()->status, .fitness = objectives.failure()};
    }
    std::vector<double> fitness;
    for (std::size_t i = 0; i < objectives.objectives.size(); ++i) {
      RandomEngine random(derive_seed(i, 0, "rehearsal", evaluations.back()->id));
      fitness.push_back(objectives.objectives[i].minimised(random.uniform()));
    }
    return Judgement{
        .status = evaluations.front()->status, .fitness = fitness, .measured = fitness};
  };
  auto options = evaluator_options(experiment);
  options.budget.train_seconds = 0.0;
  options.racing.reset();  // how close candidates will be is unknown
  // Where the budget has no room for a batch, it asks for nothing.
  options.on_progress = [&rehearsal](const Progress& progress) {
    if (progress.kind != Progress::Kind::batch_finished || progress.asked == rehearsal.asked)
      return;
    rehearsal.asked = progress.asked;
    ++rehearsal.batches;
  };
  if (options.budget.asks == 0 || options.budget.asks > kMostAsks) options.budget.asks = kMostAsks;
  const auto evaluator = std::make_shared<RecordingEvaluator>(
      std::make_shared<MadeUp>(problem, objectives, rehearsal), store, made_up, options);
  auto imagined = experiment;
  imagined.budget.set("stagnation", std::int64_t{0});
  imagined.budget.set("target", std::string());
  try {
    search(imagined, objectives, evaluator, {}, conditions_of(experiment, *problem),
           fidelity_of(experiment, *problem));
    rehearsal.whole = evaluator->num_asked() < kMostAsks;
  } catch (const LongEnough&) {
    rehearsal.whole = false;
  }
  rehearsal.asked = evaluator->num_asked();
  return rehearsal;
}

}  // namespace nas
