#include "model_export/model_folder.hpp"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/durable_file.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/slots.hpp"
#include "model_export/safetensors.hpp"

namespace nas {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kModelPy =
#include "model_py.hpp"
    ;

Json value_json(const Slot& slot, const std::string& value) {
  if (slot.is_integer()) return std::stoll(value);
  if (slot.is_number()) return std::stod(value);
  return value;
}

/// Whether a layer is built from the gene: those of the mixer that say something.
bool is_told(const Slot& slot, const Mechanism& layer) {
  // The feed-forward layer's genes are told as its kind and width.
  for (const auto* other : {"mixer", "heads", "ffn", "ratio"}) {
    if (slot.name == other) return false;
  }
  if (layer.mixer == "attn" && slot.paper) return true;
  return is_active(slot, layer) && text(slot, layer) != text(slot, Mechanism{});
}

Json layer_json(const Architecture& architecture, const Mechanism& layer) {
  Json json{{"mixer", layer.mixer}};
  if (layer.mixer != "none") json["heads"] = architecture.attention_shape(layer).heads;
  for (const auto* slot : layer_slots()) {
    if (is_told(*slot, layer)) json[slot->name] = value_json(*slot, text(*slot, layer));
  }
  json["ffn"] = layer.ffn;
  json["hidden"] = hidden_width(architecture, layer);
  return json;
}

Json text_json(const Corpus& corpus) {
  if (corpus.unit.empty()) return {};
  return {{"unit", corpus.unit},
          {"layout", corpus.valid.last_target >= 0 ? "published" : "standard"},
          {"pad", corpus.special.pad},
          {"unknown", corpus.special.unknown},
          {"end_of_sentence", corpus.special.end_of_sentence}};
}

}  // namespace

Json model_config(const Architecture& architecture, const Corpus& corpus) {
  const auto& genes = architecture.genes;
  auto layers = Json::array();
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    layers.push_back(layer_json(architecture, architecture.layer(i)));
  }
  return {{"candidate", to_string(architecture)},
          {"mechanism", label(architecture)},
          {"semantics", to_string(architecture.semantics)},
          {"model",
           {{"vocabulary", architecture.vocabulary},
            {"context", architecture.context},
            {"width", architecture.width},
            {"dropout", architecture.dropout},
            {"position_embedding", genes.position_embedding},
            {"norm", genes.norm},
            {"norm_place", genes.norm_place},
            {"block", genes.block},
            {"tied", genes.tied == "1"}}},
          {"layers", layers},
          {"text", text_json(corpus)}};
}

void write_model_folder(const std::filesystem::path& folder, const Architecture& architecture,
                        const Corpus& corpus, const nn::Transformer& model,
                        const std::string& readme) {
  std::vector<std::pair<std::string, torch::Tensor>> weights;
  for (auto& [name, tensor] : model.parameters()) weights.emplace_back(name, tensor[0]);
  write_durably(folder / "model.py", kModelPy);
  write_durably(folder / "model.safetensors", safetensors(weights));
  write_durably(folder / "config.json", model_config(architecture, corpus).dump(1) + "\n");
  if (!corpus.words.empty()) {
    std::string lines;
    for (const auto& word : corpus.words) lines += word + '\n';
    write_durably(folder / "vocabulary.txt", lines);
  }
  write_durably(folder / "README.md", readme);
}

}  // namespace nas
