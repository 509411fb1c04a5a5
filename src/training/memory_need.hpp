#pragma once

#include <cstdint>
#include <string>

#include "genotype/architecture.hpp"
#include "training/trainer.hpp"

namespace nas {

/// Memory of tensors on the CPU when a training run has the most of it, bytes.
struct MemoryNeed {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;    ///< those that exist then
  std::int64_t optimizer = 0;    ///< what it keeps of weights
  std::int64_t activations = 0;  ///< what layers keep of tokens, and work with
  std::int64_t logits = 0;       ///< what the loss, or a score, works with
  std::string when{};  ///< "the loss", "gradients of layer 3", "the end of a step" or "validation"

  [[nodiscard]] std::int64_t total() const {
    return weights + gradients + optimizer + activations + logits;
  }
  /// "weights 475 MiB, gradients 147 MiB, ..., at the loss"
  [[nodiscard]] std::string text() const;
};

/// The least that it can be, whatever layers are made of: least_training_bytes(), with what the optimiser keeps, or where
/// layers are computed again, of their activations what each reads.
double least_bytes(const Architecture& architecture, const TrainingSettings& settings,
                   std::int64_t sequences);

/// What training a model alone takes, of which one layer of each kind is made and measured, forwards and backwards, for one
/// sequence and for as many as have once and twice as many tokens as the width, from which on all grows with their number.
/// Weights, logits and the rest are counted by formula. Takes about as long as some steps of so many, and the memory of one layer.
/// Of the task next_token; within 10 % of TrainingResult::peak_bytes, unless an optimiser's own rule takes more than the rest.
///
/// @throws what nn::rethrow_as_failure() says of layers that cannot be computed.
MemoryNeed memory_need(const Architecture& architecture, const TrainingSettings& settings,
                       const TrainingContext& context);

/// Settings that take no more than so many bytes: smaller parts first, layers computed again where these do not suffice.
/// @return "training.micro_batch = 4 takes 3.1 GiB", or that there are none.
std::string what_fits(const Architecture& architecture, const TrainingSettings& settings,
                      const TrainingContext& context, std::int64_t bytes);

/// @return memory_need().   @throws InputError with what_fits() if that is more than this machine has left (blocks are up to an
/// eighth larger than tensors) and context.memory_limit is 0.
MemoryNeed require_fit(const Architecture& architecture, const TrainingSettings& settings,
                       const TrainingContext& context);

}  // namespace nas
