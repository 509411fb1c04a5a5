#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/parameters.hpp"
#include "data/corpus.hpp"
#include "data/tokenizer.hpp"

namespace nas {

/// The texts of a corpus, lines ended by '\n'.
struct SplitTexts {
  std::string train, valid, test;
};

/// What every corpus made of text reads from its Parameters: `vocabulary`, `unit`, `tokenizer` and
/// `layout`, to which corpora() adds those of the tokenizers.
std::vector<Setting> text_settings();

/// The same, with another tokenizer by default than words.
std::vector<Setting> with_tokenizer(const std::string& key);

/// The tokenizer that the settings of a text name. @throws InputError if there is none of that name.
TokenizerKind tokenizer_kind(const Parameters& settings);

/// How a text becomes tokens and windows, and tokens a text (unit and layout of text_corpus).
class TextForm {
 public:
  TextForm(std::shared_ptr<const Tokenizer> tokenizer, bool published);

  [[nodiscard]] std::int64_t vocabulary() const { return tokenizer_->size(); }  ///< number of ids
  [[nodiscard]] SpecialTokens special() const { return tokenizer_->special(); }
  /// @param length  L, tokens of a window.   @param train  all windows are full, and may be shifted.
  /// @return the windows, none where the text has no token or, published, no line of more words.
  [[nodiscard]] Windows windows(std::string_view text, std::int64_t length, bool train) const;
  /// @return ids of the beginning of a text that is to go on, in layout standard behind the end of
  /// what came before; of words those of one line.
  [[nodiscard]] std::vector<std::int64_t> prompt(std::string_view text) const;
  /// @return the text of ids; words with a blank between them, the ends of lines as such.
  [[nodiscard]] std::string text(const std::vector<std::int64_t>& ids) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool published_;
};

/// Turns texts into token ids and windows of `context` tokens, L.
///
/// Layout `standard`: one stream per split, <eos> after each line; contiguous windows of L inputs,
/// so that validation and test score every token once. The stream begins with an <eos> (the end of
/// what came before) that is input only, so that the first word is scored too; the last window is
/// shorter. Training windows are all full, since they may start at any offset below L.
///
/// Layout `published` (the EvoAttention code): lines longer than L words only, windows of L words
/// that start every L/2 words while another word follows them, the last target <pad>; nothing
/// crosses a line.
///
/// The tokenizer, which `unit` names, is trained on the training text alone.
///
/// @param name     key of the corpus, which begins its errors.
/// @param source   what the text is, for the description.
/// @throws InputError if the settings do not fit each other, a split gives no window, or texts and
/// tokens together do not fit into memory.
Corpus text_corpus(std::string_view name, std::string_view source, const SplitTexts& texts,
                   const Parameters& settings, std::int64_t context);

}  // namespace nas
