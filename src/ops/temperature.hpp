#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"
#include "ops/parameter.hpp"
#include "ops/partial_linear.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What makes a divisor, positive and finite, of a logit z.
enum class DivisorFunction {
  constant,     ///< 1: there are no logits
  exponential,  ///< e^z
  logistic,     ///< sigmoid(z) + 1/2
  absolute,     ///< |z| + 1/2
};

/// What a temperature computes, for divisors that are computed for all models of an array together:
/// scale f(z) for each of M models. Logits are a parameter or, where there is a weight, a linear
/// map of x.
struct FusedTemperature {
  DivisorFunction function = DivisorFunction::constant;
  double scale = 1.0;
  torch::Tensor parameter{};  ///< (M, H), or (M, 1) for all heads
  torch::Tensor weight{};     ///< (M, H, D), or (M, 1, D): z_t = x_t W' + b
  torch::Tensor bias{};       ///< (M, H), or (M, 1)
  bool of_mean = false;       ///< z = mean_t z_t, one per sequence
};

/// The temperatures of an array of models, each of which has one in fused form. On the CPU; no
/// model's result depends on the others.
class FusedTemperatures {
 public:
  /// A temperature and the models that have it.
  struct Group {
    Models models;
    FusedTemperature temperature;
  };

  /// @param groups   of all R models.   @param factors  what each model's divisors are multiplied
  /// by.
  /// @param heads    H.
  FusedTemperatures(const std::vector<Group>& groups, const std::vector<double>& factors,
                    std::int64_t heads, NumericalMode mode);

  /// In one operation, backward likewise; not for second derivatives. Constants cost nothing then.
  ///
  /// @param x  (R, B, T, D), what q, k and v are projected from.
  /// @return 1 / divisors, (R, B, H, T, 1).
  [[nodiscard]] torch::Tensor inverses(const torch::Tensor& x);

  /// How one model's divisors are computed.
  struct Model {
    DivisorFunction function = DivisorFunction::constant;
    double scale = 1.0;
    std::int64_t source = -1;  ///< which tensor of logits has its; -1: there are none
    std::int64_t row = 0;      ///< which row of it
    bool of_mean = false;
  };

 private:
  /// Logits of some models: a parameter, or linear maps of x.
  struct Source {
    torch::Tensor parameter;
    std::vector<PartialMap> maps;
  };

  /// Where maps of so many outputs are.
  std::size_t source_of_maps(std::int64_t outputs);

  std::vector<Model> models_;
  std::vector<Source> sources_;
  std::int64_t num_heads_;
  NumericalMode mode_;
  torch::Tensor constants_;  ///< (R, 1, 1, 1, 1), of the last type: where there are no logits
};

}  // namespace nn
}  // namespace nas
