#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "evaluation/recording_evaluator.hpp"
#include "search/objective_set.hpp"
#include "search/problem.hpp"
#include "store/store.hpp"
#include "study/reader/experiment.hpp"
#include "study/session/feasibility.hpp"

namespace nas {

/// What a process works with on an experiment.
struct StudySetup {
  ObjectiveSet objectives;
  std::shared_ptr<Problem> problem;  ///< points to the objectives
  nlohmann::json facts;
  std::optional<Feasibility> feasibility{};
};

/// Makes problem and objectives of an experiment. @param folder  of its run; empty where it has none.
/// @throws InputError where the experiment cannot be carried out on this machine.
std::unique_ptr<StudySetup> set_up(const Experiment& experiment,
                                   const std::filesystem::path& folder);

/// nn::keep_products() of the last session of a record.
void keep_products(const std::vector<nlohmann::json>& sessions);

/// What a run records of the machine and the programs. @param facts  of the problem. @param trains  else it multiplies nothing.
nlohmann::json environment_json(const nlohmann::json& facts, bool trains);

/// Warns of a text of the user's own from which nothing can be learned.
void warn_of_text(const Experiment& experiment, const nlohmann::json& facts);
void warn_of_slow_blas();

/// Fixes the ranges of the objectives by the baseline's evaluations, and records both.
/// @param baseline  may be empty.
void record_baseline(const std::vector<Evaluation>& baseline, StudySetup& setup, Store& store);

/// Evaluates the baseline, fixes the ranges of the objectives, and records both.
void measure_baseline(const Experiment& experiment, StudySetup& setup,
                      RecordingEvaluator& evaluator, Store& store);

}  // namespace nas
