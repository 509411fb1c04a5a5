#include "report/stage_display.hpp"

#include <algorithm>
#include <utility>

#include "core/format.hpp"
#include "report/text.hpp"

namespace nas {

StageDisplay::StageDisplay(std::ostream& out, Options options)
    : out_(out), options_(std::move(options)) {}

StageDisplay::~StageDisplay() {
  if (line_open_) out_ << '\n' << std::flush;
}

void StageDisplay::update(const Progress& progress) {
  if (progress.evaluation == nullptr) return;
  if (options_.terminal) {
    const auto width = static_cast<std::size_t>(std::max(20, options_.width - 1));
    out_ << '\r' << shortened(line(progress), width) << "\x1b[K" << std::flush;
    line_open_ = true;
  } else if (progress.kind == Progress::Kind::evaluation_finished) {
    out_ << line(progress) << '\n' << std::flush;
  }
}

std::string StageDisplay::line(const Progress& progress) const {
  const auto& evaluation = *progress.evaluation;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  const auto done = progress.trained + progress.reused;
  auto text = options_.stage + " " + std::to_string(done) + "/" + std::to_string(options_.total) +
              ", " + human_duration(seconds) + " elapsed";
  if (progress.trained > 0 && done < options_.total) {
    const auto left = static_cast<double>(options_.total - done);
    text += ", " + human_duration(left * seconds / static_cast<double>(progress.trained)) + " left";
  }
  text += ": " + options_.label(evaluation.candidate) + " replicate " +
          std::to_string(evaluation.replicate);
  const bool failed =
      progress.kind == Progress::Kind::evaluation_finished && !is_usable(evaluation);
  return failed ? text + ", " + std::string(to_string(evaluation.status)) + ": " + evaluation.reason
                : text;
}

}  // namespace nas
