#include "cli/progress_display.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/warning.hpp"
#include "report/text.hpp"
#include "store/evaluation.hpp"

namespace nas {

namespace {

constexpr double kLongestSilence = 300.0;  // s, where there is no terminal
/// Columns that names of what trains may take where there is no terminal.
constexpr std::size_t kBroad = 120;

/// "3/12", or "3" where more have come than were expected, or the number is unknown.
std::string of(std::int64_t count, std::int64_t expected) {
  const bool known = expected > 0 && count <= expected;
  return std::to_string(count) + (known ? "/" + std::to_string(expected) : "");
}

/// What of a line goes first where it is too narrow: the largest number.
struct Part {
  std::string text;
  int rank;
};

std::string line_of(std::vector<Part> parts, std::size_t columns) {
  for (int rank = 6;; --rank) {
    std::erase_if(parts, [rank](const Part& part) { return part.rank >= rank; });
    std::vector<std::string> texts;
    for (const auto& part : parts) texts.push_back(part.text);
    if (auto line = join(texts); rank == 1 || width_of(line) <= columns) return line;
  }
}

}  // namespace

ProgressDisplay::ProgressDisplay(std::ostream& out, Options options)
    : out_(out), options_(std::move(options)), started_(options_.now()), spoke_(started_) {
  if (!options_.terminal) return;
  lines_.emplace(out_, options_.width);
  ticker_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
      if (!stop.stop_requested()) show();
    }
  });
}

ProgressDisplay::~ProgressDisplay() {
  if (!ticker_.joinable()) return;
  ticker_.request_stop();
  ticker_.join();
}

void ProgressDisplay::update(const Progress& progress) {
  using Kind = Progress::Kind;
  const std::lock_guard lock(mutex_);
  if (!searches() && progress.evaluation == nullptr) return;
  last_ = progress;
  trainings_.update(progress, options_.now());
  if (progress.kind == Kind::evaluation_finished ||
      progress.kind == Kind::evaluation_screened_out) {
    finished(*progress.evaluation);
  }
  if (searches() && progress.kind == Kind::batch_finished) {
    answered_ = progress.asked;
    settled_ = progress.trained + progress.rejected + progress.reused;
    write("generation " + std::to_string(progress.batch) + " done: " + search_line());
  }
  show();
  if (!lines_ && trainings_.size() > 0 && options_.now() - spoke_ >= kLongestSilence) {
    write((searches() ? search_line() + "; " : stage_line() + ": ") +
          trainings_.text(kBroad, options_.label));
  }
}

void ProgressDisplay::finished(const Evaluation& evaluation) {
  const auto name = options_.label(evaluation.candidate) + " " + seed_text(evaluation.replicate);
  const auto status = std::string(to_string(evaluation.status));
  if (!searches()) {
    ended_ = name;
    if (!is_usable(evaluation)) ended_ += ", " + status + ": " + evaluation.reason;
    return write(stage_line() + ": " + ended_);
  }
  add(evaluation);
  const auto seconds = trainings_.seconds();
  if (!seconds) return write(status + " " + name + ": " + evaluation.reason);
  auto what = status;
  if (!is_usable(evaluation)) {
    what += ", " + evaluation.reason;
  } else if (const double value = options_.value(evaluation); !std::isnan(value)) {
    what = options_.objective + " " + number_text(value);
  }
  write("trained " + name + ": " + what + " (" + human_duration(*seconds) + ")");
}

void ProgressDisplay::count(const Evaluation& evaluation) {
  const std::lock_guard lock(mutex_);
  add(evaluation);
}

void ProgressDisplay::add(const Evaluation& evaluation) {
  ++evaluated_;
  if (!is_usable(evaluation)) {
    ++(evaluation.status == Status::rejected ? rejected_ : failures_);
    return;
  }
  if (evaluation.status != Status::ok) return;
  if (options_.feasible && !options_.feasible(evaluation)) return;
  const double value = options_.value(evaluation);
  if (std::isnan(value)) return;
  if (best_ && (options_.maximise ? value <= *best_ : value >= *best_)) return;
  best_ = value;
  best_label_ = options_.label(evaluation.candidate);
}

void ProgressDisplay::indicator(const Indicator& indicator) {
  const std::lock_guard lock(mutex_);
  indicator_ = indicator;
  if (!options_.several) return;
  show();
  // A line of its own: that of the generation was written before its hypervolume was known.
  write("after " + std::to_string(indicator.asked) + " asked: " + quality());
}

void ProgressDisplay::group_ended(const Observer::Group& group) {
  const std::lock_guard lock(mutex_);
  options_.total = group.total;
  for (const auto& line : group.lines) {
    if (!said_.insert(line).second) continue;
    if (lines_) lines_->leave(wrapped(line, lines_->columns()));
    write(line);
  }
}

void ProgressDisplay::workforce(const Workforce& workforce) {
  const std::lock_guard lock(mutex_);
  workforce_ = workforce;
  options_.workers = std::max(1, workforce.slots);
  show();
  if (searches()) write(text_of(workforce));
}

std::string ProgressDisplay::quality() const {
  if (!options_.several) return best_ ? "best " + number_text(*best_) : std::string();
  if (!indicator_) return {};
  return "HV " + fixed_text(indicator_->value, 3) + ", front " + std::to_string(indicator_->front);
}

std::string ProgressDisplay::asked() const {
  return of(last_->asked, ends_by_time() ? 0 : options_.expected_asks) + " asked";
}

std::string ProgressDisplay::elapsed() const {
  return human_duration(options_.now() - started_) + " elapsed";
}

/// Of asks still to come, as many are trained as of those so far.
std::optional<TimeRange> ProgressDisplay::left_by_asks() const {
  if (options_.expected_asks == 0) return std::nullopt;
  const auto replicates = static_cast<double>(options_.replicates);
  const auto asked = static_cast<double>(std::max<std::int64_t>(last_->asked, 1));
  const double trained_share = std::clamp(
      static_cast<double>(evaluated_ - rejected_ + trainings_.size()) / asked, 0.05, replicates);
  const auto pending =
      static_cast<double>(std::max<std::int64_t>(0, options_.expected_asks - last_->asked));
  const double in_batch = static_cast<double>(last_->asked - answered_) * replicates;
  const auto settled =
      static_cast<double>(last_->trained + last_->rejected + last_->reused - settled_);
  const double waiting = std::max(0.0, in_batch - settled - static_cast<double>(trainings_.size()));
  return trainings_.left(pending * trained_share + waiting, options_.workers, options_.now());
}

std::optional<TimeRange> ProgressDisplay::time_left() const {
  const auto by_asks = left_by_asks();
  const auto& budget = last_->seconds_left;
  if (!budget || (!by_asks && options_.expected_asks > 0)) return by_asks;
  const auto now = options_.now();
  return time_left_by_budget(by_asks, *budget, trainings_.elapsed(now),
                             trainings_.left(0, options_.workers, now), options_.workers);
}

bool ProgressDisplay::ends_by_time() const {
  if (!last_->seconds_left) return false;
  const auto by_asks = left_by_asks();
  return by_asks && time_left()->high < by_asks->low;
}

/// "re-test 3/20, 3 to 4 min left, 41 s elapsed" or, where they may be fewer, "training 3 of at most
/// 60, at most 4 min left, 41 s elapsed".
std::string ProgressDisplay::stage_line(std::size_t columns) const {
  const auto done = last_->trained + last_->rejected + last_->reused;
  std::vector<Part> parts{{options_.stage + " " + std::to_string(done) +
                               (options_.at_most ? " of at most " : "/") +
                               std::to_string(options_.total),
                           0}};
  const auto waiting = std::max<std::int64_t>(0, options_.total - done - trainings_.size());
  auto left = trainings_.left(static_cast<double>(waiting), options_.workers, options_.now());
  if (left && done < options_.total) {
    if (options_.at_most) left->low = left->high;
    parts.push_back({(options_.at_most ? "at most " : "") + left_text(*left), 0});
  }
  parts.push_back({elapsed(), 3});
  if (workforce_) parts.push_back({text_of(*workforce_), 3});
  return line_of(std::move(parts), columns);
}

/// The best so far only where there is no second line.
std::string ProgressDisplay::search_line(std::size_t columns) const {
  std::vector<Part> parts{{asked(), 0}};
  const auto left = time_left();
  if (left || lines_) parts.push_back({left ? left_text(*left) : "time left unknown", 0});
  parts.push_back({std::to_string(last_->trained) + " trained", 2});
  if (rejected_ > 0) parts.push_back({std::to_string(rejected_) + " rejected", 1});
  if (failures_ > 0) parts.push_back({std::to_string(failures_) + " failed", 1});
  if (workforce_) parts.push_back({text_of(*workforce_), 3});
  parts.push_back({std::to_string(last_->reused) + " known", 5});
  parts.push_back({"gen " + of(last_->batch + 1, options_.expected_batches), 4});
  parts.push_back({elapsed(), 3});
  if (!lines_ && best_ && !options_.several) parts.push_back({quality() + " " + best_label_, 0});
  return line_of(std::move(parts), columns);
}

std::string ProgressDisplay::second_line(std::size_t columns) const {
  constexpr std::size_t kLeast = 12;  // of a name
  auto line = quality();
  const auto name = options_.several || !best_ ? std::string() : best_label_;
  const auto beside = columns - std::min(columns, line.empty() ? 0 : width_of(line) + 3);
  // A quarter is for the name of the best, unless it costs the names of what trains.
  const auto reserved = name.empty() ? 0 : 1 + std::min(width_of(name), beside / 4);
  auto training = trainings_.text(beside - std::min(beside, reserved), options_.label);
  auto alone = trainings_.text(beside, options_.label);
  if (width_of(alone) > width_of(training) + reserved) training = std::move(alone);
  if (training.empty() && last_->kind == Progress::Kind::candidate_screening) {
    training = "looking at candidate " + of(last_->screening, last_->batch_size);
  }
  if (training.empty()) training = ended_;
  const auto both = [&] {
    return line + (line.empty() || training.empty() ? "" : " | ") + training;
  };
  if (const auto taken = width_of(both()) + 1;
      !name.empty() && taken + std::min(width_of(name), kLeast) <= columns) {
    line += " " + abridged(name, columns - taken);
  }
  return training.empty() || width_of(both()) <= columns ? both() : training;
}

void ProgressDisplay::show() {
  if (!lines_ || !last_) return;
  const auto columns = lines_->columns();
  lines_->show({searches() ? search_line(columns) : stage_line(columns), second_line(columns)});
}

void ProgressDisplay::write(const std::string& line) {
  if (lines_) return;
  out_ << printable(line) << '\n' << std::flush;
  spoke_ = options_.now();
}

void StudyDisplay::warned(const std::string& text) { write_warning(text); }

void StudyDisplay::workforce_changed(const Workforce& workforce) {
  workforce_ = workforce;
  if (shown_) shown_->workforce(workforce);
}

void StudyDisplay::begin(ProgressDisplay::Options options, const Problem& problem,
                         const std::string& baseline) {
  if (quiet_) return;
  options.terminal = terminal_;
  options.workers = problem.num_workers();
  options.label = [&problem, baseline](const std::string& name) {
    return problem.label_beside(name, baseline);
  };
  shown_ = std::make_unique<ProgressDisplay>(out_, std::move(options));
  if (workforce_) shown_->workforce(*workforce_);
}

void StudyDisplay::search_begins(const Search& search) {
  const auto& objectives = search.objectives;
  const auto& first = objectives.objectives.front();
  begin({.expected_asks = search.rehearsal.whole ? search.rehearsal.asked : 0,
         .expected_batches = search.rehearsal.batches,
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
             }},
        search.problem, search.experiment.baseline);
}

void StudyDisplay::retried(std::int64_t evaluations) {
  if (!quiet_) out_ << evaluations << " failed evaluations are tried again\n";
}

void StudyDisplay::stage_begins(const Stage& stage) {
  begin({.stage = stage.name, .total = stage.total, .at_most = stage.at_most}, stage.problem,
        stage.baseline);
}

}  // namespace nas
