#pragma once

#include <memory>
#include <vector>

#include <torch/types.h>

#include "nn/transformer.hpp"

namespace torch::optim {
class AdamW;
}
namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace nas {

struct OptimizerSettings {
  double learning_rate = 3e-4;
  double weight_decay = 0.01;  ///< of the parameters that decay (nn::Transformer::decays)
  double clip_norm = 1.0;      ///< largest total norm of the gradient
};

/// AdamW (Loshchilov & Hutter 2017, arXiv:1711.05101) on a model's parameters, after clipping the
/// gradient by its total norm. Waits for no device.
class Optimizer {
 public:
  Optimizer(const nn::Transformer& model, const OptimizerSettings& settings);
  ~Optimizer();

  /// Uses up the parameters' gradients: one step, then there are none.
  void step();
  void set_learning_rate(double rate);

  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);

 private:
  std::vector<torch::Tensor> parameters_;
  double clip_norm_;
  std::unique_ptr<torch::optim::AdamW> adamw_;
};

}  // namespace nas
