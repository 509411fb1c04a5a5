#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/model_folder.hpp"
#include "nn/transformer.hpp"

namespace nas {

/// The text of some ids.
using TextOfIds = std::function<std::string(const std::vector<std::int64_t>&)>;

/// Three digits: what a picture shows of a weight.
double rounded(double value);

/// What a model attends to in a sentence, as `sentences` of attention.json: `tokens`, and of each
/// layer that attends `layer` and `maps`, [head][query][key <= query].
/// @param model  of numerical mode reference.   @param ids  see nn::attention_maps().
nlohmann::json sentence_json(nn::Transformer& model, const std::vector<std::int64_t>& ids,
                             const TextOfIds& text);

/// The longest sentence whose map can be read.
inline constexpr std::int64_t kSentenceTokens = 128;

/// Writes attention.json of sentences that a person has given: no statistics, the maps alone.
/// @param name  of the model.   @param folder  of the file; made.
/// @throws InputError where tokens are no text, a sentence is empty or too long; MachineError.
void write_sentences(ModelFolder& model, const std::string& name,
                     const std::vector<std::string>& sentences,
                     const std::filesystem::path& folder);

}  // namespace nas
