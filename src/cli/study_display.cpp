#include "cli/study_display.hpp"

#include <array>

#include "core/warning.hpp"

namespace nas {

StudyDisplay::StudyDisplay(std::ostream& out, bool terminal, bool quiet)
    : out_(out), terminal_(terminal), quiet_(quiet) {}

void StudyDisplay::warned(const std::string& text) { write_warning(text); }

void StudyDisplay::workforce_changed(const Workforce& workforce) {
  workforce_ = workforce;
  if (search_) search_->workforce(workforce);
  if (stage_) stage_->workforce(workforce);
}

void StudyDisplay::search_begins(const Search& search) {
  if (quiet_) return;
  const auto& objectives = search.objectives;
  const auto& first = objectives.objectives.front();
  const auto& problem = search.problem;
  const auto& rehearsal = search.rehearsal;
  search_ = std::make_unique<ProgressDisplay>(
      out_,
      ProgressDisplay::Options{
          .terminal = terminal_,
          .expected_asks = rehearsal.whole ? rehearsal.asked : 0,
          .expected_batches = rehearsal.batches,
          .workers = problem.num_workers(),
          .replicates = search.experiment.evaluation.get<std::int64_t>("replicates"),
          .objective = first.name,
          .maximise = first.maximise,
          .several = objectives.objectives.size() > 1,
          .value =
              [&first](const Evaluation& evaluation) {
                return first.value(Objective::Evaluations{std::array{&evaluation}});
              },
          .feasible =
              [&objectives](const Evaluation& evaluation) {
                return objectives.violation_by_training(std::array{&evaluation}).empty();
              },
          .label = [&problem, &baseline = search.experiment.baseline](
                       const std::string& name) { return problem.label_beside(name, baseline); },
          .now = {}});
  if (workforce_) search_->workforce(*workforce_);
}

void StudyDisplay::retried(std::int64_t evaluations) {
  if (!quiet_) out_ << evaluations << " failed evaluations are tried again\n";
}

void StudyDisplay::recalled(const Evaluation& evaluation) {
  if (search_) search_->count(evaluation);
}

void StudyDisplay::progressed(const Progress& progress) {
  if (search_) search_->update(progress);
}

void StudyDisplay::indicated(const Indicator& indicator) {
  if (search_) search_->indicator(indicator);
}

void StudyDisplay::stage_begins(const Stage& stage) {
  if (quiet_) return;
  const auto& problem = stage.problem;
  stage_ = std::make_unique<StageDisplay>(
      out_,
      StageDisplay::Options{
          .terminal = terminal_,
          .stage = stage.name,
          .total = stage.total,
          .at_most = stage.at_most,
          .workers = problem.num_workers(),
          .label = [&problem, baseline = stage.baseline](
                       const std::string& name) { return problem.label_beside(name, baseline); },
          .now = {}});
  if (workforce_) stage_->workforce(*workforce_);
}

void StudyDisplay::stage_progressed(const Progress& progress) {
  if (stage_) stage_->update(progress);
}

void StudyDisplay::group_ended(const Group& group) {
  if (stage_) stage_->group_ended(group);
}

}  // namespace nas
