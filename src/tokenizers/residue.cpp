#include <algorithm>

#include "core/error.hpp"
#include "data/characters.hpp"
#include "data/unicode.hpp"

namespace nas {

namespace {

/// The alphabet is given, not learned: <unk> 0, the end of a line 1, then the letters in their order.
std::shared_ptr<const Tokenizer> train(std::string_view /*text*/, const Parameters& settings) {
  const auto& alphabet = settings.get<std::string>("alphabet");
  std::vector<char32_t> letters{'\n'};
  for (std::size_t at = 0; at < alphabet.size();) {
    const auto letter = character_at(alphabet, at);
    if (letter.foreign || letter.kind == CharacterClass::space ||
        std::find(letters.begin(), letters.end(), letter.code) != letters.end()) {
      throw InputError("data.alphabet = '" + alphabet + "': character " +
                       std::to_string(letters.size()) +
                       ", must be a letter that is there once, and no white space");
    }
    letters.push_back(letter.code);
    at = letter.end;
  }
  if (letters.size() < 2) throw InputError("data.alphabet is empty, must have a letter");
  return std::make_shared<const Characters>(letters);
}

TokenizerKind residues() {
  return {.many = "residues",
          .piece = TextPiece::character,
          .file = "tokenizer.json",
          .train = train,
          .read = [](const std::string& file, bool) { return read_characters(file); },
          .count = num_characters};
}

NAS_REGISTER_TOKENIZER(
    {.key = "residue",
     .summary = "letters of a given alphabet, such as amino acids, and the end of a line, one "
                "sequence per line; others <unk>",
     .settings = {{.name = "alphabet",
                   .default_value = std::string("ACDEFGHIKLMNPQRSTVWY"),
                   .help = "of residues: the letters, in the order of their ids; capital and small "
                           "letters differ"}},
     .file = __FILE__},
    residues);

}  // namespace

}  // namespace nas
