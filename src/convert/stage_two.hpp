#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "convert/assessment.hpp"
#include "convert/hybrid.hpp"
#include "convert/stage_one.hpp"

namespace nas {

/// Stage 2: the hybrid of a placement learns as a whole to say what the teacher says. Over all N tokens of a step,
///
///   L2 = 1/N sum KL(p_teacher || p_hybrid) ,
///
/// over all of the vocabulary at temperature 1, by AdamW (beta 0.9, 0.95, no decay, gradients clipped to norm 1) at rates
/// that rise linearly for a twentieth of the steps and fall to a tenth as a cosine.
/// @see HALO, arXiv:2601.22156; KL-guided selection, arXiv:2512.20569, whose two rates these are.
struct Distillation {
  std::int64_t steps = 0;
  std::vector<std::int64_t>
      marks{};  ///< steps after which a hybrid is assessed, ascending; the last is the end
  /// The sequences of a step 0, 1, ..., (B, T) int64: the same for all placements.
  std::function<torch::Tensor(std::int64_t replicate, std::int64_t step)> batch{};
  double mixer_rate = 1e-4;  ///< of attention, and of what takes its place
  double other_rate = 1e-5;  ///< of all else; 0: it stays
  std::int64_t rank =
      0;  ///< of what is added to matrices of all else (LowRank), vectors stay; 0: all of it learns
  double checkpoint_seconds = 600.0;  ///< after which an unfinished training is kept
  double room = 4e9;                  ///< bytes of the teacher's features that are kept

  /// By what the rates of a step are multiplied.
  [[nodiscard]] double factor(std::int64_t step) const;
};

/// Trains hybrids. Called by several threads, each of which computes one.
///
/// A training that is stopped goes on from its last checkpoint, and comes to the same.
///
/// Cost: three times a forward pass of the hybrid, and one of the teacher where its features are not kept. Memory: four times the
/// weights that learn, by LowRank those and twice the matrices; the activations of as many sequences as there is room for in kActivationBytes, at least one.
class Distiller {
 public:
  static constexpr double kActivationBytes = 2e9;

  /// @param conversion, teacher, learned  outlive it; learned may be nullptr: nothing has.
  /// @param folder  of checkpoints, whose name stands for all that the weights depend on; empty: none.
  /// @param kept    of the weights of trained hybrids, likewise; empty: none.
  Distiller(const Conversion& conversion, const Weights& teacher, NumericalMode mode,
            Distillation plan, LearnedBlocks* learned, std::filesystem::path folder,
            std::filesystem::path kept);

  using Assess = std::function<Assessment(nn::TransformerArray& hybrid)>;
  /// What the hybrid is after the first so many marks, of which those that a checkpoint knows are not computed again.
  [[nodiscard]] std::vector<Assessment> train(const Placement& placement, std::int64_t replicate,
                                              std::size_t marks, const Assess& assess);
  /// Seconds that the training of a placement takes with the teacher's features kept, by a part of a step.
  [[nodiscard]] double seconds(const Placement& placement);
  /// Of the teacher's features of a replicate's steps.
  [[nodiscard]] double feature_bytes() const;
  /// Deletes the checkpoint.
  void forget(const Placement& placement, std::int64_t replicate) const;
  /// Sequences whose activations exist at once.
  [[nodiscard]] std::int64_t at_once(std::int64_t tokens) const;

 private:
  struct Kept {
    std::int64_t replicate;
    std::vector<torch::Tensor> features;  // of steps, where they are known
  };
  [[nodiscard]] torch::Tensor told(nn::TransformerArray& teacher, std::int64_t replicate,
                                   std::int64_t step, const torch::Tensor& tokens);
  [[nodiscard]] std::filesystem::path file(const Placement& placement,
                                           std::int64_t replicate) const;

  const Conversion& conversion_;
  const Weights& teacher_;
  NumericalMode mode_;
  Distillation plan_;
  LearnedBlocks* learned_;
  std::filesystem::path folder_, kept_folder_;
  std::mutex keeping_;
  std::list<Kept> kept_;  // the last used first
  double kept_bytes_ = 0.0;
};

/// The weights of a trained hybrid, of a folder in which they were kept. Empty: it has none of it.
/// @throws InputError as SafetensorsFile.
Weights read_learned_hybrid(const Conversion& conversion, const Placement& placement,
                            const std::filesystem::path& folder);

}  // namespace nas
