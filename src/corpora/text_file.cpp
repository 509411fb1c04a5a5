#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/host.hpp"
#include "data/corpus.hpp"
#include "data/data_set.hpp"
#include "data/encoding.hpp"
#include "data/text.hpp"

namespace nas {

namespace {

Setting file_setting(std::string name, std::string help) {
  return {.name = std::move(name),
          .default_value = std::string(),
          .help = std::move(help),
          .names_file = true};
}

Setting share_setting(std::string name, std::string help) {
  return {.name = std::move(name),
          .default_value = 0.1,
          .help = std::move(help),
          .min = 0,
          .max = 1,
          .min_exclusive = true,
          .max_exclusive = true};
}

std::vector<Setting> settings() {
  std::vector<Setting> all = text_settings();
  all.push_back(
      file_setting("path", "one text file, cut into train, valid and test, in this order"));
  all.push_back(share_setting("valid_share", "share of path's bytes for validation"));
  all.push_back(share_setting("test_share", "share of path's bytes for the test"));
  all.push_back(file_setting("train", "text file to train on, instead of path"));
  all.push_back(file_setting("valid", "text file to validate on, instead of path"));
  all.push_back(file_setting("test", "text file to test on, instead of path"));
  return all;
}

/// Behind the first of some bytes at or after a position; the text's end where there is none.
std::size_t behind(const std::string& text, std::size_t position, const char* bytes) {
  const std::size_t found = text.find_first_of(bytes, position);
  return found == std::string::npos ? text.size() : found + 1;
}

/// The first byte at or after a position that is inside no character of UTF-8. Bytes of no such text
/// are characters.
std::size_t begin_of_character(const std::string& text, std::size_t position) {
  for (std::size_t length = 1; length < 4 && length <= position; ++length) {
    auto end = position - length;
    if (next_code_point(text, end) && end > position) return end;
  }
  return position;
}

/// Where a text is cut: at ends of lines, or where these are too far apart, so that a split would be
/// empty or differ from its share by more than the half, between words, characters, or bytes.
SplitTexts cut(const std::string& text, double valid_share, double test_share, TextPiece piece) {
  if (valid_share + test_share >= 1.0) {
    throw InputError("data.valid_share + data.test_share = " +
                     to_text(Value(valid_share + test_share)) + ", must be less than 1");
  }
  const auto size = static_cast<double>(text.size());
  const auto position = [size](double share) {
    return static_cast<std::size_t>(std::floor(size * share));
  };
  const auto wanted =
      std::pair(position(1.0 - valid_share - test_share), position(1.0 - test_share));
  const auto cut_at = [&](const auto& end) {
    const std::size_t train_end = end(wanted.first);
    return std::pair(train_end, std::max(train_end, end(wanted.second)));
  };
  auto [train_end, valid_end] = cut_at([&text](std::size_t at) { return behind(text, at, "\n"); });
  const auto is_far = [size](std::size_t length, double share) {
    return std::abs(static_cast<double>(length) - share * size) > 0.5 * share * size;
  };
  if (is_far(valid_end - train_end, valid_share) || is_far(text.size() - valid_end, test_share)) {
    std::tie(train_end, valid_end) = cut_at([&](std::size_t at) {
      if (piece == TextPiece::word) return behind(text, at, " \t\n\v\f\r");
      return piece == TextPiece::character ? begin_of_character(text, at) : at;
    });
  }
  return {text.substr(0, train_end), text.substr(train_end, valid_end - train_end),
          text.substr(valid_end)};
}

/// A file's text without the byte-order mark that some editors put before it: it is not part of the
/// first word.
/// @param setting  that names the file.  @param marked  becomes true where there was a mark.
std::string read_plain(const std::string& setting, const std::string& file, TextPiece piece,
                       bool& marked) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  auto text = read_text_file(file);
  if (text.starts_with(kMark)) {
    marked = true;
    text.erase(0, kMark.size());
  }
  const auto what = "text_file: data." + setting + " = " + file;
  if (text.empty()) throw InputError(what + " is empty");
  require_plain_text(what, text, piece);
  return text;
}

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  const auto& path = settings.get<std::string>("path");
  const auto& train = settings.get<std::string>("train");
  const auto& valid = settings.get<std::string>("valid");
  const auto& test = settings.get<std::string>("test");
  const bool three = !train.empty() && !valid.empty() && !test.empty();
  const bool none = train.empty() && valid.empty() && test.empty();
  if (path.empty() ? !three : !none) {
    throw InputError("text_file: data.path = '" + path + "', train = '" + train + "', valid = '" +
                     valid + "', test = '" + test +
                     "', must be path alone, or train, valid and test without path");
  }
  double bytes = 0.0;
  for (const auto& file : {path, train, valid, test}) {
    std::error_code missing;  // reported by the reader
    const auto size = std::filesystem::file_size(file, missing);
    if (!missing) bytes += static_cast<double>(size);
  }
  const auto piece = tokenizer_kind(settings).piece;
  if (piece != TextPiece::word) {
    bytes *= 5.0;  // each has a token of int32, too
  } else if (!three) {
    bytes *= 2.0;  // the text is there beside its splits; words are counted by text_corpus()
  }
  require_memory("text_file: " + (three ? train + ", " + valid + ", " + test : path), bytes);
  bool marked = false;
  const auto read = [&](const char* setting) {
    return read_plain(setting, settings.get<std::string>(setting), piece, marked);
  };
  const SplitTexts texts = three ? SplitTexts{read("train"), read("valid"), read("test")}
                                 : cut(read("path"), settings.get<double>("valid_share"),
                                       settings.get<double>("test_share"), piece);
  return text_corpus("text_file",
                     (three ? train : path) + (marked ? " without its byte-order mark" : ""), texts,
                     settings, context);
}

NAS_REGISTER_CORPUS({.key = "text_file",
                     .summary = "plain text of your own: one file, or one per split, beside the "
                                "configuration or in the current folder",
                     .settings = settings(),
                     .file = __FILE__},
                    load);

}  // namespace

}  // namespace nas
