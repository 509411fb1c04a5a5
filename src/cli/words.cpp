#include "cli/words.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace nas {

bool has_word(const std::vector<std::string>& words, const std::vector<std::string>& sought) {
  return std::find_first_of(words.begin(), words.end(), sought.begin(), sought.end()) !=
         words.end();
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
