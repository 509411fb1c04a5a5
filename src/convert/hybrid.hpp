#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "convert/block.hpp"
#include "core/numerical_mode.hpp"
#include "genotype/architecture.hpp"
#include "nn/block.hpp"
#include "nn/norm.hpp"
#include "nn/position_embedding.hpp"
#include "nn/transformer.hpp"
#include "ops/loss.hpp"

namespace nas {

/// Of each layer of a model, which of the blocks is in its place.
using Placement = std::vector<std::size_t>;

/// The layers of a text as 8,17-20. @throws InputError "layers 8-40, must be in [0, 29]".
std::vector<std::size_t> layers_of(std::string_view text, std::int64_t layers);

/// A trained transformer and the blocks that may take the place of its layers' attention: what each placement is, and costs.
class Conversion {
 public:
  /// @param blocks  the first of which is `full`.   @param open  see choices(); empty: all layers.
  /// @throws InputError naming block and layer where one cannot be.
  Conversion(Architecture teacher, std::vector<LayerBlock> blocks,
             std::vector<std::size_t> open = {});

  [[nodiscard]] const Architecture& teacher() const { return teacher_; }
  [[nodiscard]] const std::vector<LayerBlock>& blocks() const { return blocks_; }
  [[nodiscard]] std::int64_t layers() const { return teacher_.layers; }
  /// Blocks that do something else than those before in a layer: what has another form there, `full` included. A layer
  /// without an earlier one of attention shares no keys. Of a layer that is not open, `full` alone.
  [[nodiscard]] std::vector<std::size_t> choices(std::int64_t layer) const;
  /// A block in one layer, the others as they are.
  [[nodiscard]] Placement alone(std::int64_t layer, std::size_t block) const;
  /// The genes of a layer. One that shares keys has as many heads of them as its giver keeps, and sees none but these.
  /// @throws InputError where it shares keys and no earlier layer keeps any.
  [[nodiscard]] Mechanism layer(const Placement& placement, std::int64_t i) const;
  /// Why the placement is no model; empty: it is one.
  [[nodiscard]] std::string refusal(const Placement& placement) const;
  /// The layer whose keys a layer reads; -1: its own, or none. @throws InputError as layer().
  [[nodiscard]] std::int64_t giver(const Placement& placement, std::int64_t i) const;
  /// The name of what a layer is.
  [[nodiscard]] std::string form(const Placement& placement, std::int64_t i) const;
  /// Numbers that the mixer of a layer with a block learns; 0: there is none.
  [[nodiscard]] std::int64_t mixer_parameters(std::int64_t layer, std::size_t block) const;
  /// The model of a placement, in canonical form. @throws InputError as layer().
  [[nodiscard]] Architecture architecture(const Placement& placement) const;
  /// Bytes of its cache in float32 after so many tokens of one sequence.
  [[nodiscard]] std::int64_t cache_bytes(const Placement& placement, std::int64_t tokens) const;

  /// "full 8,17-20; window{64,4} 0-7": layers by block, in the order of the blocks.
  [[nodiscard]] std::string name(const Placement& placement) const;
  /// Inverse. @throws InputError naming what is given unless each layer has one of the blocks.
  [[nodiscard]] Placement parse(const std::string& name) const;

 private:
  /// What a block makes of a layer, whatever the others are.
  [[nodiscard]] const Mechanism& raw(const Placement& placement, std::int64_t i) const {
    const auto layer = static_cast<std::size_t>(i);
    return forms_[layer][placement[layer]];
  }

  Architecture teacher_;
  std::vector<LayerBlock> blocks_;
  std::vector<std::size_t> open_;
  std::vector<std::vector<Mechanism>> forms_;  // of each layer and block
};

/// A trained model's weights by name, shared by whatever computes with them.
using Weights = std::map<std::string, torch::Tensor>;
/// Of one model, without its leading dimension.
Weights weights_of(const nn::Transformer& model);
/// What a block has learned in a layer, by the parameters' names within it; nullptr, and what is not there: as it begins.
using TrainedBlocks =
    std::function<std::shared_ptr<const Weights>(std::int64_t layer, std::size_t block)>;
/// The weights of a placement's model.
Weights weights_of(const Conversion& conversion, const Weights& teacher, const Placement& placement,
                   const TrainedBlocks& trained = {});
/// What a parameter of a layer in which a block is begins with. @param parameter  by its name within the layer.
torch::Tensor start_of(const Conversion& conversion, const Weights& teacher, std::int64_t layer,
                       std::size_t block, const nn::Parameter& parameter);

/// Makes a parameter of an array of one model share the memory of a weight; every handle to it follows.
/// @throws std::logic_error where their shapes differ.
void share(torch::Tensor parameter, const torch::Tensor& weight);

/// Computes hybrids layer by layer, on weights that it shares. One thread at a time.
class HybridModel {
 public:
  /// @param conversion  outlives it.   @param weights  of the teacher.
  HybridModel(const Conversion& conversion, const Weights& weights, NumericalMode mode,
              TrainedBlocks trained = {});

  /// @param tokens  (T) or (B, T) int64.   @return the stream before the first layer, (1, B, T, D).
  [[nodiscard]] torch::Tensor embedded(const torch::Tensor& tokens);
  /// The stream behind a layer of a placement.
  [[nodiscard]] torch::Tensor behind(const Placement& placement, std::int64_t layer,
                                     const torch::Tensor& stream, const nn::Pass& pass = {});
  /// The same of a block alone.
  [[nodiscard]] torch::Tensor behind(std::int64_t layer, std::size_t block,
                                     const torch::Tensor& stream, const nn::Pass& pass = {}) {
    return behind(conversion_.alone(layer, block), layer, stream, pass);
  }
  /// Milliseconds that a layer of a placement takes for one token of one sequence with so many tokens before it: the
  /// median of some, on this machine.
  [[nodiscard]] double step_milliseconds(const Placement& placement, std::int64_t layer,
                                         std::int64_t tokens);
  /// The same of the output layer.
  [[nodiscard]] double output_milliseconds() const;
  /// What logits are made of, (T, D).   @param stream  behind the last layer.
  [[nodiscard]] torch::Tensor features(const torch::Tensor& stream) const;
  /// (N, V) of the features of N tokens.
  [[nodiscard]] torch::Tensor logits(const torch::Tensor& features) const;
  /// -log softmax(logits)[target] of N tokens, float64.
  [[nodiscard]] torch::Tensor nll(const torch::Tensor& features,
                                  const torch::Tensor& targets) const;
  /// What makes logits of features, (1, V, D).
  [[nodiscard]] const torch::Tensor& output() const { return output_; }

 private:
  /// What a block is in one layer; what it shares depends on those before.
  struct Made {
    std::size_t block;
    Mechanism form;
    std::unique_ptr<nn::Block> computes;
  };
  nn::Block& made(const Placement& placement, std::int64_t layer);

  const Conversion& conversion_;
  const Weights& weights_;
  NumericalMode mode_;
  TrainedBlocks trained_;
  std::vector<nn::Parameter> parameters_;  // what follows is made of
  torch::Tensor embedding_, output_;
  std::unique_ptr<nn::PositionEmbedding> positions_;
  std::unique_ptr<nn::Norm> final_norm_;
  std::vector<std::vector<Made>> blocks_;  // of each layer, made when needed
};

}  // namespace nas
