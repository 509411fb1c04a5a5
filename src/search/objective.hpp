#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "core/numerical_mode.hpp"
#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "genotype/architecture.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// The values between which a study expects an objective, in its own unit: fixed before the search
/// and recorded, so that hypervolumes of several runs are comparable.
struct Range {
  double best = 0.0;
  double worst = 1.0;  ///< differs from best; the larger one if the objective is minimised
};

/// The values that an objective can have at all.
struct Limits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

/// What an objective that needs no training is computed from.
struct Subject {
  Architecture architecture;
  std::string device = "cpu";  ///< "cpu", "cuda:0", ...
  int threads = 1;             ///< of one forward pass
  NumericalMode numerical_mode = NumericalMode::exact;
};

/// A scalar of a candidate with its unit and its sense. Exactly one of analytic, measured and trained says where one
/// evaluation's value comes from; `across` replaces it by a value over all replicates.
struct Objective {
  using Evaluations = std::span<const Evaluation* const>;

  std::string unit;       ///< "1", "bit", "FLOP", "B", "ms", "s", "J"
  bool maximise = false;  ///< the natural sense; an experiment may reverse it

  /// By formula, before training.
  std::function<double(const Subject&)> analytic{};
  /// By measuring the untrained model, before training, while nothing else runs: an object with
  /// "value" and whatever explains it. Measured once for each function and remembered.
  std::function<nlohmann::json(const Subject&)> measured{};
  /// From a finished, usable evaluation, stopped early or not. What the curve's end determines is
  /// asked for by quality(), so that means over several training runs are means of values.
  std::function<double(const Evaluation&)> trained{};
  /// Whether only a training run that shares no array with others has it: time, memory.
  bool alone = false;
  /// From all replicates of a candidate, failed ones included, of which at least `min_replicates`
  /// were asked for. Empty: the mean over the usable ones.
  std::function<double(Evaluations)> across{};
  std::int64_t min_replicates = 1;
  /// Whether it judges failed replicates, so that these do not fail the candidate.
  bool judges_failures = false;

  /// What to expect, from the problem's facts (Problem::facts). Empty or nothing: an analytic objective is computed for the
  /// whole space, another one is expected between 0 and twice the baseline's value.
  std::function<std::optional<Range>(const nlohmann::json& facts)> range{};
  /// The values that it can have: intervals of its mean end there.
  Limits limits{};
  /// Reason why the objective is unavailable for this problem; empty if available. A null function means always available.
  std::function<std::string(const nlohmann::json& facts)> unavailable{};
};

/// Whether a run records something that is no objective under a name, or exports a column of it:
/// `steps`, `status`, `test_perplexity`, a gene. An objective of that name would take its place.
bool is_recorded_name(const std::string& name);

/// What to expect of a perplexity: between certainty and what the unigram model reaches, which
/// looks at no context; where there is no such model, what guessing reaches.
std::optional<Range> expected_perplexity(const nlohmann::json& facts);

/// The setting `context` of objectives that may look at another length than the model's.
Setting context_setting();
/// An analytic objective of the architecture at the length that the setting `context` names.
///
/// @param cost  in units of `unit`.
Objective at_context(const Parameters& settings, std::string unit,
                     std::function<double(const Architecture&)> cost);

using ObjectiveRegistry = Registry<Objective(const Parameters&)>;
ObjectiveRegistry& objectives();

/// Registers an objective from its own .cpp in src/objectives/analytic, measured or trained:
/// `NAS_REGISTER_OBJECTIVE(description, function);`
#define NAS_REGISTER_OBJECTIVE(...) \
  [[maybe_unused]] static const bool nas_registered_objective = ::nas::objectives().add(__VA_ARGS__)

}  // namespace nas
