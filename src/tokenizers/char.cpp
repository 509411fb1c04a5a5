#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "data/characters.hpp"
#include "data/normalization.hpp"
#include "data/unicode.hpp"

namespace nas {

namespace {

/// The most frequent characters, ties by code point: no more than the vocabulary has room for, and as
/// many as make up the share `coverage` of the text.
std::shared_ptr<const Tokenizer> train(std::string_view given, const Parameters& settings) {
  const auto vocabulary = settings.get<std::int64_t>("vocabulary");
  if (vocabulary == 1) {
    throw InputError("data.vocabulary = 1, must be 0 (every character) or at least 2");
  }
  const auto text = nfc(given);
  std::map<char32_t, std::int64_t> counts;
  std::int64_t all = 0;
  for (std::size_t at = 0; at < text.size(); ++all) {
    const auto character = character_at(text, at);
    at = character.end;
    if (!character.foreign) ++counts[character.code];
  }
  std::vector<std::pair<char32_t, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto wanted = settings.get<double>("coverage") * static_cast<double>(all);
  std::vector<char32_t> characters;
  std::int64_t covered = 0;
  for (const auto& [character, count] : sorted) {
    if (static_cast<double>(covered) >= wanted) break;
    if (vocabulary > 0 && std::ssize(characters) == vocabulary - 1) break;
    characters.push_back(character);
    covered += count;
  }
  return std::make_shared<const Characters>(characters, /*normal=*/true);
}

TokenizerKind characters() {
  return {.many = "characters",
          .piece = TextPiece::character,
          .file = "tokenizer.json",
          .train = train,
          .read = [](const std::string& file, bool) { return read_characters(file); },
          .count = num_characters};
}

NAS_REGISTER_TOKENIZER({.key = "char",
                        .summary = "characters of UTF-8 (code points) of the text in NFC; rare "
                                   "ones <unk>",
                        .settings = {{.name = "coverage",
                                      .default_value = 1.0,
                                      .help = "of characters: share of the training split that "
                                              "those with an id make up, by falling frequency",
                                      .min = 0,
                                      .max = 1,
                                      .min_exclusive = true}},
                        .file = __FILE__},
                       characters);

}  // namespace

}  // namespace nas
