#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include <c10/core/DeviceGuard.h>
#include <torch/types.h>

#include "cuda/stream.hpp"
#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"

namespace nas::nn {

/// The operations by the kernels of src/cuda. Sums are in a fixed order.
class CudaOperations final : public DeviceOperations {
 public:
  [[nodiscard]] torch::Tensor dropped(const torch::Tensor& x, const Masks& masks) const override;
  [[nodiscard]] torch::Tensor add_dropped(const torch::Tensor& residual, const torch::Tensor& x,
                                          const Masks& masks) const override;
  [[nodiscard]] torch::Tensor dropped_gelu(const torch::Tensor& x,
                                           const Masks& masks) const override;
  [[nodiscard]] torch::Tensor dropped_gelu_backward(const torch::Tensor& x,
                                                    const torch::Tensor& gradient,
                                                    const Masks& masks) const override;
  void layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                  double epsilon, const torch::Tensor& y,
                  const torch::Tensor& moments) const override;
  void layer_norm_backward(const torch::Tensor& x, const torch::Tensor& weight,
                           const torch::Tensor& moments, const torch::Tensor& by_y,
                           const torch::Tensor& by_x, const torch::Tensor& by_weight,
                           const torch::Tensor& by_bias) const override;
  void embedding_backward(const torch::Tensor& tokens, const torch::Tensor& by_rows,
                          const torch::Tensor& by_matrices) const override;
  [[nodiscard]] torch::Tensor linear_cross_entropy(const OutputLayer& layer,
                                                   const torch::Tensor& targets,
                                                   NumericalMode mode) const override;
  [[nodiscard]] TokenScores score_tokens(const OutputLayer& layer, const torch::Tensor& targets,
                                         NumericalMode mode) const override;
  void gated_sum(const GatedSums& sums, const GatedTensors& terms, const torch::Tensor& logits,
                 const torch::Tensor& out) const override;
  void gated_sum_backward(const GatedSums& sums, const GatedTensors& terms,
                          const torch::Tensor& logits, const torch::Tensor& by_sum,
                          const GatedTensors& by_terms,
                          const torch::Tensor& by_logits) const override;
  [[nodiscard]] bool attention_fits(const torch::Tensor& q, std::int64_t heads) const override;
  [[nodiscard]] bool has_form_of(const kernels::RowNormalization& normalization) const override;
  [[nodiscard]] torch::Tensor described(const std::vector<ModelAttention>& models,
                                        const Masks& masks, torch::Device device) const override;
  [[nodiscard]] torch::Tensor attention(const ArrayAttention& models,
                                        const AttentionTensors& tensors,
                                        torch::Tensor* kept) const override;
  void attention_backward(const ArrayAttention& models, const AttentionTensors& tensors,
                          const torch::Tensor& kept, const torch::Tensor& by_output,
                          const AttentionTensors& by) const override;
  [[nodiscard]] std::unique_ptr<DeviceAdamW> adamw(std::vector<TrainedParameter> parameters,
                                                   std::int64_t models) const override;
  void begin_step(const StepTables& tables, const StepNumbers& current) const override;
  void read_batches(const DeviceWindows& windows, const DeviceOrders& orders,
                    const torch::Tensor& input, const torch::Tensor& target) const override;
  void advance(const torch::Tensor& counters) const override;
  [[nodiscard]] std::unique_ptr<DeviceGraph> graph(torch::Device device) const override;
};

// Defined by whoever links the kernels: ops/cuda_device.cpp, or tests that emulate them.

/// The stream that LibTorch's operations on a device go to now.
cuda::Stream current_stream(torch::Device device);
/// Whether what goes there is being captured (ops/device_graph.hpp) instead of run.
bool is_recording(torch::Device device);
std::unique_ptr<DeviceGraph> new_graph(torch::Device device);

/// The stream for kernels on a tensor's device, which is the current device meanwhile.
class StreamOf {
 public:
  explicit StreamOf(const torch::Tensor& x)
      : guard_(x.device()), stream_(current_stream(x.device())) {}
  // NOLINTNEXTLINE(google-explicit-constructor): stands for it
  operator cuda::Stream() const { return stream_; }

 private:
  c10::DeviceGuard guard_;
  cuda::Stream stream_;
};

/// Null for an undefined tensor.
template <class Real>
Real* data_or_null(const torch::Tensor& x) {
  return x.defined() ? x.data_ptr<Real>() : nullptr;
}

/// A copy of plain elements in a device's memory.
template <class Element>
torch::Tensor on_device(const std::vector<Element>& elements, torch::Device device) {
  const auto bytes = elements.size() * sizeof(Element);
  const auto tensor = at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte));
  std::memcpy(tensor.data_ptr(), elements.data(), bytes);
  return sent(tensor, device);
}

/// @return the seeds of masks as kernels read them; null: nothing is dropped.
const std::uint64_t* seeds_of(const Masks& masks);

}  // namespace nas::nn
