#include <pagmo/problems/rosenbrock.hpp>

#include "search/synthetic.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

NAS_REGISTER_PROBLEM({.key = "rosenbrock",
                      .summary = "Rosenbrock's curved valley in [-5, 10]^n, minimum 0",
                      .settings = {{.name = "dimension",
                                    .default_value = Integer{10},
                                    .help = "variables",
                                    .min = 2,
                                    .max = 10000}},
                      .file = __FILE__},
                     [] {
                       return synthetic([](const Parameters& settings) {
                         return pagmo::problem(pagmo::rosenbrock(
                             static_cast<unsigned>(settings.get<Integer>("dimension"))));
                       });
                     });

}  // namespace

}  // namespace nas
