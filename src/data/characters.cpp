#include "data/characters.hpp"

#include <iterator>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "data/normalization.hpp"
#include "data/unicode.hpp"

namespace nas {

namespace {

constexpr const char* kUnknown = "<unk>";

}  // namespace

Characters::Characters(const std::vector<char32_t>& characters, bool normal)
    : tokens_{kUnknown}, normal_(normal) {
  for (const auto character : characters) {
    ids_.emplace(character, static_cast<std::int32_t>(tokens_.size()));
    tokens_.push_back(utf8(character));
  }
}

std::int64_t Characters::size() const { return std::ssize(tokens_); }

std::int32_t Characters::id(char32_t character) const {
  const auto found = ids_.find(character);
  return found == ids_.end() ? 0 : found->second;
}

void Characters::encode(std::string_view given, std::vector<std::int32_t>& ids) const {
  const auto text = normal_ ? nfc(given) : std::string(given);
  ids.reserve(ids.size() + num_characters(text));
  for (std::size_t at = 0; at < text.size();) {
    const auto character = character_at(text, at);
    ids.push_back(character.foreign ? 0 : id(character.code));
    at = character.end;
  }
}

std::string Characters::decode(const std::vector<std::int64_t>& ids) const {
  std::string text;
  for (const auto id : ids) text += tokens_[static_cast<std::size_t>(id)];
  return text;
}

std::string Characters::file() const {
  using Json = nlohmann::ordered_json;
  auto vocabulary = Json::object();
  for (std::size_t id = 0; id < tokens_.size(); ++id) vocabulary[tokens_[id]] = id;
  const Json json{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", Json::array()},
      {"normalizer", normal_ ? Json::object({{"type", "NFC"}}) : Json()},
      {"pre_tokenizer",
       {{"type", "Split"},
        {"pattern", {{"Regex", "(?m:.)"}}},  // of Oniguruma: any character, ends of lines too
        {"behavior", "Isolated"},
        {"invert", false}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "Fuse"}}},
      {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", kUnknown}}}};
  return json.dump(1) + "\n";
}

std::shared_ptr<const Tokenizer> read_characters(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const auto vocabulary = json.at("model").at("vocab");
    const auto normalizer = json.value("normalizer", nlohmann::json());
    const bool normal = normalizer == nlohmann::json::object({{"type", "NFC"}});
    if (!normal && !normalizer.is_null()) {
      throw InputError("normalizer = " + normalizer.dump() + ", must be null or of type NFC");
    }
    std::vector<char32_t> characters(vocabulary.size());
    std::vector<bool> taken(vocabulary.size(), false);
    for (const auto& [token, id] : vocabulary.items()) {
      const auto place = id.get<std::int64_t>();
      if (place < 0 || place >= std::ssize(characters) || taken[static_cast<std::size_t>(place)]) {
        throw InputError("id " + id.dump() + " of '" + token + "', must be one of 0 to " +
                         std::to_string(characters.size() - 1) + ", each once");
      }
      taken[static_cast<std::size_t>(place)] = true;
      const auto character = token.empty() ? CharacterAt{} : character_at(token, 0);
      if ((place == 0) != (token == kUnknown) || (place > 0 && character.end != token.size())) {
        throw InputError("token '" + token + "' of id " + id.dump() +
                         ", must be <unk> of id 0, or one character");
      }
      characters[static_cast<std::size_t>(place)] = character.code;
    }
    if (characters.empty()) throw InputError("has no token, must have <unk>");
    characters.erase(characters.begin());
    return std::make_shared<const Characters>(characters, normal);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(std::string("is no tokenizer.json of characters: ") + error.what());
  }
}

std::size_t num_characters(std::string_view text) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) at = character_at(text, at).end;
  return number;
}

}  // namespace nas
