#include "convert/block.hpp"

#include "core/define_registry.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/words.hpp"

namespace nas {

NAS_DEFINE_REGISTRY(LayerBlockRegistry, layer_blocks, "block")

LayerBlock parse_block(const std::string& text) {
  const auto brace = text.find('{');
  const auto key = text.substr(0, brace);
  const auto& entry = layer_blocks().at(key);
  const auto& settings = entry.description.settings;
  Parameters sizes(settings);
  if (brace != std::string::npos) {
    if (text.back() != '}') throw InputError("block " + text + ", must end with }");
    const auto given =
        split(std::string_view(text).substr(brace + 1, text.size() - brace - 2), ',');
    if (given.size() > settings.size()) {
      throw InputError("block " + text + " has " + std::to_string(given.size()) + " sizes, " + key +
                       " has " + std::to_string(settings.size()));
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto number = number_in(trimmed(given[i]));
      const bool word = std::holds_alternative<std::string>(settings[i].default_value);
      const Value value = word     ? Value(std::string(trimmed(given[i])))
                          : number ? Value(static_cast<std::int64_t>(*number))
                                   : Value(std::int64_t{-1});
      if (const auto wrong = settings[i].violation(value); (!number && !word) || !wrong.empty()) {
        throw InputError("block " + text + ": " + settings[i].name + " = " + std::string(given[i]) +
                         ", must be " + settings[i].allowed());
      }
      sizes.set(settings[i].name, value);
    }
  }
  auto block = entry.make(sizes);
  block.text = key;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    block.text += (i == 0 ? "{" : ",") + to_text(sizes.at(settings[i].name));
  }
  if (!settings.empty()) block.text += "}";
  return block;
}

}  // namespace nas
