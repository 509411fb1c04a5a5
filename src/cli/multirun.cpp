#include "cli/multirun.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "config/document.hpp"
#include "core/error.hpp"

namespace nas {

namespace {

using Words = std::vector<std::string>;

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A number in one writing, as configurations read it; other texts as they are.
std::string one_writing(const std::string& text) {
  DocumentNode node;
  node.kind = DocumentNode::Kind::scalar;
  node.text = text;
  const auto read = [&node](Value value) {
    Diagnostics mistakes;
    const Setting setting{.name = "seed", .default_value = value, .help = "a number"};
    return read_value("", node, setting, mistakes, value) ? to_text(value) : std::string();
  };
  auto number = read(std::int64_t{0});
  if (number.empty()) number = read(0.0);
  return number.empty() ? text : number;
}

constexpr std::uint64_t kMost = 10'000;  ///< numbers of a range, and runs

/// Whether a text was meant as a number, or nothing was said.
bool is_numeral(std::string_view text) {
  return text.find_first_not_of("0123456789+-.") == std::string_view::npos;
}

/// "1..5" as its numbers; nothing where the text is no range.
std::optional<Words> range(const std::string& setting, const std::string& text) {
  const auto dots = text.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const auto first = integer(std::string_view(text).substr(0, dots));
  const auto last = integer(std::string_view(text).substr(dots + 2));
  const bool meant = is_numeral(std::string_view(text).substr(0, dots)) &&
                     is_numeral(std::string_view(text).substr(dots + 2));
  if ((!first || !last) && !meant) return std::nullopt;
  // Unsigned: a difference of any two numbers has a place there.
  const auto count =
      first && last ? static_cast<std::uint64_t>(*last) - static_cast<std::uint64_t>(*first) + 1
                    : 0;
  if (!first || !last || *last < *first || count == 0 || count > kMost) {
    throw InputError("command line: " + setting + " = " + text +
                     ", must be FIRST..LAST, of at most 10,000 whole numbers");
  }
  Words numbers;
  for (std::uint64_t i = 0; i < count; ++i) {
    numbers.push_back(std::to_string(*first + static_cast<std::int64_t>(i)));
  }
  return numbers;
}

/// The values of a list, at commas outside brackets, braces and quotation marks.
Words values(const std::string& setting, const std::string& text) {
  Words found(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0 && !quoted) {
      found.emplace_back();
    } else {
      found.back() += c;
    }
  }
  Words all;
  for (const auto& value : found) {
    if (value.empty()) {
      throw InputError("command line: " + setting + " = " + text + ", must have no empty value");
    }
    const auto numbers = range(setting, value);
    if (numbers) {
      all.insert(all.end(), numbers->begin(), numbers->end());
    } else {
      all.push_back(value);
    }
  }
  std::set<std::string> once;
  for (const auto& value : all) {
    if (once.insert(one_writing(value)).second) continue;
    throw InputError("command line: " + setting + " = " + text + ", must have " + value +
                     " once: each is a run");
  }
  return all;
}

}  // namespace

bool compares_algorithms(const std::vector<MultirunPart>& parts) {
  const auto& first = parts.front().overrides;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto setting = first[i].substr(0, first[i].find('='));
    const auto section = setting.substr(0, setting.find('.'));
    if (setting == "seed" || section == "algorithm" || section == "budget") continue;
    for (const auto& part : parts) {
      if (part.overrides[i] != first[i]) return false;
    }
  }
  return true;
}

std::vector<MultirunPart> multirun(const std::vector<std::string>& overrides) {
  std::vector<MultirunPart> parts(1);
  std::set<std::string> settings;
  for (const auto& word : overrides) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      throw InputError("command line: '" + word + "', must be key.path=value");
    }
    const auto setting = word.substr(0, equals);
    if (!settings.insert(setting).second) {
      throw InputError("command line: " + setting +
                       " is given twice, must be once with --multirun");
    }
    const auto all = values(setting, word.substr(equals + 1));
    if (parts.size() * all.size() > kMost) {
      throw InputError("command line: " + std::to_string(parts.size() * all.size()) +
                       " runs, must be at most 10,000");
    }
    std::vector<MultirunPart> longer;
    for (const auto& part : parts) {
      for (const auto& value : all) {
        auto& next = longer.emplace_back(part);
        next.overrides.push_back(setting + "=" + value);
        if (all.size() == 1) continue;
        if (value.find('/') != std::string::npos) {
          throw InputError("command line: " + setting + " = " + value +
                           ", must have no '/': it names a folder");
        }
        next.folder += (next.folder.empty() ? "" : ",") + setting + "=" + value;
      }
    }
    parts = std::move(longer);
  }
  return parts;
}

}  // namespace nas
