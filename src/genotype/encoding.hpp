#pragma once

#include <string_view>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// How a genotype is laid out as a decision vector. Real genes are one real each; genes of which
/// there is only one value are left out.
enum class Encoding {
  /// A categorical gene of k options is an integer 0 .. k-1; integers come last (pagmo wants so).
  integers,
  /// A categorical gene is a real in [0, k], option min(k - 1, floor(x)): for algorithms that know
  /// no integers. It puts the options in an order that they do not have.
  relaxed,
  /// A categorical gene is k reals in [0, 1], the option with the largest (the first of equals): for algorithms that
  /// adapt a distribution. No order among the options.
  scores,
};

std::string_view to_string(Encoding encoding);

}  // namespace nas
