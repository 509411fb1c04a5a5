#include "store/record_json.hpp"

#include <string>

#include "core/error.hpp"
#include "core/words.hpp"

namespace nas {

nlohmann::json parse_record(std::string_view text) {
  constexpr int kDeepest = 100;
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) {
        throw InputError("its JSON is nested more than " + std::to_string(kDeepest) + " deep");
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  if (text.find('\0') != text.npos)
    throw InputError("it is no JSON: a byte of 0, at which readers end");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw InputError("it is no JSON: " + beginning(error.what(), 200));
  }
}

}  // namespace nas
