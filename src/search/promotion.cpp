#include "search/promotion.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "search/fronts.hpp"

namespace nas {

namespace {

/// The same points scaled to [0, 1]; an objective in which all are equal, which says nothing about
/// spread, to 0.
Points scaled(const Points& front) {
  Points points(front.size());
  for (std::size_t m = 0; m < front.front().size(); ++m) {
    const auto [least, most] = std::minmax_element(
        front.begin(), front.end(), [m](const Point& a, const Point& b) { return a[m] < b[m]; });
    const double low = (*least)[m];
    const double range = (*most)[m] - low;
    for (std::size_t i = 0; i < front.size(); ++i) {
      points[i].push_back(range == 0.0 ? 0.0 : (front[i][m] - low) / range);
    }
  }
  return points;
}

/// For each point of a front a number: the larger, the sooner.
std::vector<double> by_epsilon_net(const Points& front) {
  const auto points = scaled(front);
  std::vector<double> nearest(front.size(), std::numeric_limits<double>::infinity());
  std::vector<double> priority(front.size());
  for (std::size_t taken = 0; taken < front.size(); ++taken) {
    const auto next = std::max_element(nearest.begin(), nearest.end()) - nearest.begin();
    const auto chosen = static_cast<std::size_t>(next);
    priority[chosen] = -static_cast<double>(taken);
    for (std::size_t i = 0; i < points.size(); ++i) {
      double square = 0.0;
      for (std::size_t m = 0; m < points[i].size(); ++m) {
        square += (points[i][m] - points[chosen][m]) * (points[i][m] - points[chosen][m]);
      }
      nearest[i] = std::min(nearest[i], square);
    }
    nearest[chosen] = -1.0;
  }
  return priority;
}

}  // namespace

Spread parse_spread(std::string_view text) {
  if (text == "crowding") return Spread::crowding;
  if (text == "epsilon_net") return Spread::epsilon_net;
  throw InputError("promote = " + std::string(text) + ", must be crowding or epsilon_net");
}

std::vector<std::size_t> promotion_order(const std::vector<Reached>& reached, Spread spread) {
  std::vector<std::size_t> order;
  if (!reached.empty() && reached.front().point.size() == 1) {  // no need of fronts
    order.resize(reached.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto place = [&reached](std::size_t i) {
      return std::tuple(!reached[i].feasible, reached[i].point.front(), reached[i].ask);
    };
    std::sort(order.begin(), order.end(),
              [&place](std::size_t a, std::size_t b) { return place(a) < place(b); });
    return order;
  }
  const auto sooner = [&reached](std::size_t a, std::size_t b) {
    return reached[a].ask < reached[b].ask;
  };
  for (const bool feasible : {true, false}) {
    ByPoint candidates;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      if (reached[i].feasible == feasible) candidates[reached[i].point].push_back(i);
    }
    for (const auto& front : fronts_of(candidates)) {
      const auto priority =
          spread == Spread::crowding ? crowding(scaled(front)) : by_epsilon_net(front);
      std::vector<std::pair<double, std::size_t>> firsts;
      std::vector<std::size_t> copies;
      for (std::size_t i = 0; i < front.size(); ++i) {
        auto& equal = candidates.at(front[i]);
        std::sort(equal.begin(), equal.end(), sooner);
        firsts.emplace_back(priority[i], equal.front());
        copies.insert(copies.end(), equal.begin() + 1, equal.end());
      }
      std::sort(firsts.begin(), firsts.end(), [&sooner](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : sooner(a.second, b.second);
      });
      std::sort(copies.begin(), copies.end(), sooner);
      for (const auto& first : firsts) order.push_back(first.second);
      order.insert(order.end(), copies.begin(), copies.end());
    }
  }
  return order;
}

std::size_t num_promoted(std::size_t n, double eta) {
  constexpr double kRounding = 1e-12;  // 35 by 700 / 300 is 15, in doubles a little less
  return static_cast<std::size_t>(static_cast<double>(n) / eta * (1.0 + kRounding));
}

std::size_t num_halved(std::size_t n, double eta) {
  return std::max(num_promoted(n, eta), std::min<std::size_t>(n, 1));
}

std::optional<std::size_t> next_of_best(const std::vector<Reached>& reached, std::size_t count,
                                        Spread spread) {
  if (count == 0) return std::nullopt;
  const auto order = promotion_order(reached, spread);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  const auto next =
      std::find_if(order.begin(), end, [&reached](std::size_t i) { return !reached[i].promoted; });
  if (next == end) return std::nullopt;
  return *next;
}

}  // namespace nas
