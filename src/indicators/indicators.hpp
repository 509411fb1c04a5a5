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

/// Inverted generational distance: mean over the reference set of the Euclidean distance to the
/// nearest point. Not compliant with dominance: see igd_plus.
/// @see Coello Coello & Reyes Sierra (2004).
double igd(const Points& points, const Points& reference_set);

/// The same with the distance by which a point is worse, max(a_i - r_i, 0): weakly compliant.
/// @see Ishibuchi et al. (2015), modified distance calculation in GD and IGD.
double igd_plus(const Points& points, const Points& reference_set);

/// Smallest number that, subtracted from every objective of the points, makes them weakly dominate
/// the reference set. @see Zitzler et al. (2003).
double additive_epsilon(const Points& points, const Points& reference_set);

/// Smallest factor by which every objective of the points, all coordinates positive, must be
/// divided to weakly dominate the reference set. @see Zitzler et al. (2003).
double multiplicative_epsilon(const Points& points, const Points& reference_set);

/// Mean weighted Tchebycheff value of the best point over uniformly distributed weights, for two
/// objectives and exactly:
///
///   R2 = integral over w in [0, 1] of min over a of max(w (a_1 - z_1), (1 - w)(a_2 - z_2))
///
/// @param ideal  z, not worse than any point.
/// @throws std::invalid_argument unless m = 2.
/// @see Hansen & Jaszkiewicz (1998); Schaepermeier & Kerschke (2024), R2 v2, arXiv:2407.01504.
double r2(const Points& points, const Point& ideal);

/// The same as a mean over given weight vectors, any m. @see Brockhoff et al. (2012).
double r2(const Points& points, const Point& ideal, const Points& weights);

/// Index of the point of a front that is farthest from the hyperplane through its extreme points
/// towards the ideal, coordinates scaled to the front's own range: where giving up a little of one
/// objective stops paying much in the others. One or two points: the first.
/// @see Das (1999), on characterizing the knee of the Pareto curve, doi:10.1007/s001580050111.
std::size_t knee(const Points& front);

}  // namespace nas
