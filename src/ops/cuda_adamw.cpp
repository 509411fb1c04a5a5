#include <algorithm>

#include "kernels/cuda/adamw.hpp"
#include "ops/cuda_operations.hpp"

namespace nas::nn {

namespace {

template <class Real>
class CudaAdamW final : public DeviceAdamW {
 public:
  CudaAdamW(std::vector<TrainedParameter> parameters, std::int64_t models)
      : parameters_(std::move(parameters)) {
    for (std::int64_t model = 0; model < models; ++model) {
      first_.push_back(static_cast<std::int64_t>(pieces_.size()));
      add_pieces(model);
    }
    first_.push_back(static_cast<std::int64_t>(pieces_.size()));
    const auto device = parameters_.front().parameter.device();
    first_there_ = on_device(first_, device);
    pieces_there_ = on_device(pieces_, device);
    step_.pieces = static_cast<const cuda::Piece<Real>*>(pieces_there_.data_ptr());
    step_.num_pieces = first_.back();
    step_.first_pieces = static_cast<const std::int64_t*>(first_there_.data_ptr());
    step_.models = models;
    scratch_ =
        at::empty({cuda::adamw_scratch_size(step_)}, at::TensorOptions(at::kDouble).device(device));
    step_.scratch = scratch_.data_ptr<double>();
  }

  void step(const DeviceSteps& steps) override {
    std::vector<torch::Tensor> gradients;
    for (const auto& trained : parameters_) {
      const auto& gradient = trained.parameter.grad();
      gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
    }
    const bool changed = find(gradients);
    const auto device = pieces_there_.device();
    auto table = pieces_there_;
    if (is_recording(device)) {
      // A copy from here would be captured, too, and replayed with whatever is here then.
      TORCH_CHECK(unsent_.size() < tables_.size(), "step ", unsent_.size() + 1,
                  " of a capture, must be one of the ", tables_.size(), " that it was begun for");
      table = tables_[unsent_.size()];
      unsent_.push_back(pieces_);
    } else if (changed) {
      table.copy_(on_device(pieces_, device));
    }
    step_.pieces = static_cast<const cuda::Piece<Real>*>(table.data_ptr());
    step_.learning_rates = steps.learning_rates.data_ptr<double>();
    step_.weight_decays = steps.weight_decays.data_ptr<double>();
    step_.clip_norms = steps.clip_norms.data_ptr<double>();
    step_.steps = steps.done.data_ptr<std::int64_t>();
    cuda::adamw(step_, StreamOf(pieces_there_));
  }

  void begin_recording(std::int64_t steps) override {
    tables_.clear();
    for (std::int64_t i = 0; i < steps; ++i) tables_.push_back(at::empty_like(pieces_there_));
  }

  void end_recording(bool succeeded) override {
    for (std::size_t i = 0; i < unsent_.size(); ++i) {
      if (succeeded) tables_[i].copy_(on_device(unsent_[i], tables_[i].device()));
    }
    if (!succeeded) tables_.clear();
    unsent_.clear();
    // The table that uncaptured steps read is still that from before the capture.
    pieces_there_.copy_(on_device(pieces_, pieces_there_.device()));
  }

 private:
  /// Where a piece lies: a parameter, and its first element in it.
  struct Origin {
    std::size_t parameter;
    std::int64_t begin;
  };
  void add_pieces(std::int64_t model) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto& [parameter, first, second, models, decays] = parameters_[i];
      const auto owner = std::find(models.begin(), models.end(), model);
      if (owner == models.end()) continue;
      const auto size = parameter.numel() / parameter.size(0);
      const auto slice = (owner - models.begin()) * size;
      for (std::int64_t begin = 0; begin < size; begin += cuda::kPieceSize) {
        const auto at = slice + begin;
        pieces_.push_back({.parameter = parameter.template data_ptr<Real>() + at,
                           .first = first.template data_ptr<Real>() + at,
                           .second = second.template data_ptr<Real>() + at,
                           .size = std::min(cuda::kPieceSize, size - begin),
                           .model = static_cast<std::int32_t>(model),
                           .decays = decays});
        origins_.push_back({i, at});
      }
    }
  }

  /// Writes the gradients' addresses. @return whether one has changed.
  bool find(const std::vector<torch::Tensor>& gradients) {
    bool changed = false;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto& gradient = gradients[origins_[i].parameter];
      const Real* const address =
          gradient.defined() ? gradient.template data_ptr<Real>() + origins_[i].begin : nullptr;
      changed = changed || pieces_[i].gradient != address;
      pieces_[i].gradient = address;
    }
    return changed;
  }

  std::vector<TrainedParameter> parameters_;
  std::vector<cuda::Piece<Real>> pieces_;               ///< ordered by model
  std::vector<Origin> origins_;                         ///< of the pieces
  std::vector<std::int64_t> first_;                     ///< (R + 1): the models' first pieces
  torch::Tensor pieces_there_, first_there_, scratch_;  ///< on the device
  /// The pieces of captured steps, which replays read. Memory from within the capture would not do:
  /// each replay writes there what the steps before keep there for a while.
  std::vector<torch::Tensor> tables_;
  std::vector<std::vector<cuda::Piece<Real>>> unsent_;  ///< of the steps captured so far
  cuda::AdamW<Real> step_;
};

}  // namespace

std::unique_ptr<DeviceAdamW> cuda_adamw(std::vector<TrainedParameter> parameters,
                                        std::int64_t models) {
  if (parameters.front().parameter.scalar_type() == at::kDouble) {
    return std::make_unique<CudaAdamW<double>>(std::move(parameters), models);
  }
  return std::make_unique<CudaAdamW<float>>(std::move(parameters), models);
}

}  // namespace nas::nn
