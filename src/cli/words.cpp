#include "cli/words.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include "core/error.hpp"
#include "store/store.hpp"
#include "table/format.hpp"

namespace nas {

namespace fs = std::filesystem;

// By the application_id in the header of SQLite.
bool is_table(const fs::path& file) {
  constexpr std::streamoff kPlace = 68;
  std::array<char, 4> bytes{};
  std::ifstream(file, std::ios::binary).seekg(kPlace).read(bytes.data(), std::ssize(bytes));
  int id = 0;
  for (const char byte : bytes) id = id * 256 + static_cast<unsigned char>(byte);
  return id == table_format::kKind.application_id;
}

bool has_word(const std::vector<std::string>& words, const std::vector<std::string>& sought) {
  return std::find_first_of(words.begin(), words.end(), sought.begin(), sought.end()) !=
         words.end();
}

fs::path store_named(const fs::path& word) {
  const auto file = store_file(word);
  if (!fs::exists(file)) throw InputError(file.string() + ": no such store; give a run's folder");
  if (fs::is_regular_file(file) && is_table(file)) {
    throw InputError(file.string() + ": is a table, must be a run's folder; nas-data table info " +
                     file.string() + " describes it");
  }
  return file;
}

fs::path table_named(const fs::path& word) {
  if (word.filename() == "store.sqlite" || fs::exists(word / "store.sqlite")) {
    throw InputError(word.string() +
                     ": is a run, must be a table; nas-data table pack makes one of runs");
  }
  return word;
}

std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (word->starts_with(name + "=")) {
      std::string value = word->substr(name.size() + 1);
      words.erase(word);
      return value;
    }
    if (*word != name) continue;
    if (word + 1 == words.end()) throw InputError(name + " has no value, must be followed by one");
    std::string value = *(word + 1);
    words.erase(word, word + 2);
    return value;
  }
  return std::nullopt;
}

std::vector<std::string> take_options(std::vector<std::string>& words, const std::string& name) {
  std::vector<std::string> values;
  while (auto value = take_option(words, name)) values.push_back(std::move(*value));
  return values;
}

void require_options(const std::vector<std::string>& words, const std::vector<std::string>& known) {
  for (const auto& word : words) {
    const auto name = word.substr(0, word.find('='));
    if (!word.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    const auto hint = did_you_mean(name, known);
    throw InputError("unrecognised option '" + name + "'" +
                     (hint.empty() ? ", known: " + join(known) : hint));
  }
}

void add_override(std::vector<std::string>& overrides, const std::string& option,
                  const std::string& setting, const std::string& value) {
  const auto dot = setting.find('.');
  const auto within = [&](const std::string& word) {  // section={key: value}
    return dot != std::string::npos && word.starts_with(setting.substr(0, dot) + "=") &&
           word.find(setting.substr(dot + 1)) != std::string::npos;
  };
  for (const auto& word : overrides) {
    if (!word.starts_with(setting + "=") && !within(word)) continue;
    throw InputError("command line: " + option + ' ' + value + ", must be left out beside " + word);
  }
  overrides.push_back(setting + "=" + value);
}

}  // namespace nas
