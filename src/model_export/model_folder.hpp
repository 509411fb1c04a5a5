#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "data/corpus.hpp"
#include "genotype/architecture.hpp"
#include "nn/transformer.hpp"

namespace nas {

/// config.json of a model: `candidate`, `mechanism`, `semantics`; `model`, its sizes and genes;
/// `layers`, of each its mixer, its genes that are not default (of attention always the paper's
/// six) and its feed-forward layer; `text`, how text becomes tokens and windows, null where tokens
/// are no text.
/// @param architecture  in canonical form.
nlohmann::ordered_json model_config(const Architecture& architecture, const Corpus& corpus);

/// Writes a model that needs PyTorch alone: model.py, config.json, model.safetensors with its
/// weights in float32, README.md, and where the corpus has words vocabulary.txt, a word per line in
/// the order of ids.
///
/// @param folder  of which the parent is there.   @param readme  text of README.md.
/// @throws MachineError that names the file.
void write_model_folder(const std::filesystem::path& folder, const Architecture& architecture,
                        const Corpus& corpus, const nn::Transformer& model,
                        const std::string& readme);

}  // namespace nas
