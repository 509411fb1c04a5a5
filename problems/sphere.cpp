#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "search/synthetic.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

struct Sphere {
  std::size_t dimension = 1;

  [[nodiscard]] std::vector<double> fitness(const std::vector<double>& x) const {
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    return {sum};
  }
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> get_bounds() const {
    return {std::vector<double>(dimension, -5.0), std::vector<double>(dimension, 5.0)};
  }
  [[nodiscard]] std::string get_name() const { return "sphere"; }
  template <class Archive>
  void serialize(Archive& archive, unsigned /*version*/) {
    archive& dimension;
  }
};

NAS_REGISTER_PROBLEM({.key = "sphere",
                      .summary = "sum of squares in [-5, 5]^n, minimum 0: the easiest problem",
                      .settings = {{.name = "dimension",
                                    .default_value = Integer{10},
                                    .help = "variables",
                                    .min = 1,
                                    .max = 10000}},
                      .file = __FILE__},
                     [] {
                       return synthetic([](const Parameters& settings) {
                         return pagmo::problem(
                             Sphere{static_cast<std::size_t>(settings.get<Integer>("dimension"))});
                       });
                     });

}  // namespace

}  // namespace nas
