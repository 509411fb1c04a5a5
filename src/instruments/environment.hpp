#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// What the numbers depend on besides the configuration; recorded with every run.
struct Environment {
  std::string torch_version;  ///< "1.13.1"
  /// What LibTorch's own kernels are for, its generator of random numbers among them: "AVX2", "NO AVX".
  std::string torch_capability;
  std::string blas_library;     ///< file that matrix products come from
  std::string blas_kernels;     ///< "Haswell": those that OpenBLAS has chosen; empty: not told
  std::string libc;             ///< "2.36", whose functions the kernels' doubles come from
  std::string processor;        ///< model name
  std::string instruction_set;  ///< of the kernels: "AVX-512", ... (kernels/instruction_set.hpp)
  /// Of modes on the CPU (ops/cpu_products.hpp), by their names in records; none: not asked for.
  std::map<std::string, std::string> products;
  bool slow_blas = false;  ///< the reference BLAS: about 11 times slower than an OpenBLAS
  /// Those that are set of the environment's variables that numerical libraries read, but for how
  /// threads wait and where they run.
  std::map<std::string, std::string> variables;
};
/// @param products  whether they are asked for, which a process measures that was not told.
Environment environment(bool products = true);

/// As runs record it: "torch", "torch_capability", "blas", "blas_kernels", "libc", "processor",
/// "instruction_set", "exact_products", "tf32_products", "fast_products", "variables".
nlohmann::json to_json(const Environment& environment);

/// Makes this process multiply in each mode on the CPU by what a recorded environment tells, where the mode's variable does
/// not say otherwise; one that tells nothing of `exact` multiplied by float32. Before anything is computed.
void keep_products(const nlohmann::json& environment);

/// Takes the memory that products of so many threads at once need, once and for all, where the
/// process's address space is limited (ulimit -v): OpenBLAS tries for ever to get what is not there.
/// @throws MachineError where the limit leaves too little.
void take_product_buffers(int threads);

/// @return "cpu", "cuda:0", ...: what "auto", "cpu", "cuda" or "cuda:N" means here.
/// @throws InputError for another text, or a CUDA device that is not there.
std::string resolve_device(const std::string& setting);

/// The model of a device, by which it rounds: that of the processor, or of the GPU.
/// @param setting  as of resolve_device().
std::string device_model(const std::string& setting);

/// The device of one of several processes that share a machine: GPUs in turn, or "cpu".
/// @param place  of the process among them, >= 0.
std::string device_of_place(std::int64_t place);

/// Whether products on a device are as a mode says.
///
/// @param device  "cpu", "cuda:0", ...
/// @throws InputError where NVIDIA_TF32_OVERRIDE makes cuBLAS multiply otherwise than LibTorch asks for.
void require_numerical_mode(NumericalMode mode, const std::string& device);

/// Makes products and LibTorch's operations of this process add in a fixed order on a CUDA device:
/// cuBLAS gets a workspace of its own for each stream (CUBLAS_WORKSPACE_CONFIG=:4096:8, unless the
/// environment has one that does), LibTorch takes its deterministic operations, and warns where it
/// has none. To be called before anything is computed there; does nothing on the CPU, where all is
/// bitwise in any case. The process keeps it. No part of the identity of evaluations: a table may
/// hold those of either kind, as it may of several widths of arrays.
/// @throws InputError for mode reference, whose backward operations add in no fixed order, and for
/// another workspace in the environment.
void require_determinism(NumericalMode mode, const std::string& device);

}  // namespace nas::nn
