#include "study/study.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <utility>

#include "config/document.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/format.hpp"
#include "core/in_flight.hpp"
#include "core/installed.hpp"
#include "core/stop.hpp"
#include "core/version.hpp"
#include "core/warning.hpp"
#include "evaluation/command_executor.hpp"
#include "evaluation/outcomes.hpp"
#include "instruments/environment.hpp"
#include "ops/memory.hpp"
#include "report/record_schema.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"
#include "store/replicates.hpp"
#include "study/reader/engines.hpp"
#include "study/session/continuing.hpp"
#include "study/session/reuse.hpp"
#include "study/session/seen_seeds.hpp"
#include "study/session/session.hpp"
#include "study/session/set_up.hpp"
#include "study/stages/controls.hpp"
#include "study/stages/search.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

fs::path default_folder(const Experiment& experiment) {
  return fs::path("runs") / (experiment.name + (experiment.mechanisms.empty() ? "" : "-train"));
}

/// Reads a configuration. Where a run lies in its folder, mistakes may come of plug-ins that it had.
Experiment opened(const fs::path& configuration, const std::vector<std::string>& overrides,
                  const fs::path& folder) {
  Diagnostics mistakes;
  auto experiment = load_experiment(configuration, overrides, mistakes);
  if (mistakes.size() == 0) return experiment;
  const auto of_run = folder.empty() ? default_folder(experiment) : folder;
  if (const auto file = of_run / "store.sqlite"; fs::exists(file)) {
    const Store store(file, Store::Mode::read_only);
    const auto missing = missing_plugins(store.environments(), of_run);
    if (!missing.empty()) throw InputError(missing);
  }
  mistakes.throw_if_any();
  return experiment;
}

/// Lets an observer hear one thing at a time; warnings, too, as long as it lives.
class OneAtATime final : public Observer {
 public:
  explicit OneAtATime(Observer& observer)
      : observer_(observer), warnings_([this](const std::string& text) { warned(text); }) {}

  void warned(const std::string& text) override { tell(&Observer::warned, text); }
  void workforce_changed(const Workforce& workforce) override {
    tell(&Observer::workforce_changed, workforce);
  }
  void search_begins(const Search& search) override { tell(&Observer::search_begins, search); }
  void retried(std::int64_t evaluations) override { tell(&Observer::retried, evaluations); }
  void recalled(const Evaluation& evaluation) override { tell(&Observer::recalled, evaluation); }
  void progressed(const Progress& progress) override { tell(&Observer::progressed, progress); }
  void indicated(const Indicator& indicator) override { tell(&Observer::indicated, indicator); }
  void search_ended() override { tell(&Observer::search_ended); }
  void stage_begins(const Stage& stage) override {
    if (!in_sequence_) return tell(&Observer::stage_begins, stage);
    before_ = sum_;
  }
  void stage_progressed(const Progress& progress) override {
    const std::lock_guard lock(mutex_);
    sum_ = progress;
    sum_.asked += before_.asked;
    sum_.trained += before_.trained;
    sum_.rejected += before_.rejected;
    sum_.reused += before_.reused;
    tell(&Observer::stage_progressed, sum_);
  }
  void stage_ended() override {
    if (!in_sequence_) sequence_ended();
  }
  void sequence_begins(const Stage& whole) override {
    auto stage = whole;
    stage.at_most = true;
    tell(&Observer::stage_begins, stage);
    in_sequence_ = true;
  }
  void group_ended(const Group& group) override { tell(&Observer::group_ended, group); }
  void sequence_ended() override {
    tell(&Observer::stage_ended);
    in_sequence_ = false;
    before_ = sum_ = {};
  }

 private:
  template <class Function, class... Arguments>
  void tell(Function function, const Arguments&... arguments) {
    const std::lock_guard lock(mutex_);
    (observer_.*function)(arguments...);
  }

  Observer& observer_;
  std::recursive_mutex mutex_;  ///< an observer may warn
  bool in_sequence_ = false;
  Progress before_{}, sum_{};  ///< in the stages before of the sequence, and with the present one
  WarningListener warnings_;   ///< last: it uses what stands above
};

/// Refuses a folder with a run's results whose store is empty: to begin anew would overwrite what is
/// left of it. A process that was killed when it began has left no results.
void check_store_is_there(const fs::path& folder) {
  std::error_code missing;
  const auto file = folder / "store.sqlite";
  if (fs::file_size(file, missing) != 0 || missing || !fs::exists(folder / "results.json")) return;
  throw InputError(
      file.string() +
      " is empty, though results.json beside it tells of a run: its record is lost. Put "
      "the file back, or give another folder with --output");
}

/// Before this process says in what environment it works: as the run there did. One that goes on rolls back half a commit.
void keep_products_of(const fs::path& folder, bool goes_on) {
  const auto file = folder / "store.sqlite";
  if (!fs::exists(file) || fs::is_empty(file)) return;
  const bool rolls_back = goes_on && fs::exists(file.string() + "-journal");
  keep_products(Store(file, rolls_back ? Store::Mode::write : Store::Mode::read_only).sessions());
}

/// Whether a run can begin in a folder, or go on there, as far as that shows without writing.
/// @return how many evaluations are recorded there; nothing where no run is.
std::optional<std::int64_t> recorded_in(const fs::path& folder, const Experiment& experiment,
                                        const Measurement& measurement,
                                        const nlohmann::json& environment, bool force_device) {
  check_folder(folder);
  check_store_is_there(folder);
  const auto file = folder / "store.sqlite";
  std::error_code missing;
  if (const auto size = fs::file_size(file, missing); missing || size == 0) return std::nullopt;
  const Store store(file, Store::Mode::read_only);
  check_continuation(store, experiment, measurement, folder, environment, force_device);
  return store.num_evaluations();
}

/// Whether a run keeps the model of such a training run: controls' and a search's re-test's it does not.
bool is_kept(const Evaluation& evaluation, const RunSummary& run, const Problem& problem) {
  const auto is_control = [&](const ControlSummary& one) {
    return one.measured.candidate == evaluation.candidate;
  };
  const bool held_out = evaluation.replicate >= kFirstHeldOutReplicate;
  return (run.listed() ? held_out : !held_out && of_search(evaluation, problem)) &&
         std::none_of(run.controls.begin(), run.controls.end(), is_control);
}

/// Warns where a run could not keep as many models as it was asked to: weights are saved when a
/// training run ends, and recorded ones do not come again.
void warn_of_missing_models(const Experiment& experiment, const RunSummary& run,
                            const Problem& problem, const fs::path& folder) {
  if (!problem.expensive()) return;  // nothing is trained
  const auto wanted = experiment.evaluation.get<std::int64_t>("keep_models");
  const auto trained =
      std::count_if(run.evaluations.begin(), run.evaluations.end(), [&](const auto& evaluation) {
        return evaluation.status == Status::ok && !evaluation.curve.empty() &&
               is_kept(evaluation, run, problem);
      });
  std::int64_t kept = 0;
  const auto models = folder / "models";
  if (fs::is_directory(models)) {
    for (const auto& entry : fs::directory_iterator(models)) {
      kept += entry.path().extension() == ".pt" ? 1 : 0;
    }
  }
  // One is kept without being asked for.
  if (wanted == 1 || kept >= std::min<std::int64_t>(wanted, trained)) return;
  warn("evaluation.keep_models = " + std::to_string(wanted) + ", but models/ holds " +
       std::to_string(kept) +
       ": weights are saved when a training ends, and those of this run had ended\n"
       "before. nas-export and nas-analyse repeat a training whose weights are missing: equal "
       "seeds\n"
       "give equal trainings.");
}

/// The stages of a run, in their order: a search and what follows it, which is not charged to it; or
/// what is listed or tried in its place.
std::vector<Stage> stages_of(const Experiment& experiment, const Stage& pilot) {
  if (pilot) {
    return {[](const StageWork& work) {
              work.store.set_meta("objectives", work.setup.objectives.record());
            },
            pilot, record_counts, record_labels};
  }
  if (!experiment.mechanisms.empty()) return {carry_out_list, record_counts, record_labels};
  return {carry_out_search, train_controls, retest, record_counts, record_labels};
}

/// Whether a process before this one has done everything that is asked for, to be seen without
/// repeating it. Where evaluations are expensive, repeating is what saves what their ends have left.
bool is_finished(const Store& store, const Experiment& experiment, const Problem& problem) {
  return !problem.expensive() && store.meta("finished").value_or(nullptr) == true &&
         store.meta("config") == experiment.resolved;
}

/// What the search will ask for; where mechanisms are listed, these and the baseline.
Rehearsal rehearsal_of(const Experiment& experiment, const StudySetup& setup) {
  if (!setup.problem->expensive()) return {};
  if (experiment.mechanisms.empty()) return rehearse(experiment, setup.problem);
  return {.candidates = listed_candidates(experiment, setup.objectives, *setup.problem)};
}

/// Seconds of one training: the mean over some of the mechanisms that are trained first, since
/// they differ in cost.
double calibrated_seconds(const Rehearsal& rehearsal, Problem& problem) {
  constexpr std::size_t kCalibrated = 4;
  const auto count = std::min(kCalibrated, rehearsal.candidates.size());
  double seconds = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    seconds += problem.calibrate_seconds(rehearsal.candidates[i]);
  }
  return count == 0 ? 0.0 : seconds / static_cast<double>(count);
}

/// Replicates that a search and what follows it measure.
std::int64_t replicates_of(const Experiment& experiment) {
  const auto evaluator = evaluator_options(experiment);
  const auto searched = evaluator.racing ? evaluator.racing->replicates : evaluator.replicates;
  return (experiment.mechanisms.empty() ? searched : 0) +
         experiment.retest.get<std::int64_t>("replicates");
}

/// What measures where an experiment has a cluster.
std::shared_ptr<CommandExecutor> cluster_executor(const Experiment& experiment, Problem& problem,
                                                  const fs::path& folder, const Store& store,
                                                  Observer& observer) {
  const auto& cluster = experiment.cluster;
  const auto device = device_of_workers(experiment, store);
  // What a bitwise run may do in arrays depends on its device, which workers know.
  const bool bitwise = experiment.evaluation.get<std::string>("determinism") == "bitwise";
  const auto array = bitwise ? "auto" : experiment.evaluation.get<std::string>("array");
  std::error_code unknown;
  const auto program = fs::read_symlink("/proc/self/exe", unknown).replace_filename("nas-work");
  return std::make_shared<CommandExecutor>(
      problem,
      CommandExecutor::Settings{
          .command = engine_command(experiment),
          .run = {{"config", experiment.resolved},
                  {"identity", problem.identity()},
                  {"revision", kRevision},
                  {"environment", nn::to_json(nn::environment())},
                  {"device", device},
                  {"grace", cluster.get<double>("grace")},
                  {"folder", fs::absolute(folder).lexically_normal().string()},
                  {"current_folder", fs::current_path().string()},
                  {"program", program.string()}},
          .log = folder / "engine.log",
          .device = device,
          .array = array == "auto" ? 0 : std::stoul(array),
          .retries = static_cast<int>(experiment.evaluation.get<std::int64_t>("retry_lost")),
          .grace = cluster.get<double>("grace"),
          .on_workforce = [&observer](const auto& now) { observer.workforce_changed(now); },
          .on_nobody =
              [text = how_to_start_workers(experiment, folder)] {
                warn("no worker for 1 min" + (text.empty() ? "" : "; " + text));
              }});
}

/// Takes measured objectives where it trains. @param executor  outlives what the problem screens.
Problem::Instrument instrument_of(CommandExecutor& executor) {
  return [&executor](const Task& task, const std::string& objective) {
    const auto found = executor.inspect(task, objective);
    if (found.status == Status::out_of_memory) throw MemoryLimitExceeded(found.reason);
    if (found.status != Status::ok) throw CandidateFailure(found.reason);
    return found.measured.at(objective);
  };
}

/// Workers that the search can keep busy.
int busy_workers(const Experiment& experiment, const Plan& plan) {
  return algorithms().at(experiment.algorithm).make().batches ? plan.workers : 1;
}

/// Training runs that all steps of a rehearsal are worth.
double whole_runs(const Rehearsal& rehearsal, const Problem& problem) {
  const auto whole = problem.steps();
  return whole > 0 ? static_cast<double>(rehearsal.steps) / static_cast<double>(whole)
                   : static_cast<double>(rehearsal.trained);
}

/// Takes from a rehearsal, which knows no time, what a budget in seconds leaves none for.
void cut_by_time(const Experiment& experiment, const Problem& problem, Plan& plan) {
  const auto rehearsed = whole_runs(plan.rehearsal, problem);
  auto affordable = rehearsed;
  const auto trainings = [&plan](double most) {
    return std::max(0.0, most - plan.preparation.seconds) / plan.training_seconds;
  };
  if (const auto most = evaluator_options(experiment).budget.train_seconds; most > 0.0) {
    affordable = std::min(affordable, trainings(most));
  }
  // How many train at once on a cluster is unknown.
  if (const auto most = experiment.budget.get<double>("seconds");
      most > 0.0 && !has_cluster(experiment)) {
    affordable = std::min(affordable, trainings(most) * busy_workers(experiment, plan));
  }
  plan.ended_by_time = affordable < rehearsed;
  if (!plan.ended_by_time) return;
  const auto part = [share = affordable / rehearsed](std::int64_t count) {
    return static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count)));
  };
  plan.rehearsal.trained = part(plan.rehearsal.trained);
  plan.rehearsal.steps = part(plan.rehearsal.steps);
}

}  // namespace

Study::Study(const fs::path& configuration, const std::vector<std::string>& overrides,
             fs::path folder)
    : Study(opened(configuration, overrides, at_home(folder.string())), folder) {}

Study::Study(Experiment experiment, fs::path folder)
    : experiment_(std::move(experiment)),
      folder_(!folder.empty() ? fs::path(at_home(folder.string())) : default_folder(experiment_)) {}

Plan Study::plan(bool calibrate) const {
  Observer nobody;
  return plan(calibrate, nobody, {});
}

Plan Study::plan(bool calibrate, Observer& given, const RunSettings& settings) const {
  const OneAtATime observer(given);
  warn_of_slow_blas();
  const auto setup = set_up(experiment_, {});
  const auto& problem = setup->problem;
  warn_of_text(experiment_, setup->facts);
  if (const auto text = baseline_warning(setup->objectives, experiment_.baseline, *problem);
      !text.empty()) {
    warn(text);
  }
  keep_products_of(folder_, /*goes_on=*/false);
  const auto environment = environment_json(setup->facts, problem->expensive());
  (void)recall_from(settings.reuse, experiment_, problem->identity(), environment,
                    settings.force_device);  // what it refuses
  Plan plan{
      .objectives = setup->objectives,
      .feasibility = setup->feasibility,
      .facts = setup->facts,
      .trains = problem->expensive(),
      .workers = has_cluster(experiment_) ? 1 : problem->num_workers(),
      .recorded = recorded_in(folder_, experiment_, *problem, environment, settings.force_device)};
  if (!plan.trains) return plan;
  plan.rehearsal = rehearsal_of(experiment_, *setup);
  plan.retest = retest_plan(experiment_, plan.rehearsal);
  if (calibrate) {
    if (!has_cluster(experiment_)) plan.array_width = problem->array_width();
    plan.preparation = problem->calibrate_preparation(replicates_of(experiment_));
    plan.training_seconds = calibrated_seconds(plan.rehearsal, *problem);
    if (plan.training_seconds > 0.0) cut_by_time(experiment_, *problem, plan);
  }
  plan.controls = control_trainings(experiment_, *problem);
  if (!calibrate) return plan;
  const auto further = static_cast<double>(plan.retest.trainings + plan.controls);
  if (!experiment_.mechanisms.empty()) {
    plan.seconds = plan.preparation.seconds + plan.training_seconds * further / plan.workers;
    return plan;
  }
  const auto evaluator = evaluator_options(experiment_);
  const auto of_baseline = evaluator.racing ? evaluator.racing->replicates : evaluator.replicates;
  const auto of_search = whole_runs(plan.rehearsal, *problem) + static_cast<double>(of_baseline);
  plan.seconds = plan.preparation.seconds +
                 plan.training_seconds *
                     (of_search / busy_workers(experiment_, plan) + further / plan.workers);
  return plan;
}

RunSummary Study::run() const {
  Observer nobody;
  return run(nobody);
}

RunSummary Study::run(Observer& given, const RunSettings& settings) const {
  OneAtATime observer(given);
  warn_of_slow_blas();
  const auto setup = set_up(experiment_, folder_);
  warn_of_text(experiment_, setup->facts);
  const auto& problem = setup->problem;
  const auto rehearsal = rehearsal_of(experiment_, *setup);
  keep_products_of(folder_, /*goes_on=*/true);
  const auto environment = environment_json(setup->facts, problem->expensive());
  const auto recall = recall_from(settings.reuse, experiment_, problem->identity(), environment,
                                  settings.force_device);
  make_folder(folder_);
  check_store_is_there(folder_);
  Store store(folder_ / "store.sqlite",
              problem->expensive() ? Store::Mode::write : Store::Mode::write_cheap);
  check_continuation(store, experiment_, *problem, folder_, environment, settings.force_device);
  if (const auto text = environment_warning(store, environment); !text.empty()) warn(text);
  require_all_asked(experiment_, *setup, store);
  if (settings.retry_failed) {
    std::set<std::string> failed;
    store.each_evaluation([&failed](const Evaluation& evaluation) {
      if (may_be_retried(evaluation.status)) failed.insert(evaluation.id);
    });
    // A candidate that ended a process, or hung, counts as such even without a record.
    forget_endings(folder_ / kEndingsFile, failed);
    observer.retried(store.forget_failures());
  }
  const bool finished = is_finished(store, experiment_, *problem);
  note_seen_seeds(folder_, experiment_, store);
  store.set_meta("config", experiment_.resolved);
  store.set_meta("answering", kAnswering);
  store.set_meta("facts", setup->facts);
  store.set_meta("schema", record_schema(experiment_.semantics, experiment_.space));
  store.begin_session(environment);
  if (finished) {
    store.flush();
    return RunSummary(store);
  }
  // It is running; what a killed process was working on is abandoned.
  for (const auto* key : {"ended_by", "finished", "asking", "at_work"}) {
    store.set_meta(key, nullptr);
  }
  store.set_meta("planned_asks", rehearsal.asked > 0 && rehearsal.whole
                                     ? nlohmann::json(rehearsal.asked)
                                     : nullptr);
  forget_answer(store);
  try {
    auto executor = settings.executor;
    if (!executor && has_cluster(experiment_)) {
      const auto cluster = cluster_executor(experiment_, *problem, folder_, store, observer);
      problem->measure_by(instrument_of(*cluster));
      executor = cluster;
    }
    const StageWork work{.experiment = experiment_,
                         .setup = *setup,
                         .rehearsal = rehearsal,
                         .store = store,
                         .observer = observer,
                         .executor = executor,
                         .recall = recall};
    for (const auto& stage : stages_of(experiment_, settings.pilot)) stage(work);
    store.set_meta("finished", true);
    store.flush();
  } catch (const StopRequested&) {
    store.flush();
    store.require_in_place();  // else nothing is kept
    throw;
  } catch (const TooManyFailures& error) {
    store.set_meta("ended_by", error.what());
    store.flush();
    throw;
  }
  RunSummary summary(store);
  warn_of_missing_models(experiment_, summary, *problem, folder_);
  return summary;
}

}  // namespace nas
