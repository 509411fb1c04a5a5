#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nas {

/// A word of the field that no gene, option or layer bears here.
struct FieldWord {
  std::string word;   ///< lower case, parts joined by _
  std::string write;  ///< shorthand or a name that means it here; empty: it is not here
  std::string what;   ///< what that is, or what is nearest
};

/// All of them, in no order.
const std::vector<FieldWord>& field_words();

/// What is said of a word, of any case and with - or _: "mla is written kv_rank=64: keys and values come from ...".
/// Empty: it is none of these.
std::string field_word(std::string_view word);

/// How the message on an unknown word of a model ends: what that is of the field's; else as known_text() or, with
/// `listed` already, as did_you_mean().
std::string lead(std::string_view word, const std::vector<std::string>& known, bool listed = false);

}  // namespace nas
