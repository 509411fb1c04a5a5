#pragma once

#include <string>

#include "study/study.hpp"

namespace nas {

/// A study's plan for a terminal: search space, model, data, number of evaluations, expected time.
/// @param with_settings  every setting with its effective value, too.
std::string plan_text(const Study& study, const Plan& plan, bool with_settings);

}  // namespace nas
