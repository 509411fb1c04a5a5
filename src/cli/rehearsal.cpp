#include "cli/rehearsal.hpp"

#include <algorithm>
#include <cmath>

#include "core/hash.hpp"
#include "core/seed.hpp"
#include "core/temporary_folder.hpp"
#include "search/algorithm.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

/// Answers at once with a number made from the candidate's name.
class MadeUp final : public Measurement {
 public:
  MadeUp(std::shared_ptr<Problem> problem, const ObjectiveSet& objectives, Rehearsal& rehearsal)
      : problem_(std::move(problem)), objectives_(objectives), rehearsal_(&rehearsal) {}
  [[nodiscard]] std::string canonical(const Genotype& genotype) const override {
    return problem_->canonical(genotype);
  }
  [[nodiscard]] nlohmann::json identity(const std::string& /*candidate*/) const override {
    return {};
  }
  [[nodiscard]] bool expensive() const override { return false; }
  void begin_batch(std::span<const Evaluation* const> /*earlier*/) override {
    ++rehearsal_->batches;
  }
  void screen(const Task& task, Evaluation& evaluation) override {
    const auto subject = problem_->subject(task.candidate);
    if (!subject) return;
    evaluation.reason = objectives_.violation_by_formula(*subject);
    if (!evaluation.reason.empty()) evaluation.status = Status::rejected;
  }
  void measure(const Task& task, Evaluation& evaluation) override {
    evaluation.status = Status::ok;
    evaluation.values["made_up"] =
        RandomEngine(derive_seed(0, task.replicate, "rehearsal", task.candidate)).uniform();
    if (task.replicate == 0) rehearsal_->candidates.push_back(task.candidate);
    ++rehearsal_->trained;
  }

 private:
  std::shared_ptr<Problem> problem_;
  const ObjectiveSet& objectives_;
  Rehearsal* rehearsal_;
};

/// A search that asks for more is not rehearsed to its end.
constexpr std::int64_t kMostAsks = 20000;

/// The known-good share of an experiment's initial population.
std::vector<Genotype> informed_genotypes(const Experiment& experiment) {
  const auto wanted = static_cast<std::size_t>(
      std::llround(experiment.informed_share * static_cast<double>(experiment.population)));
  std::vector<Genotype> genotypes;
  for (std::size_t i = 0; i < wanted && !experiment.informed.empty(); ++i) {
    const auto mechanism =
        parse_mechanism(experiment.informed[i % experiment.informed.size()], experiment.semantics);
    std::vector<std::pair<std::string, GeneValue>> values;
    for (const auto& gene : experiment.space.genes()) {
      if (gene.name == "bias") {
        values.emplace_back(gene.name, std::string(mechanism.bias ? "bias" : "no_bias"));
      } else if (gene.name == "attention_dropout") {
        values.emplace_back(gene.name, mechanism.attention_dropout);
      } else {
        // The space's options are as the user wrote them: the one that means this component.
        for (const auto& option : gene.options) {
          if (component_key(experiment.semantics, gene.name, option) ==
              mechanism.component(gene.name)) {
            values.emplace_back(gene.name, option);
          }
        }
      }
    }
    genotypes.emplace_back(std::move(values));
  }
  return genotypes;
}

/// Of two limits, 0 being none.
double tighter(double a, double b) { return a > 0.0 && b > 0.0 ? std::min(a, b) : std::max(a, b); }

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
    return Judgement{.status = Status::ok, .fitness = fitness, .measured = fitness};
  };
  auto options = evaluator_options(experiment);
  options.budget.train_seconds = 0.0;
  options.racing.reset();  // how close candidates will be, nobody can make up
  if (options.budget.asks == 0 || options.budget.asks > kMostAsks) options.budget.asks = kMostAsks;
  const auto evaluator = std::make_shared<RecordingEvaluator>(
      std::make_shared<MadeUp>(problem, objectives, rehearsal), store, made_up, options);
  auto imagined = experiment;
  imagined.budget.set("stagnation", std::int64_t{0});
  imagined.budget.set("target", std::string());
  search(imagined, objectives, evaluator, {});
  rehearsal.asked = evaluator->num_asked();
  rehearsal.whole = rehearsal.asked < kMostAsks;
  return rehearsal;
}

std::shared_ptr<Problem> make_problem(const Experiment& experiment, const ObjectiveSet& objectives,
                                      const std::filesystem::path& folder) {
  return problems()
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
             .folder = folder});
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
                                             experiment.budget.get<double>("gpu_seconds"))};
  return options;
}

SearchResult search(const Experiment& experiment, const ObjectiveSet& objectives,
                    const std::shared_ptr<Evaluator>& evaluator,
                    std::function<void(const Indicator&)> on_indicator) {
  const auto seed = static_cast<std::uint32_t>(derive_seed(experiment.seed, 0, "search", 0));
  const auto algorithm = algorithms().at(experiment.algorithm).make();
  SearchSettings settings{
      .population = experiment.population,
      .seed = seed,
      .initial = informed_genotypes(experiment),
      .encoding = algorithm.encoding,
      .decomposition = experiment.decomposition,
      .mean_of_answers = evaluator_options(experiment).repeated == Repeated::retrain,
      .stagnation = experiment.budget.get<std::int64_t>("stagnation"),
      .indicator_interval = std::max<std::int64_t>(experiment.population, 1),
      .on_indicator = std::move(on_indicator)};
  if (const auto& target = experiment.budget.get<std::string>("target"); !target.empty()) {
    settings.target = std::stod(target);
  }
  return run_search(experiment.space, evaluator, objectives,
                    algorithm.make(experiment.algorithm_settings, experiment.search_facts, seed),
                    settings);
}

}  // namespace nas
