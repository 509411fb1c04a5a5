#include "nn/decoder.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "genotype/component.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"

namespace nas::nn {

void require_decodable(const Architecture& architecture) {
  std::vector<Mechanism> layers;
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    for (auto& part : parts_of(architecture.layer(i))) layers.push_back(std::move(part));
  }
  for (const auto& layer : layers) {
    if (layer.integer("kv_rank") > 0 && layer.word("position") == "path") {
      throw InputError(
          "position = path: cannot go on one token at a time beside kv_rank, which keeps no keys");
    }
    for (const auto* slot : layer_slots()) {
      if (!slot->is_component() || !has_gene(layer.word("mixer"), *slot)) continue;
      const auto key = text(*slot, layer);
      const auto* component = components().find(slot->name, key, layer.word("mixer"));
      if (component == nullptr) continue;  // none, of which there is no module
      if (component->causal && component->prefix_consistent) continue;
      throw InputError(
          slot->name + " = " + key + ": cannot go on one token at a time, since it " +
          (component->causal ? "depends on the length of the sequence" : "sees later tokens"));
    }
  }
}

Decoder::Decoder(Transformer& model, std::int64_t room) : model_(&model.array()), room_(room) {
  require_decodable(model_->architectures().front());
  reset();
}

Decoder::Decoder(TransformerArray& model, std::int64_t room, std::int64_t batch,
                 SequenceState state)
    : model_(&model), room_(room), batch_(batch), state_(std::move(state)) {}

torch::Tensor Decoder::step(const torch::Tensor& tokens) {
  if (tokens.dim() != 1 || (batch_ > 0 && tokens.size(0) != batch_)) {
    throw std::invalid_argument(
        "tokens have " + std::to_string(tokens.dim()) + " dimensions and " +
        std::to_string(tokens.numel()) + " numbers, must be (B)" +
        (batch_ > 0 ? " with B = " + std::to_string(batch_) + " as before" : ""));
  }
  const auto& architecture = model_->architectures().front();
  if (architecture.genes.word("position_embedding") == "learned" &&
      state_.tokens >= architecture.context) {
    throw std::invalid_argument("no position is learned for more tokens than context = " +
                                std::to_string(architecture.context));
  }
  batch_ = tokens.size(0);
  return model_->step(tokens.unsqueeze(0), state_)[0];
}

std::int64_t Decoder::state_bytes() const {
  std::int64_t numbers = 0;
  for (const auto& layer : state_.layers) {
    if (layer) numbers += layer->numbers();
  }
  return numbers * static_cast<std::int64_t>(sizeof(float));
}

void Decoder::reset() {
  state_ = model_->start(room_);
  batch_ = 0;
}

Decoder Decoder::copy() const {
  SequenceState state;
  state.tokens = state_.tokens;
  for (const auto& layer : state_.layers) {
    state.layers.push_back(layer ? layer->copy() : nullptr);
  }
  return {*model_, room_, batch_, std::move(state)};
}

}  // namespace nas::nn
