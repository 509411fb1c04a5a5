#pragma once

#include <cstring>

#include <ATen/EmptyTensor.h>
#include <torch/types.h>

namespace nas::nn {

/// An uninitialised contiguous tensor on the CPU of the type of `like`: as at::empty, of which a
/// third is LibTorch's dispatch.
inline torch::Tensor new_tensor(at::IntArrayRef sizes, const torch::Tensor& like) {
  return at::detail::empty_cpu(sizes, like.scalar_type());
}

/// The same of zeros.
inline torch::Tensor new_zeros(at::IntArrayRef sizes, const torch::Tensor& like) {
  auto tensor = new_tensor(sizes, like);
  std::memset(tensor.data_ptr(), 0, tensor.nbytes());
  return tensor;
}

}  // namespace nas::nn
