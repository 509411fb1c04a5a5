#include "cli/words.hpp"

#include "core/error.hpp"

namespace nas {

std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name) {
  for (auto word = words.begin(); word != words.end(); ++word) {
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

std::string counted(std::int64_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace nas
