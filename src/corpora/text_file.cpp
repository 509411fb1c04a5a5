#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/host.hpp"
#include "data/corpus.hpp"
#include "data/data_set.hpp"
#include "data/text.hpp"

namespace nas {

namespace {

Setting file_setting(std::string name, std::string help) {
  return {.name = std::move(name), .default_value = std::string(), .help = std::move(help)};
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

// The end of the line that byte `position` lies in.
std::size_t line_end(const std::string& text, double position) {
  const std::size_t end = text.find('\n', static_cast<std::size_t>(std::floor(position)));
  return end == std::string::npos ? text.size() : end + 1;
}

SplitTexts cut(const std::string& path, const std::string& text, double valid_share,
               double test_share) {
  if (valid_share + test_share >= 1.0) {
    throw InputError("data.valid_share + data.test_share = " +
                     to_text(Value(valid_share + test_share)) + ", must be less than 1");
  }
  if (text.find('\n') == std::string::npos && text.find('\r') != std::string::npos) {
    throw InputError("text_file: data.path = " + path +
                     " ends its lines with \\r alone, must end them with \\n: it is cut there");
  }
  const auto size = static_cast<double>(text.size());
  const std::size_t train_end = line_end(text, size * (1.0 - valid_share - test_share));
  const std::size_t valid_end = std::max(train_end, line_end(text, size * (1.0 - test_share)));
  return {text.substr(0, train_end), text.substr(train_end, valid_end - train_end),
          text.substr(valid_end)};
}

/// A file's text without the byte-order mark that some editors put before it: it is not part of the
/// first word.
/// @param marked  becomes true where there was one.
std::string read_without_mark(const std::string& file, bool& marked) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  auto text = read_text_file(file);
  if (!text.starts_with(kMark)) return text;
  marked = true;
  return text.substr(kMark.size());
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
  if (settings.get<std::string>("unit") == "byte") {
    bytes *= 5.0;  // each has a token of int32, too
  } else if (!three) {
    bytes *= 2.0;  // the text is there beside its splits; words are counted by text_corpus()
  }
  require_memory("text_file: " + (three ? train + ", " + valid + ", " + test : path), bytes);
  bool marked = false;
  const auto read = [&marked](const std::string& file) { return read_without_mark(file, marked); };
  const SplitTexts texts = three ? SplitTexts{read(train), read(valid), read(test)}
                                 : cut(path, read(path), settings.get<double>("valid_share"),
                                       settings.get<double>("test_share"));
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
