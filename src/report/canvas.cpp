#include "report/canvas.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "report/text.hpp"

namespace nas {

namespace {

constexpr double kFontSize = 13.0;
/// Of a character of the usual sans-serif fonts, as a part of the font size; a little generous.
constexpr double kCharacterWidth = 0.58;

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

/// A step of 1, 2 or 5 times a power of ten that divides a range into at most `most` parts.
double nice_step(double range, int most) {
  const double rough = range / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10.0 * power;
}

/// A tick's text, with as many decimals as distinguish it from the next one, a step away.
std::string tick_text(double value, double step) {
  static constexpr std::array<std::pair<double, const char*>, 4> kPrefixes{
      {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}}};
  const double size = std::abs(value);
  const char* prefix = "";
  for (const auto& [factor, letter] : kPrefixes) {
    if (size < factor || size < 1e4) continue;
    value /= factor;
    step /= factor;
    prefix = letter;
    break;
  }
  if (std::abs(value) >= 1e5 || (size > 0.0 && size < 1e-3)) {
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.3g", value);
    return std::string(buffer.data()) + prefix;
  }
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 6);
  return fixed_text(value, decimals) + prefix;
}

std::vector<Axis::Tick> logarithmic_ticks(const Axis& axis) {
  constexpr int kMost = 12;
  const int first = static_cast<int>(std::floor(std::log10(axis.low)));
  const int last = static_cast<int>(std::ceil(std::log10(axis.high)));
  const auto between = [&](std::initializer_list<double> factors, int stride) {
    std::vector<Axis::Tick> ticks;
    for (int power = first; power <= last; power += stride) {
      for (const double factor : factors) {
        const double value = factor * std::pow(10.0, power);
        if (axis.holds(value)) ticks.push_back({value, tick_text(value, value)});
      }
    }
    return ticks;
  };
  const auto all = between({1.0, 2.0, 5.0}, 1);
  if (all.size() <= kMost) return all;
  return between({1.0}, 1 + (last - first) / kMost);
}

}  // namespace

std::string coordinate(double value) { return fixed_text(value, 1); }

double Axis::operator()(double value) const {
  const auto scale = [this](double v) { return logarithmic ? std::log(v) : v; };
  return from + (scale(value) - scale(low)) / (scale(high) - scale(low)) * (to - from);
}

std::vector<Axis::Tick> Axis::ticks(int most) const {
  if (logarithmic) {
    auto ticks = logarithmic_ticks(*this);
    if (ticks.size() >= 3) return ticks;
  }
  std::vector<Tick> ticks;
  const double step = nice_step(high - low, most);
  const double end = std::floor(high / step + 1e-9);
  for (double i = std::ceil(low / step - 1e-9); i <= end; i += 1.0) {
    const double value = i == 0.0 ? 0.0 : i * step;  // no -0
    ticks.push_back({value, tick_text(value, step)});
  }
  return ticks;
}

Axis value_axis(std::vector<double> values, bool maximise, const std::vector<double>& shown) {
  // As if minimised; turned back below.
  if (maximise) {
    for (auto& value : values) value = -value;
  }
  std::sort(values.begin(), values.end());
  const auto quantile = [&values](double share) {
    return values[static_cast<std::size_t>(
        std::ceil(share * static_cast<double>(values.size() - 1)))];
  };
  double low = values.front();
  // Many exploded training runs would still flatten everything else.
  const double limit = std::min(quantile(0.97), quantile(0.75) + 3 * (quantile(0.75) - low));
  double high = *std::prev(std::upper_bound(values.begin(), values.end(), limit));
  if (maximise) {
    std::swap(low, high);
    low = -low;
    high = -high;
  }
  for (const double value : shown) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  Axis axis;
  // A logarithm would give the most room to the worst of what is maximised.
  // What spans more decades comes close to 0, and is about differences there, not ratios.
  constexpr double kMostRatio = 1e3;
  axis.logarithmic = !maximise && low > 0 && high / low > 4 && high / low < kMostRatio;
  if (axis.logarithmic) {
    const double margin = std::pow(high / low, 0.08);
    axis.low = low / margin;
    axis.high = high * margin;
    return axis;
  }
  double margin = 0.09 * (high - low);
  // So close together that the difference would be lost in rounding: all the same.
  if (margin <= 1e-12 * std::abs(low)) margin = low == 0.0 ? 1.0 : 0.05 * std::abs(low);
  axis.low = low - 1.3 * margin;
  axis.high = high + margin;
  return axis;
}

Canvas::Canvas(double width, double height) {
  const auto w = fixed_text(width, 0);
  const auto h = fixed_text(height, 0);
  svg_ << R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 )" << w << ' ' << h
       << R"(" width=")" << w << R"(" height=")" << h << "\" "
       << R"(font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="13">)" << '\n';
  rectangle(0, 0, width, height, "#ffffff");
}

void Canvas::line(double x1, double y1, double x2, double y2, const char* colour, double width,
                  const char* more) {
  svg_ << "<line x1=\"" << coordinate(x1) << "\" y1=\"" << coordinate(y1) << "\" x2=\""
       << coordinate(x2) << "\" y2=\"" << coordinate(y2) << "\" stroke=\"" << colour
       << "\" stroke-width=\"" << coordinate(width) << "\" " << more << "/>\n";
}

void Canvas::text(double x, double y, const std::string& text, const char* anchor,
                  const char* colour, const std::string& more) {
  svg_ << "<text x=\"" << coordinate(x) << "\" y=\"" << coordinate(y) << "\" text-anchor=\""
       << anchor << "\" fill=\"" << colour << "\" " << more << ">" << escaped(text) << "</text>\n";
}

void Canvas::label(double x, double y, const std::string& words, const char* anchor,
                   const char* colour) {
  text(x, y, words, anchor, "#ffffff",
       "stroke=\"#ffffff\" stroke-width=\"5\" stroke-linejoin=\"round\"");
  text(x, y, words, anchor, colour);
}

void Canvas::mark(double x, double y, const char* character, const char* colour,
                  const std::string& tooltip) {
  svg_ << "<text x=\"" << coordinate(x) << "\" y=\"" << coordinate(y + 5)
       << "\" text-anchor=\"middle\" font-size=\"16\" fill=\"" << colour << "\"><title>"
       << escaped(tooltip) << "</title>" << character << "</text>\n";
}

void Canvas::circle(double x, double y, double radius, const std::string& fill,
                    const std::string& stroke, const std::string& tooltip) {
  svg_ << "<circle cx=\"" << coordinate(x) << "\" cy=\"" << coordinate(y) << "\" r=\""
       << coordinate(radius) << "\" fill=\"" << fill << "\" stroke=\"" << stroke
       << "\" stroke-width=\"1.2\"><title>" << escaped(tooltip) << "</title></circle>\n";
}

void Canvas::rectangle(double x, double y, double width, double height, const char* fill) {
  svg_ << "<rect x=\"" << coordinate(x) << "\" y=\"" << coordinate(y) << "\" width=\""
       << coordinate(width) << "\" height=\"" << coordinate(height) << "\" fill=\"" << fill
       << "\"/>\n";
}

void Canvas::path(const std::string& commands, const char* colour, double width) {
  svg_ << "<path d=\"" << commands << "\" fill=\"none\" stroke=\"" << colour << "\" stroke-width=\""
       << coordinate(width) << "\" stroke-linejoin=\"round\"/>\n";
}

void Canvas::title(const std::string& name, const std::string& below) {
  text(72, 26, name, "start", kInk, "font-size=\"18\" font-weight=\"bold\"");
  text(72, 46, below, "start", kMuted);
}

void Canvas::left_axis(const Frame& frame, const Axis& y, const std::string& name) {
  for (const auto& [value, words] : y.ticks()) {
    line(frame.left, y(value), frame.right, y(value), kGrid, 1);
    text(frame.left - 8, y(value) + 4, words, "end", kMuted);
  }
  const double middle = (frame.top + frame.bottom) / 2;
  const auto turned =
      "transform=\"rotate(-90 " + coordinate(frame.left - 52) + " " + coordinate(middle) + ")\"";
  text(frame.left - 52, middle, name + (y.logarithmic ? ", log scale" : ""), "middle", kInk,
       turned);
}

void Canvas::bottom_axis(const Frame& frame, const Axis& x, const std::string& name) {
  for (const auto& [value, words] : x.ticks(frame.width() > 600 ? 10 : 6)) {
    line(x(value), frame.top, x(value), frame.bottom, kGrid, 1);
    text(x(value), frame.bottom + 20, words, "middle", kMuted);
  }
  line(frame.left, frame.bottom, frame.right, frame.bottom, kMuted, 1);
  text((frame.left + frame.right) / 2, frame.bottom + 44,
       name + (x.logarithmic ? ", log scale" : ""), "middle", kInk);
}

void Labels::keep_clear(double x, double y, double radius) {
  taken_.push_back({x - radius, y - radius, x + radius, y + radius});
}

void Labels::avoid(const Frame& box) { avoided_.push_back(box); }

bool Labels::place(double x, double y, const std::string& words, const char* colour) {
  const double width = kCharacterWidth * kFontSize * static_cast<double>(width_of(words));
  struct Place {
    const char* anchor;
    double x, y, left;  // of the text's beginning or end, and of its box
  };
  std::vector<Place> places;
  for (const double distance : {18.0, 32.0, 46.0}) {
    for (const double side : {1.0, -1.0}) {
      const double base = y + 4 - side * distance;
      places.push_back({"start", x + 5, base, x + 5});
      places.push_back({"end", x - 5, base, x - 5 - width});
      places.push_back({"middle", x, base, x - width / 2});
    }
    if (distance > 18.0) continue;
    places.push_back({"start", x + 11, y + 4, x + 11});
    places.push_back({"end", x - 11, y + 4, x - 11 - width});
  }
  for (const bool choosy : {true, false}) {
    for (const auto& place : places) {
      const Frame box{place.left, place.y - 11, place.left + width, place.y + 4};
      const auto hit = [&box](const Frame& other) {
        return box.left < other.right && other.left < box.right && box.top < other.bottom &&
               other.top < box.bottom;
      };
      if (box.left < frame_.left || box.right > frame_.right || box.top < frame_.top ||
          box.bottom > frame_.bottom || std::any_of(taken_.begin(), taken_.end(), hit) ||
          (choosy && std::any_of(avoided_.begin(), avoided_.end(), hit))) {
        continue;
      }
      canvas_.label(place.x, place.y, words, place.anchor, colour);
      taken_.push_back(box);
      return true;
    }
  }
  return false;
}

}  // namespace nas
