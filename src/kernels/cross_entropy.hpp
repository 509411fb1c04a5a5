#pragma once

#include <cstdint>

namespace nas::kernels {

/// The bits of a number of 8 exponent and 7 fraction bits.
enum class Bfloat16 : std::uint16_t {};

/// What one row of logits says about its target.
struct CrossEntropy {
  double nll = 0.0;      ///< -log softmax(logits)[target], nats; 0 for a target below 0
  bool correct = false;  ///< the target is the first of the largest logits
};

/// @param logits  `size` of float, double or Bfloat16.   @param target  below `size`; below 0: not scored.
template <class Stored>
CrossEntropy cross_entropy(const Stored* logits, std::int64_t size, std::int64_t target);

/// The same nll; logits <- weight dnll/dlogits = weight (softmax(logits) - one_hot(target)), 0 for
/// a target below 0.
template <class Stored>
double cross_entropy_gradient(Stored* logits, std::int64_t size, std::int64_t target,
                              double weight);

}  // namespace nas::kernels
