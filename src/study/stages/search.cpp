#include "study/stages/search.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/awake_clock.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "store/replicates.hpp"
#include "study/session/session.hpp"
#include "study/stages/retest.hpp"

namespace nas {

namespace {

/// Seconds that the processes of a run have worked on its search, kept in its store: those in which
/// a process recalls what is recorded do not count, or a run would shrink with each repetition.
class ElapsedSeconds {
 public:
  explicit ElapsedSeconds(Store& store)
      : store_(store), before_(store.meta("elapsed_seconds").value_or(0.0).get<double>()) {}
  ~ElapsedSeconds() {
    try {
      save();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // A store that cannot be written says so where something is lost by it.
    }
  }
  ElapsedSeconds(const ElapsedSeconds&) = delete;
  ElapsedSeconds& operator=(const ElapsedSeconds&) = delete;

  void start() {
    if (!started_) started_ = awake_now();
  }
  [[nodiscard]] double total() const {
    if (!started_) return before_;
    return before_ + std::chrono::duration<double>(awake_now() - *started_).count();
  }
  /// At most once a second, so that it costs nothing, and less often while nothing has come to an
  /// end: a process that is killed has spent its time all the same.
  void save_sometimes(Progress::Kind last) {
    const bool ended =
        last == Progress::Kind::evaluation_finished || last == Progress::Kind::batch_finished;
    if (total() - saved_ < (ended ? 1.0 : 10.0)) return;
    try {
      save();
    } catch (const MachineError&) {
      if (ended) throw;
      // A disk that is full now may not be when something has come to an end.
    }
  }

 private:
  void save() {
    saved_ = total();
    store_.set_meta("elapsed_seconds", saved_);
  }

  Store& store_;
  std::optional<std::chrono::steady_clock::time_point> started_{};
  double before_;
  double saved_ = 0.0;
};

/// Records the names of candidates for people, as far as they have others there, a few at a time.
class Labels {
 public:
  Labels(Store& store, const Problem& problem)
      : store_(store),
        problem_(problem),
        labels_(store.meta("labels").value_or(nlohmann::json::object())) {}

  /// Not for each of thousands that constraints reject one after the other.
  void update(const Progress& progress) {
    if (progress.evaluation != nullptr) added_ |= add(progress.evaluation->candidate);
    if (added_ && (progress.kind == Progress::Kind::evaluation_started ||
                   progress.kind == Progress::Kind::batch_finished)) {
      store_.set_meta("labels", labels_);
      added_ = false;
    }
  }

  /// Those of all evaluations.
  void complete() {
    for (const auto& evaluation : store_.partials()) add(evaluation.candidate);
    store_.each_evaluation([this](const Evaluation& evaluation) { add(evaluation.candidate); });
    store_.set_meta("labels", labels_);
  }

 private:
  /// @return whether it is new.
  bool add(const std::string& candidate) {
    if (labels_.contains(candidate)) return false;
    auto label = problem_.label(candidate);
    if (label == candidate) return false;
    labels_[candidate] = std::move(label);
    return true;
  }

  Store& store_;
  const Problem& problem_;
  nlohmann::json labels_;
  bool added_ = false;
};

/// Whether a run had another budget until now. Under the same one a search may end sooner than it did
/// where a training run was made anew that takes longer.
bool budget_changed(const Store& store, const Experiment& experiment) {
  const auto config = store.meta("config");
  return config && config->value("budget", nlohmann::json()) !=
                       experiment.resolved.value("budget", nlohmann::json());
}

/// What a search asks, and its store.
std::shared_ptr<RecordingEvaluator> evaluator_of(StudySetup& setup, Store& store,
                                                 RecordingEvaluator::Options options) {
  options.workers = setup.problem->num_workers();
  options.compute = [&setup](Objective::Evaluations evaluations) {
    for (const auto& one : setup.objectives.objectives) (void)one.value(evaluations);
    for (const auto& one : setup.objectives.constraints) (void)one.quantity.value(evaluations);
  };
  return std::make_shared<RecordingEvaluator>(
      setup.problem, store,
      [&setup](Objective::Evaluations evaluations) { return setup.objectives.judge(evaluations); },
      std::move(options));
}

/// A search that is carried out.
class Search {
 public:
  explicit Search(const StageWork& work)
      : work_(work), elapsed_(work.store), labels_(work.store, *work.setup.problem) {}

  void carry_out() {
    const auto& experiment = work_.experiment;
    auto& setup = work_.setup;
    auto& store = work_.store;
    const auto evaluator = evaluator_of(setup, store, options());
    try {
      measure_baseline(experiment, setup, *evaluator, store);
      const auto conditions = conditions_of(experiment, *setup.problem);
      const auto result = search(
          experiment, setup.objectives, evaluator,
          [this](const Indicator& indicator) { note(indicator); }, conditions,
          fidelity_of(experiment, *setup.problem));
      store.set_meta("ended_by", result.ended_by);
      store.set_meta("last_population", result.last_population);
    } catch (const StopRequested&) {
      if (!stopped_by_deadline() || !store.meta("objectives")) throw;
      store.set_meta("ended_by", limit_text(seconds_) + " of wall-clock time");
    }
    store.keep_indicators(noted_);  // the last one under a smaller budget may be none of them
  }

 private:
  RecordingEvaluator::Options options() {
    const auto again = work_.store.meta(kAskedBefore).value_or(0).get<std::int64_t>();
    auto options = evaluator_options(work_.experiment);
    options.executor = work_.executor;
    options.recall = work_.recall;
    options.on_progress = [this](const Progress& progress) {
      if (work_.setup.problem->expensive()) {
        labels_.update(progress);
        work_.observer.progressed(progress);
      }
      elapsed_.save_sometimes(progress.kind);
    };
    options.on_measuring = [this, again](std::int64_t ask) {
      if (ask < 0) return;  // the baseline is not charged
      elapsed_.start();
      const bool limited = seconds_ > 0.0 && ask >= again;
      if (limited && !deadline_) deadline_.emplace(seconds_ - elapsed_.total());
    };
    return options;
  }

  void note(const Indicator& indicator) {
    noted_.insert(indicator.asked);
    work_.store.add_indicator(indicator);
    work_.observer.indicated(indicator);
  }

  const StageWork& work_;
  ElapsedSeconds elapsed_;
  Labels labels_;
  const double seconds_ = work_.experiment.budget.get<double>("seconds");
  std::optional<StopDeadline> deadline_{};
  std::set<std::int64_t> noted_{};
};

}  // namespace

void forget_answer(Store& store) {
  const auto from = store.meta(kAnswerFrom).value_or(nullptr);
  if (!from.is_number_integer()) return;
  store.forget_asks_from(from.get<std::int64_t>());
  store.set_meta(kAnswerFrom, nullptr);
}

bool of_search(const Evaluation& evaluation, const Problem& problem) {
  const auto training = evaluation.identity.find("training");
  return training == evaluation.identity.end() || *training == problem.identity().at("training");
}

void require_all_asked(const Experiment& experiment, StudySetup& setup, Store& store) {
  if (!experiment.mechanisms.empty() || !budget_changed(store, experiment)) return;
  const TemporaryFolder folder;
  const auto file = folder.path() / "store.sqlite";
  store.copy_to(file);
  Store copy(file, Store::Mode::write_cheap);
  forget_answer(copy);
  const auto recorded = copy.num_asked();
  class GoesOn {};  // beyond what is recorded
  auto options = evaluator_options(experiment);
  options.on_measuring = [](std::int64_t /*ask*/) { throw GoesOn(); };
  const auto evaluator = evaluator_of(setup, copy, std::move(options));
  std::string ended_by = "its answer is trained";
  auto asked = recorded;
  try {
    measure_baseline(experiment, setup, *evaluator, copy);
    ended_by =
        search(
            experiment, setup.objectives, evaluator, [](const Indicator& /*one*/) {},
            conditions_of(experiment, *setup.problem), fidelity_of(experiment, *setup.problem))
            .ended_by;
    asked = evaluator->num_asked();
  } catch (const GoesOn&) {  // NOLINT(bugprone-empty-catch)
  }
  const auto from = copy.meta(kAnswerFrom).value_or(nullptr);
  if (from.is_number_integer()) asked = from.get<std::int64_t>();
  if (recorded <= asked) return;
  throw InputError("the run holds " + std::to_string(recorded) + " asks, and would now end after " +
                   std::to_string(asked) + " (" + ended_by +
                   "): undo the change of `budget`, or "
                   "give another folder with --output, and this one with --reuse");
}

void carry_out_search(const StageWork& work) {
  const auto& problem = *work.setup.problem;
  work.observer.search_begins({.experiment = work.experiment,
                               .objectives = work.setup.objectives,
                               .problem = problem,
                               .rehearsal = work.rehearsal});
  const ToldEnd end(work.observer, &Observer::search_ended);
  if (problem.expensive()) {
    for (const auto& evaluation : work.store.evaluations()) {
      if (of_search(evaluation, problem)) work.observer.recalled(evaluation);
    }
  }
  Search(work).carry_out();
  if (const auto truth = problem.truth(); !truth.values.empty()) {
    work.store.set_meta("truth", truth.values);
    work.store.set_meta("truth_splits", truth.splits);
  }
}

void carry_out_list(const StageWork& work) {
  ElapsedSeconds elapsed(work.store);
  elapsed.start();
  // Ranges that the baseline has set stand until it sets them again.
  if (!work.store.meta("objectives")) {
    work.store.set_meta("objectives", work.setup.objectives.record());
  }
  const auto baseline = train_listed(work);
  if (std::any_of(baseline.begin(), baseline.end(),
                  [](const auto& evaluation) { return is_usable(evaluation); })) {
    record_baseline(baseline, work.setup, work.store);
  }
  work.store.set_meta("ended_by", "the end of the list");
}

void record_labels(const StageWork& work) { Labels(work.store, *work.setup.problem).complete(); }

}  // namespace nas
