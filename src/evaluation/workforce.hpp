#pragma once

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// The workers of other processes at the moment.
struct Workforce {
  int workers = 0;
  int slots = 0;  ///< orders that they work on at once, all together
};

}  // namespace nas
