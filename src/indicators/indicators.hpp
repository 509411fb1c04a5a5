#pragma once

#include <cstddef>
#include <vector>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

// Quality of sets of points in objective space. Every objective is minimised; all points of a call
// have the same number m >= 1 of finite coordinates, which is the caller's duty.

using Point = std::vector<double>;
using Points = std::vector<Point>;

/// @return whether a is nowhere worse and somewhere better than b.
bool dominates(const Point& a, const Point& b);

/// @return indices of the non-dominated points, ascending; of equal points the first. Cost: n^2 m.
std::vector<std::size_t> non_dominated(const Points& points);

/// Volume that points dominate up to a reference point. Points that are not better than the
/// reference in every objective count nothing; m = 1: the distance of the best. Exact (pagmo).
/// @see Zitzler & Thiele (1998); Beume et al. (2009), m = 3; While et al. (2012), WFG.
double hypervolume(const Points& points, const Point& reference);

/// Index of the point of a front that is farthest from the hyperplane through its extreme points
/// towards the ideal, coordinates scaled to the front's own range: where giving up a little of one
/// objective stops paying much in the others. One or two points: the first.
/// @see Das (1999), on characterizing the knee of the Pareto curve, doi:10.1007/s001580050111.
std::size_t knee(const Points& front);

}  // namespace nas
