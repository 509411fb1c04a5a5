#include "report/svg.hpp"

#include <cmath>
#include <optional>

#include "core/format.hpp"
#include "report/canvas.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

constexpr double kWidth = 920;
constexpr double kHeight = 520;
constexpr Frame kFrame{.left = 72, .top = 64, .right = kWidth - 24, .bottom = kHeight - 62};

constexpr const char* kNothing = "no candidate could be evaluated";

Axis ask_axis(const RunSummary& run) {
  return {.low = 0.0,
          .high = static_cast<double>(run.asks.size()) + 1,
          .from = kFrame.left,
          .to = kFrame.right};
}

void draw_batches(Canvas& canvas, const RunSummary& run, const Axis& x) {
  constexpr std::size_t kMost = 60;  // narrower bands are noise
  if (run.batches.size() > kMost) return;
  double begin = 0.5;
  bool shaded = false;
  for (const auto& batch : run.batches) {
    const double end = begin + static_cast<double>(batch.asked);
    if (shaded) {
      canvas.rectangle(x(begin), kFrame.top, x(end) - x(begin), kFrame.height(), "#f3f6f9");
    }
    shaded = !shaded;
    begin = end;
  }
}

void draw_ask_numbers(Canvas& canvas, const Axis& x, const std::string& name) {
  for (const auto& [value, words] : x.ticks(10)) {
    if (value < 1 || value >= x.high || value != std::floor(value)) continue;
    canvas.text(x(value), kFrame.bottom + 20, words, "middle", kMuted);
  }
  canvas.line(kFrame.left, kFrame.bottom, kFrame.right, kFrame.bottom, kMuted, 1);
  canvas.text((kFrame.left + kFrame.right) / 2, kHeight - 14, name, "middle", kInk);
}

void draw_baseline(Canvas& canvas, double y, const std::string& words) {
  canvas.line(kFrame.left, y, kFrame.right, y, kBaselineColour, 1.5, "stroke-dasharray=\"7 5\"");
  canvas.label(kFrame.right - 4, y - 6, words, "end", kBaselineColour);
}

/// A step line that grows point by point.
class Steps {
 public:
  void to(double x, double y) {
    commands_ += commands_.empty() ? "M" + coordinate(x) + " " : "H" + coordinate(x) + "V";
    commands_ += coordinate(y);
  }
  void draw(Canvas& canvas, double end) const {
    if (!commands_.empty()) canvas.path(commands_ + "H" + coordinate(end), kBestColour, 2.5);
  }

 private:
  std::string commands_;
};

void draw_points(Canvas& canvas, const RunSummary& run, const Axis& x, const Axis& y) {
  const auto& objective = run.objectives.front();
  for (const auto& ask : run.asks) {
    const double cx = x(static_cast<double>(ask.number + 1));
    const auto name = run.label(run.candidate(ask));
    if (!run.usable(ask)) {
      const bool rejected = run.status(ask) == Status::rejected;
      canvas.mark(cx, kFrame.top, "\u00d7", kBaselineColour,
                  name + (rejected ? ": rejected by constraints" : ": failed"));
      continue;
    }
    const double value = objective.natural(ask.fitness.front());
    const auto words = name + ": " + shortest(value);
    if (value > y.high) {
      canvas.mark(cx, kFrame.top + 2, "\u2191", kMuted, words);
    } else if (value < y.low) {
      canvas.mark(cx, kFrame.bottom - 8, "\u2193", kMuted, words);
    } else {
      canvas.circle(cx, y(value), 4, ask.reused ? "#ffffff" : "#5b8fc7", "#2f5f93", words);
    }
  }
}

void draw_best(Canvas& canvas, const RunSummary& run, const Axis& x, const Axis& y) {
  const auto& objective = run.objectives.front();
  const Ask* best = nullptr;
  Steps steps;
  const auto place = [&](const Ask& ask) {
    return std::pair(x(static_cast<double>(ask.number + 1)),
                     y(objective.natural(ask.fitness.front())));
  };
  for (const auto& ask : run.asks) {
    if (!run.usable(ask) || !y.holds(objective.natural(ask.fitness.front()))) continue;
    if (best != nullptr && ask.fitness.front() >= best->fitness.front()) continue;
    best = &ask;
    const auto [cx, cy] = place(ask);
    steps.to(cx, cy);
  }
  if (best == nullptr) return;
  steps.draw(canvas, x(static_cast<double>(run.asks.size())));
  const auto [cx, cy] = place(*best);
  canvas.circle(cx, cy, 6, kBestColour, kBestColour, "best");
  const bool left_half = cx < kWidth / 2;
  constexpr std::size_t kLongest = 60;
  const auto words = shortened(run.label(run.candidate(*best)), kLongest) + ": " +
                     number_text(objective.natural(best->fitness.front()));
  canvas.label(left_half ? cx : cx + 6, objective.maximise ? cy - 11 : cy + 21, words,
               left_half ? "start" : "end", kBestColour);
}

void draw_values(Canvas& canvas, const RunSummary& run) {
  const auto& objective = run.objectives.front();
  std::vector<double> values;
  for (const auto& ask : run.asks) {
    if (run.usable(ask)) values.push_back(objective.natural(ask.fitness.front()));
  }
  std::vector<double> shown;
  if (run.baseline) shown.push_back(run.baseline->values.front());
  auto y = value_axis(values, objective.maximise, shown);
  y.from = kFrame.bottom;
  y.to = kFrame.top;
  const auto x = ask_axis(run);
  draw_batches(canvas, run, x);
  canvas.left_axis(kFrame, y, objective.title());
  draw_ask_numbers(canvas, x,
                   "candidate, in the order asked (bands: generations; hollow: answered by an "
                   "earlier evaluation; x: failed)");
  draw_points(canvas, run, x, y);
  draw_best(canvas, run, x, y);
  if (run.baseline) {
    draw_baseline(canvas, y(shown.front()), "baseline " + number_text(shown.front()));
  }
}

void draw_hypervolume(Canvas& canvas, const RunSummary& run) {
  std::optional<double> baseline;
  if (run.baseline) {
    const double alone = run.scaled_hypervolume({run.baseline->fitness});
    if (std::isfinite(alone) && alone > 0.0) baseline = alone;
  }
  std::vector<double> values;
  for (const auto& indicator : run.indicators) values.push_back(indicator.value);
  auto shown = values;  // no outliers: it only grows
  if (baseline) shown.push_back(*baseline);
  auto y = value_axis(values, /*maximise=*/true, shown);
  y.from = kFrame.bottom;
  y.to = kFrame.top;
  const auto x = ask_axis(run);
  draw_batches(canvas, run, x);
  canvas.left_axis(kFrame, y, "hypervolume");
  draw_ask_numbers(canvas, x, "candidates asked for (bands: generations)");

  Steps steps;
  constexpr std::size_t kMostPoints = 200;
  for (const auto& indicator : run.indicators) {
    const double cx = x(static_cast<double>(indicator.asked));
    steps.to(cx, y(indicator.value));
    if (run.indicators.size() > kMostPoints) continue;
    canvas.circle(cx, y(indicator.value), 3, kBestColour, kBestColour,
                  "after " + std::to_string(indicator.asked) + " asks: " +
                      shortest(indicator.value) + ", front of " + std::to_string(indicator.front));
  }
  steps.draw(canvas, x(static_cast<double>(run.asks.size())));
  if (baseline) {
    draw_baseline(canvas, y(*baseline), "baseline alone " + number_text(*baseline));
  }
  const auto& last = run.indicators.back();
  canvas.label(kFrame.right - 4, y(last.value) - 11,
               number_text(last.value) + ", front of " + std::to_string(last.front), "end",
               kBestColour);
}

/// What a value stands for, where something was trained for it.
std::string trainings_text(const RunSummary& run) {
  if (run.search.train_seconds == 0.0) return {};
  return run.answered_by_means() ? "; means over a table's trainings"
                                 : "; one training each unless stated";
}

}  // namespace

std::string progress_svg(const RunSummary& run) {
  Canvas canvas(kWidth, kHeight);
  const auto corpus = run.facts.value("corpus", "");
  canvas.title(run.config.value("name", "search"),
               std::to_string(run.asks.size()) + " candidates" +
                   (corpus.empty() ? "" : " on " + corpus) + ", " +
                   std::to_string(run.search.failures.size()) + " failed" +
                   (run.rejected.empty()
                        ? ""
                        : ", " + std::to_string(run.rejected.size()) + " rejected by constraints") +
                   trainings_text(run));
  if (run.ranking.empty()) {
    canvas.text(kWidth / 2, kHeight / 2, kNothing, "middle", kInk);
  } else if (!run.several()) {
    draw_values(canvas, run);
  } else if (run.indicators.empty()) {
    canvas.text(kWidth / 2, kHeight / 2, "no hypervolume was recorded", "middle", kInk);
  } else {
    draw_hypervolume(canvas, run);
  }
  return canvas.str();
}

}  // namespace nas
