#include "cli/versions.hpp"

#include <sstream>

#include <boost/version.hpp>
#include <pagmo/config.hpp>

#include "cli/program.hpp"
#include "instruments/environment.hpp"

namespace nas {

std::string version_text() {
  const auto environment = nn::environment();
  std::ostringstream text;
  text << version_line() << "compiler " << __VERSION__ << '\n'
       << "LibTorch " << environment.torch_version << ", " << environment.torch_capability << '\n'
       << "BLAS " << environment.blas_library
       << (environment.blas_kernels.empty() ? "" : ", " + environment.blas_kernels) << '\n'
       << "kernels for " << environment.instruction_set << '\n'
       << "modes multiply by " << environment.products.at("exact_products") << " (exact), "
       << environment.products.at("tf32_products") << " (tf32), "
       << environment.products.at("fast_products") << " (fast)\n"
       << "pagmo " << PAGMO_VERSION << "\nBoost " << BOOST_LIB_VERSION << '\n';
  return text.str();
}

}  // namespace nas
