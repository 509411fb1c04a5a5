#pragma once

#include <string>

namespace nas::nn {

/// What the numbers depend on besides the configuration; recorded with every run.
struct Environment {
  std::string torch_version;  ///< "1.13.1"
  std::string blas_library;   ///< file that matrix products come from
  std::string processor;      ///< model name
  std::string
      instruction_set;     ///< of the kernels: "AVX-512", "AVX2", ... (kernels/instruction_set.hpp)
  bool slow_blas = false;  ///< the reference BLAS: about 11 times slower than an OpenBLAS
};
Environment environment();

/// @return "cpu", "cuda:0", ...: what "auto", "cpu", "cuda" or "cuda:N" means here.
/// @throws InputError for another text, or a CUDA device that is not there.
std::string resolve_device(const std::string& setting);

}  // namespace nas::nn
