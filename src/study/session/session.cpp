#include "study/session/session.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/seed.hpp"
#include "genotype/architecture_name.hpp"
#include "search/algorithm.hpp"
#include "search/gene_place.hpp"
#include "study/reader/space.hpp"

namespace nas {

namespace {

/// The known-good share of an experiment's initial population.
std::vector<Genotype> informed_genotypes(const Experiment& experiment) {
  // Each at most once, and one at least.
  const auto share = static_cast<std::size_t>(
      std::llround(experiment.informed_share * static_cast<double>(experiment.population)));
  const auto wanted = std::min(experiment.informed.size(), std::max<std::size_t>(share, 1));
  const auto frame = frame_of(experiment);
  std::vector<Genotype> genotypes;
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto& name = experiment.informed[i];
    genotypes.push_back(genotype_in(experiment.space, parse_model(name, frame), frame));
  }
  return genotypes;
}

/// Of two limits, 0 being none.
double tighter(double a, double b) { return a > 0.0 && b > 0.0 ? std::min(a, b) : std::max(a, b); }

/// Bytes. Nothing pauses without the section.
std::int64_t checkpoint_space(const Experiment& experiment) {
  if (!experiment.fidelity) return 0;
  return static_cast<std::int64_t>(experiment.fidelity->get<double>("checkpoint_space") *
                                   static_cast<double>(std::int64_t{1} << 30U));
}

}  // namespace

std::shared_ptr<Problem> make_problem(const Experiment& experiment, const ObjectiveSet& objectives,
                                      const std::filesystem::path& folder) {
  return problems()
      .at(experiment.problem)
      .make()
      .make({.semantics = experiment.semantics,
             .seed = experiment.seed,
             .settings = experiment.problem_settings,
             .model = experiment.model,
             .match_parameters = experiment.match_parameters,
             .section = experiment.section,
             .corpus = experiment.corpus,
             .data = experiment.data,
             .training = experiment.training,
             .evaluation = experiment.evaluation,
             .objectives = &objectives,
             .baseline = experiment.baseline,
             .folder = folder,
             .checkpoint_space = checkpoint_space(experiment)});
}

void require_affordable(const Experiment& experiment, const Problem& problem) {
  const auto most = experiment.budget.get<std::int64_t>("train_steps");
  if (most == 0 || experiment.fidelity || !experiment.mechanisms.empty()) return;
  if (most >= problem.steps()) return;
  throw InputError("budget.train_steps = " + std::to_string(most) + ", must be at least " +
                   std::to_string(problem.steps()) + ", which one training run takes");
}

std::vector<Candidate> listed_candidates(const Experiment& experiment,
                                         const ObjectiveSet& objectives, const Problem& problem) {
  auto names = experiment.mechanisms;
  names.push_back(experiment.baseline);
  std::vector<Candidate> candidates;
  for (const auto& name : names) {
    candidates.push_back(problem.parse(name));
    const auto subject = problem.subject(candidates.back());
    const auto why = subject ? objectives.violation_by_formula(*subject) : std::string();
    if (why.empty()) continue;
    throw InputError("mechanisms: " + problem.label(candidates.back().name) +
                     " would not be trained, it breaks a constraint: " + why);
  }
  return candidates;
}

Retries retries_of(const Experiment& experiment) {
  const auto& evaluation = experiment.evaluation;
  return {.failed = evaluation.get<std::int64_t>("retry_failed"),
          .out_of_memory = evaluation.get<std::int64_t>("retry_out_of_memory"),
          .timed_out = evaluation.get<std::int64_t>("retry_timed_out")};
}

std::string device_of_workers(const Experiment& experiment, const Store& store) {
  const auto& device = experiment.cluster.get<std::string>("device");
  if (device != "auto") return device;
  for (const auto& evaluation : store.evaluations()) {
    const auto& measured = evaluation.measured;
    if (measured.contains("model") && !measured.contains("reused_from")) return measured["model"];
  }
  return device;
}

RecordingEvaluator::Options evaluator_options(const Experiment& experiment) {
  RecordingEvaluator::Options options;
  options.repeated = parse_repeated(experiment.evaluation.get<std::string>("repeated"));
  options.replicates = experiment.evaluation.get<std::int64_t>("replicates");
  if (const auto most = experiment.evaluation.get<std::int64_t>("racing_replicates"); most > 0) {
    options.racing = Racing{.replicates = most,
                            .elites = experiment.evaluation.get<std::int64_t>("racing_elites"),
                            .confidence = experiment.evaluation.get<double>("racing_confidence")};
  }
  options.budget = {.asks = experiment.budget.get<std::int64_t>("asks"),
                    .evaluations = experiment.budget.get<std::int64_t>("evaluations"),
                    .train_seconds = tighter(experiment.budget.get<double>("train_seconds"),
                                             experiment.budget.get<double>("gpu_seconds")),
                    .train_steps = experiment.budget.get<std::int64_t>("train_steps")};
  options.retries = retries_of(experiment);
  options.failure_window = experiment.evaluation.get<std::int64_t>("failure_window");
  return options;
}

SearchResult search(const Experiment& experiment, const ObjectiveSet& objectives,
                    const std::shared_ptr<Evaluator>& evaluator,
                    std::function<void(const Indicator&)> on_indicator, Conditions conditions,
                    std::optional<Fidelity> fidelity) {
  const auto seed = static_cast<std::uint32_t>(derive_seed(experiment.seed, 0, "search", 0));
  const auto algorithm = algorithms().at(experiment.algorithm).make();
  SearchSettings settings{
      .population = experiment.population,
      .seed = seed,
      .initial = informed_genotypes(experiment),
      .encoding = algorithm.encoding,
      .conditions = std::move(conditions),
      .decomposition = experiment.decomposition,
      .fidelity = std::move(fidelity),
      .mean_of_answers = evaluator_options(experiment).repeated == Repeated::retrain,
      .stagnation = experiment.budget.get<std::int64_t>("stagnation"),
      .indicator_interval = std::max<std::int64_t>(experiment.population, 1),
      .on_indicator = std::move(on_indicator)};
  if (const auto& target = experiment.budget.get<std::string>("target"); !target.empty()) {
    settings.target = number_in(target).value();
  }
  return run_search(experiment.space, evaluator, objectives,
                    algorithm.make(experiment.algorithm_settings, experiment.search_facts, seed),
                    settings);
}

std::optional<Fidelity> fidelity_of(const Experiment& experiment, const Problem& problem) {
  if (!experiment.fidelity) return std::nullopt;
  const auto& settings = *experiment.fidelity;
  Fidelity fidelity{.promote = parse_promote(settings.get<std::string>("promote")),
                    .rungs = settings.get<std::vector<std::int64_t>>("rungs"),
                    .steps = problem.steps(),
                    .eta = settings.get<double>("eta"),
                    .spread = parse_spread(settings.get<std::string>("spread")),
                    .epsilon = settings.get<std::vector<double>>("epsilon"),
                    .replicated = experiment.evaluation.get<std::int64_t>("replicates") > 1,
                    .raced = experiment.evaluation.get<std::int64_t>("racing_replicates") > 0};
  auto steps = problem.rungs();
  if (!steps.empty()) steps.pop_back();
  std::string known = "which are " + to_text(Value(steps));
  if (steps.empty()) {
    known = experiment.resolved.contains("training")
                ? "training.checkpoints has none"
                : "the problem " + experiment.problem + " has none";
  }
  for (const auto rung : fidelity.rungs) {
    if (std::binary_search(steps.begin(), steps.end(), rung)) continue;
    throw InputError("fidelity.rungs = " + std::to_string(rung) +
                     ", must be validation steps before the last one: " + known);
  }
  const double ratio = fidelity.eta > 0.0 ? fidelity.eta : 3.0;
  auto least = static_cast<double>(settings.get<std::int64_t>("min"));
  for (const auto step : steps) {
    if (least == 0.0 || static_cast<double>(step) < least) continue;
    fidelity.rungs.push_back(step);
    least = ratio * static_cast<double>(step);
  }
  if (fidelity.rungs.empty()) {
    throw InputError("fidelity.min = " + std::to_string(settings.get<std::int64_t>("min")) +
                     ", must be at most a validation step before the last one: " + known);
  }
  return fidelity;
}

Conditions conditions_of(const Experiment& experiment, const Problem& problem) {
  if (!is_wide(experiment.space)) return {};
  return [&problem](const Genotype& genotype) { return problem.active(genotype); };
}

}  // namespace nas
