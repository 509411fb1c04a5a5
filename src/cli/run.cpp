#include "cli/run.hpp"

#include <iostream>
#include <sstream>

#include <boost/version.hpp>
#include <pagmo/config.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/rehearsal.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/version.hpp"
#include "nn/environment.hpp"
#include "nn/memory.hpp"
#include "report/files.hpp"
#include "report/progress_display.hpp"
#include "report/summary.hpp"
#include "report/svg.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

std::shared_ptr<Problem> make_problem(const Experiment& experiment, const fs::path& folder) {
  nn::install_cpu_allocator();  // before the first tensor
  return problems()
      .at(experiment.problem)
      .make({.semantics = experiment.semantics,
             .seed = experiment.seed,
             .settings = experiment.problem_settings,
             .model = experiment.model,
             .corpus = experiment.corpus,
             .data = experiment.data,
             .training = experiment.training,
             .evaluation = experiment.evaluation,
             .folder = folder});
}

nlohmann::json environment_json(const nlohmann::json& facts) {
  const auto environment = nn::environment();
  return {{"attnas", kVersion},
          {"revision", kRevision},
          {"compiler", __VERSION__},
          {"torch", environment.torch_version},
          {"blas", environment.blas_library},
          {"processor", environment.processor},
          {"device", facts.value("device", "")}};
}

void warn_of_slow_blas() {
  const auto environment = nn::environment();
  if (environment.slow_blas) {
    std::cerr << "warning: matrix products come from the reference BLAS ("
              << environment.blas_library
              << "), about 11 times slower than an OpenBLAS: apt-get install libopenblas0-openmp\n";
  }
}

/// Refuses to continue a run whose records were made under other settings.
void check_recorded(const Store& store, const Experiment& experiment, const fs::path& folder,
                    const std::string& device, bool force_device) {
  if (const auto recorded = store.meta("config")) {
    const auto differences = differing_keys(*recorded, experiment.resolved);
    if (!differences.empty()) {
      throw InputError(folder.string() + " holds a run of another configuration:\n  " +
                       join(differences, "\n  ") +
                       "\nundo the change, or give another folder with --output");
    }
  }
  if (const auto recorded = store.meta("environment"); recorded && !force_device) {
    const auto before = recorded->value("device", device);
    if (before != device) {
      throw InputError(folder.string() + " was begun on " + before + ", this would continue on " +
                       device + ", which rounds differently; --force-device does so all the same");
    }
  }
}

std::vector<double> penalties(const std::vector<Objective>& wanted) {
  std::vector<double> values;
  for (const auto& objective : wanted) values.push_back(objective.penalty);
  return values;
}

std::vector<Objective> make_objectives(const std::vector<std::string>& keys) {
  std::vector<Objective> made;
  for (const auto& key : keys) made.push_back(objectives().at(key).make());
  return made;
}

int terminal_width() {
  winsize size{};
  constexpr int kUsual = 100;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

/// Writes the result's files and prints the closing table.
void report(Store& store, const Problem& problem, const fs::path& folder) {
  nlohmann::json labels = nlohmann::json::object();
  for (const auto& evaluation : store.evaluations()) {
    labels[evaluation.candidate] = problem.label(evaluation.candidate);
  }
  store.set_meta("labels", labels);
  const RunSummary summary(store);
  write_file(folder / "results.json", results_json(summary).dump(2) + "\n");
  write_file(folder / "evaluations.csv", evaluations_csv(summary));
  write_file(folder / "progress.svg", progress_svg(summary));
  std::cout << '\n'
            << closing_table(summary) << "\nwritten to " << folder.string()
            << ": results.json, evaluations.csv, progress.svg, store.sqlite\n";
}

}  // namespace

void run_experiment(const Experiment& experiment, const RunOptions& options) {
  warn_of_slow_blas();
  const auto problem = make_problem(experiment, options.folder);
  const auto facts = problem->facts();
  const auto file = options.folder / "store.sqlite";
  if (fs::exists(file)) {
    check_recorded(Store(file, Store::Mode::read_only), experiment, options.folder,
                   facts.value("device", ""), options.force_device);
  }
  const Rehearsal rehearsal = rehearse(experiment, problem);
  fs::create_directories(options.folder);
  Store store(file);
  store.set_meta("config", experiment.resolved);
  store.set_meta("facts", facts);
  store.set_meta("environment", environment_json(facts));

  const auto wanted = make_objectives(experiment.objectives);
  std::ostringstream nowhere;
  auto display = std::make_unique<ProgressDisplay>(
      options.quiet ? static_cast<std::ostream&>(nowhere) : std::cout,
      ProgressDisplay::Options{
          .terminal = !options.quiet && isatty(STDOUT_FILENO) == 1,
          .width = terminal_width(),
          .expected_asks = rehearsal.asked,
          .expected_batches = rehearsal.batches,
          .workers = problem->num_workers(),
          .objective = experiment.objectives.front(),
          .value = wanted.front().value,
          .label = [problem](const std::string& candidate) { return problem->label(candidate); },
          .now = {}});
  for (const auto& evaluation : store.evaluations()) display->count(evaluation);
  const auto evaluator = std::make_shared<Evaluator>(
      problem, store,
      [wanted](const Evaluation& evaluation) {
        std::vector<double> fitness;
        for (const auto& objective : wanted) fitness.push_back(objective.value(evaluation));
        return fitness;
      },
      penalties(wanted),
      Evaluator::Options{
          .workers = problem->num_workers(),
          .repeated = parse_repeated(experiment.evaluation.get<std::string>("repeated")),
          .on_progress = [&display](const Progress& progress) { display->update(progress); }});
  store.set_meta("baseline", evaluator->evaluate(problem->parse(experiment.baseline), 0).id);
  search(experiment, evaluator);
  display.reset();  // ends its line
  report(store, *problem, options.folder);
}

std::string plan_text(const Experiment& experiment, const fs::path& folder) {
  warn_of_slow_blas();
  const auto problem = make_problem(experiment, {});
  const auto facts = problem->facts();
  const auto rehearsal = rehearse(experiment, problem);
  const int workers = problem->num_workers();

  // The mean over some of the mechanisms that the search begins with: they differ in cost.
  constexpr std::size_t kCalibrated = 4;
  double seconds = 0.0;
  std::size_t calibrated = 0;
  for (const auto& candidate : rehearsal.candidates) {
    if (calibrated == kCalibrated) break;
    seconds += problem->calibrate_seconds(candidate);
    ++calibrated;
  }
  const double each = calibrated == 0 ? 0.0 : seconds / static_cast<double>(calibrated);
  const auto trainings = static_cast<double>(rehearsal.trained + 1);  // and the baseline

  std::ostringstream plan;
  const auto line = [&plan](std::string_view name, const std::string& value) {
    plan << "  " << name << std::string(14 - name.size(), ' ') << value << '\n';
  };
  const auto count = [](double value) { return human_count(value); };
  plan << "plan of " << experiment.name << '\n';
  line("space", std::to_string(experiment.space.num_combinations()) +
                    " combinations of the categorical genes");
  line("algorithm", experiment.algorithm + ", population " + std::to_string(experiment.population) +
                        ", seed " + std::to_string(experiment.seed));
  line("objectives", join(experiment.objectives));
  line("evaluations", std::to_string(rehearsal.asked) + " asked in " +
                          std::to_string(rehearsal.batches) + " batches, about " +
                          std::to_string(rehearsal.trained) + " trained, and the baseline " +
                          experiment.baseline);
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
  line("device",
       facts.value("device", "") + ", " + std::to_string(workers) + " trainings at once, " +
           std::to_string(experiment.evaluation.get<std::int64_t>("threads")) + " thread(s) each");
  line("time", "about " + human_duration(each) + " a training, " +
                   human_duration(each * trainings / workers) + " in all");
  line("folder", folder.string() + (fs::exists(folder / "store.sqlite") ? " (continues)" : ""));
  return plan.str();
}

std::string version_text() {
  const auto environment = nn::environment();
  std::ostringstream text;
  text << "attnas " << kVersion << " (" << kRevision << ")\n"
       << "compiler " << __VERSION__ << '\n'
       << "LibTorch " << environment.torch_version << '\n'
       << "BLAS " << environment.blas_library << '\n'
       << "pagmo " << PAGMO_VERSION << '\n'
       << "Boost " << BOOST_LIB_VERSION << '\n';
  return text.str();
}

}  // namespace nas
