#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nas {

/// Where a text is cut before byte pairs are merged, which cross no cut.
enum class PretokenRule {
  gpt2,    ///< Radford et al. 2019
  cl100k,  ///< of the encoding cl100k_base of tiktoken: numbers of 3 digits, ends of lines apart
};

/// @return the end of the pre-token that begins at a position, by one of the regular expressions
///
///   gpt2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///   cl100k  '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|
///           ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s
///
/// with the classes of data/unicode.hpp. A byte that is no UTF-8 is neither letter, number nor white
/// space. Every byte of a text is in one pre-token.
///
/// @param position  below text.size(), where a pre-token begins.
std::size_t pretoken_end(std::string_view text, std::size_t position, PretokenRule rule);

/// Calls `visit(pretoken)` for each of a text, in order.
template <class Visit>
void for_each_pretoken(std::string_view text, PretokenRule rule, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const auto end = pretoken_end(text, at, rule);
    visit(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace nas
