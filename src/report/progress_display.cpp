#include "report/progress_display.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/format.hpp"
#include "report/summary.hpp"

namespace nas {

namespace {

std::string two_digits(double value) {
  if (value >= 1e5) return human_count(value);
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.2f", value);
  return buffer.data();
}

}  // namespace

ProgressDisplay::ProgressDisplay(std::ostream& out, Options options)
    : out_(out), options_(std::move(options)), best_(std::numeric_limits<double>::infinity()) {
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
  const double seconds = options_.now() - running_[evaluation.id];
  running_.erase(evaluation.id);
  busy_seconds_ += seconds;
  ++measured_;
  const auto name = options_.label(evaluation.candidate);
  const bool usable = is_usable(evaluation);
  const double value = usable ? options_.value(evaluation) : 0.0;
  add(evaluation);
  if (options_.terminal) return;
  out_ << "trained " << name << " replicate " << evaluation.replicate << ": "
       << (usable ? options_.objective + " " + two_digits(value)
                  : std::string(to_string(evaluation.status)) + ", " + evaluation.reason)
       << " (" << human_duration(seconds) << ")\n"
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
  if (value >= best_) return;
  best_ = value;
  best_label_ = options_.label(evaluation.candidate);
}

/// Asks still to come, at the share of asks that needed a training and the time that one took so
/// far.
double ProgressDisplay::seconds_left(const Progress& progress) const {
  if (measured_ == 0) return std::numeric_limits<double>::infinity();
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
  std::string text = std::to_string(progress.asked) + "/" + std::to_string(options_.expected_asks) +
                     " asked, " + std::to_string(progress.trained) + " trained, " +
                     std::to_string(progress.reused) + " known, " + std::to_string(failures_) +
                     " failed";
  if (!best_label_.empty()) text += ", best " + two_digits(best_) + " " + best_label_;
  text += ", " + human_duration(options_.now() - started_) + " elapsed";
  const double left = seconds_left(progress);
  if (left < std::numeric_limits<double>::infinity()) text += ", " + human_duration(left) + " left";
  return text;
}

void ProgressDisplay::rewrite(const Progress& progress) {
  std::string line = "gen " + std::to_string(progress.batch + 1) + "/" +
                     std::to_string(options_.expected_batches) + "  " + counts(progress);
  const auto width = static_cast<std::size_t>(std::max(20, options_.width - 1));
  if (line.size() > width) line.resize(width);
  out_ << '\r' << line << "\x1b[K" << std::flush;
  line_open_ = true;
}

}  // namespace nas
