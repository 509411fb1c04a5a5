#include "cli/rehearsal.hpp"

#include <cmath>
#include <filesystem>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/seed.hpp"
#include "search/algorithm.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

/// Answers at once with a number made from the candidate's name.
class MadeUp final : public Measurement {
 public:
  MadeUp(std::shared_ptr<Problem> problem, Rehearsal& rehearsal)
      : problem_(std::move(problem)), rehearsal_(&rehearsal) {}
  [[nodiscard]] std::string canonical(const Genotype& genotype) const override {
    return problem_->canonical(genotype);
  }
  [[nodiscard]] nlohmann::json identity(const std::string& /*candidate*/) const override {
    return {};
  }
  [[nodiscard]] bool expensive() const override { return false; }
  void begin_batch(const std::vector<Evaluation>& /*earlier*/) override { ++rehearsal_->batches; }
  void measure(const Task& task, Evaluation& evaluation) override {
    evaluation.status = Status::ok;
    evaluation.values["made_up"] =
        RandomEngine(derive_seed(0, task.replicate, "rehearsal", task.candidate)).uniform();
    if (task.replicate == 0) rehearsal_->candidates.push_back(task.candidate);
    ++rehearsal_->trained;
  }

 private:
  std::shared_ptr<Problem> problem_;
  Rehearsal* rehearsal_;
};

/// A folder of its own that is gone when the object is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "attnas-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw InputError(name + ": cannot be created");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

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

}  // namespace

Rehearsal rehearse(const Experiment& experiment, const std::shared_ptr<Problem>& problem) {
  Rehearsal rehearsal;
  const TemporaryFolder folder;
  Store store(folder.path() / "rehearsal.sqlite");
  const auto objectives = experiment.objectives.size();
  Evaluator::Options options;
  options.repeated = parse_repeated(experiment.evaluation.get<std::string>("repeated"));
  const auto evaluator = std::make_shared<Evaluator>(
      std::make_shared<MadeUp>(problem, rehearsal), store,
      [objectives](const Evaluation& evaluation) {
        std::vector<double> fitness;
        for (std::size_t i = 0; i < objectives; ++i) {
          fitness.push_back(RandomEngine(derive_seed(i, 0, "rehearsal", evaluation.id)).uniform());
        }
        return fitness;
      },
      std::vector<double>(objectives, 1e9), options);
  search(experiment, evaluator);
  rehearsal.asked = evaluator->num_asked();
  return rehearsal;
}

void search(const Experiment& experiment, std::shared_ptr<Evaluator> evaluator) {
  const auto seed = static_cast<std::uint32_t>(derive_seed(experiment.seed, 0, "search", 0));
  run_search(experiment.space, std::move(evaluator),
             algorithms()
                 .at(experiment.algorithm)
                 .make()
                 .make(experiment.algorithm_settings, SearchFacts{}, seed),
             {.population = experiment.population,
              .seed = seed,
              .initial = informed_genotypes(experiment)});
}

}  // namespace nas
