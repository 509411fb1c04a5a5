#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "core/seed.hpp"

namespace nas {

/// Brings the elements into an order of which all are equally probable (Fisher and Yates).
template <class T>
void shuffle(std::vector<T>& elements, RandomEngine& random) {
  for (auto i = std::ssize(elements); i-- > 1;) {
    std::swap(elements[static_cast<std::size_t>(i)],
              elements[static_cast<std::size_t>(random.below(i + 1))]);
  }
}

}  // namespace nas
