// A problem of one's own, for trying search algorithms:
//   nas-run cmaes_sphere.yaml --plugin build/himmelblau.so problem=himmelblau

#include <string>
#include <utility>
#include <vector>

#include <attnas/search/synthetic.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

namespace {

/// (x^2 + y - 11)^2 + (x + y^2 - 7)^2, which is 0 at four places.
struct Himmelblau {
  [[nodiscard]] std::vector<double> fitness(const std::vector<double>& point) const {
    const double x = point[0];
    const double y = point[1];
    const double a = x * x + y - 11.0;
    const double b = x + y * y - 7.0;
    return {a * a + b * b};
  }
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> get_bounds() const {
    return {{-5.0, -5.0}, {5.0, 5.0}};
  }
  [[nodiscard]] std::string get_name() const { return "himmelblau"; }
  template <class Archive>
  void serialize(Archive& /*archive*/, unsigned /*version*/) {}
};

NAS_REGISTER_PROBLEM({.key = "himmelblau",
                      .summary = "Himmelblau's function in [-5, 5]^2, whose minimum 0 is in four "
                                 "places",
                      .file = __FILE__},
                     [] {
                       return nas::synthetic([](const nas::Parameters& /*settings*/) {
                         return pagmo::problem(Himmelblau{});
                       });
                     });

}  // namespace
