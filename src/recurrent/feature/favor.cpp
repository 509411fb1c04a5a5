#include <cmath>
#include <cstdint>
#include <vector>

#include "core/seed.hpp"
#include "nn/parts/state_options.hpp"
#include "ops/device_copy.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

using Row = std::vector<double>;

std::int64_t num_features(const AttentionShape& shape) {
  const auto given = shape.sizes.integer("favor_features");
  return given > 0 ? given : 2 * shape.head_width();
}

double normal(RandomEngine& engine) {
  constexpr double kTurn = 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - engine.uniform()));
  return radius * std::cos(kTurn * engine.uniform());  // Box & Muller (1958)
}

Row normals(std::int64_t count, RandomEngine& engine) {
  Row row;
  for (std::int64_t i = 0; i < count; ++i) row.push_back(normal(engine));
  return row;
}

double product(const Row& a, const Row& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// So many orthonormal rows: of a matrix of normals, each less its part in those before.
std::vector<Row> orthonormal_rows(std::int64_t width, RandomEngine& engine) {
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < width; ++i) {
    auto row = normals(width, engine);
    for (const auto& before : rows) {
      const double along = product(row, before);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] -= along * before[j];
    }
    const double length = std::sqrt(product(row, row));
    for (auto& entry : row) entry /= length;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// W (M, d_k) of a layer: blocks of d_k orthonormal rows, each as long as a vector of d_k normals. The
/// same in every model, so that exported models draw it again (model_recurrent.py).
torch::Tensor projection(const LayerContext& context) {
  constexpr std::uint64_t kPurpose = 0x6661766f72;  // "favor"
  RandomEngine engine(mix64(kPurpose + static_cast<std::uint64_t>(context.layer)));
  const auto width = context.shape.head_width();
  const auto features = num_features(context.shape);
  std::vector<double> values;
  while (std::ssize(values) < features * width) {
    for (const auto& row : orthonormal_rows(width, engine)) {
      if (std::ssize(values) == features * width) break;
      const auto norm = normals(width, engine);
      const double length = std::sqrt(product(norm, norm));
      for (const double entry : row) values.push_back(length * entry);
    }
  }
  return at::tensor(values, at::TensorOptions(at::kDouble)).view({features, width});
}

/// phi(u)_m = exp(w_m.u' - |u'|^2 / 2) / sqrt(M), u' = u d_k^(-1/4): the mean of phi(q).phi(k) over
/// draws of w is e^(q.k / sqrt(d_k)).
///
/// As published it subtracts the maximum over all keys, later ones included, and adds 1e-4. Here the
/// largest exponent of each query is subtracted, which cancels in its weights, and of keys nothing:
/// w.k - |k|^2 / 2 <= |w|^2 / 2.
/// @see Choromanski et al. (2021), arXiv:2009.14794, section 2.
class Favor final : public FeatureMap {
 public:
  Favor(const LayerContext& context, const ParameterScope& /*scope*/)
      : drawn_(projection(context)) {}

  torch::Tensor of_queries(const torch::Tensor& q) const override {
    return model_by_model(
        [this](const torch::Tensor& part) {
          const auto exponents = this->exponents(part);
          return (exponents - exponents.detach().amax(-1, /*keepdim=*/true)).exp() * scale();
        },
        q);
  }
  torch::Tensor of_keys(const torch::Tensor& k) const override {
    return model_by_model(
        [this](const torch::Tensor& part) { return exponents(part).exp() * scale(); }, k);
  }
  double epsilon() const override { return 1e-30; }
  torch::Tensor drawn() const override { return drawn_; }

 private:
  [[nodiscard]] torch::Tensor exponents(const torch::Tensor& u) const {
    const auto scaled = u * std::pow(static_cast<double>(drawn_.size(1)), -0.25);
    const auto weight = sent(drawn_.to(u.scalar_type()), u.device());
    return scaled.matmul(weight.t()) - scaled.square().sum(-1, /*keepdim=*/true) / 2.0;
  }
  [[nodiscard]] double scale() const {
    return 1.0 / std::sqrt(static_cast<double>(drawn_.size(0)));
  }

  torch::Tensor drawn_;  // (M, d_k), float64 on the CPU
};

NAS_REGISTER_FEATURE(
    Favor, .key = "favor",
    .summary =
        "phi(u)_m = exp(w_m.u' - |u'|^2 / 2) / sqrt(f), u' = u d_k^(-1/4), w orthogonal, not "
        "trained (Choromanski et al. 2021, arXiv:2009.14794)",
    .flops =
        [](const AttentionShape& shape) {
          const auto f = num_features(shape);
          const auto k = shape.head_width();
          return shape.at_each_token(2 * shape.heads * (2 * f * k + 3 * k + 2 * f));
        },
    .features = num_features);

}  // namespace
}  // namespace nas::nn
