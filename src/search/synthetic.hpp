#pragma once

#include <functional>

#include <pagmo/problem.hpp>

#include "core/visibility.hpp"
#include "search/problem.hpp"

namespace NAS_PUBLIC nas {

/// A box-bounded pagmo problem of real variables as a kind of problem: genes x1, x2, ...,
/// objectives f1, f2, ... expected in [0, 1]. For trying search algorithms on problems whose answer
/// is known; nothing is trained.
///
/// @param build  the pagmo problem from the plug-in's settings.
ProblemKind synthetic(std::function<pagmo::problem(const Parameters& settings)> build);

}  // namespace nas
