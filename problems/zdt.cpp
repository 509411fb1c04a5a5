#include <pagmo/problems/zdt.hpp>

#include "core/error.hpp"
#include "search/synthetic.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::problem build(const Parameters& settings) {
  const auto function = settings.get<Integer>("function");
  auto dimension = settings.get<Integer>("dimension");
  if (function == 5) {
    throw InputError("problem.function = 5, must be one of 1, 2, 3, 4, 6: ZDT5 is binary");
  }
  if (dimension == 1) throw InputError("problem.dimension = 1, must be 0 or at least 2");
  if (dimension == 0) dimension = function == 4 || function == 6 ? 10 : 30;
  return pagmo::problem(
      pagmo::zdt(static_cast<unsigned>(function), static_cast<unsigned>(dimension)));
}

NAS_REGISTER_PROBLEM(
    {.key = "zdt",
     .summary =
         "Zitzler, Deb & Thiele (2000): two objectives whose true front is known; ZDT1-4 and 6",
     .settings = {{.name = "function",
                   .default_value = Integer{1},
                   .help = "number of the function; 5 is binary and not offered",
                   .min = 1,
                   .max = 6},
                  {.name = "dimension",
                   .default_value = Integer{0},
                   .help = "variables; 0 = the usual number: 30, for functions 4 and 6 10",
                   .min = 0,
                   .max = 10000}},
     .file = __FILE__},
    [] { return synthetic(build); });

}  // namespace

}  // namespace nas
