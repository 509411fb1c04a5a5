#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/parameters.hpp"
#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "data/corpus.hpp"

namespace NAS_PUBLIC nas {

/// How a text becomes the ids of tokens, and ids a text. Constant once made: several threads may use
/// one.
class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer();

  /// @return V, the number of ids, special tokens included; ids are 0 .. V - 1.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// @return ids with a meaning. Where there is an unknown one, what it stands for is lost.
  [[nodiscard]] virtual SpecialTokens special() const { return {}; }
  /// @return the id that a stream begins with, input only: the end of what came before.
  [[nodiscard]] virtual std::int32_t first() const = 0;
  /// Appends the ids of a text, whole lines.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  /// The same of a text whose last line goes on.
  virtual void encode_open(std::string_view text, std::vector<std::int32_t>& ids) const {
    encode(text, ids);
  }
  /// @param ids  each in [0, V).
  [[nodiscard]] virtual std::string decode(const std::vector<std::int64_t>& ids) const = 0;
  /// @return the file of a model folder from which TokenizerKind::read makes the same tokenizer.
  [[nodiscard]] virtual std::string file() const { return {}; }
};

/// What a text must be for a tokenizer, and where it may be cut.
enum class TextPiece {
  byte,       ///< any bytes; cut anywhere
  character,  ///< UTF-8; cut between characters
  word,       ///< UTF-8 with white space between words; cut there
};

/// A tokenizer before it has seen a text.
struct TokenizerKind {
  std::string many;  ///< what its tokens are called: "bytes"
  TextPiece piece = TextPiece::byte;
  bool published = false;  ///< whether layout = published has a meaning
  std::string file{};      ///< name of Tokenizer::file(); empty: there is none
  /// @param train  the training split alone.   @param settings  of the corpus, with all of
  /// text_settings() and of this tokenizer.
  /// @throws InputError if a setting does not fit.
  std::function<std::shared_ptr<const Tokenizer>(std::string_view train,
                                                 const Parameters& settings)>
      train{};
  /// @param file  bytes of Tokenizer::file().   @param published  layout of the corpus.
  /// @throws InputError saying what is wrong with them.
  std::function<std::shared_ptr<const Tokenizer>(const std::string& file, bool published)> read{};
  /// Tokens of a text; empty: at most one for each byte.
  std::function<std::size_t(std::string_view text)> count{};
};

/// Tokenizers by their names, which data.tokenizer takes. Their settings, of which no two may have
/// one name and different defaults, become settings of every corpus that is text.
using TokenizerRegistry = Registry<TokenizerKind()>;
TokenizerRegistry& tokenizers();

/// @return the settings of all tokenizers, in the order of their names, each name once.
std::vector<Setting> tokenizer_settings();

/// @return the key of the tokenizer of a text: what data.tokenizer says, else data.unit.
std::string unit_of(const Parameters& settings);

/// @return the settings of a corpus as records have them, which are as before there were several
/// tokenizers: the tokenizer is the unit, and those of tokenizers are told where they are not their
/// defaults.
nlohmann::json recorded_settings(const Parameters& settings);

/// Registers a tokenizer from its own .cpp: `NAS_REGISTER_TOKENIZER(description, function);`
#define NAS_REGISTER_TOKENIZER(...) \
  [[maybe_unused]] static const bool nas_registered_tokenizer = ::nas::tokenizers().add(__VA_ARGS__)

}  // namespace nas
