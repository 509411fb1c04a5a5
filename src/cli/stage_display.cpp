#include "cli/stage_display.hpp"

#include <algorithm>
#include <utility>

#include "core/format.hpp"
#include "report/text.hpp"
#include "store/evaluation.hpp"

namespace nas {

StageDisplay::StageDisplay(std::ostream& out, Options options)
    : out_(out), options_(std::move(options)) {
  if (!options_.now) options_.now = steady_seconds;
  started_ = options_.now();
  if (options_.terminal) {
    lines_.emplace(out_, options_.width);
  } else {
    plain_.emplace(out_, options_.now);
  }
}

void StageDisplay::update(const Progress& progress) {
  if (progress.evaluation == nullptr) return;
  trainings_.update(progress, options_.now());
  const bool ended = progress.kind == Progress::Kind::evaluation_finished ||
                     progress.kind == Progress::Kind::evaluation_screened_out;
  if (plain_) {
    if (ended) {
      plain_->write(times(progress) + ": " + finished(*progress.evaluation));
    } else if (plain_->is_due()) {
      plain_->write(times(progress) + ": " + trainings_.text(kBroad, options_.label));
    }
    return;
  }
  const auto trains = trainings_.text(lines_->columns(), options_.label);
  lines_->show({times(progress), trains.empty() ? finished(*progress.evaluation) : trains});
}

void StageDisplay::group_ended(const Observer::Group& group) {
  options_.total = group.total;
  for (const auto& line : group.lines) {
    if (!said_.insert(line).second) continue;
    if (plain_) {
      plain_->write(line);
    } else {
      lines_->leave(wrapped(line, lines_->columns()));
    }
  }
}

void StageDisplay::workforce(const Workforce& workforce) {
  workforce_ = workforce;
  options_.workers = std::max(1, workforce.slots);
}

std::string StageDisplay::times(const Progress& progress) const {
  const auto done = progress.trained + progress.rejected + progress.reused;
  const auto count = options_.stage + " " + std::to_string(done) +
                     (options_.at_most ? " of at most " : "/") + std::to_string(options_.total) +
                     ", ";
  const auto elapsed = human_duration(options_.now() - started_) + " elapsed";
  const auto waiting = std::max<std::int64_t>(0, options_.total - done - trainings_.size());
  auto left = trainings_.left(static_cast<double>(waiting), options_.workers, options_.now());
  std::string time;
  if (left && done < options_.total) {
    if (options_.at_most) left->low = left->high;
    time = (options_.at_most ? "at most " : "") + left_text(*left) + ", ";
  }
  return count + time + elapsed + (workforce_ ? ", " + text_of(*workforce_) : "");
}

std::string StageDisplay::finished(const Evaluation& evaluation) const {
  const auto text = options_.label(evaluation.candidate) + " " + seed_text(evaluation.replicate);
  return is_usable(evaluation)
             ? text
             : text + ", " + std::string(to_string(evaluation.status)) + ": " + evaluation.reason;
}

}  // namespace nas
