#include "cli/run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>

#include <boost/version.hpp>
#include <pagmo/config.hpp>
#include <unistd.h>

#include "cli/continuing.hpp"
#include "cli/feasibility.hpp"
#include "cli/free_space.hpp"
#include "cli/ranges.hpp"
#include "cli/rehearsal.hpp"
#include "cli/retest.hpp"
#include "cli/tuning.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "core/version.hpp"
#include "nn/environment.hpp"
#include "nn/memory.hpp"
#include "report/files.hpp"
#include "report/progress_display.hpp"
#include "report/record_schema.hpp"
#include "report/summary.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// An experiment's problem, and what is wanted of it.
struct Setup {
  ObjectiveSet objectives;
  std::shared_ptr<Problem> problem;  ///< points to the objectives
  nlohmann::json facts;
  std::optional<Feasibility> feasibility{};
};

std::unique_ptr<Setup> set_up(const Experiment& experiment, const fs::path& folder) {
  nn::install_cpu_allocator();  // before the first tensor
  auto setup = std::make_unique<Setup>();
  setup->objectives = experiment.objectives;
  setup->problem = make_problem(experiment, setup->objectives, folder);
  require_further_trainings(experiment, *setup->problem);
  setup->facts = setup->problem->facts();
  setup->feasibility = feasibility(setup->objectives, experiment.space, *setup->problem);
  if (setup->feasibility) setup->feasibility->require_any();
  set_expected_ranges(setup->objectives, experiment.space, *setup->problem, setup->facts);
  const double gpu_seconds = experiment.budget.get<double>("gpu_seconds");
  const auto device = setup->facts.value("device", "cpu");
  if (gpu_seconds > 0.0 && device != "cuda") {
    throw InputError("budget.gpu_seconds = " + shortest(gpu_seconds) +
                     ", must be 0 on the device " + device + ": it spends none");
  }
  return setup;
}

nlohmann::json environment_json(const nlohmann::json& facts) {
  const auto environment = nn::environment();
  nlohmann::json json = {{"attnas", kVersion},
                         {"revision", kRevision},
                         {"compiler", __VERSION__},
                         {"torch", environment.torch_version},
                         {"blas", environment.blas_library},
                         {"processor", environment.processor},
                         {"instruction_set", environment.instruction_set},
                         {"device", facts.value("device", "")}};
  if (!environment.variables.empty()) json["variables"] = environment.variables;
  if (const auto products = facts.find("float32_products"); products != facts.end()) {
    json["float32_products"] = *products;
  }
  return json;
}

/// A text of words holds no NUL byte; what does is read as words all the same.
void warn_of_binary_text(const Experiment& experiment) {
  if (experiment.corpus != "text_file" || experiment.data.get<std::string>("unit") != "word")
    return;
  for (const auto* name : {"path", "train", "valid", "test"}) {
    const auto& path = experiment.data.get<std::string>(name);
    std::ifstream file(path, std::ios::binary);
    const bool binary = !path.empty() && std::find(std::istreambuf_iterator<char>(file), {},
                                                   '\0') != std::istreambuf_iterator<char>();
    if (binary) {
      std::cerr << "warning: data." << name << " = " << path
                << " has NUL bytes, as no text of words has; for bytes: data.unit = byte\n";
    }
  }
}

void warn_of_slow_blas() {
  const auto environment = nn::environment();
  if (environment.slow_blas) {
    std::cerr << "warning: matrix products come from the reference BLAS ("
              << environment.blas_library
              << "), about 11 times slower than an OpenBLAS: apt-get install libopenblas0-openmp\n";
  }
}

std::vector<const Evaluation*> pointers(const std::vector<Evaluation>& evaluations) {
  std::vector<const Evaluation*> result;
  for (const auto& evaluation : evaluations) result.push_back(&evaluation);
  return result;
}

/// Evaluates the baseline, fixes the ranges of the objectives, and records both.
void measure_baseline(const Experiment& experiment, Setup& setup, RecordingEvaluator& evaluator,
                      Store& store) {
  if (const auto recorded = store.meta("objectives")) {
    set_recorded_ranges(setup.objectives, *recorded);
  }
  std::vector<Evaluation> baseline;
  if (!experiment.baseline.empty()) {
    baseline = evaluator.evaluate(setup.problem->parse(experiment.baseline));
  }
  const auto evaluations = pointers(baseline);
  set_ranges_from_baseline(setup.objectives, evaluations);
  store.set_meta("objectives", setup.objectives.record());
  store.set_meta("reference_point", kReferencePoint);
  if (baseline.empty()) return;
  std::vector<std::string> ids;
  for (const auto& evaluation : baseline) ids.push_back(evaluation.id);
  // As measured: what others are compared with may break a constraint.
  const auto judgement = setup.objectives.judge(evaluations);
  if (!is_usable(judgement.status)) {
    std::cerr << "warning: the baseline " << setup.problem->label(baseline.front().candidate)
              << " is " << to_string(judgement.status) << ": " << judgement.reason << '\n';
  }
  store.set_meta("baseline", {{"evaluations", ids},
                              {"fitness", judgement.measured.empty() ? judgement.fitness
                                                                     : judgement.measured}});
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  const auto words = io_failure(folder, error.value());
  if (is_bad_path(error)) throw InputError(words);
  throw MachineError(words);
}

/// What a run writes, as far as it can be told beforehand.
DiskNeed disk_need(const Experiment& experiment, const Problem& problem,
                   const nlohmann::json& facts, const Rehearsal& rehearsal) {
  const auto array = experiment.evaluation.get<std::string>("array");
  const auto widest = array == "auto" ? 1 : std::stoll(array);
  const auto tuning = tuning_plan(experiment, rehearsal.trained);
  return {.parameters = facts.value("vanilla_parameters", std::int64_t{0}),
          .at_once = problem.num_workers() * widest,
          .kept_models =
              std::min(experiment.evaluation.get<std::int64_t>("keep_models"), rehearsal.trained),
          .evaluations = rehearsal.trained + tuning.trainings + retest_plan(experiment).trainings};
}

/// Whether the search or its baseline, not what follows them, caused an evaluation.
bool of_search(const Evaluation& evaluation, const Problem& problem) {
  const auto training = evaluation.identity.find("training");
  return training == evaluation.identity.end() ||
         *training == problem.identity(evaluation.candidate).at("training");
}

/// What a run has to say of the models that it was asked to keep, where it could not keep as many:
/// weights are saved when a training ends, and recorded trainings do not come again.
std::string models_text(const Experiment& experiment, const RunSummary& run, const Problem& problem,
                        const fs::path& folder) {
  const auto wanted = experiment.evaluation.get<std::int64_t>("keep_models");
  const auto trained =
      std::count_if(run.evaluations.begin(), run.evaluations.end(), [&](const auto& evaluation) {
        return evaluation.status == Status::ok && !evaluation.curve.empty() &&
               of_search(evaluation, problem);
      });
  std::int64_t kept = 0;
  const auto models = folder / "models";
  if (fs::is_directory(models)) {
    for (const auto& entry : fs::directory_iterator(models)) {
      kept += entry.path().extension() == ".pt" ? 1 : 0;
    }
  }
  if (kept >= std::min<std::int64_t>(wanted, trained)) return {};
  return "\nevaluation.keep_models = " + std::to_string(wanted) + ", but models/ holds " +
         std::to_string(kept) +
         ": weights are saved when a training ends, and those of this run had ended\n"
         "before. To get them, search again in another folder (--output) with keep_models from "
         "the\n"
         "beginning: equal seeds give equal trainings.\n";
}

/// Writes the result's files and prints the closing table.
void report(const Experiment& experiment, Store& store, const Problem& problem,
            const fs::path& folder) {
  nlohmann::json labels = nlohmann::json::object();
  for (const auto& evaluation : store.evaluations()) {
    labels[evaluation.candidate] = problem.label(evaluation.candidate);
  }
  store.set_meta("labels", labels);
  const RunSummary summary(store);
  write_file(folder / "results.json", results_json(summary).dump(2) + "\n");
  write_file(folder / "evaluations.csv", evaluations_csv(summary));
  write_file(folder / "progress.svg", progress_svg(summary));
  const bool several = store.meta("objectives")->size() > 1;
  if (several) write_file(folder / "front.svg", front_svg(summary));
  std::cout << '\n'
            << closing_table(summary) << "\nwritten to " << folder.string()
            << ": results.json, evaluations.csv, progress.svg, " << (several ? "front.svg, " : "")
            << "store.sqlite\n"
            << models_text(experiment, summary, problem, folder);
}

/// Seconds that the processes of a run have worked on its search, kept in its store.
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

  [[nodiscard]] double total() const {
    return before_ +
           std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }
  /// At most once a second, so that it costs nothing.
  void save_sometimes() {
    if (total() - saved_ >= 1.0) save();
  }

 private:
  void save() {
    saved_ = total();
    store_.set_meta("elapsed_seconds", saved_);
  }

  Store& store_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  double before_;
  double saved_ = 0.0;
};

/// The search, what follows it, and the files of the result.
void carry_out(const Experiment& experiment, const RunOptions& options, Setup& setup,
               const Rehearsal& rehearsal, Store& store) {
  const auto& problem = setup.problem;
  std::optional<ElapsedSeconds> elapsed(std::in_place, store);
  const double seconds = experiment.budget.get<double>("seconds");
  std::optional<StopDeadline> deadline;
  if (seconds > 0.0) deadline.emplace(seconds - elapsed->total());
  const auto& first = setup.objectives.objectives.front();
  std::ostringstream nowhere;
  auto& shown = options.quiet ? static_cast<std::ostream&>(nowhere) : std::cout;
  const bool terminal = !options.quiet && isatty(STDOUT_FILENO) == 1;
  auto display = std::make_unique<ProgressDisplay>(
      shown,
      ProgressDisplay::Options{
          .terminal = terminal,
          .expected_asks = rehearsal.whole ? rehearsal.asked : 0,
          .expected_batches = rehearsal.batches,
          .workers = problem->num_workers(),
          .replicates = experiment.evaluation.get<std::int64_t>("replicates"),
          .objective = first.name,
          .maximise = first.maximise,
          .several = setup.objectives.objectives.size() > 1,
          .value =
              [&first](const Evaluation& evaluation) {
                return first.value(Objective::Evaluations{std::array{&evaluation}});
              },
          .feasible =
              [&setup](const Evaluation& evaluation) {
                return setup.objectives.violation_by_training(std::array{&evaluation}).empty();
              },
          .label = [problem](const std::string& candidate) { return problem->label(candidate); },
          .now = {}});
  for (const auto& evaluation : store.evaluations()) {
    if (of_search(evaluation, *problem)) display->count(evaluation);
  }
  auto evaluator_settings = evaluator_options(experiment);
  evaluator_settings.workers = problem->num_workers();
  const bool show_each = problem->expensive();
  auto labels = store.meta("labels").value_or(nlohmann::json::object());
  bool labels_added = false;
  evaluator_settings.on_progress = [&](const Progress& progress) {
    if (show_each) {
      if (const auto* evaluation = progress.evaluation;
          evaluation != nullptr && !labels.contains(evaluation->candidate)) {
        labels[evaluation->candidate] = problem->label(evaluation->candidate);
        labels_added = true;
      }
      // Not for each of thousands that constraints reject one after the other.
      if (labels_added && (progress.kind == Progress::Kind::evaluation_started ||
                           progress.kind == Progress::Kind::batch_finished)) {
        store.set_meta("labels", labels);
        labels_added = false;
      }
      display->update(progress);
    }
    if (progress.kind == Progress::Kind::batch_finished) elapsed->save_sometimes();
  };
  const auto evaluator = std::make_shared<RecordingEvaluator>(
      problem, store,
      [&setup](Objective::Evaluations evaluations) { return setup.objectives.judge(evaluations); },
      evaluator_settings);
  try {
    measure_baseline(experiment, setup, *evaluator, store);
    const auto result =
        search(experiment, setup.objectives, evaluator, [&](const Indicator& indicator) {
          store.add_indicator(indicator);
          display->indicator(indicator);
        });
    store.set_meta("ended_by", result.ended_by);
    store.set_meta("last_population", result.last_population);
  } catch (const StopRequested&) {
    if (!stopped_by_deadline() || !store.meta("objectives")) throw;
    store.set_meta("ended_by", human_duration(seconds) + " of wall-clock time");
  }
  if (const auto truth = problem->truth(); !truth.values.empty()) {
    store.set_meta("truth", truth.values);
    store.set_meta("truth_splits", truth.splits);
  }
  display.reset();  // ends its line
  // What follows the search is not charged to it.
  deadline.reset();
  elapsed.reset();
  const FurtherWork work{.experiment = experiment,
                         .objectives = setup.objectives,
                         .problem = *problem,
                         .store = store,
                         .display = {.out = &shown, .terminal = terminal}};
  retest(work, tune(work));
  report(experiment, store, *problem, options.folder);
  store.flush();
}

}  // namespace

void run_experiment(const Experiment& experiment, const RunOptions& options) {
  warn_of_slow_blas();
  warn_of_binary_text(experiment);
  const auto setup = set_up(experiment, options.folder);
  const auto& problem = setup->problem;
  const auto rehearsal = problem->expensive() ? rehearse(experiment, problem) : Rehearsal{};
  make_folder(options.folder);
  if (problem->expensive()) {
    check_free_space(options.folder, fs::space(options.folder).available,
                     disk_need(experiment, *problem, setup->facts, rehearsal));
  }
  Store store(options.folder / "store.sqlite",
              problem->expensive() ? Store::Mode::write : Store::Mode::write_cheap);
  const auto environment = environment_json(setup->facts);
  check_continuation(store, experiment, *problem, options.folder, environment,
                     options.force_device);
  if (const auto warning = environment_warning(store, environment); !warning.empty()) {
    std::cerr << warning << '\n';
  }
  if (options.retry_failed) {
    const auto forgotten = store.forget_failures();
    if (!options.quiet) std::cout << forgotten << " failed evaluations are tried again\n";
  }
  store.set_meta("config", experiment.resolved);
  store.set_meta("answering", kAnswering);
  store.set_meta("facts", setup->facts);
  store.set_meta("schema", record_schema(experiment.semantics));
  store.begin_session(environment);
  store.set_meta("ended_by", nullptr);  // it is running
  store.set_meta("planned_asks", rehearsal.asked > 0 && rehearsal.whole
                                     ? nlohmann::json(rehearsal.asked)
                                     : nullptr);
  try {
    carry_out(experiment, options, *setup, rehearsal, store);
  } catch (const StopRequested&) {
    store.flush();
    store.require_in_place();  // else nothing is kept
    throw;
  }
}

namespace {

/// What the problem's facts say of its corpus, model and training, a line each; nothing for a
/// problem that trains nothing.
void training_lines(const Experiment& experiment, const nlohmann::json& facts,
                    const std::function<void(std::string_view, const std::string&)>& line) {
  const auto count = [](double value) { return human_count(value); };
  line("corpus", facts.value("corpus_description", facts.value("corpus", "")) + ", " +
                     count(facts.value("train_windows", 0.0)) + " training windows, vocabulary " +
                     std::to_string(facts.value("vocabulary", 0)));
  line("model", std::string(to_string(experiment.semantics)) + " semantics, " +
                    count(facts.value("vanilla_parameters", 0.0)) + " parameters, " +
                    count(facts.value("vanilla_flops", 0.0)) +
                    " FLOPs a forward pass (vanilla mechanism)");
  line("training", std::to_string(experiment.training.get<std::int64_t>("steps")) + " steps of " +
                       std::to_string(experiment.training.get<std::int64_t>("batch_size")) +
                       " windows: " + shortest(std::round(facts.value("epochs", 0.0) * 100) / 100) +
                       " epochs");
}

/// Seconds of one training: the mean over some of the mechanisms that the search begins with, since
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

/// Every setting with its effective value, "training.steps = 5000", one a line.
void settings_lines(const nlohmann::json& value, const std::string& path, std::ostream& out) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      settings_lines(item, path.empty() ? key : path + "." + key, out);
    }
  } else if (value.is_array() && !value.empty() && value.front().is_object()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      settings_lines(value[i], path + "[" + std::to_string(i) + "]", out);
    }
  } else {
    out << "  " << path << " = " << (value.is_number_float() ? shortest(value) : value.dump())
        << '\n';
  }
}

/// What the search will ask for and train, as far as a rehearsal without races can tell.
std::string evaluations_text(const Experiment& experiment, const Rehearsal& rehearsal) {
  const auto racing = evaluator_options(experiment).racing;
  const bool cut = racing && experiment.budget.get<std::int64_t>("evaluations") > 0;
  return (!rehearsal.whole ? "at least "
          : cut            ? "at most "
                           : "") +
         std::to_string(rehearsal.asked) + " asked in " + std::to_string(rehearsal.batches) +
         " batches, " + (racing ? "at least " : "about ") + std::to_string(rehearsal.trained) +
         " trained" +
         (racing ? " (races: up to " + std::to_string(racing->replicates) + " times each)" : "") +
         ", and the baseline " + experiment.baseline;
}

std::string objectives_text(const ObjectiveSet& set) {
  std::vector<std::string> texts;
  for (const auto& objective : set.objectives) {
    auto text = (objective.maximise ? "maximise " : "minimise ") + objective.name + " (" +
                objective.objective.unit + ")";
    if (objective.range) {
      text += " in [" + number_text(objective.range->best) + ", " +
              number_text(objective.range->worst) + "]";
    }
    texts.push_back(std::move(text));
  }
  for (const auto& constraint : set.constraints) texts.push_back("subject to " + constraint.text());
  return join(texts);
}

}  // namespace

std::string plan_text(const Experiment& experiment, const fs::path& folder,
                      const PlanOptions& options) {
  warn_of_slow_blas();
  const auto setup = set_up(experiment, {});
  const auto& problem = setup->problem;
  std::cerr << baseline_warning(setup->objectives, experiment.baseline, *problem);
  const bool trains = problem->expensive();
  const auto rehearsal = trains ? rehearse(experiment, problem) : Rehearsal{};
  const int workers = problem->num_workers();
  const auto algorithm = algorithms().at(experiment.algorithm).make();

  std::ostringstream plan;
  const auto line = [&plan](std::string_view name, const std::string& value) {
    plan << "  " << name << std::string(14 - name.size(), ' ') << value << '\n';
  };
  plan << "plan of " << experiment.name << '\n';
  line("space", std::to_string(experiment.space.num_combinations()) +
                    " combinations of the categorical genes, " +
                    std::to_string(experiment.space.num_varying()) + " genes that vary");
  line("algorithm", experiment.algorithm + ", population " + std::to_string(experiment.population) +
                        ", encoding " + std::string(to_string(algorithm.encoding)) + ", seed " +
                        std::to_string(experiment.seed));
  line("objectives", objectives_text(setup->objectives));
  if (setup->feasibility) line("constraints", setup->feasibility->text());
  if (trains) {
    line("evaluations", evaluations_text(experiment, rehearsal));
    training_lines(experiment, setup->facts, line);
    const auto width = options.calibrate ? problem->array_width() : 1;
    line("device", setup->facts.value("device", "") + ", workers " + std::to_string(workers) +
                       (width > 1 ? ", arrays of " + std::to_string(width) : "") + ", " +
                       std::to_string(experiment.evaluation.get<std::int64_t>("threads")) +
                       " thread(s) each" +
                       (algorithm.batches || workers == 1
                            ? ""
                            : "; " + experiment.algorithm +
                                  " asks for one candidate after the other, so that after the "
                                  "initial population one works"));
    const double each = options.calibrate ? calibrated_seconds(rehearsal, *problem) : 0.0;
    const auto evaluator = evaluator_options(experiment);
    const auto trainings =
        static_cast<double>(rehearsal.trained + (evaluator.racing ? evaluator.racing->replicates
                                                                  : evaluator.replicates));
    const int busy = algorithm.batches ? workers : 1;
    const auto tuning = tuning_plan(experiment, rehearsal.trained);
    const auto retest = retest_plan(experiment);
    if (!tuning.text.empty()) line("tuning", tuning.text);
    if (!retest.text.empty()) line("re-test", retest.text);
    const auto further = static_cast<double>(tuning.trainings + retest.trainings) / workers;
    if (options.calibrate)
      line("time", "about " + human_duration(each) + " a training, " +
                       human_duration(each * (trainings / busy + further)) + " in all" +
                       (evaluator.racing ? ", races apart" : ""));
  }
  line("folder", folder.string() + (fs::exists(folder / "store.sqlite") ? " (continues)" : ""));
  if (options.settings) {
    plan << "settings\n";
    settings_lines(experiment.resolved, "", plan);
  }
  return plan.str();
}

std::string version_text() {
  const auto environment = nn::environment();
  std::ostringstream text;
  text << "attnas " << kVersion << " (" << kRevision << ")\n"
       << "compiler " << __VERSION__ << '\n'
       << "LibTorch " << environment.torch_version << '\n'
       << "BLAS " << environment.blas_library << '\n'
       << "kernels for " << environment.instruction_set << '\n'
       << "pagmo " << PAGMO_VERSION << '\n'
       << "Boost " << BOOST_LIB_VERSION << '\n';
  return text.str();
}

}  // namespace nas
