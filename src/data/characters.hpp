#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/tokenizer.hpp"

namespace nas {

/// Tokens are single characters (code points of UTF-8): <unk> 0, then the characters given, in that
/// order. Also <unk>: each byte that is no UTF-8.
class Characters final : public Tokenizer {
 public:
  /// @param normal  whether texts are brought into normalization form C first.
  explicit Characters(const std::vector<char32_t>& characters, bool normal = false);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] SpecialTokens special() const override { return {.unknown = 0}; }
  /// @return id of '\n', of <unk> where there is none.
  [[nodiscard]] std::int32_t first() const override { return id('\n'); }
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  [[nodiscard]] std::string decode(const std::vector<std::int64_t>& ids) const override;
  /// @return tokenizer.json as Hugging Face's tokenizers reads it: model WordLevel behind a
  /// pre-tokenizer that cuts at each character.
  [[nodiscard]] std::string file() const override;

 private:
  [[nodiscard]] std::int32_t id(char32_t character) const;

  std::vector<std::string> tokens_;  ///< by id
  bool normal_;
  std::unordered_map<char32_t, std::int32_t> ids_;
};

/// @param json  what Characters::file() returns.
/// @throws InputError naming what is missing, twice there, or no character.
std::shared_ptr<const Tokenizer> read_characters(const std::string& json);

/// Tokens of a text: its characters.
std::size_t num_characters(std::string_view text);

}  // namespace nas
