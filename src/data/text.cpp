#include "data/text.hpp"

#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "core/host.hpp"
#include "data/corpus_facts.hpp"

namespace nas {

namespace {

using Tokens = std::vector<std::int32_t>;

// Tokens are counted before they are kept. A stream that grows by doubling takes up to three times
// their memory, as much as 12 times the text.

Tokens byte_stream(std::string_view text) {
  Tokens stream;
  stream.reserve(text.size() + 1);
  stream.push_back('\n');
  for (const char c : text) stream.push_back(static_cast<unsigned char>(c));
  return stream;
}

std::size_t num_words(std::string_view text) {
  std::size_t words = 0;
  for_each_word(text, [&words](std::string_view) { ++words; });
  return words;
}

/// Tokens that a text of words becomes.
std::size_t num_word_tokens(std::string_view text, bool published, std::int64_t length) {
  std::size_t tokens = published ? 0 : 1;
  for_each_line(text, [&](std::string_view line) {
    const auto words = num_words(line);
    if (!published) {
      tokens += words + 1;
    } else if (words > static_cast<std::size_t>(length)) {
      tokens += words;
    }
  });
  return tokens;
}

Tokens word_stream(std::string_view text, const Vocabulary& vocabulary) {
  const std::int32_t end_of_sentence = vocabulary.special().end_of_sentence;
  Tokens stream;
  stream.reserve(num_word_tokens(text, /*published=*/false, 0));
  stream.push_back(end_of_sentence);
  for_each_line(text, [&](std::string_view line) {
    for_each_word(line, [&](std::string_view word) { stream.push_back(vocabulary.id(word)); });
    stream.push_back(end_of_sentence);
  });
  return stream;
}

// The first token of a stream is input only, so it has one target less than tokens.
Windows contiguous_windows(Tokens stream, std::int64_t length, bool train) {
  const std::int64_t num_targets = std::ssize(stream) - 1;
  Windows windows;
  windows.length = length;
  windows.tokens = std::move(stream);
  std::int64_t end = num_targets;
  if (train) {
    // Every window must keep a target at every offset: a step on none would have no mean loss.
    windows.shift = std::clamp<std::int64_t>(num_targets, 1, length);
    end = std::max(num_targets - length + 1, std::min<std::int64_t>(num_targets, 1));
  }
  for (std::int64_t start = 0; start < end; start += length) windows.starts.push_back(start);
  return windows;
}

Windows published_windows(std::string_view text, const Vocabulary& vocabulary,
                          std::int64_t length) {
  Windows windows;
  windows.length = length;
  windows.last_target = vocabulary.special().pad;
  const std::int64_t stride = std::max<std::int64_t>(1, length / 2);
  windows.tokens.reserve(num_word_tokens(text, /*published=*/true, length));
  for_each_line(text, [&](std::string_view line) {
    if (num_words(line) <= static_cast<std::size_t>(length)) return;
    const std::int64_t begin = std::ssize(windows.tokens);
    for_each_word(line,
                  [&](std::string_view word) { windows.tokens.push_back(vocabulary.id(word)); });
    const std::int64_t end = std::ssize(windows.tokens);
    for (std::int64_t start = begin; start < end - length; start += stride) {
      windows.starts.push_back(start);
    }
  });
  return windows;
}

std::string windows_missing(std::string_view name, std::string_view split, bool published,
                            std::int64_t context) {
  return std::string(name) + ": the " + std::string(split) + " split has " +
         (published ? "no line of more than " + std::to_string(context) +
                          " words (the context), which layout = published needs"
                    : "no text");
}

/// Refuses texts whose tokens find no memory beside them. How many words there are is not known
/// before they are read.
void require_room(const std::string& what, const SplitTexts& texts, bool bytes, bool published,
                  std::int64_t context) {
  std::size_t size = 0;
  std::size_t tokens = 0;
  for (const auto* text : {&texts.train, &texts.valid, &texts.test}) {
    size += text->size();
    tokens += bytes ? text->size() + 1 : num_word_tokens(*text, published, context);
  }
  require_memory(what + " with " + std::to_string(tokens) + " tokens",
                 static_cast<double>(size + tokens * sizeof(Tokens::value_type)));
}

void fill(Corpus& corpus, const SplitTexts& texts, const TextForm& form, bool published,
          std::int64_t context) {
  corpus.vocabulary = form.vocabulary();
  corpus.words = form.words();
  corpus.special = form.special();
  corpus.train = form.windows(texts.train, context, true);
  corpus.valid = form.windows(texts.valid, context, false);
  corpus.test = form.windows(texts.test, context, false);
  const auto require_windows = [&](const Windows& windows, std::string_view split) {
    if (windows.size() == 0) {
      throw InputError(windows_missing(corpus.name, split, published, context));
    }
  };
  require_windows(corpus.train, "train");
  require_windows(corpus.valid, "valid");
  require_windows(corpus.test, "test");
}

}  // namespace

TextForm::TextForm(Vocabulary vocabulary, bool published)
    : vocabulary_(std::move(vocabulary)), words_(vocabulary_->words()), published_(published) {}

std::int64_t TextForm::vocabulary() const { return vocabulary_ ? vocabulary_->size() : 256; }

SpecialTokens TextForm::special() const {
  return vocabulary_ ? vocabulary_->special() : SpecialTokens{};
}

Windows TextForm::windows(std::string_view text, std::int64_t length, bool train) const {
  if (published_) return published_windows(text, *vocabulary_, length);
  auto stream = vocabulary_ ? word_stream(text, *vocabulary_) : byte_stream(text);
  return contiguous_windows(std::move(stream), length, train);
}

std::vector<std::int64_t> TextForm::prompt(std::string_view text) const {
  if (!vocabulary_) {
    const auto stream = byte_stream(text);
    return {stream.begin(), stream.end()};
  }
  std::vector<std::int64_t> ids;
  if (!published_) ids.push_back(vocabulary_->special().end_of_sentence);
  for_each_word(text, [&](std::string_view word) { ids.push_back(vocabulary_->id(word)); });
  return ids;
}

std::string TextForm::text(const std::vector<std::int64_t>& ids) const {
  if (!vocabulary_) return {ids.begin(), ids.end()};
  std::vector<std::string> words;
  for (const auto id : ids) {
    const bool ends = id == vocabulary_->special().end_of_sentence;
    words.push_back(ends ? "\n" : words_[static_cast<std::size_t>(id)]);
  }
  return join(words, " ");
}

std::vector<Setting> text_settings() {
  return {
      {.name = "vocabulary",
       .default_value = std::int64_t{10000},
       .help = "number of ids of a word-level text, special tokens included: the most frequent "
               "words of the training split; 0 = all of them",
       .min = 0},
      {.name = "unit",
       .default_value = std::string("word"),
       .help = "what a token is; bytes have a vocabulary of 256",
       .choices = {"word", "byte"}},
      {.name = "layout",
       .default_value = std::string("standard"),
       .help = "standard: one stream with <eos>, every token scored once; published: half "
               "overlapping windows inside long lines, last target <pad>",
       .choices = {"standard", "published"}},
  };
}

Corpus text_corpus(std::string_view name, std::string_view source, const SplitTexts& texts,
                   const Parameters& settings, std::int64_t context) {
  require_in_range("model.context", static_cast<double>(context), 2, 1e9);
  const bool bytes = settings.get<std::string>("unit") == "byte";
  const std::string& layout = settings.get<std::string>("layout");
  const bool published = layout == "published";
  if (bytes && published) {
    throw InputError("data.layout = published, must be standard where data.unit = byte");
  }
  require_room(std::string(name) + ": " + std::string(source), texts, bytes, published, context);

  Corpus corpus;
  corpus.name = name;
  corpus.unit = bytes ? "byte" : "word";
  if (bytes) {
    fill(corpus, texts, TextForm(), published, context);
  } else {
    Vocabulary vocabulary(
        texts.train, settings.get<std::int64_t>("vocabulary"),
        published ? Vocabulary::Specials::pad_unknown_end : Vocabulary::Specials::unknown_end);
    for (const auto& [split, text] : {std::pair("valid", &texts.valid), {"test", &texts.test}}) {
      if (!text->empty() && num_words(*text) == 0) {
        throw InputError(corpus.name + ": the " + split + " split has no word");
      }
    }
    fill(corpus, texts, TextForm(std::move(vocabulary), published), published, context);
    if (corpus.vocabulary == corpus.special.end_of_sentence + 1) {
      throw InputError(corpus.name + ": the train split has no word but <unk>");
    }
  }
  corpus.description = std::string(source) + "; " + std::to_string(corpus.vocabulary) +
                       (bytes ? " bytes, " : " words, ") + layout + " layout, windows of " +
                       std::to_string(context);
  // Published windows score inner words twice and leave text out: bits per byte mean nothing there.
  if (!published) {
    const auto bytes_per_token = [](std::string_view text, const Windows& windows) {
      return static_cast<double>(text.size()) / static_cast<double>(windows.num_scored());
    };
    corpus.bytes_per_token = bytes_per_token(texts.valid, corpus.valid);
    corpus.test_bytes_per_token = bytes_per_token(texts.test, corpus.test);
  }
  corpus.unigram_perplexity = unigram_perplexity(corpus.train, corpus.valid, corpus.vocabulary);
  corpus.hash = corpus_hash(corpus);
  return corpus;
}

}  // namespace nas
