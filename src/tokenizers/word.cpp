#include <utility>

#include "core/error.hpp"
#include "data/tokenizer.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace {

Vocabulary::Specials specials(bool published) {
  return published ? Vocabulary::Specials::pad_unknown_end : Vocabulary::Specials::unknown_end;
}

/// Runs of bytes without white space, <eos> behind each line.
class Words final : public Tokenizer {
 public:
  explicit Words(Vocabulary vocabulary)
      : vocabulary_(std::move(vocabulary)), words_(vocabulary_.words()) {}

  [[nodiscard]] std::int64_t size() const override { return vocabulary_.size(); }
  [[nodiscard]] SpecialTokens special() const override { return vocabulary_.special(); }
  [[nodiscard]] std::int32_t first() const override { return special().end_of_sentence; }
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    ids.reserve(ids.size() + count(text));
    for_each_line(text, [&](std::string_view line) {
      encode_open(line, ids);
      ids.push_back(first());
    });
  }
  void encode_open(std::string_view text, std::vector<std::int32_t>& ids) const override {
    for_each_word(text, [&](std::string_view word) { ids.push_back(vocabulary_.id(word)); });
  }
  [[nodiscard]] std::string decode(const std::vector<std::int64_t>& ids) const override {
    std::vector<std::string> words;
    for (const auto id : ids) {
      words.push_back(id == first() ? "\n" : words_[static_cast<std::size_t>(id)]);
    }
    return join(words, " ");
  }
  [[nodiscard]] std::string file() const override {
    std::string lines;
    for (const auto& word : words_) lines += word + '\n';
    return lines;
  }

  static std::size_t count(std::string_view text) {
    std::size_t tokens = 0;
    for_each_line(text, [&](std::string_view line) { tokens += num_words(line) + 1; });
    return tokens;
  }

 private:
  Vocabulary vocabulary_;
  std::vector<std::string> words_;
};

std::shared_ptr<const Tokenizer> train(std::string_view text, const Parameters& settings) {
  const bool published = settings.get<std::string>("layout") == "published";
  return std::make_shared<const Words>(
      Vocabulary(text, settings.get<std::int64_t>("vocabulary"), specials(published)));
}

std::shared_ptr<const Tokenizer> read(const std::string& lines, bool published) {
  if (!lines.ends_with('\n')) throw InputError("must end with an end of line: it is cut");
  std::vector<std::string> words;
  for_each_line(lines, [&](std::string_view line) { words.emplace_back(line); });
  return std::make_shared<const Words>(Vocabulary(words, specials(published)));
}

TokenizerKind words() {
  return {.many = "words",
          .piece = TextPiece::word,
          .published = true,
          .file = "vocabulary.txt",
          .train = train,
          .read = read,
          .count = Words::count};
}

NAS_REGISTER_TOKENIZER({.key = "word",
                        .summary = "what white space separates, <eos> behind each line; the most "
                                   "frequent of the training split, others <unk>",
                        .settings = {},
                        .file = __FILE__},
                       words);

}  // namespace

}  // namespace nas
