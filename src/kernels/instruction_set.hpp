#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nas::kernels {

/// @return the instruction set that the kernels use on this processor: "AVX3" (AVX-512), "AVX2",
/// "SSE2", "NEON", ... Results differ between them by rounding.
std::string instruction_set();

/// @return all that were compiled and this processor has, the best one first; before the first
/// use_instruction_set().
std::vector<std::string> instruction_sets();

/// Makes the whole process use another one. For tests and benchmarks; not while a kernel runs.
/// @throws std::invalid_argument for a name that instruction_sets() does not have; then the best
/// one is in use.
void use_instruction_set(const std::string& name);

}  // namespace nas::kernels
