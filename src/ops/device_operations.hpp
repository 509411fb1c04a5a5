#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/recurrence.hpp"
#include "ops/device_adamw.hpp"
#include "ops/dropout.hpp"
#include "ops/fused_attention.hpp"
#include "ops/gate.hpp"
#include "ops/loss.hpp"

namespace nas::nn {

/// Operations on a device that are captured once and then replayed as a whole by one call of the
/// host: a CUDA graph.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  /// Captures the work that `operations` enqueues without running it. Run it a few times uncaptured
  /// first: libraries allocate workspaces and pick algorithms lazily. Do so on the stream that is
  /// current here (ops/device_stream.hpp), which must not be the default one.
  ///
  /// @param operations  reads nothing from the device and takes nothing from the host but what is
  /// the same at every replay; may allocate: the memory stays the graph's.
  /// @throws c10::Error if something cannot be captured, or out of memory; then there is no graph,
  /// and the device is as before.
  virtual void record(const std::function<void()>& operations) = 0;

  /// Enqueues what was captured.
  virtual void replay() = 0;
};

// What the steps of an array of R models read in their device's memory, so that a step takes
// nothing from the host and can be captured.

/// nas::Windows (data/corpus.hpp).
struct DeviceWindows {
  torch::Tensor tokens;   ///< int32, the stream
  torch::Tensor starts;   ///< (windows) int64
  torch::Tensor targets;  ///< (windows, length) int32; undefined: the following tokens
  std::int64_t length = 0;
  std::int32_t last_target = -1;  ///< -1: the next token of the stream
};

/// nas::TrainingOrder (training/batches.hpp) of each model, of two epochs: epoch e is in slot e
/// % 2.
struct DeviceOrders {
  torch::Tensor permutations;  ///< (R, 2, windows) int32
  torch::Tensor offsets;       ///< (R, 2) int64
  torch::Tensor steps;         ///< (R) int64: which step each model is at
};

/// What changes from step to step.
struct StepNumbers {
  torch::Tensor seeds;           ///< (..., R) int64, the bits of what dropout is drawn from
  torch::Tensor learning_rates;  ///< (..., R) float64
};

/// Numbers of the next steps, (K, R), and which row is the current one: (1) int64 below K.
struct StepTables {
  StepNumbers numbers;
  torch::Tensor row;
};

/// Beside a map of tensors (R, ..., D), (R, D) each, contiguous; undefined: there is none.
struct MapBias {
  torch::Tensor added{};  ///< to the first tensor, before it is mapped
  torch::Tensor sums{};   ///< receives the sums over all of a model's rows of what the map gives
};

/// What a gradient w.r.t. x comes from.
struct ByNorm {
  torch::Tensor y;       ///< that w.r.t. layer_norm(x)
  torch::Tensor beside;  ///< w.r.t. x where it is used beside it, added; undefined: it is not
};

/// Gradients of a layer norm.
struct LayerNormGradients {
  torch::Tensor x, weight, bias;
};

/// Operations of arrays of models on devices of one type that has kernels for them. Each computes
/// what the operation of its name does on the CPU, for the same arguments and with the same masks,
/// up to rounding, and waits for nothing on the host. They are plain maps: the functions of
/// autograd that call them are in the operations' files, and save what the backward pass needs.
class DeviceOperations {
 public:
  virtual ~DeviceOperations() = default;

  /// A map of contiguous tensors (R, ..., D) of one size, with each model's mask; not SwiGLU's.
  /// Tensors may be bfloat16 where other ones are float32.
  ///
  /// @param out  may be one of the others, or undefined: then only sums are wanted.
  virtual void map(kernels::Map map, const std::vector<torch::Tensor>& in, const MapBias& bias,
                   const torch::Tensor& out, const Masks& masks) const = 0;

  /// Writes y and what the backward pass needs of the rows. All tensors are contiguous.
  ///
  /// @param moments  (2, rows of all models): means, inverse deviations.
  virtual void layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                          const torch::Tensor& bias, double epsilon, const torch::Tensor& y,
                          const torch::Tensor& moments) const = 0;
  /// Writes gradients.
  virtual void layer_norm_backward(const torch::Tensor& x, const torch::Tensor& weight,
                                   const torch::Tensor& moments, const ByNorm& given,
                                   const LayerNormGradients& by) const = 0;
  /// Writes gradients w.r.t. the rows of matrices that tokens are of: sums of those w.r.t. the
  /// vectors of tokens, in a fixed order. Other rows stay. All tensors are contiguous.
  ///
  /// @param tokens  (R, ...) int64, in [0, V).   @param by_rows  (R, ..., D), of the tokens.
  /// @param by_matrices  (R, V, D).
  virtual void embedding_backward(const torch::Tensor& tokens, const torch::Tensor& by_rows,
                                  const torch::Tensor& by_matrices) const = 0;
  /// Writes gradients w.r.t. features and embeddings. A target that is not below the vocabulary is
  /// not detected.
  ///
  /// @param targets  (R, N), contiguous.   @param counted  (R, M), contiguous: the sums are divided
  /// by the number of these.   @return the losses (R).
  [[nodiscard]] virtual torch::Tensor linear_cross_entropy(const OutputLayer& layer,
                                                           const torch::Tensor& targets,
                                                           const torch::Tensor& counted,
                                                           NumericalMode mode) const = 0;
  /// x (R, ...) times each model's factor (R), in place; 1 costs next to nothing. All are contiguous.
  virtual void scale(const torch::Tensor& x, const torch::Tensor& factors) const = 0;
  /// linear_cross_entropy() without gradients.
  [[nodiscard]] virtual TokenScores score_tokens(const OutputLayer& layer,
                                                 const torch::Tensor& targets,
                                                 NumericalMode mode) const = 0;

  /// nn::gated_sum() of contiguous tensors, undefined where no sum has them. @param in  terms, then
  /// logits.
  virtual void gated_sum(const GatedSums& sums, const std::vector<torch::Tensor>& in,
                         const torch::Tensor& out) const = 0;
  /// Writes gradients w.r.t. `in` where defined. @param by_sum  that w.r.t. the sum.
  virtual void gated_sum_backward(const GatedSums& sums, const std::vector<torch::Tensor>& in,
                                  const torch::Tensor& by_sum,
                                  const std::vector<torch::Tensor>& by) const = 0;

  /// Whether attention() takes queries of such sizes, (R, B, T, H d).
  [[nodiscard]] virtual bool attention_fits(const torch::Tensor& q, std::int64_t heads) const = 0;
  /// Whether attention() has a form of this normalization.
  [[nodiscard]] virtual bool has_form_of(const kernels::RowNormalization& normalization) const = 0;
  /// What attention() reads of the models and of the shares that their masks drop, in a device's
  /// memory.
  [[nodiscard]] virtual torch::Tensor described(const std::vector<ModelAttention>& models,
                                                const Masks& masks, torch::Device device) const = 0;
  /// nn::fused_attention(). All tensors but the temperatures are contiguous.
  ///
  /// @param kept  where to put what the backward pass needs; null: nowhere.
  [[nodiscard]] virtual torch::Tensor attention(const ArrayAttention& models,
                                                const AttentionTensors& tensors,
                                                torch::Tensor* kept) const = 0;
  /// Writes the gradients, contiguous ones. @param by_output  that w.r.t. the output.
  virtual void attention_backward(const ArrayAttention& models, const AttentionTensors& tensors,
                                  const torch::Tensor& kept, const torch::Tensor& by_output,
                                  const AttentionTensors& by) const = 0;

  /// Whether recurrence() takes sequences of such sizes.
  [[nodiscard]] virtual bool recurrence_fits(const kernels::RecurrenceShape& shape,
                                             at::ScalarType type) const = 0;
  /// kernels::recurrence() of tensors (R, B, H, T, n), rows of n numbers anywhere.
  ///
  /// @param in  queries, keys, values, logarithms of decays and what is erased; the last two may be
  /// undefined.   @param states, updates  (R B H, ...), written, as kernels::RecurrenceKept.
  virtual void recurrence(const kernels::RecurrenceShape& shape,
                          const std::vector<torch::Tensor>& in, const torch::Tensor& states,
                          const torch::Tensor& updates, const torch::Tensor& outputs) const = 0;
  /// Writes gradients w.r.t. `in` where defined. @param by_state  undefined: 0.
  virtual void recurrence_backward(const kernels::RecurrenceShape& shape,
                                   const std::vector<torch::Tensor>& in,
                                   const torch::Tensor& states, const torch::Tensor& updates,
                                   const torch::Tensor& by_outputs, const torch::Tensor& by_state,
                                   const std::vector<torch::Tensor>& by) const = 0;

  /// @param parameters  at least one, where they and their moments stay.   @param models  R.
  [[nodiscard]] virtual std::unique_ptr<DeviceAdamW> adamw(std::vector<TrainedParameter> parameters,
                                                           std::int64_t models) const = 0;

  /// Begins a step: copies the current row of the tables.
  virtual void begin_step(const StepTables& tables, const StepNumbers& current) const = 0;
  /// Writes the batches of the models' steps. @param input, target  (R, B, length) int64; B is at
  /// most the number of windows.
  virtual void read_batches(const DeviceWindows& windows, const DeviceOrders& orders,
                            const torch::Tensor& input, const torch::Tensor& target) const = 0;
  /// Adds 1 to each of them, int64.
  virtual void advance(const torch::Tensor& counters) const = 0;
  [[nodiscard]] virtual std::unique_ptr<DeviceGraph> graph(torch::Device device) const = 0;
};

/// @return those of a device; null: it has none. Then, but for the CPU, LibTorch's operations are
/// used.
const DeviceOperations* device_operations(torch::Device device);

/// Whether there are kernels for all modes but `reference`: on the CPU, and on devices with
/// operations of their own.
bool has_kernels(torch::Device device);

/// Says what the operations of all devices of a type are, before models are computed there.
///
/// @param operations  outlives all models; null: none.
void set_device_operations(torch::DeviceType type, const DeviceOperations* operations);

}  // namespace nas::nn
