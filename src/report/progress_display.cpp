#include "report/progress_display.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/format.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

/// "3/12", or "3" where more have come than were expected, or nobody knows.
std::string of(std::int64_t count, std::int64_t expected) {
  return std::to_string(count) + (count <= expected ? "/" + std::to_string(expected) : "");
}

}  // namespace

ProgressDisplay::ProgressDisplay(std::ostream& out, Options options)
    : out_(out), options_(std::move(options)) {
  if (!options_.now) {
    options_.now = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
  }
  started_ = options_.now();
  if (!options_.terminal) return;
  ticker_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
      if (!stop.stop_requested() && last_) rewrite(*last_);
    }
  });
}

ProgressDisplay::~ProgressDisplay() {
  if (ticker_.joinable()) {
    ticker_.request_stop();
    ticker_.join();
  }
  if (line_open_) out_ << '\n' << std::flush;
}

void ProgressDisplay::update(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  last_ = progress;
  last_->evaluation = nullptr;  // only its event may look at it
  switch (progress.kind) {
    case Progress::Kind::batch_started:
      break;
    case Progress::Kind::evaluation_started:
      running_[progress.evaluation->id] = options_.now();
      break;
    case Progress::Kind::evaluation_finished:
      finished(progress);
      break;
    case Progress::Kind::batch_finished:
      answered_ = progress.asked;
      if (!options_.terminal) {
        out_ << "generation " << progress.batch << " done: " << counts(progress) << '\n'
             << std::flush;
      }
      break;
  }
  if (options_.terminal) rewrite(progress);
}

void ProgressDisplay::finished(const Progress& progress) {
  const Evaluation& evaluation = *progress.evaluation;
  const auto& measured = evaluation.measured;
  const double mates = measured.contains("array") ? measured.at("array").get<double>() : 1.0;
  const double seconds = (options_.now() - running_[evaluation.id]) / mates;  // its share
  running_.erase(evaluation.id);
  busy_seconds_ += seconds;
  ++measured_;
  const auto name = options_.label(evaluation.candidate);
  const bool usable = is_usable(evaluation);
  add(evaluation);
  if (options_.terminal) return;
  auto what = std::string(to_string(evaluation.status));
  if (!usable) {
    what += ", " + evaluation.reason;
  } else if (const double value = options_.value(evaluation); !std::isnan(value)) {
    what = options_.objective + " " + number_text(value);
  }
  out_ << "trained " << name << " replicate " << evaluation.replicate << ": " << what << " ("
       << human_duration(seconds) << ")\n"
       << std::flush;
}

void ProgressDisplay::count(const Evaluation& evaluation) {
  const std::lock_guard lock(mutex_);
  add(evaluation);
}

void ProgressDisplay::add(const Evaluation& evaluation) {
  if (!is_usable(evaluation)) {
    ++failures_;
    return;
  }
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
  if (options_.terminal) {
    if (last_) rewrite(*last_);
    return;
  }
  // A line of its own: that of the generation was written before its hypervolume was known.
  out_ << "after " << indicator.asked << " asked: " << quality() << '\n' << std::flush;
}

std::string ProgressDisplay::quality() const {
  if (!options_.several) {
    return best_ ? "best " + number_text(*best_) + " " + best_label_ : std::string();
  }
  if (!indicator_) return {};
  return "HV " + fixed_text(indicator_->value, 3) + ", front " + std::to_string(indicator_->front);
}

/// Asks still to come, at the share of asks that needed a training and the time that one took so
/// far.
double ProgressDisplay::seconds_left(const Progress& progress) const {
  if (measured_ == 0 || options_.expected_asks == 0) return std::numeric_limits<double>::infinity();
  const double each = busy_seconds_ / static_cast<double>(measured_);
  const auto asked = static_cast<double>(std::max<std::int64_t>(progress.asked, 1));
  const double trained_share =
      std::clamp(1.0 - static_cast<double>(progress.reused) / asked, 0.05, 1.0);
  const auto pending =
      static_cast<double>(std::max<std::int64_t>(0, options_.expected_asks - progress.asked));
  const auto in_batch = std::max<std::int64_t>(
      0, progress.asked - std::max(answered_, progress.reused + progress.trained));
  return (pending * trained_share + static_cast<double>(in_batch)) * each / options_.workers;
}

std::string ProgressDisplay::counts(const Progress& progress) const {
  std::string text = of(progress.asked, options_.expected_asks) + " asked, " +
                     std::to_string(progress.trained) + " trained, " +
                     std::to_string(progress.reused) + " known, " + std::to_string(failures_) +
                     " failed";
  if (options_.terminal || !options_.several) {
    if (const auto words = quality(); !words.empty()) text += ", " + words;
  }
  text += ", " + human_duration(options_.now() - started_) + " elapsed";
  const double left = seconds_left(progress);
  if (left < std::numeric_limits<double>::infinity()) text += ", " + human_duration(left) + " left";
  return text;
}

void ProgressDisplay::rewrite(const Progress& progress) {
  const auto line =
      "gen " + of(progress.batch + 1, options_.expected_batches) + "  " + counts(progress);
  const auto width = static_cast<std::size_t>(std::max(20, options_.width - 1));
  out_ << '\r' << shortened(line, width) << "\x1b[K" << std::flush;
  line_open_ = true;
}

}  // namespace nas
