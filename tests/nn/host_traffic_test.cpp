// What a training step gives to a device and takes from it, on LibTorch's device "meta", whose
// tensors have sizes and no numbers: reading one is an error, and so is mixing them with tensors of
// the CPU.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/types.h>

#include "array_step.hpp"
#include "ops/device_operations.hpp"
#include "small_corpus.hpp"
#include "training/validation.hpp"

namespace nas::nn {
namespace {

torch::Tensor index_select_on_meta(const torch::Tensor& x, std::int64_t dimension,
                                   const torch::Tensor& index) {
  auto sizes = x.sizes().vec();
  sizes[static_cast<std::size_t>(dimension)] = index.numel();
  return at::empty(sizes, x.options());
}

torch::Tensor& abs_on_meta(const torch::Tensor& x, torch::Tensor& out) {
  out.resize_(x.sizes());
  return out;
}

torch::Tensor where_on_meta(const torch::Tensor& /*condition*/, const torch::Tensor& a,
                            const torch::Tensor& b) {
  return at::empty((a.dim() > 0 ? a : b).sizes(), b.options());
}

/// LibTorch 1.13 lacks these for "meta".
template <class Kernel>
void provide(const char* name, const char* overload, Kernel kernel) {
  const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  if (operation.hasKernelForDispatchKey(c10::DispatchKey::Meta)) return;
  static std::vector<std::unique_ptr<torch::Library>> libraries;
  libraries.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, "aten",
                                                       c10::DispatchKey::Meta, __FILE__, __LINE__));
  const std::string text = name + (*overload == 0 ? std::string() : "." + std::string(overload));
  libraries.back()->impl(text.c_str(), kernel);
}

/// Tensors of the right sizes, made of all that are given.
class MetaOperations final : public DeviceOperations {
 public:
  void map(kernels::Map /*map*/, const std::vector<torch::Tensor>& in, const MapBias& bias,
           const torch::Tensor& out, const Masks& masks) const override {
    expect_here(in);
    expect_here({bias.added, bias.sums, out});
    if (masks.any_drops()) expect_here({masks.seeds});
  }
  void layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                  double /*epsilon*/, const torch::Tensor& y,
                  const torch::Tensor& moments) const override {
    expect_here({x, weight, bias, y, moments});
  }
  void layer_norm_backward(const torch::Tensor& x, const torch::Tensor& weight,
                           const torch::Tensor& moments, const ByNorm& given,
                           const LayerNormGradients& by) const override {
    expect_here({x, weight, moments, given.y, given.beside, by.x, by.weight, by.bias});
  }
  void embedding_backward(const torch::Tensor& tokens, const torch::Tensor& by_rows,
                          const torch::Tensor& by_matrices) const override {
    expect_here({tokens, by_rows, by_matrices});
  }
  [[nodiscard]] torch::Tensor linear_cross_entropy(const OutputLayer& layer,
                                                   const torch::Tensor& targets,
                                                   const torch::Tensor& counted,
                                                   NumericalMode /*mode*/) const override {
    expect_here(
        {layer.features, layer.embedding, layer.by_features, layer.by_embedding, targets, counted});
    return at::empty({layer.models()}, layer.features.options());
  }
  void scale(const torch::Tensor& x, const torch::Tensor& factors) const override {
    expect_here({x, factors});
  }
  [[nodiscard]] TokenScores score_tokens(const OutputLayer& /*layer*/, const torch::Tensor& targets,
                                         NumericalMode /*mode*/) const override {
    return {targets, targets};
  }
  [[nodiscard]] bool attention_fits(const torch::Tensor& /*q*/,
                                    std::int64_t /*heads*/) const override {
    return true;
  }
  void gated_sum(const GatedSums& sums, const std::vector<torch::Tensor>& in,
                 const torch::Tensor& out) const override {
    expect_here({sums.on_device, out});
    expect_here(in);
  }
  void gated_sum_backward(const GatedSums& sums, const std::vector<torch::Tensor>& in,
                          const torch::Tensor& by_sum,
                          const std::vector<torch::Tensor>& by) const override {
    gated_sum(sums, in, by_sum);
    expect_here(by);
  }
  [[nodiscard]] bool has_form_of(
      const kernels::RowNormalization& /*normalization*/) const override {
    return true;
  }
  [[nodiscard]] torch::Tensor described(const std::vector<ModelAttention>& models,
                                        const Masks& /*masks*/,
                                        torch::Device device) const override {
    return at::empty({static_cast<std::int64_t>(models.size())},
                     at::TensorOptions(at::kFloat).device(device));
  }
  [[nodiscard]] torch::Tensor attention(const ArrayAttention& models,
                                        const AttentionTensors& tensors,
                                        torch::Tensor* kept) const override {
    expect_here(models, tensors);
    if (kept != nullptr) *kept = at::empty({1}, tensors.q.options());
    return at::empty(tensors.q.sizes(), tensors.q.options());
  }
  void attention_backward(const ArrayAttention& models, const AttentionTensors& tensors,
                          const torch::Tensor& kept, const torch::Tensor& by_output,
                          const AttentionTensors& by) const override {
    expect_here(models, tensors);
    expect_here(models, by);
    expect_here({kept, by_output});
  }
  [[nodiscard]] bool recurrence_fits(const kernels::RecurrenceShape& /*shape*/,
                                     at::ScalarType /*type*/) const override {
    return true;
  }
  void recurrence(const kernels::RecurrenceShape& /*shape*/, const std::vector<torch::Tensor>& in,
                  const torch::Tensor& states, const torch::Tensor& updates,
                  const torch::Tensor& outputs) const override {
    expect_here(in);
    expect_here({states, updates, outputs});
  }
  void recurrence_backward(const kernels::RecurrenceShape& shape,
                           const std::vector<torch::Tensor>& in, const torch::Tensor& states,
                           const torch::Tensor& updates, const torch::Tensor& by_outputs,
                           const torch::Tensor& by_state,
                           const std::vector<torch::Tensor>& by) const override {
    recurrence(shape, in, states, updates, by_outputs);
    expect_here({by_state});
    expect_here(by);
  }
  [[nodiscard]] std::unique_ptr<DeviceAdamW> adamw(std::vector<TrainedParameter> /*parameters*/,
                                                   std::int64_t /*models*/) const override {
    return nullptr;
  }
  void begin_step(const StepTables& /*tables*/, const StepNumbers& /*current*/) const override {}
  void read_batches(const DeviceWindows& /*windows*/, const DeviceOrders& /*orders*/,
                    const torch::Tensor& /*input*/,
                    const torch::Tensor& /*target*/) const override {}
  void advance(const torch::Tensor& /*counters*/) const override {}
  [[nodiscard]] std::unique_ptr<DeviceGraph> graph(torch::Device /*device*/) const override {
    return nullptr;
  }

 private:
  static void expect_here(at::TensorList tensors) {
    for (const auto& tensor : tensors) {
      TORCH_CHECK(!tensor.defined() || tensor.is_meta(), "a tensor of ", tensor.device());
    }
  }
  static void expect_here(const ArrayAttention& models, const AttentionTensors& tensors) {
    expect_here({models.on_device, tensors.q, tensors.k, tensors.v, tensors.inverse_temperature,
                 tensors.directions});
    if (models.masks.any_drops()) expect_here({models.masks.seeds});
  }
};

/// As long as it lives, operations that mix tensors of the CPU, other than single numbers, with
/// those of a device are noted.
class Watch {
 public:
  Watch() {
    noted().clear();
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& operation)
                                       -> std::unique_ptr<at::ObserverContext> {
          bool host = false;
          bool device = false;
          for (const auto& input : operation.inputs()) {
            if (!input.isTensor() || !input.toTensor().defined()) continue;
            const auto& tensor = input.toTensor();
            host = host || (tensor.device().is_cpu() && tensor.dim() > 0);
            device = device || tensor.is_meta();
          }
          if (host) noted().insert(operation.name());
          return nullptr;
        }).needsInputs(true));
  }
  ~Watch() { at::removeCallback(handle_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  static std::set<std::string>& noted() {
    static std::set<std::string> names;
    return names;
  }

 private:
  at::CallbackHandle handle_;
};

void step(TransformerArray& models) {
  const auto here = at::TensorOptions(at::kLong).device(at::kMeta);
  const auto& common = models.architectures().front();
  const auto tokens = at::empty({models.num_models(), 2, common.context}, here);
  const Pass pass{
      .training = true, .seeds = {}, .device_seeds = at::empty({models.num_models()}, here)};
  models.loss(tokens, tokens, pass).sum().backward();
  for (const auto& parameter : models.parameters()) {
    auto handle = parameter.tensor;
    ASSERT_TRUE(handle.grad().defined()) << parameter.name;
    ASSERT_TRUE(handle.grad().is_meta()) << parameter.name;
    handle.mutable_grad() = torch::Tensor();
  }
}

TEST(HostTraffic, AStepNeitherReadsTheDeviceNorGivesItNumbers) {
  provide("aten::index_select", "", &index_select_on_meta);
  provide("aten::abs", "out", &abs_on_meta);
  provide("aten::where", "self", &where_on_meta);
  static const MetaOperations operations;
  set_device_operations(at::kMeta, &operations);
  for (const auto mode : {NumericalMode::exact, NumericalMode::fast}) {
    std::vector<std::vector<Architecture>> arrays{test::various_models()};
    for (const auto& model : test::various_models()) arrays.push_back({model, model});
    for (const auto& array : arrays) {
      TransformerArray models(array, mode, at::kMeta);
      step(models);  // what is sent once is sent now
      const Watch watch;
      step(models);
      EXPECT_EQ(Watch::noted(), std::set<std::string>())
          << array.size() << " models, the first " << to_string(array.front().stack.front());
    }
  }
  set_device_operations(at::kMeta, nullptr);
}

/// How often a single number is read of a tensor while `models` models are validated on
/// `windows` windows, two a batch.
int num_reads(std::size_t models, std::int64_t windows) {
  TransformerArray array(
      std::vector<Architecture>(models, test::small("dot|softmax|none|fixed|bias|0")),
      NumericalMode::exact);
  array.initialise(std::vector<StartSeed>(models));
  const auto corpus = nas::test::counting_corpus(29, 37, windows);
  static int reads;
  reads = 0;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& operation) -> std::unique_ptr<at::ObserverContext> {
        if (std::string(operation.name()) == "aten::_local_scalar_dense") ++reads;
        return nullptr;
      }));
  const auto scores = validate(array, corpus.valid, evenly_spaced(windows, 0), {}, 2, "cpu");
  at::removeCallback(handle);
  EXPECT_EQ(scores.size(), models);
  EXPECT_EQ(scores.back().batches, windows / 2);
  return reads;
}

/// On a device each such read waits for all that was given to it.
TEST(HostTraffic, AValidationReadsNothingBatchByBatch) {
  EXPECT_EQ(num_reads(3, 2), num_reads(1, 2));
  EXPECT_EQ(num_reads(3, 8), num_reads(1, 2));
}

}  // namespace
}  // namespace nas::nn
