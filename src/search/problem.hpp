#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "evaluation/measurement.hpp"
#include "genotype/search_space.hpp"
#include "genotype/semantics.hpp"
#include "search/objective_set.hpp"

namespace NAS_PUBLIC nas {

/// What a problem is built from: the experiment's sections, complete and validated.
struct ProblemInputs {
  Semantics semantics = Semantics::corrected;
  std::uint64_t seed = 42;
  Parameters settings;  ///< of the problem plug-in itself
  Parameters model;
  bool match_parameters = false;  ///< of the section `space`
  ModelGenes section{};           ///< Architecture::section
  std::string corpus;             ///< key of the corpus plug-in
  Parameters data;                ///< its settings
  Parameters training;
  Parameters evaluation;
  /// What is wanted of every candidate; a problem that trains screens candidates with it. Not
  /// owned, may be nullptr; outlives the problem.
  const ObjectiveSet* objectives = nullptr;
  std::string baseline{};  ///< name of what the search is compared with; may be empty
  std::filesystem::path
      folder;  ///< the run's folder, for checkpoints and models; empty: write nothing
  /// Bytes that checkpoints of paused training runs may take in the folder; of what is beyond, the least promising go.
  std::int64_t checkpoint_space = std::int64_t{20} << 30U;
};

/// What is true of candidates, for reports and never for a search.
struct GroundTruth {
  /// By candidate: a value of each objective in minimisation form, that of a failure where the
  /// candidate breaks a constraint. Empty where nothing is known.
  std::map<std::string, std::vector<double>> values{};
  /// By name of an objective or of what a constraint is on, of those that come from a trained
  /// model's scores: the split that they were taken from, "test" or "validation".
  std::map<std::string, std::string> splits{};
};

/// What a run needs beyond its evaluations, as a short calibration expects.
struct Preparation {
  double seconds = 0.0;  ///< before the first evaluation
  /// Memory of the process at its most, by stage in their order, bytes; empty: unknown.
  std::vector<std::pair<std::string, std::int64_t>> peaks{};
};

/// A measurement that can also say, before anything runs, what it is going to do.
class Problem : public Measurement {
 public:
  /// Name for people of a candidate, whose own name is given.
  [[nodiscard]] virtual std::string label(const std::string& candidate) const = 0;
  /// The name beside a baseline, which says what differs where that is shorter.
  [[nodiscard]] virtual std::string label_beside(const std::string& candidate,
                                                 const std::string& /*baseline*/) const {
    return label(candidate);
  }
  /// Genes in which a candidate differs from the baseline beyond what label_beside() says, "dropout, conv", or none.
  [[nodiscard]] virtual std::string differences_from_baseline(
      const std::string& /*candidate*/, const std::string& /*baseline*/) const {
    return {};
  }
  /// Names of the genes of a genotype that have an effect: another value of any other gene is the
  /// same candidate. All of them, unless the problem knows better.
  [[nodiscard]] virtual std::vector<std::string> active(const Genotype& genotype) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : genotype.values()) names.push_back(name);
    return names;
  }
  /// Before a search of the space begins. @throws InputError if a training run of its largest
  /// candidate that constraints by formula allow exceeds the memory of this machine.
  virtual void require_memory(const SearchSpace& /*space*/) const {}
  /// The same of a candidate without refusal.
  virtual void require_memory(const Candidate& /*candidate*/) const {}
  /// What objectives that need no training are computed from; nothing where the problem has no
  /// such. @param candidate  without refusal.
  [[nodiscard]] virtual std::optional<Subject> subject(const Candidate& /*candidate*/) const {
    return std::nullopt;
  }
  /// Facts for the plan and the run's record: corpus, device, workers, parameters, flops, ...;
  /// deterministic ones only. "table" where what is measured was recorded elsewhere.
  [[nodiscard]] virtual nlohmann::json facts() const = 0;
  /// What counts of the tokens that a training run reads reach on the same targets with as much
  /// history: of each order, from 1 on, {order, tokens (counted), valid_nll, valid_accuracy,
  /// test_nll, test_accuracy}, nll in nats per target (data/count_models.hpp); without the keys of a
  /// split that has no targets. null where nothing is trained on tokens. Takes seconds.
  [[nodiscard]] virtual nlohmann::json counts() const { return nullptr; }
  /// Trainings at once that `evaluation.workers` means here.
  [[nodiscard]] virtual int num_workers() const = 0;
  /// Seconds that one evaluation of `candidate` is expected to take, from a short calibration; 0 if unknown.
  virtual double calibrate_seconds(const Candidate& candidate) = 0;
  /// Nothing unless the problem prepares something. @param replicates  different ones that the run measures.
  virtual Preparation calibrate_preparation(std::int64_t /*replicates*/) { return {}; }
  /// What measures an objective of a task (Objective::measured) in place of this process, on the
  /// device that trains. @return the objective's record. @throws as Objective::measured.
  using Instrument = std::function<nlohmann::json(const Task& task, const std::string& objective)>;
  virtual void measure_by(Instrument /*instrument*/) {}
  /// From now on a checkpoint that cannot be written is a warning: on a worker, whose results reach the record by another way.
  virtual void do_without_checkpoints() {}
  /// Ground truth where the problem knows it, as a table does.
  [[nodiscard]] virtual GroundTruth truth() const { return {}; }
  /// The same problem with another section `training`, sharing what it has loaded; it keeps no models. Each of the two
  /// measures the tasks of the other, too, as these say. nullptr where nothing is trained.
  [[nodiscard]] virtual std::shared_ptr<Problem> with_training(
      const Parameters& /*training*/) const {
    return nullptr;
  }
};

/// What an experiment must know of a problem before it is built from the experiment.
struct ProblemKind {
  /// Sections and keys of a configuration that it reads beside its own settings, of "semantics",
  /// "space", "baseline", "model", "data", "training".
  std::vector<std::string> sections{};
  /// Of its mechanisms; empty: that of the key `semantics`.
  std::function<Semantics(const Parameters& settings)> semantics{};
  /// Its search space; empty: that of the section `space`.
  std::function<SearchSpace(const Parameters& settings)> space{};
  /// Its own objectives, with their ranges; empty: those of the registry.
  std::function<std::vector<ChosenObjective>(const Parameters& settings)> objectives{};
  std::function<std::shared_ptr<Problem>(const ProblemInputs&)> make;
};

using ProblemRegistry = Registry<ProblemKind()>;
ProblemRegistry& problems();

/// Registers a problem from its own .cpp in problems/: `NAS_REGISTER_PROBLEM(description, function);`
#define NAS_REGISTER_PROBLEM(...) \
  [[maybe_unused]] static const bool nas_registered_problem = ::nas::problems().add(__VA_ARGS__)

}  // namespace nas
