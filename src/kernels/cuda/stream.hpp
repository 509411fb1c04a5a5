#pragma once

struct CUstream_st;

/// Kernels for NVIDIA GPUs on plain arrays of R models, behind interfaces that plain C++ can
/// include: no header here includes CUDA's or LibTorch's.
///
/// Conventions. All pointers, those inside of structs too, are to memory of the current device; a
/// struct itself is passed by value, except arrays of structs. Tensors are contiguous with the
/// model's index first, unless a layout is given with them. A call enqueues its kernels on a stream
/// and returns; it allocates nothing and waits for nothing, so that it can be captured in a CUDA
/// graph. Sums are in an order that depends on neither R nor the other models, so results are
/// bitwise independent of both. A launch that the driver refuses is a std::runtime_error that names
/// the kernel. Functions of a `Real` exist for float and double.
namespace nas::cuda {

using Stream = CUstream_st*;  ///< CUDA's cudaStream_t

}  // namespace nas::cuda
