#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "convert/hybrid.hpp"
#include "nn/mixer.hpp"
#include "training/optimizer.hpp"

namespace nas {

/// Stage 1: each block learns alone, in its layer of the teacher, to add what attention adds there. Of what attention reads,
/// x, and adds, y, at all tokens of a step, in each layer
///
///   L1 = sum |y - y'|^2 / sum |y|^2 ,
///
/// by a factor of y' from the first step's tokens where the block is recurrent, then by AdamW (beta 0.9, 0.95, no decay, gradients clipped to norm 1) at a rate that falls from 1e-3 to 1e-5 as a cosine.
/// @see HALO, arXiv:2601.22156.
struct Lessons {
  std::int64_t steps = 0;
  std::int64_t seeds = 1;  ///< trainings of each block
  /// The sequences of a step 0, 1, ..., (B, T) int64.
  std::function<torch::Tensor(std::int64_t seed, std::int64_t step)> batch{};
  std::vector<torch::Tensor> held_out{};  ///< likewise, of which nothing is learned
  double checkpoint_seconds = 600.0;      ///< after which an unfinished pass is kept
  double room = 4e9;                      ///< bytes of weights, gradients and moments at once

  /// The learning rate of a step.
  [[nodiscard]] double rate(std::int64_t step) const;
};

/// One block in some layers, in which it has one form: an array of models, of which none depends on the others.
class BlockArray {
 public:
  /// As the block begins.
  BlockArray(const Conversion& conversion, const Weights& teacher, std::size_t block,
             std::vector<std::int64_t> layers, NumericalMode mode);

  [[nodiscard]] std::size_t block() const { return block_; }
  [[nodiscard]] const std::vector<std::int64_t>& layers() const { return layers_; }
  [[nodiscard]] std::vector<nn::Parameter>& parameters() { return parameters_; }
  /// Of one of the layers, by their names within it.
  [[nodiscard]] Weights weights(std::size_t model) const;

  /// Notes what a mixer of the teacher reads and adds, of the layers in their order, (1, B, T, D), and of a block that shares
  /// keys those of the layer before.
  /// @return whether that was the last of them.
  bool note(std::int64_t layer, const torch::Tensor& x, const torch::Tensor& stream,
            const torch::Tensor& added, const std::vector<nn::SharedKeys>& shared = {});
  /// Multiplies the output matrix of a recurrent block, and its bias, by the number that makes L1 least of what was noted:
  /// norms make outputs of length 1 of what attention may have added little of.
  void scale();
  /// Gradients of the sum of L1 over the layers, of what was noted, which is forgotten.
  void differentiate();
  /// A step by them.
  void step(std::int64_t number, double rate);
  /// The names of its layers' states in archives, which hold weights and moments.
  [[nodiscard]] std::vector<std::string> keys() const;
  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);
  /// The numerator and the denominator of each layer's L1, of what was noted, which is forgotten.
  std::vector<std::array<double, 2>> errors();

 private:
  /// @param keeps  whether what was noted is not forgotten.
  [[nodiscard]] torch::Tensor difference(bool keeps = false);

  std::size_t block_;
  std::string text_;
  std::vector<std::int64_t> layers_;
  bool shares_;
  std::vector<nn::Parameter> parameters_;
  std::unique_ptr<nn::Mixer> mixer_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<torch::Tensor> read_, streams_, added_, keys_, values_;
};

/// A block that has learned in a layer.
struct LearnedBlock {
  Weights weights{};                ///< of its mixer, by their names within the layer
  float loss_before = 0, loss = 0;  ///< L1 on what is held out
};

/// Blocks that have learned, of each layer, block and seed: those of a seed are made when one is first asked for, by one
/// pass of the teacher for as many at once as there is room for, and kept in files. Called by several threads.
///
/// A pass that is stopped goes on from its last checkpoint, and comes to the same.
///
/// Cost: a step is the teacher's forward pass, and of each block in each layer one forward and one backward pass. Memory:
/// four times the blocks' weights; of a step, what a few layers need.
class LearnedBlocks {
 public:
  /// @param conversion, teacher  outlive it.
  /// @param folder  of files SEED/LAYER.BLOCK.safetensors, whose name stands for all that the weights depend on; empty: none.
  LearnedBlocks(const Conversion& conversion, const Weights& teacher, NumericalMode mode,
                Lessons lessons, std::filesystem::path folder);

  /// nullptr: there is nothing to learn.
  [[nodiscard]] std::shared_ptr<const LearnedBlock> at(std::int64_t layer, std::size_t block,
                                                       std::int64_t seed);
  [[nodiscard]] TrainedBlocks of_seed(std::int64_t seed);
  /// The seed of a replicate.
  [[nodiscard]] std::int64_t seed(std::int64_t replicate) const {
    return replicate % lessons_.seeds;
  }
  /// Seconds that the first so many seeds take, but for what files hold: by a few steps of each pass, which need the memory
  /// that the pass needs.
  [[nodiscard]] double seconds(std::int64_t seeds) const;
  /// Of the weights that blocks of one seed have learned.
  [[nodiscard]] double bytes() const;
  /// The mean L1 over the layers of a placement in which a block has learned, before and after; nothing: there is none.
  [[nodiscard]] std::optional<std::array<double, 2>> losses(const Placement& placement,
                                                            std::int64_t seed);

 private:
  using Place = std::pair<std::int64_t, std::size_t>;  // layer, block
  void learn(std::int64_t seed);
  /// Where a block can learn.
  [[nodiscard]] std::vector<Place> places() const;
  [[nodiscard]] bool is_kept(std::int64_t seed, const Place& place) const;
  /// Takes away the first, as many as one pass has room for.
  [[nodiscard]] std::vector<Place> of_pass(std::vector<Place>& left) const;
  [[nodiscard]] std::vector<BlockArray> arrays(std::int64_t seed,
                                               const std::vector<Place>& places) const;
  [[nodiscard]] std::map<Place, LearnedBlock> trained(std::int64_t seed,
                                                      const std::vector<Place>& places) const;
  [[nodiscard]] std::filesystem::path file(std::int64_t seed, const Place& place) const;
  /// Of an unfinished pass; empty: it is not kept.
  [[nodiscard]] std::filesystem::path unfinished(std::int64_t seed) const;

  const Conversion& conversion_;
  const Weights& teacher_;
  NumericalMode mode_;
  Lessons lessons_;
  std::filesystem::path folder_;
  std::mutex learning_;
  std::map<std::int64_t, std::map<Place, std::shared_ptr<const LearnedBlock>>> made_;  // by seed
};

/// What the files of a seed hold, each read when it is asked for. @param conversion  outlives it.
/// @throws InputError, when called, where a block that learns has no file; as SafetensorsFile.
TrainedBlocks learned_blocks_of(const Conversion& conversion, const std::filesystem::path& folder);

}  // namespace nas
