#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace nas {

// What pictures are drawn with: an SVG page, axes from data to the page, labels that keep clear of
// each other. Lengths are in pixels, y downwards.

inline constexpr const char* kInk = "#1f2933";
inline constexpr const char* kMuted = "#6b7785";
inline constexpr const char* kGrid = "#dfe5ea";
inline constexpr const char* kBestColour = "#0b6e4f";
inline constexpr const char* kBaselineColour = "#c0392b";

/// The part of a page that data are drawn in.
struct Frame {
  double left = 0.0, top = 0.0, right = 0.0, bottom = 0.0;
  [[nodiscard]] double width() const { return right - left; }
  [[nodiscard]] double height() const { return bottom - top; }
};

/// A length as SVG text: one decimal.
std::string coordinate(double value);

/// From data to the page, linear or logarithmic.
struct Axis {
  double low = 0.0, high = 1.0;  ///< ends of the data
  double from = 0.0, to = 1.0;   ///< where they lie on the page
  bool logarithmic = false;

  struct Tick {
    double value;
    std::string text;
  };

  [[nodiscard]] double operator()(double value) const;
  [[nodiscard]] bool holds(double value) const { return value >= low && value <= high; }
  [[nodiscard]] std::vector<Tick> ticks(int most = 7) const;
};

/// An axis that shows values, logarithmic where they are minimised, positive and span more than a
/// factor of 4 (and less than three decades). Outliers on the bad side lie beyond it.
/// @param values    at least one, finite.
/// @param maximise  whether small values are the bad ones.
/// @param shown     values that must lie on it.
Axis value_axis(std::vector<double> values, bool maximise, const std::vector<double>& shown);

/// An SVG page.
class Canvas {
 public:
  Canvas(double width, double height);
  void line(double x1, double y1, double x2, double y2, const char* colour, double width,
            const char* more = "");
  void text(double x, double y, const std::string& text, const char* anchor, const char* colour,
            const std::string& more = "");
  /// A text on a white ground, so that points behind it do not disturb.
  void label(double x, double y, const std::string& words, const char* anchor, const char* colour);
  /// A character as a point, centred.
  void mark(double x, double y, const char* character, const char* colour,
            const std::string& tooltip);
  void circle(double x, double y, double radius, const std::string& fill, const std::string& stroke,
              const std::string& tooltip);
  void rectangle(double x, double y, double width, double height, const char* fill);
  void path(const std::string& commands, const char* colour, double width);

  /// Name of the picture and a line below it.
  void title(const std::string& name, const std::string& below);
  /// Grid lines, tick texts and the name of an axis at a frame's left or bottom side.
  void left_axis(const Frame& frame, const Axis& y, const std::string& name);
  void bottom_axis(const Frame& frame, const Axis& x, const std::string& name);

  [[nodiscard]] std::string str() const { return svg_.str() + "</svg>\n"; }

 private:
  std::ostringstream svg_;
};

/// Places labels beside points so that they overlap neither each other nor what they must keep
/// clear of, and stay within a frame.
class Labels {
 public:
  Labels(Canvas& canvas, const Frame& frame) : canvas_(canvas), frame_(frame) {}
  /// No label may cover this point.
  void keep_clear(double x, double y, double radius);
  /// No label should cover this, if there is another place.
  void avoid(const Frame& box);
  /// @return whether there was room.
  bool place(double x, double y, const std::string& words, const char* colour);

 private:
  Canvas& canvas_;
  Frame frame_;
  std::vector<Frame> taken_, avoided_;
};

}  // namespace nas
