#include <cmath>

#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_qr.h>

#include "training/update_rule.hpp"

namespace nas {
namespace {

constexpr double kBeta1 = 0.95, kBeta2 = 0.95, kEpsilon = 1e-8;
constexpr std::int64_t kSteps = 10;  // between new bases

/// The next basis of eigenvectors of L (n, n): one step of power iteration from the last one, largest values first; `moment`
/// is put in the same order. @param side  of its dimension.
void turn(const torch::Tensor& basis, const torch::Tensor& average, torch::Tensor moment,
          std::int64_t side) {
  const auto values = basis.t().mm(average).mm(basis).diagonal();
  const auto order = values.argsort(/*dim=*/-1, /*descending=*/true);
  moment.copy_(moment.index_select(side, order));
  basis.copy_(std::get<0>(at::linalg_qr(average.mm(basis.index_select(1, order)))));
}

/// Of a matrix W (m, n) that maps hidden vectors: Adam in the eigenbases Q of averages of G G' and Q' of those of G' G, which
/// turn every 10 steps. Its first step only makes these. AdamW changes the others.
class Soap final : public UpdateRule {
 public:
  [[nodiscard]] std::vector<std::pair<std::string, torch::Tensor>> states(
      const torch::Tensor& parameter) const override {
    const auto models = parameter.size(0), rows = parameter.size(1), columns = parameter.size(2);
    const auto zeros = [&](std::int64_t m, std::int64_t n) {
      return at::zeros({models, m, n}, parameter.options().requires_grad(false));
    };
    return {{"first_moment", zeros(rows, columns)},
            {"second_moment", zeros(rows, columns)},
            {"left", zeros(rows, rows)},
            {"right", zeros(columns, columns)},
            {"left_basis", zeros(rows, rows)},
            {"right_basis", zeros(columns, columns)}};
  }

  void step(torch::Tensor parameter, const torch::Tensor& gradient, std::span<torch::Tensor> states,
            std::span<const ModelStep> steps) const override {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto model = static_cast<std::int64_t>(i);
      step_of_one(parameter[model], gradient[model],
                  {states[0][model], states[1][model], states[2][model], states[3][model],
                   states[4][model], states[5][model]},
                  steps[i]);
    }
  }

 private:
  struct States {
    torch::Tensor first, second, left, right, left_basis, right_basis;
  };

  static void step_of_one(torch::Tensor parameter, const torch::Tensor& gradient, States of,
                          const ModelStep& step) {
    const auto average = [&] {
      of.left.mul_(kBeta2).add_(gradient.mm(gradient.t()), 1.0 - kBeta2);
      of.right.mul_(kBeta2).add_(gradient.t().mm(gradient), 1.0 - kBeta2);
    };
    if (step.step == 1) {
      average();
      of.left_basis.copy_(std::get<1>(at::linalg_eigh(of.left)).flip(1));
      of.right_basis.copy_(std::get<1>(at::linalg_eigh(of.right)).flip(1));
      return;
    }
    const auto into = [&](const torch::Tensor& matrix) {
      return of.left_basis.t().mm(matrix).mm(of.right_basis);
    };
    const auto projected = into(gradient);
    of.first.mul_(kBeta1).add_(gradient, 1.0 - kBeta1);
    of.second.mul_(kBeta2).addcmul_(projected, projected, 1.0 - kBeta2);
    const auto t = static_cast<double>(step.step - 1);
    const double rate =
        step.learning_rate * std::sqrt(1.0 - std::pow(kBeta2, t)) / (1.0 - std::pow(kBeta1, t));
    const auto update =
        of.left_basis.mm(into(of.first) / of.second.sqrt().add_(kEpsilon)).mm(of.right_basis.t());
    parameter.mul_(1.0 - step.learning_rate * step.weight_decay).sub_(update, rate);
    average();
    if ((step.step - 1) % kSteps != 0) return;
    turn(of.left_basis, of.left, of.second, 0);
    turn(of.right_basis, of.right, of.second, 1);
  }
};

NAS_REGISTER_OPTIMIZER({.key = "soap",
                        .summary = "Adam in the eigenbases of averaged gradients, AdamW for the "
                                   "rest (Vyas et al. 2024, arXiv:2409.11321)",
                        .file = __FILE__},
                       [] { return std::make_shared<const Soap>(); });

}  // namespace
}  // namespace nas
