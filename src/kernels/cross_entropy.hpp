#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

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

/// KL(softmax(told) || softmax(logits)), nats; logits <- weight dKL/dlogits = weight (softmax(logits) - softmax(told)).
/// Both are exactly 0 where the rows are equal.
template <class Stored>
double divergence_gradient(Stored* logits, const Stored* told, std::int64_t size, double weight);

/// What is known of a row of logits z beside the log-probabilities log p of another model, as they are read piece by piece.
/// Sums of p log q alone are some 25 nats: a shift near log sum e^z makes differences small.
struct Divergence {
  double top = -std::numeric_limits<double>::infinity();  ///< the largest z
  double exponentials = 0.0;                              ///< sum e^(z - top)
  double product = 0.0;                                   ///< sum p (log p - (z - shift))
  double mass = 0.0;                                      ///< sum p
  std::int64_t likeliest = -1;                            ///< the first of the largest z

  [[nodiscard]] double log_sum() const { return std::log(exponentials) + top; }
  /// KL(p || softmax(z)), nats.
  [[nodiscard]] double nats(double shift) const { return product + (log_sum() - shift) * mass; }
};

/// Reads z and log p of tokens [first, first + size).
void add_divergence(const float* z, const float* log_p, std::int64_t first, std::int64_t size,
                    float shift, Divergence& sums);

}  // namespace nas::kernels
