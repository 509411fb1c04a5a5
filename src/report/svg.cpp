#include "report/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "core/format.hpp"

namespace nas {

namespace {

constexpr double kWidth = 920;
constexpr double kHeight = 520;
constexpr double kLeft = 72;
constexpr double kRight = 24;
constexpr double kTop = 64;
constexpr double kBottom = 62;
constexpr const char* kInk = "#1f2933";
constexpr const char* kMuted = "#6b7785";
constexpr const char* kBest = "#0b6e4f";
constexpr const char* kBaseline = "#c0392b";

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string coordinate(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.1f", value);
  return buffer.data();
}

std::string tick_text(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(),
                value >= 100 || value == std::floor(value) ? "%.0f" : "%.3g", value);
  return buffer.data();
}

std::string value_text(double value) {
  if (value >= 1e5) return human_count(value);
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.2f", value);
  return buffer.data();
}

/// A step of 1, 2 or 5 times a power of ten that divides a range into at most `most` parts.
double nice_step(double range, int most) {
  const double rough = range / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10.0 * power;
}

/// From data to the page, linear or logarithmic.
struct Axis {
  double low = 0, high = 1, from = 0, to = 1;
  bool logarithmic = false;

  [[nodiscard]] double operator()(double value) const {
    const auto scale = [this](double v) { return logarithmic ? std::log(v) : v; };
    return from + (scale(value) - scale(low)) / (scale(high) - scale(low)) * (to - from);
  }
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (logarithmic && high / low > 4) {
      for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10) {
        for (const double factor : {1.0, 2.0, 5.0}) {
          if (factor * power >= low && factor * power <= high) ticks.push_back(factor * power);
        }
      }
      if (ticks.size() >= 3) return ticks;
      ticks.clear();
    }
    const double step = nice_step(high - low, 7);
    for (double tick = std::ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step) {
      ticks.push_back(tick);
    }
    return ticks;
  }
};

class Canvas {
 public:
  Canvas() {
    svg_
        << R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 520" width="920" height="520" )"
        << R"(font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="13">)" << '\n'
        << R"(<rect width="920" height="520" fill="#ffffff"/>)" << '\n';
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, double width,
            const char* more = "") {
    svg_ << "<line x1=\"" << coordinate(x1) << "\" y1=\"" << coordinate(y1) << "\" x2=\""
         << coordinate(x2) << "\" y2=\"" << coordinate(y2) << "\" stroke=\"" << colour
         << "\" stroke-width=\"" << coordinate(width) << "\" " << more << "/>\n";
  }
  void text(double x, double y, const std::string& text, const char* anchor, const char* colour,
            const char* more = "") {
    svg_ << "<text x=\"" << coordinate(x) << "\" y=\"" << coordinate(y) << "\" text-anchor=\""
         << anchor << "\" fill=\"" << colour << "\" " << more << ">" << escaped(text)
         << "</text>\n";
  }
  /// A label on a white ground, so that points behind it do not disturb.
  void label(double x, double y, const std::string& words, const char* anchor, const char* colour) {
    text(x, y, words, anchor, "#ffffff",
         "stroke=\"#ffffff\" stroke-width=\"5\" stroke-linejoin=\"round\"");
    text(x, y, words, anchor, colour);
  }
  void circle(double x, double y, double radius, const std::string& fill, const std::string& stroke,
              const std::string& tooltip) {
    svg_ << "<circle cx=\"" << coordinate(x) << "\" cy=\"" << coordinate(y) << "\" r=\""
         << coordinate(radius) << "\" fill=\"" << fill << "\" stroke=\"" << stroke
         << "\" stroke-width=\"1.2\"><title>" << escaped(tooltip) << "</title></circle>\n";
  }
  void rectangle(double x, double y, double width, double height, const char* fill) {
    svg_ << "<rect x=\"" << coordinate(x) << "\" y=\"" << coordinate(y) << "\" width=\""
         << coordinate(width) << "\" height=\"" << coordinate(height) << "\" fill=\"" << fill
         << "\"/>\n";
  }
  void path(const std::string& commands, const char* colour, double width) {
    svg_ << "<path d=\"" << commands << "\" fill=\"none\" stroke=\"" << colour
         << "\" stroke-width=\"" << coordinate(width) << "\" stroke-linejoin=\"round\"/>\n";
  }
  [[nodiscard]] std::string str() const { return svg_.str() + "</svg>\n"; }

 private:
  std::ostringstream svg_;
};

/// Values of usable asks.
std::vector<double> usable_values(const RunSummary& run) {
  std::vector<double> values;
  for (const auto& ask : run.asks) {
    if (is_usable(*run.by_id.at(ask.evaluation))) values.push_back(ask.fitness.front());
  }
  return values;
}

Axis vertical_axis(std::vector<double> values, const RunSummary& run) {
  std::sort(values.begin(), values.end());
  const auto last = values.size() - 1;
  double low = values.front();
  double high = values[static_cast<std::size_t>(std::ceil(0.97 * static_cast<double>(last)))];
  // Many exploded trainings would still flatten everything else.
  const double upper_quartile =
      values[static_cast<std::size_t>(std::ceil(0.75 * static_cast<double>(last)))];
  high = std::min(high, upper_quartile + 3 * (upper_quartile - values.front()));
  if (run.baseline) {
    low = std::min(low, run.baseline->value);
    high = std::max(high, run.baseline->value);
  }
  Axis axis;
  axis.logarithmic = low > 0 && high / low > 4;
  if (axis.logarithmic) {
    const double margin = std::pow(high / low, 0.08);
    axis.low = low / margin;
    axis.high = high * margin;
  } else {
    const double margin = high > low ? 0.08 * (high - low) : 0.05 * std::max(1.0, std::abs(low));
    axis.low = low - 1.4 * margin;
    axis.high = high + margin;
  }
  axis.from = kHeight - kBottom;
  axis.to = kTop;
  return axis;
}

void draw_frame(Canvas& canvas, const RunSummary& run, const Axis& x, const Axis& y) {
  bool shaded = false;
  for (std::size_t i = 0; i < run.asks.size();) {
    std::size_t end = i;
    while (end < run.asks.size() && run.asks[end].batch == run.asks[i].batch) ++end;
    const double left = x(static_cast<double>(i) + 0.5);
    if (shaded && run.batches.size() <= 60) {
      canvas.rectangle(left, kTop, x(static_cast<double>(end) + 0.5) - left,
                       kHeight - kTop - kBottom, "#f3f6f9");
    }
    shaded = !shaded;
    i = end;
  }
  for (const double tick : y.ticks()) {
    canvas.line(kLeft, y(tick), kWidth - kRight, y(tick), "#dfe5ea", 1);
    canvas.text(kLeft - 8, y(tick) + 4, tick_text(tick), "end", kMuted);
  }
  const double step = std::max(1.0, nice_step(x.high - x.low, 10));
  for (double tick = step; tick <= static_cast<double>(run.asks.size()); tick += step) {
    canvas.text(x(tick), kHeight - kBottom + 20, tick_text(tick), "middle", kMuted);
  }
  canvas.line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, kMuted, 1);
  const auto axis_name = run.objective + (y.logarithmic ? " (log scale)" : "");
  canvas.text(20, (kTop + kHeight - kBottom) / 2, axis_name, "middle", kInk,
              "transform=\"rotate(-90 20 261)\"");
  canvas.text((kLeft + kWidth - kRight) / 2, kHeight - 14,
              "candidate, in the order asked (bands: generations; hollow: answered by an earlier "
              "evaluation; x: failed)",
              "middle", kInk);
}

void draw_points(Canvas& canvas, const RunSummary& run, const Axis& x, const Axis& y) {
  for (const auto& ask : run.asks) {
    const auto& evaluation = *run.by_id.at(ask.evaluation);
    const double cx = x(static_cast<double>(ask.number + 1));
    const auto name = run.label(evaluation.candidate);
    if (!is_usable(evaluation)) {
      canvas.text(cx, kTop + 5, "\u00d7", "middle", kBaseline, "font-size=\"16\"");
      continue;
    }
    const double value = ask.fitness.front();
    if (value > y.high) {  // clipped: an arrow at the edge
      canvas.text(cx, kTop + 6, "\u2191", "middle", kMuted);
      continue;
    }
    canvas.circle(cx, y(value), 4, ask.reused ? "#ffffff" : "#5b8fc7", "#2f5f93",
                  name + ": " + shortest(value));
  }
}

void draw_best(Canvas& canvas, const RunSummary& run, const Axis& x, const Axis& y) {
  double best = std::numeric_limits<double>::infinity();
  double best_x = 0;
  std::string commands;
  for (const auto& ask : run.asks) {
    if (!is_usable(*run.by_id.at(ask.evaluation))) continue;
    const double value = ask.fitness.front();
    if (value >= best || value > y.high) continue;
    const double cx = x(static_cast<double>(ask.number + 1));
    if (commands.empty()) {
      commands = "M" + coordinate(cx) + " " + coordinate(y(value));
    } else {
      commands += "H" + coordinate(cx) + "V" + coordinate(y(value));
    }
    best = value;
    best_x = cx;
  }
  if (commands.empty()) return;
  canvas.path(commands + "H" + coordinate(x(static_cast<double>(run.asks.size()))), kBest, 2.5);
  canvas.circle(best_x, y(best), 6, kBest, kBest, "best");
  const bool left_half = best_x < kWidth / 2;
  const auto words = run.ranking.front().label + ": " + value_text(best);
  canvas.label(left_half ? best_x : best_x + 6, y(best) + 21, words, left_half ? "start" : "end",
               kBest);
}

}  // namespace

std::string progress_svg(const RunSummary& run) {
  Canvas canvas;
  const auto values = usable_values(run);
  canvas.text(kLeft, 26, run.config.value("name", "search"), "start", kInk,
              "font-size=\"18\" font-weight=\"bold\"");
  const auto corpus = run.facts.value("corpus", "");
  canvas.text(kLeft, 46,
              std::to_string(run.asks.size()) + " candidates" +
                  (corpus.empty() ? "" : " on " + corpus) + ", " +
                  std::to_string(run.failures.size()) + " failed; one training each unless stated",
              "start", kMuted);
  if (values.empty()) {
    canvas.text(kWidth / 2, kHeight / 2, "no candidate could be evaluated", "middle", kInk);
    return canvas.str();
  }
  const Axis y = vertical_axis(values, run);
  const Axis x{.low = 0.0,
               .high = static_cast<double>(run.asks.size()) + 1,
               .from = kLeft,
               .to = kWidth - kRight,
               .logarithmic = false};
  draw_frame(canvas, run, x, y);
  if (run.baseline) {
    canvas.line(kLeft, y(run.baseline->value), kWidth - kRight, y(run.baseline->value), kBaseline,
                1.5, "stroke-dasharray=\"7 5\"");
  }
  draw_points(canvas, run, x, y);
  draw_best(canvas, run, x, y);
  if (run.baseline) {
    canvas.label(kWidth - kRight - 4, y(run.baseline->value) - 6,
                 "baseline " + value_text(run.baseline->value), "end", kBaseline);
  }
  return canvas.str();
}

}  // namespace nas
