#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "core/registry.hpp"
#include "evaluation/evaluator.hpp"
#include "genotype/mechanism.hpp"

namespace nas {

/// What a problem is built from: the experiment's sections, complete and validated.
struct ProblemInputs {
  Semantics semantics = Semantics::corrected;
  std::uint64_t seed = 42;
  Parameters settings;  ///< of the problem plug-in itself
  Parameters model;
  std::string corpus;  ///< key of the corpus plug-in
  Parameters data;     ///< its settings
  Parameters training;
  Parameters evaluation;
  std::filesystem::path
      folder;  ///< the run's folder, for checkpoints and models; empty: write nothing
};

/// A measurement that can also say, before anything runs, what it is going to do.
class Problem : public Measurement {
 public:
  /// Canonical name of a candidate given by its name in a configuration file.
  [[nodiscard]] virtual std::string parse(const std::string& name) const = 0;
  /// Name for people (the paper's labels) of a canonical name.
  [[nodiscard]] virtual std::string label(const std::string& candidate) const = 0;
  /// Facts for the plan and the run's record: corpus, device, workers, parameters, flops, ...;
  /// deterministic ones only.
  [[nodiscard]] virtual nlohmann::json facts() const = 0;
  /// Trainings at once that `evaluation.workers` means here.
  [[nodiscard]] virtual int num_workers() const = 0;
  /// Seconds that one evaluation of `candidate` is expected to take, from a short calibration; 0 if
  /// unknown.
  virtual double calibrate_seconds(const std::string& candidate) = 0;
};

using ProblemRegistry = Registry<std::shared_ptr<Problem>(const ProblemInputs&)>;
ProblemRegistry& problems();

/// Registers a problem from its own .cpp in problems/: `NAS_REGISTER_PROBLEM(description,
/// function);`
#define NAS_REGISTER_PROBLEM(...) \
  [[maybe_unused]] static const bool nas_registered_problem = ::nas::problems().add(__VA_ARGS__)

}  // namespace nas
