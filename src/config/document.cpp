#include "config/document.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include <yaml-cpp/yaml.h>

#include "core/error.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Kind = DocumentNode::Kind;

Origin origin_of(const YAML::Mark& mark, const std::string& source, bool has_lines) {
  if (!has_lines || mark.is_null()) return {source, 0, 0};
  return {source, mark.line + 1, mark.column + 1};
}

DocumentNode convert(const YAML::Node& yaml, const std::string& source, bool has_lines) {
  DocumentNode node;
  node.origin = origin_of(yaml.Mark(), source, has_lines);
  if (yaml.IsScalar()) {
    node.kind = Kind::scalar;
    node.text = yaml.Scalar();
    node.quoted = yaml.Tag() == "!";  // yaml-cpp's mark of a quoted scalar
  } else if (yaml.IsSequence()) {
    node.kind = Kind::list;
    for (const auto& item : yaml) node.items.push_back(convert(item, source, has_lines));
  } else if (yaml.IsMap()) {
    node.kind = Kind::map;
    for (const auto& entry : yaml) {
      node.entries.push_back({entry.first.Scalar(),
                              origin_of(entry.first.Mark(), source, has_lines),
                              convert(entry.second, source, has_lines)});
    }
  }
  return node;
}

DocumentNode parse_text(const std::string& text, const std::string& source, bool has_lines) {
  try {
    return convert(YAML::Load(text), source, has_lines);
  } catch (const YAML::ParserException& error) {
    throw InputError(origin_of(error.mark, source, has_lines).text() +
                     ": no valid YAML: " + error.msg);
  }
}

DocumentNode::Entry* find_entry(DocumentNode& map, std::string_view key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [key](const auto& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &*found;
}

/// Lays `over` on `base`; `selector` is the key of a plug-in section that names its plug-in, or
/// empty.
void merge(DocumentNode& base, DocumentNode over, const std::string& selector,
           const std::map<std::string, std::string>& selectors) {
  if (base.kind != Kind::map || over.kind != Kind::map) {
    base = std::move(over);
    return;
  }
  if (!selector.empty()) {
    const auto* before = base.find(selector);
    const auto* after = over.find(selector);
    if (after != nullptr && (before == nullptr || before->text != after->text)) {
      base = std::move(over);
      return;
    }
  }
  std::set<std::string> merged;
  for (auto& entry : over.entries) {
    auto* known = find_entry(base, entry.key);
    // A key that is repeated within one file stays repeated, so that it is reported.
    if (known == nullptr || !merged.insert(entry.key).second) {
      merged.insert(entry.key);
      base.entries.push_back(std::move(entry));
      continue;
    }
    const auto section = selectors.find(entry.key);
    known->origin = entry.origin;
    merge(known->value, std::move(entry.value), section == selectors.end() ? "" : section->second,
          {});
  }
}

DocumentNode load_file(const fs::path& file, std::vector<fs::path>& chain,
                       const std::map<std::string, std::string>& selectors) {
  std::error_code error;
  const auto identity = fs::weakly_canonical(file, error);
  if (std::find(chain.begin(), chain.end(), identity) != chain.end()) {
    throw InputError(file.string() + ": extends itself, directly or through the files it extends");
  }
  chain.push_back(identity);
  YAML::Node yaml;
  try {
    yaml = YAML::LoadFile(file.string());
  } catch (const YAML::BadFile&) {
    throw InputError(file.string() + ": no such file, or not readable");
  } catch (const YAML::ParserException& parser) {
    throw InputError(origin_of(parser.mark, file.string(), true).text() +
                     ": no valid YAML: " + parser.msg);
  }
  auto node = convert(yaml, file.string(), true);
  if (node.kind == Kind::null) node.kind = Kind::map;
  if (node.kind != Kind::map) {
    throw InputError(node.origin.text() + ": a configuration must be a map of keys and values");
  }
  const auto* extends = node.find("extends");
  if (extends == nullptr) return node;
  if (extends->kind != Kind::scalar) {
    throw InputError(extends->origin.text() + ": extends = " + extends->summary() +
                     ", must be the name of a file");
  }
  const auto parent = file.parent_path() / extends->text;
  if (!fs::exists(parent)) {
    throw InputError(extends->origin.text() + ": extends = " + extends->text +
                     ", there is no file " + parent.string());
  }
  auto base = load_file(parent, chain, selectors);
  std::erase_if(node.entries, [](const auto& entry) { return entry.key == "extends"; });
  merge(base, std::move(node), "", selectors);
  return base;
}

DocumentNode parse_override(const std::string& text) {
  static const std::string kSource = "command line";
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError("command line: '" + text + "', must be key.path=value");
  }
  DocumentNode node = parse_text(text.substr(equals + 1), kSource, false);
  std::string path = text.substr(0, equals);
  while (true) {
    const auto dot = path.rfind('.');
    const auto key = dot == std::string::npos ? path : path.substr(dot + 1);
    DocumentNode map;
    map.kind = Kind::map;
    map.origin = {kSource, 0, 0};
    map.entries.push_back({key, map.origin, std::move(node)});
    node = std::move(map);
    if (dot == std::string::npos) return node;
    path.resize(dot);
  }
}

bool parse_bool(const DocumentNode& node, Value& value) {
  if (node.kind != Kind::scalar || node.quoted) return false;
  if (node.text != "true" && node.text != "false") return false;
  value = node.text == "true";
  return true;
}

std::optional<double> parse_number(const DocumentNode& node) {
  if (node.kind != Kind::scalar || node.quoted || node.text.empty()) return std::nullopt;
  const char* begin = node.text.data();
  const char* end = begin + node.text.size();
  if (*begin == '+') ++begin;
  double number = 0.0;
  const auto result = std::from_chars(begin, end, number);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_integer(const DocumentNode& node) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it a double skips integers
  const auto number = parse_number(node);
  if (!number || *number != std::floor(*number) || std::abs(*number) > kExact) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

/// Reads `node` as the type that `value` holds now.
bool parse_as(const DocumentNode& node, Value& value) {
  switch (value.index()) {
    case 0:
      return parse_bool(node, value);
    case 1:
      if (const auto integer = parse_integer(node)) return value = *integer, true;
      return false;
    case 2:
      if (const auto number = parse_number(node)) return value = *number, true;
      return false;
    case 3:
      if (node.kind == Kind::scalar) return value = node.text, true;
      return false;
    case 4: {
      if (node.kind != Kind::list) return false;
      std::vector<std::int64_t> integers;
      for (const auto& item : node.items) {
        const auto integer = parse_integer(item);
        if (!integer) return false;
        integers.push_back(*integer);
      }
      return value = integers, true;
    }
    default: {
      std::vector<std::string> texts;
      if (node.kind == Kind::scalar) return value = std::vector{node.text}, true;
      if (node.kind != Kind::list) return false;
      for (const auto& item : node.items) {
        if (item.kind != Kind::scalar) return false;
        texts.push_back(item.text);
      }
      return value = texts, true;
    }
  }
}

std::string with_article(const std::string& type) {
  if (type == "true or false" || type == "text") return type;
  return (type.front() == 'i' ? "an " : "a ") + type;
}

}  // namespace

std::string Origin::text() const {
  if (line == 0) return source;
  return source + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const DocumentNode* DocumentNode::find(std::string_view key) const {
  for (const auto& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string DocumentNode::summary() const {
  if (kind == Kind::scalar) return quoted ? "'" + text + "'" : text;
  if (kind == Kind::null) return "nothing";
  std::vector<std::string> parts;
  for (const auto& item : items) parts.push_back(item.summary());
  for (const auto& entry : entries) parts.push_back(entry.key + ": " + entry.value.summary());
  return (kind == Kind::list ? "[" : "{") + join(parts) + (kind == Kind::list ? "]" : "}");
}

void Diagnostics::add(const Origin& origin, const std::string& message) {
  mistakes_.emplace_back(origin, message);
}

void Diagnostics::throw_if_any() const {
  if (mistakes_.empty()) return;
  auto sorted = mistakes_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.source, a.first.line, a.first.column) <
           std::tie(b.first.source, b.first.line, b.first.column);
  });
  std::vector<std::string> lines;
  for (const auto& [origin, message] : sorted) lines.push_back(origin.text() + ": " + message);
  throw InputError(join(lines, "\n"));
}

DocumentNode load_document(const fs::path& file, const std::vector<std::string>& overrides,
                           const std::map<std::string, std::string>& selectors) {
  std::vector<fs::path> chain;
  auto document = load_file(file, chain, selectors);
  for (const auto& text : overrides) merge(document, parse_override(text), "", selectors);
  return document;
}

void check_keys(const std::string& path, const DocumentNode& node,
                const std::vector<std::string>& known, Diagnostics& diagnostics) {
  std::set<std::string> seen;
  for (const auto& entry : node.entries) {
    const auto name = path.empty() ? entry.key : path + "." + entry.key;
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      const auto guess = nearest(entry.key, known);
      diagnostics.add(entry.origin, name + ": unknown key, " +
                                        (guess.empty() ? "known: " + join(known)
                                                       : "did you mean " + guess + "?"));
    } else if (!seen.insert(entry.key).second) {
      diagnostics.add(entry.origin, name + ": given twice");
    }
  }
}

bool read_value(const std::string& path, const DocumentNode& node, const Setting& setting,
                Diagnostics& diagnostics, Value& value) {
  Value parsed = setting.default_value;
  if (!parse_as(node, parsed)) {
    diagnostics.add(node.origin, path + " = " + node.summary() + ", must be " +
                                     with_article(setting.type_name()));
    return false;
  }
  if (const auto violation = setting.violation(parsed); !violation.empty()) {
    diagnostics.add(node.origin, path + " = " + node.summary() + ", " + violation);
    return false;
  }
  value = std::move(parsed);
  return true;
}

Parameters read_section(const std::string& path, const DocumentNode* node,
                        const std::vector<Setting>& settings, Diagnostics& diagnostics,
                        const std::vector<std::string>& ignored) {
  Parameters parameters(settings);
  if (node == nullptr || node->kind == Kind::null) {
    static const DocumentNode kEmpty;
    node = &kEmpty;
  } else if (node->kind != Kind::map) {
    diagnostics.add(node->origin, path + " = " + node->summary() + ", must be a map of settings");
    return parameters;
  }
  auto known = ignored;
  for (const auto& setting : settings) known.push_back(setting.name);
  check_keys(path, *node, known, diagnostics);
  for (const auto& setting : settings) {
    const auto* value = node->find(setting.name);
    if (value == nullptr) {
      if (setting.required) diagnostics.add(node->origin, path + "." + setting.name + ": missing");
      continue;
    }
    Value read;
    if (read_value(path + "." + setting.name, *value, setting, diagnostics, read)) {
      parameters.set(setting.name, std::move(read));
    }
  }
  return parameters;
}

}  // namespace nas
