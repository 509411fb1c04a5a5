// Memory that kernels on a GPU and tests on the host reach alike.
#pragma once

#include <cstddef>

namespace nas::cuda {

bool has_device();
/// @throws std::bad_alloc if there is no such memory.
void* kernel_memory(std::size_t bytes);
void free_kernel_memory(void* memory) noexcept;
/// Waits for all kernels. @return how they failed; null: they did not.
const char* wait_for_device();

}  // namespace nas::cuda
