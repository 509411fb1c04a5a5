#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/text.hpp"

namespace nas {

/// A corpus that is a text with known sources (python/attnas/prepare/sources.json).
struct TextSource {
  std::string key;       ///< of the corpus and its data set
  std::string summary;   ///< one sentence, of lists
  std::string text;      ///< what it is, in descriptions of loaded corpora
  std::string splits{};  ///< how train, valid and test are made, one sentence
  /// See PreparationRegistry; empty where the sources have the three files.
  std::function<void(const std::filesystem::path& from, const std::filesystem::path& to)> prepare{};
  std::vector<Setting> settings = text_settings();
  std::string file;  ///< __FILE__ of the registration
};

/// Registers a corpus and its preparation. @return whether the key was free.
bool add_text(TextSource source);

/// From the .cpp of the corpus: `NAS_REGISTER_TEXT(source);`
#define NAS_REGISTER_TEXT(...) \
  [[maybe_unused]] static const bool nas_registered_text = ::nas::add_text(__VA_ARGS__)

/// 100,000,000 bytes of Wikipedia, which the user gives: text8 and enwik8, cut into 90, 5 and 5
/// million. @param file  __FILE__ of the registration.
TextSource hundred_million_bytes(std::string key, std::string summary, std::string text,
                                 std::string file);

/// Debian's reference manual, 343 sections, the same ones in every language: those of valid and
/// test are too.
/// @param package   of debian-reference-PACKAGE, as "zh-cn".   @param language  for people.
/// @param key, file  of the registration.
TextSource debian_reference(std::string key, const std::string& package,
                            const std::string& language, std::string file);

}  // namespace nas
