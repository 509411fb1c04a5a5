#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/setting_forms.hpp"
#include "data/text.hpp"

namespace nas {

namespace {

/// A corpus whose text Python knows (python/attnas/prepare): how lists show it.
struct Row {
  const char* key;
  const char* summary;
  const char* tokenizer;  ///< by default
};

#define NAS_DEBIAN_REFERENCE(language)              \
  "Debian's reference manual in " language          \
  ", one text in nine languages with the same 343 " \
  "sections in the same splits (debian-reference 2.100)"

constexpr std::array kRows{
    Row{"brown", "American English of 1961, 500 texts, 1.16 M tokens (Francis and Kucera 1964)",
        "unit"},
    Row{"debian_reference_de", NAS_DEBIAN_REFERENCE("German"), "byte"},
    Row{"debian_reference_en", NAS_DEBIAN_REFERENCE("English"), "byte"},
    Row{"debian_reference_es", NAS_DEBIAN_REFERENCE("Spanish"), "byte"},
    Row{"debian_reference_fr", NAS_DEBIAN_REFERENCE("French"), "byte"},
    Row{"debian_reference_it", NAS_DEBIAN_REFERENCE("Italian"), "byte"},
    Row{"debian_reference_ja", NAS_DEBIAN_REFERENCE("Japanese"), "byte"},
    Row{"debian_reference_pt", NAS_DEBIAN_REFERENCE("Portuguese"), "byte"},
    Row{"debian_reference_zh_cn", NAS_DEBIAN_REFERENCE("simplified Chinese"), "byte"},
    Row{"debian_reference_zh_tw", NAS_DEBIAN_REFERENCE("traditional Chinese"), "byte"},
    Row{"enwik8",
        "the first 100 million bytes of the English Wikipedia of 2006, with its XML (Mahoney 2009)",
        "byte"},
    Row{"fortunes_zh",
        "Chinese sayings, stories and poems, 2.2 MB (fortunes-zh 2.98); for data.tokenizer byte, "
        "char and bpe",
        "char"},
    Row{"gcide",
        "an English dictionary, 126,000 articles, 40 MB: Webster's of 1913 with additions (GCIDE "
        "0.48)",
        "unit"},
    Row{"proteins",
        "20,000 protein sequences of UniProt, 9.1 M amino acids; related ones may be in several "
        "splits",
        "residue"},
    Row{"sqlite",
        "C source: the 405 files of SQLite 3.40.1, 13 MB; files that began as copies of others may "
        "be in several splits",
        "byte"},
    Row{"text8",
        "English Wikipedia of 2006 as letters a to z and blanks, 100 MB in one line (Mahoney 2009)",
        "byte"},
    Row{"wikitext-2", "Wikipedia articles, 2.1 M words (Merity et al. 2016, arXiv:1609.07843)",
        "unit"},
};

#undef NAS_DEBIAN_REFERENCE

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

std::vector<Setting> text_file_settings() {
  auto all = text_settings();
  all.push_back(
      file_setting("path", "one text file, cut into train, valid and test, in this order"));
  all.push_back(share_setting("valid_share", "share of path's bytes for validation"));
  all.push_back(share_setting("test_share", "share of path's bytes for the test"));
  all.push_back(file_setting("train", "text file to train on, instead of path"));
  all.push_back(file_setting("valid", "text file to validate on, instead of path"));
  all.push_back(file_setting("test", "text file to test on, instead of path"));
  return all;
}

std::vector<Setting> image_settings() {
  return {setting::choice("asks", "class", {"class", "pixels"},
                          "class: one of ten behind the last pixel, task classification; pixels: "
                          "each next one, bits per dimension are nll / ln 2 / patch^2"),
          setting::integer("side", 14, 7, 28,
                           "pixels of a side, means of squares: 7, 14 or 28; model.context is its "
                           "square"),
          setting::integer("levels", 16, 2, 256, "grey levels of a pixel"),
          setting::integer("patch", 1, 1, 4,
                           "pixels of a side of what is one token; model.context is the square of "
                           "data.side / data.patch, tokens are levels^(patch^2)"),
          setting::integer("train_examples", 55000, 1, 55000, "images to train on, the first ones"),
          setting::integer("valid_examples", 5000, 1, 5000,
                           "images to validate on; tests are on all 10,000")};
}

bool add(std::string key, std::string summary, std::vector<Setting> settings) {
  const auto load = [key](const Parameters& given, std::int64_t context,
                          const DataLocation& location) {
    return prepared_corpus(key, given, context, location);
  };
  return corpora().add({.key = std::move(key),
                        .summary = std::move(summary),
                        .settings = std::move(settings),
                        .file = __FILE__},
                       load);
}

[[maybe_unused]] const bool kAdded = [] {
  for (const auto& row : kRows) add(row.key, row.summary, text_settings(row.tokenizer));
  add("text_file",
      "plain text of your own: one file, or one per split, beside the configuration or in the "
      "current folder",
      text_file_settings());
  return add("fashion_mnist",
             "70,000 grey pictures of ten kinds of clothes, 28 x 28, as sequences of pixels: their "
             "class, or the next pixel (Xiao et al. 2017, arXiv:1708.07747)",
             image_settings());
}();

}  // namespace

}  // namespace nas
