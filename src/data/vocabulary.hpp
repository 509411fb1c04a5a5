#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/corpus.hpp"

namespace nas {

/// Calls `visit(line)` for each line of a text, without its '\n'. A last line may lack its '\n'.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// Calls `visit(word)` for each maximal run of bytes other than ASCII white space.
template <class Visit>
void for_each_word(std::string_view text, Visit visit) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  const char* const last = text.data() + text.size();
  const char* begin = std::find_if_not(text.data(), last, is_space);
  while (begin != last) {
    const char* const end = std::find_if(begin, last, is_space);
    visit(std::string_view(begin, static_cast<std::size_t>(end - begin)));
    begin = std::find_if_not(end, last, is_space);
  }
}

/// @return number of words of a text.
std::size_t num_words(std::string_view text);

/// Ids of words: special tokens first, then the words of a training text by falling count, ties in
/// the order of first showing (Python's Counter.most_common, which the published pipeline uses).
/// "<unk>" in a text is the unknown word, not a word of its own.
class Vocabulary {
 public:
  enum class Specials {
    unknown_end,      ///< <unk> 0, <eos> 1
    pad_unknown_end,  ///< <pad> 0, <unk> 1, <eos> 2: the published pipeline
  };

  /// @param size  largest number of ids, special tokens included; 0 = every word of the text.
  /// @throws InputError if size leaves no room for a word.
  Vocabulary(std::string_view train_text, std::int64_t size, Specials specials);
  /// One whose words() are these. @throws InputError naming the line of the first that is none: with
  /// white space, there already, or not the special token that belongs there.
  Vocabulary(const std::vector<std::string>& words, Specials specials);

  /// @return the word's id, that of <unk> for an unknown one.
  [[nodiscard]] std::int32_t id(std::string_view word) const;
  /// @return number of ids, special tokens included; less than asked for where the text has fewer
  /// words.
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] const SpecialTokens& special() const { return special_; }
  /// @return the words by id; special tokens as "<pad>", "<unk>", "<eos>".
  [[nodiscard]] std::vector<std::string> words() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>{}(word);
    }
  };

  SpecialTokens special_;
  std::int64_t num_specials_ = 0;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace nas
