#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/parameters.hpp"
#include "data/corpus.hpp"

namespace nas {

/// The texts of a corpus, lines ended by '\n'.
struct SplitTexts {
  std::string train, valid, test;
};

/// What every corpus made of text reads from its Parameters: `vocabulary`, `unit` and `layout`.
std::vector<Setting> text_settings();

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
/// Unit `word`: runs of bytes without white space; ids by Vocabulary, from the training text alone.
/// Unit `byte`: ids are the bytes of the text, '\n' included; standard layout only.
///
/// @param name     key of the corpus, which begins its errors.
/// @param source   what the text is, for the description.
/// @throws InputError if the settings do not fit each other, or a split gives no window.
Corpus text_corpus(std::string_view name, std::string_view source, const SplitTexts& texts,
                   const Parameters& settings, std::int64_t context);

}  // namespace nas
