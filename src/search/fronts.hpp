#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "indicators/indicators.hpp"

namespace nas {

/// Whose each point is: in lexicographic order, so that none is dominated by a later one.
using ByPoint = std::map<Point, std::vector<std::size_t>>;

/// Non-dominated sorting: the points that none dominates, then those that only these dominate, and so
/// on, each front in lexicographic order. Cost: time as many comparisons as n times the front's size
/// times log n at most, memory that of the points.
/// @see Zhang et al. (2015), ENS-BS, doi:10.1109/TEVC.2014.2308305.
std::vector<Points> fronts_of(const ByPoint& points);

/// Crowding distance of NSGA-II, as pagmo computes it, by the objectives in which the points of a
/// front differ: by one in which all are equal pagmo's is NaN. 0 where all points are equal; infinite
/// for one or two points.
/// @param front  of mutually non-dominated points, at least one.
/// @see Deb et al. (2002), IEEE Trans. Evol. Comput. 6(2), doi:10.1109/4235.996017.
std::vector<double> crowding(const Points& front);

}  // namespace nas
