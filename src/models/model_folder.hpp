#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/parameters.hpp"
#include "data/corpus.hpp"
#include "genotype/architecture.hpp"
#include "nn/transformer.hpp"

namespace nas {

/// What config.json says of an architecture: `candidate`, `mechanism`, `semantics`; `model`, its sizes
/// and genes; `layers`, of each its mixer, its genes that are not default (of attention always the
/// paper's six) and its feed-forward layer. @param architecture  in canonical form.
nlohmann::ordered_json architecture_json(const Architecture& architecture);

/// config.json of a model: what it says of the architecture; `text`, how text becomes tokens and
/// windows, null where tokens are no text; `data`, the corpus that it was trained on, of whose files the names alone.
/// @param architecture  in canonical form.   @param data  the settings of the corpus.
nlohmann::ordered_json model_config(const Architecture& architecture, const Corpus& corpus,
                                    const Parameters& data);

/// What model.py lacks of a model: options that plug-ins of this process compute, each as
/// "normalization softplus_norm", but for plug-ins FILE.so with a module of PyTorch beside them, FILE.py.
/// @param config  see model_config().
std::vector<std::string> options_of_plugins(const nlohmann::ordered_json& config);

/// Writes a model that needs PyTorch alone: model.py and the files that it imports, config.json,
/// model.safetensors with its weights in float32, and the file of the corpus' tokenizer, where it has
/// one: of words vocabulary.txt, a word per line in the order of ids. config.json receives the digests
/// of all but *.py as `sha256`. The modules of plug-ins are appended to model_attention.py; config.json then has logits
/// as `check`, which model.py compares itself with.
///
/// @param folder  of which the parent is there.   @param config  see model_config().
/// @throws MachineError that names the file.
void write_model_folder(const std::filesystem::path& folder, const nlohmann::ordered_json& config,
                        const Corpus& corpus, const nn::Transformer& model);

/// A model as its folder has it, wherever that comes from.
struct ModelFolder {
  nlohmann::json config;
  nn::Transformer model;  ///< with its weights
};

/// Reads what write_model_folder() writes, but for the tokenizer's file.
/// @throws InputError naming the file, what it has, and what is allowed: also where a file is not
/// there, or one does not belong to the others. The rules are those of docs/files.md, which model.py
/// has as well (tests/nn/model_rules_test.cpp).
ModelFolder read_model_folder(const std::filesystem::path& folder);
/// Of its config.json alone.
Architecture read_model_architecture(const std::filesystem::path& folder);

/// The corpus that a model was trained on, made again from the `data` of its configuration.
/// @throws InputError where the configuration names none that this program has, the corpus' files
/// are missing, or they are not those of the training run.
Corpus corpus_of_model(const nlohmann::json& config);

}  // namespace nas
