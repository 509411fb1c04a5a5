#include "data/vocabulary.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace nas {

namespace {

constexpr std::string_view kPadding = "<pad>";
constexpr std::string_view kUnknownWord = "<unk>";
constexpr std::string_view kEndOfSentence = "<eos>";

SpecialTokens tokens_of(Vocabulary::Specials specials) {
  if (specials == Vocabulary::Specials::pad_unknown_end) {
    return {.pad = 0, .unknown = 1, .end_of_sentence = 2};
  }
  return {.pad = -1, .unknown = 0, .end_of_sentence = 1};
}

// Words with their counts, in the order of first showing.
std::vector<std::pair<std::string_view, std::int64_t>> count_words(std::string_view text) {
  std::vector<std::pair<std::string_view, std::int64_t>> counts;
  std::unordered_map<std::string_view, std::size_t> index;
  for_each_word(text, [&](std::string_view word) {
    if (word == kUnknownWord) return;
    const auto [position, fresh] = index.try_emplace(word, counts.size());
    if (fresh) counts.emplace_back(word, 0);
    ++counts[position->second].second;
  });
  return counts;
}

}  // namespace

std::size_t num_words(std::string_view text) {
  std::size_t words = 0;
  for_each_word(text, [&words](std::string_view) { ++words; });
  return words;
}

Vocabulary::Vocabulary(std::string_view train_text, std::int64_t size, Specials specials)
    : special_(tokens_of(specials)), num_specials_(special_.end_of_sentence + 1) {
  if (size != 0 && size <= num_specials_) {
    throw InputError("data.vocabulary = " + std::to_string(size) +
                     ", must be 0 (every word) or at least " + std::to_string(num_specials_ + 1));
  }
  auto counts = count_words(train_text);
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (size != 0) {
    counts.resize(std::min(counts.size(), static_cast<std::size_t>(size - num_specials_)));
  }
  ids_.reserve(counts.size());
  for (const auto& entry : counts) {
    ids_.emplace(entry.first, static_cast<std::int32_t>(this->size()));
  }
}

Vocabulary::Vocabulary(const std::vector<std::string>& words, Specials specials)
    : special_(tokens_of(specials)), num_specials_(special_.end_of_sentence + 1) {
  const auto refuse = [](std::int64_t id, const std::string& what) {
    throw InputError("line " + std::to_string(id + 1) + ": " + what);
  };
  const auto require_special = [&](std::int32_t id, std::string_view name) {
    if (id < 0 || (id < std::ssize(words) && words[static_cast<std::size_t>(id)] == name)) return;
    refuse(id, "must be " + std::string(name));
  };
  require_special(special_.pad, kPadding);
  require_special(special_.unknown, kUnknownWord);
  require_special(special_.end_of_sentence, kEndOfSentence);
  for (auto id = num_specials_; id < std::ssize(words); ++id) {
    const auto& word = words[static_cast<std::size_t>(id)];
    bool is_word = false;
    for_each_word(word, [&](std::string_view part) { is_word = part == word; });
    if (!is_word) refuse(id, "'" + word + "' is no word: empty, or with white space");
    if (word == kUnknownWord || !ids_.emplace(word, static_cast<std::int32_t>(id)).second) {
      refuse(id, "'" + word + "' is there already");
    }
  }
}

std::int32_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? special_.unknown : found->second;
}

std::int64_t Vocabulary::size() const {
  return num_specials_ + static_cast<std::int64_t>(ids_.size());
}

std::vector<std::string> Vocabulary::words() const {
  std::vector<std::string> words(static_cast<std::size_t>(size()));
  const auto name = [&words](std::int32_t id, std::string_view word) {
    if (id >= 0) words[static_cast<std::size_t>(id)] = word;
  };
  name(special_.pad, kPadding);
  name(special_.unknown, kUnknownWord);
  name(special_.end_of_sentence, kEndOfSentence);
  for (const auto& [word, id] : ids_) name(id, word);
  return words;
}

}  // namespace nas
