#include "convert/place.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "convert/stage_one.hpp"
#include "convert/stage_two.hpp"
#include "core/durable_file.hpp"
#include "core/words.hpp"
#include "models/model_folder.hpp"

namespace nas {

void write_placed(const std::filesystem::path& base, const std::string& placement,
                  const std::filesystem::path& folder, const std::filesystem::path& trained) {
  std::vector<LayerBlock> blocks{parse_block("full")};
  for (const auto part : split(placement, ';')) {
    auto block = parse_block(std::string(part.substr(0, part.find(' '))));
    const auto is_same = [&](const LayerBlock& other) { return other.text == block.text; };
    if (std::none_of(blocks.begin(), blocks.end(), is_same)) blocks.push_back(std::move(block));
  }
  const Conversion conversion(read_model_architecture(base), std::move(blocks));
  const auto chosen = conversion.parse(placement);
  const auto source = read_model_folder(base);
  auto weights = trained.empty() ? Weights() : read_learned_hybrid(conversion, chosen, trained);
  if (weights.empty())
    weights =
        weights_of(conversion, weights_of(source.model), chosen,
                   trained.empty() ? TrainedBlocks() : learned_blocks_of(conversion, trained));
  const auto architecture = conversion.architecture(chosen);
  const nn::Transformer model(architecture, NumericalMode::exact);
  for (const auto& [name, tensor] : model.parameters()) share(tensor, weights.at(name));
  auto config = model_config(architecture, {}, {});
  for (const auto* kept : {"text", "data", "source"}) {
    if (source.config.contains(kept)) config[kept] = source.config.at(kept);
  }
  config["placement"] = conversion.name(chosen);
  Corpus corpus;
  for (const auto* name : {"tokenizer.json", "vocabulary.txt"}) {
    if (!std::filesystem::exists(base / name)) continue;
    corpus.tokenizer_file = name;
    corpus.tokenizer = read_bytes(base / name);
  }
  make_folder(folder);
  write_model_folder(folder, config, corpus, model);
}

}  // namespace nas
