#include <pagmo/problems/dtlz.hpp>

#include "core/error.hpp"
#include "search/synthetic.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::problem build(const Parameters& settings) {
  const auto function = settings.get<Integer>("function");
  const auto objectives = settings.get<Integer>("objectives");
  auto dimension = settings.get<Integer>("dimension");
  if (dimension == 0) {
    dimension = objectives + (function == 1 ? 4 : function == 7 ? 19 : 9);
  }
  if (dimension <= objectives) {
    throw InputError("problem.dimension = " + std::to_string(dimension) +
                     ", must be more than problem.objectives = " + std::to_string(objectives));
  }
  return pagmo::problem(pagmo::dtlz(static_cast<unsigned>(function),
                                    static_cast<unsigned>(dimension),
                                    static_cast<unsigned>(objectives)));
}

NAS_REGISTER_PROBLEM({.key = "dtlz",
                      .summary = "Deb, Thiele, Laumanns & Zitzler (2005): any number of objectives "
                                 "whose true front is known",
                      .settings = {{.name = "function",
                                    .default_value = Integer{2},
                                    .help = "number of the function",
                                    .min = 1,
                                    .max = 7},
                                   {.name = "objectives",
                                    .default_value = Integer{3},
                                    .help = "number of objectives",
                                    .min = 2,
                                    .max = 15},
                                   {.name = "dimension",
                                    .default_value = Integer{0},
                                    .help = "variables; 0 = the usual number: objectives + 4 "
                                            "(function 1), + 9 (2 to 6), + 19 (7)",
                                    .min = 0,
                                    .max = 10000}},
                      .file = __FILE__},
                     [] { return synthetic(build); });

}  // namespace

}  // namespace nas
