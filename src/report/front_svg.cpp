#include <algorithm>
#include <set>

#include "core/format.hpp"
#include "report/canvas.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

constexpr const char* kPale = "#c3d3e4";
constexpr const char* kPaleEdge = "#8fa9c4";

/// Two objectives of a run on a part of the page.
struct Panel {
  const RunSummary& run;
  std::size_t horizontal, vertical;  ///< objectives
  Frame frame;
  Axis x{}, y{};

  [[nodiscard]] double px(const RankedCandidate& candidate) const {
    return x(candidate.values[horizontal]);
  }
  [[nodiscard]] double py(const RankedCandidate& candidate) const {
    return y(candidate.values[vertical]);
  }
};

/// @param among  the candidates that must be considered.
template <class Among>
Axis objective_axis(const RunSummary& run, std::size_t objective, Among among) {
  std::vector<double> values;
  std::vector<double> shown;
  for (const auto& candidate : run.ranking) {
    if (!among(candidate)) continue;
    values.push_back(candidate.values[objective]);
    if (candidate.on_front) shown.push_back(values.back());
  }
  if (run.baseline) shown.push_back(run.baseline->values[objective]);
  return value_axis(values, run.objectives[objective].maximise, shown);
}

/// @param vertical  an objective, drawn against the first one.
Panel make_panel(const RunSummary& run, std::size_t vertical, const Frame& frame) {
  Panel panel{.run = run, .horizontal = 0, .vertical = vertical, .frame = frame};
  panel.x = objective_axis(run, 0, [](const auto& /*candidate*/) { return true; });
  panel.x.from = frame.left;
  panel.x.to = frame.right;
  // What lies beyond one axis, such as an exploded training run, shall not stretch the other.
  panel.y = objective_axis(run, vertical, [&panel](const auto& candidate) {
    return panel.x.holds(candidate.values.front());
  });
  panel.y.from = frame.bottom;
  panel.y.to = frame.top;
  return panel;
}

std::string tooltip(const RunSummary& run, const RankedCandidate& candidate) {
  auto text = shortened(candidate.label, 100);
  for (std::size_t i = 0; i < candidate.values.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + run.objectives[i].name + " " + shortest(candidate.values[i]);
    const auto error = candidate.standard_errors[i].value_or(0.0);
    if (error > 0.0) text += " (s.e. " + number_text(error) + ")";
  }
  return text + ", n = " + std::to_string(candidate.n);
}

/// Of how many dominated candidates one is drawn: more of them only make the file large.
std::size_t thinning(const RunSummary& run) {
  constexpr std::size_t kMostDrawn = 3000;
  return 1 + (run.ranking.size() - run.front.size()) / kMostDrawn;
}

/// Candidates off the front; those beyond an axis as arrows at its edge.
void draw_others(Canvas& canvas, const Panel& panel, Labels& labels) {
  const auto every = thinning(panel.run);
  std::size_t number = 0;
  for (const auto& candidate : panel.run.ranking) {
    if (candidate.on_front || number++ % every != 0) continue;
    const double horizontal = candidate.values[panel.horizontal];
    const double vertical = candidate.values[panel.vertical];
    const auto words = tooltip(panel.run, candidate);
    if (panel.x.holds(horizontal) && panel.y.holds(vertical)) {
      const double cx = panel.px(candidate);
      const double cy = panel.py(candidate);
      canvas.circle(cx, cy, 3.5, kPale, kPaleEdge, words);
      labels.avoid({cx - 4, cy - 4, cx + 4, cy + 4});
      continue;
    }
    const bool beside = !panel.x.holds(horizontal);
    const bool above = beside ? horizontal > panel.x.high : vertical > panel.y.high;
    // A value clamped to its axis, which a logarithm can bear.
    const double cx = panel.x(std::clamp(horizontal, panel.x.low, panel.x.high));
    const double cy = panel.y(std::clamp(vertical, panel.y.low, panel.y.high));
    const char* arrow = beside ? (above ? "\u2192" : "\u2190") : (above ? "\u2191" : "\u2193");
    canvas.mark(std::clamp(cx, panel.frame.left + 7, panel.frame.right - 7),
                std::clamp(cy, panel.frame.top + 7, panel.frame.bottom - 7), arrow, kPaleEdge,
                words);
  }
}

/// The boundary of what the front attains, from one bad edge of the frame to the other.
void draw_staircase(Canvas& canvas, const Panel& panel, Labels& labels) {
  const auto& objectives = panel.run.objectives;
  const double bad_y = panel.y(objectives[panel.vertical].maximise ? panel.y.low : panel.y.high);
  const double bad_x = panel.x(objectives[panel.horizontal].maximise ? panel.x.low : panel.x.high);
  std::string commands;
  double y = bad_y;
  double x = 0.0;
  const auto across_to = [&](double end) {
    commands += "H" + coordinate(end);
    labels.avoid({std::min(x, end), y - 1, std::max(x, end), y + 1});
    x = end;
  };
  for (const auto i : panel.run.front) {  // from the best in the first objective
    const auto& member = panel.run.ranking[i];
    if (commands.empty()) {
      x = panel.px(member);
      commands = "M" + coordinate(x) + " " + coordinate(y);
    } else {
      across_to(panel.px(member));
    }
    const double end = panel.py(member);
    commands += "V" + coordinate(end);
    labels.avoid({x - 1, std::min(y, end), x + 1, std::max(y, end)});
    y = end;
  }
  if (commands.empty()) return;
  across_to(bad_x);
  canvas.path(commands, kBestColour, 1.6);
}

/// The members that are named, the most telling first: the knee, the best in each objective, then
/// evenly along the front.
std::vector<std::size_t> named_members(const RunSummary& run) {
  constexpr std::size_t kMost = 6;
  std::vector<std::size_t> order;
  if (run.knee) order.push_back(*run.knee);
  for (std::size_t objective = 0; objective < run.objectives.size(); ++objective) {
    const auto best = std::min_element(
        run.front.begin(), run.front.end(), [&run, objective](std::size_t a, std::size_t b) {
          return run.ranking[a].fitness[objective] < run.ranking[b].fitness[objective];
        });
    if (best != run.front.end()) order.push_back(*best);
  }
  for (const std::size_t part : {1U, 3U, 2U, 0U, 4U}) {
    if (!run.front.empty()) order.push_back(run.front[part * (run.front.size() - 1) / 4]);
  }
  std::set<std::size_t> seen;
  std::erase_if(order, [&seen](std::size_t i) { return !seen.insert(i).second; });
  if (order.size() > kMost) order.resize(kMost);
  return order;
}

void draw_baseline(Canvas& canvas, const Panel& panel, Labels& labels) {
  const auto& baseline = *panel.run.baseline;
  const double cx = panel.px(baseline);
  const double cy = panel.py(baseline);
  canvas.path("M" + coordinate(cx - 6) + " " + coordinate(cy - 6) + "L" + coordinate(cx + 6) + " " +
                  coordinate(cy + 6) + "M" + coordinate(cx - 6) + " " + coordinate(cy + 6) + "L" +
                  coordinate(cx + 6) + " " + coordinate(cy - 6),
              kBaselineColour, 2.4);
  canvas.circle(cx, cy, 8, "none", kBaselineColour, "baseline " + tooltip(panel.run, baseline));
  labels.keep_clear(cx, cy, 9);
  labels.place(cx, cy, "baseline", kBaselineColour);
}

void draw_panel(Canvas& canvas, const Panel& panel) {
  const auto& run = panel.run;
  canvas.left_axis(panel.frame, panel.y, run.objectives[panel.vertical].title());
  canvas.bottom_axis(panel.frame, panel.x, run.objectives[panel.horizontal].title());
  Labels labels(canvas, panel.frame);
  draw_others(canvas, panel, labels);
  if (run.objectives.size() == 2) draw_staircase(canvas, panel, labels);
  // The white edges of many points would cover their neighbours.
  const bool dense = run.front.size() > 60;
  for (const auto i : run.front) {
    const auto& member = run.ranking[i];
    const double cx = panel.px(member);
    const double cy = panel.py(member);
    const bool knee = run.knee == i;
    if (knee) canvas.circle(cx, cy, 9, "none", kBestColour, "knee");
    canvas.circle(cx, cy, dense ? 2.5 : 5, kBestColour, dense ? kBestColour : "#ffffff",
                  tooltip(run, member));
    labels.keep_clear(cx, cy, knee ? 9 : 5);
  }
  if (run.baseline) draw_baseline(canvas, panel, labels);
  const auto longest = static_cast<std::size_t>(panel.frame.width() / 11);
  for (const auto i : named_members(run)) {
    const auto& member = run.ranking[i];
    const double cx = panel.px(member);
    const double cy = panel.py(member);
    const bool knee = run.knee == i;
    const auto words = (knee ? "knee: " : "") + shortened(member.label, longest);
    if (!labels.place(cx, cy, words, kBestColour) && knee) {
      labels.place(cx, cy, "knee", kBestColour);  // room for this, perhaps
    }
  }
}

std::string subtitle(const RunSummary& run) {
  auto text = std::to_string(run.front.size()) + " non-dominated of " +
              std::to_string(run.ranking.size()) + " candidates";
  if (run.objectives.size() == 2) {
    text += std::string("; best: ") + (run.objectives[1].maximise ? "upper " : "lower ") +
            (run.objectives[0].maximise ? "right" : "left");
  }
  if (const auto every = thinning(run); every > 1) {
    text += "; of the others one in " + std::to_string(every) + " is drawn";
  }
  return text;
}

}  // namespace

std::string front_svg(const RunSummary& run) {
  const auto panels = std::max<std::size_t>(run.objectives.size(), 2) - 1;
  const std::size_t columns = panels == 1 ? 1 : 2;
  const double width = panels == 1 ? 920 : 620;
  const double height = panels == 1 ? 560 : 460;
  constexpr double kTop = 64;
  const auto rows = (panels + columns - 1) / columns;
  Canvas canvas(width * static_cast<double>(columns), kTop + height * static_cast<double>(rows));
  canvas.title(run.config.value("name", "search"), subtitle(run));
  if (run.ranking.empty() || !run.several()) {
    canvas.text(width * static_cast<double>(columns) / 2, kTop + height / 2,
                run.several() ? "no candidate could be evaluated"
                              : "one objective: the front is its best candidate",
                "middle", kInk);
    return canvas.str();
  }
  for (std::size_t i = 0; i < panels; ++i) {
    const double left = width * static_cast<double>(i % columns);
    const double top = kTop + height * static_cast<double>(i / columns);
    const Frame frame{left + 72, top + 4, left + width - 24, top + height - 62};
    draw_panel(canvas, make_panel(run, i + 1, frame));
  }
  return canvas.str();
}

}  // namespace nas
