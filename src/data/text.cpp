#include "data/text.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/error.hpp"
#include "core/host.hpp"
#include "data/corpus_facts.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace {

using Tokens = std::vector<std::int32_t>;

// Tokens are counted before they are kept. A stream that grows by doubling takes up to three times
// their memory, as much as 12 times the text.

/// Tokens of a text in layout published: those of its long lines.
std::size_t num_published(std::string_view text, std::int64_t length) {
  std::size_t tokens = 0;
  for_each_line(text, [&](std::string_view line) {
    const auto words = num_words(line);
    if (words > static_cast<std::size_t>(length)) tokens += words;
  });
  return tokens;
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

Windows published_windows(std::string_view text, const Tokenizer& tokenizer, std::int64_t length) {
  Windows windows;
  windows.length = length;
  windows.last_target = tokenizer.special().pad;
  const std::int64_t stride = std::max<std::int64_t>(1, length / 2);
  windows.tokens.reserve(num_published(text, length));
  for_each_line(text, [&](std::string_view line) {
    if (num_words(line) <= static_cast<std::size_t>(length)) return;
    const std::int64_t begin = std::ssize(windows.tokens);
    tokenizer.encode_open(line, windows.tokens);
    const std::int64_t end = std::ssize(windows.tokens);
    for (std::int64_t start = begin; start < end - length; start += stride) {
      windows.starts.push_back(start);
    }
  });
  return windows;
}

/// Refuses texts whose tokens find no memory beside them. How many words there are is not known
/// before they are read.
void require_room(const std::string& what, const SplitTexts& texts, const TokenizerKind& kind,
                  bool published, std::int64_t context) {
  std::size_t size = 0;
  std::size_t tokens = 0;
  for (const auto* text : {&texts.train, &texts.valid, &texts.test}) {
    size += text->size();
    if (published) {
      tokens += num_published(*text, context);
    } else {
      tokens += 1 + (kind.count ? kind.count(*text) : text->size());
    }
  }
  require_memory(
      what + " with " + (kind.count ? "" : "at most ") + std::to_string(tokens) + " tokens",
      static_cast<double>(size + tokens * sizeof(Tokens::value_type)));
}

/// Refuses settings of other tokenizers, which would have no effect.
void require_own_settings(const Parameters& settings) {
  const auto unit = unit_of(settings);
  if (const auto& other = settings.get<std::string>("unit"); other != unit && other != "word") {
    throw InputError("data.unit = " + other + ", must be left out where data.tokenizer = " + unit);
  }
  const auto& own = tokenizers().at(unit).description.settings;
  for (const auto& key : tokenizers().keys()) {
    for (const auto& setting : tokenizers().at(key).description.settings) {
      const bool is_own = std::any_of(own.begin(), own.end(),
                                      [&](const Setting& one) { return one.name == setting.name; });
      if (is_own || !settings.contains(setting.name) ||
          settings.at(setting.name) == setting.default_value) {
        continue;
      }
      throw InputError("data." + setting.name + " = " + to_text(settings.at(setting.name)) +
                       ", must be left out where data.unit = " + unit + ": it is of " + key);
    }
  }
}

void fill(Corpus& corpus, const SplitTexts& texts, const TextForm& form, bool published,
          std::int64_t context) {
  corpus.vocabulary = form.vocabulary();
  corpus.special = form.special();
  corpus.train = form.windows(texts.train, context, true);
  corpus.valid = form.windows(texts.valid, context, false);
  corpus.test = form.windows(texts.test, context, false);
  for (const auto& [split, windows] :
       {std::pair("train", &corpus.train), {"valid", &corpus.valid}, {"test", &corpus.test}}) {
    if (windows->size() > 0) continue;
    throw InputError(corpus.name + ": the " + split + " split has " +
                     (published ? "no line of more than " + std::to_string(context) +
                                      " words (the context), which layout = published needs"
                                : "no text"));
  }
}

}  // namespace

TokenizerKind tokenizer_kind(const Parameters& settings) {
  return tokenizers().at(unit_of(settings)).make();
}

TextForm::TextForm(std::shared_ptr<const Tokenizer> tokenizer, bool published)
    : tokenizer_(std::move(tokenizer)), published_(published) {}

Windows TextForm::windows(std::string_view text, std::int64_t length, bool train) const {
  if (published_) return published_windows(text, *tokenizer_, length);
  Tokens stream;
  stream.push_back(tokenizer_->first());
  tokenizer_->encode(text, stream);
  return contiguous_windows(std::move(stream), length, train);
}

std::vector<std::int64_t> TextForm::prompt(std::string_view text) const {
  Tokens ids;
  if (!published_) ids.push_back(tokenizer_->first());
  tokenizer_->encode_open(text, ids);
  return {ids.begin(), ids.end()};
}

std::string TextForm::text(const std::vector<std::int64_t>& ids) const {
  return tokenizer_->decode(ids);
}

std::vector<Setting> text_settings() {
  return {
      {.name = "vocabulary",
       .default_value = std::int64_t{10000},
       .help = "number of ids, special tokens included, of units that are learned (word, char, "
               "bpe): the most frequent of the training split; 0 = all of them",
       .min = 0},
      {.name = "unit",
       .default_value = std::string("word"),
       .help = "what a token is; bytes have a vocabulary of 256"},
      {.name = "tokenizer",
       .default_value = std::string("unit"),
       .help = "the same by another name; unit: what data.unit says"},
      {.name = "layout",
       .default_value = std::string("standard"),
       .help = "standard: one stream with <eos>, every token scored once; published: half "
               "overlapping windows inside long lines, last target <pad>",
       .choices = {"standard", "published"}},
  };
}

std::vector<Setting> with_tokenizer(const std::string& key) {
  auto settings = text_settings();
  for (auto& setting : settings) {
    if (setting.name == "tokenizer") setting.default_value = key;
  }
  return settings;
}

Corpus text_corpus(std::string_view name, std::string_view source, const SplitTexts& texts,
                   const Parameters& settings, std::int64_t context) {
  require_in_range("model.context", static_cast<double>(context), 2, 1e9);
  const auto kind = tokenizer_kind(settings);
  const auto unit = unit_of(settings);
  const std::string& layout = settings.get<std::string>("layout");
  const bool published = layout == "published";
  if (published && !kind.published) {
    throw InputError("data.layout = published, must be standard where data.unit = " + unit);
  }
  require_own_settings(settings);
  require_room(std::string(name) + ": " + std::string(source), texts, kind, published, context);

  Corpus corpus;
  corpus.name = name;
  corpus.unit = unit;
  corpus.tokenizer = kind.train(texts.train, settings);
  const auto special = corpus.tokenizer->special();
  for (const auto& [split, text] : {std::pair("valid", &texts.valid), {"test", &texts.test}}) {
    if (special.end_of_sentence >= 0 && !text->empty() && num_words(*text) == 0) {
      throw InputError(corpus.name + ": the " + split + " split has no " + unit);
    }
  }
  fill(corpus, texts, TextForm(corpus.tokenizer, published), published, context);
  const std::array ids{special.pad, special.unknown, special.end_of_sentence};
  if (corpus.vocabulary == std::count_if(ids.begin(), ids.end(), [](auto id) { return id >= 0; })) {
    throw InputError(corpus.name + ": the train split has no " + unit + " but <unk>");
  }
  corpus.description = std::string(source) + "; " + std::to_string(corpus.vocabulary) + " " +
                       kind.many + ", " + layout + " layout, windows of " + std::to_string(context);
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
