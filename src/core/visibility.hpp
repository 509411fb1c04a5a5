#pragma once

#include "kernels/visibility.hpp"  // IWYU pragma: export
