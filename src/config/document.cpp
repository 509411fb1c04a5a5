#include "config/document.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/installed.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Kind = DocumentNode::Kind;

const std::string kCommandLine = "command line";

/// Where the documents of a text begin: with their first value, if they have one.
class DocumentMarks final : public YAML::EventHandler {
 public:
  std::vector<YAML::Mark> marks{};

  void OnDocumentStart(const YAML::Mark& mark) override {
    marks.push_back(mark);
    begins_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { add(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { add(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {
    add(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
    add(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    add(mark);
  }
  void OnMapEnd() override {}

 private:
  void add(const YAML::Mark& mark) {
    if (std::exchange(begins_, false)) marks.back() = mark;
  }
  bool begins_ = false;
};

/// Text of a file or of the command line, becoming a tree.
class YamlSource {
 public:
  YamlSource(std::string name, bool has_lines) : name_(std::move(name)), has_lines_(has_lines) {}

  /// @throws InputError unless the text is one YAML document (or none: a null node).
  [[nodiscard]] DocumentNode read(const std::string& text) const {
    try {
      std::istringstream stream(text);
      YAML::Parser parser(stream);
      DocumentMarks documents;
      // Two at the most: yaml-cpp finds a text that begins with a comma to have no end of them.
      const auto& marks = documents.marks;
      while (marks.size() < 2 && parser.HandleNextDocument(documents)) continue;
      if (marks.empty()) return at(YAML::Mark());
      if (marks.size() > 1) {
        if (marks[1].pos == marks[0].pos) refuse(marks[0], "not valid YAML: nothing may begin so");
        refuse(marks[1], "a second document ('---') begins, must be one");
      }
      return convert(YAML::Load(text), 0);
    } catch (const YAML::ParserException& error) {
      refuse(error.mark, "not valid YAML: " + error.msg +
                             (has_tab(text, error.mark.line)
                                  ? ": a tab at the beginning of the line, must be blanks"
                                  : ""));
    }
  }

 private:
  /// Whether a line, counted from 0, is indented by a tab, which yaml-cpp's messages do not say.
  [[nodiscard]] static bool has_tab(const std::string& text, int line) {
    std::istringstream lines(text);
    std::string found;
    for (int i = 0; i <= line && std::getline(lines, found); ++i) continue;
    return found.substr(0, found.find_first_not_of(" \t")).find('\t') != std::string::npos;
  }

  [[nodiscard]] DocumentNode at(const YAML::Mark& mark) const {
    DocumentNode node;
    node.origin = origin(mark);
    return node;
  }

  [[nodiscard]] Origin origin(const YAML::Mark& mark) const {
    if (!has_lines_ || mark.is_null()) return {name_, 0, 0};
    return {name_, mark.line + 1, mark.column + 1};
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& message) const {
    throw InputError(origin(mark).text() + ": " + message);
  }

  /// A scalar's text. Names of files and texts of SQLite would end at a NUL, and records are JSON.
  [[nodiscard]] std::string text(const YAML::Node& scalar) const {
    const auto position = scalar.Scalar().find('\0');
    if (position != std::string::npos) {
      refuse(scalar.Mark(), "'" + scalar.Scalar().substr(0, position) +
                                "' goes on with the character NUL (\\0), which no text may hold");
    }
    if (!is_utf8(scalar.Scalar())) refuse(scalar.Mark(), "must be text in UTF-8, is not");
    return scalar.Scalar();
  }

  [[nodiscard]] DocumentNode convert(const YAML::Node& yaml, int depth) const {
    constexpr int kMaxDepth = 32;  // an anchor that contains an alias of itself has no end
    if (depth > kMaxDepth) refuse(yaml.Mark(), "nested too deeply, or an anchor within itself");
    constexpr int kMostValues = 100'000;  // aliases of lists of aliases are many
    if (++values_ > kMostValues)
      refuse(yaml.Mark(), "more than 100000 values, aliases counted where they stand");
    auto node = at(yaml.Mark());
    if (yaml.IsScalar()) {
      node.kind = Kind::scalar;
      node.text = text(yaml);
      node.quoted = yaml.Tag() == "!";  // yaml-cpp's mark of a scalar that is not plain
    } else if (yaml.IsSequence()) {
      node.kind = Kind::list;
      for (const auto& item : yaml) node.items.push_back(convert(item, depth + 1));
    } else if (yaml.IsMap()) {
      node.kind = Kind::map;
      for (const auto& entry : yaml) {
        const YAML::Node& key = entry.first;
        if (!key.IsScalar()) refuse(key.Mark(), "a key must be a word");
        if (key.Scalar() == "<<" && key.Tag() != "!") {
          refuse(key.Mark(),
                 "the key <<, which merges maps in YAML 1.1, must be left out: extends takes over "
                 "what another file says");
        }
        auto child = convert(entry.second, depth + 1);
        // The mark of a value that is not there is that of whatever comes next.
        if (child.kind == Kind::null) child.origin = origin(key.Mark());
        node.entries.push_back({text(key), origin(key.Mark()), std::move(child)});
      }
    }
    return node;
  }

  std::string name_;
  bool has_lines_;
  mutable int values_ = 0;  ///< converted
};

DocumentNode single_entry(std::string key, DocumentNode value) {
  DocumentNode map;
  map.kind = Kind::map;
  map.origin = value.origin;
  map.entries.push_back({std::move(key), map.origin, std::move(value)});
  return map;
}

/// Writes `problem: zdt` as `problem: {name: zdt}`.
void expand_short_forms(DocumentNode& document, const PluginSections& sections) {
  for (auto& entry : document.entries) {
    const auto section = sections.find(entry.key);
    if (section != sections.end() && entry.value.kind == Kind::scalar)
      entry.value = single_entry(section->second.key, std::move(entry.value));
  }
}

/// Forgets the settings of `base` that belong to another plug-in than the one `over` names. Those of
/// the command line belong to the one that it names, also where it does so after them.
void forget_other_plugin(DocumentNode& base, const DocumentNode& over,
                         const PluginSection& section) {
  const auto* before = base.find(section.key);
  const auto* after = over.find(section.key);
  if (after == nullptr || after->text == (before != nullptr ? before->text : section.plugin)) {
    return;
  }
  const bool named = before != nullptr && before->origin.line == 0;  // on the command line
  std::erase_if(base.entries, [&section, named](const auto& entry) {
    return (named || entry.origin.line > 0) &&
           std::find(section.shared.begin(), section.shared.end(), entry.key) ==
               section.shared.end();
  });
}

/// Lays `over` on `base`. A map that several files have is taken to be where the last one has it,
/// since what that adds may not go with the rest; an override has keys alone.
/// @param sections  plug-in sections among the keys of `base`; none below the top of a document.
void merge(DocumentNode& base, DocumentNode over, const PluginSections& sections) {
  if (base.kind == Kind::map && over.kind == Kind::null && over.origin.line > 0) return;
  if (base.kind != Kind::map || over.kind != Kind::map) {
    base = std::move(over);
    return;
  }
  if (over.origin.line > 0) base.origin = over.origin;
  std::set<std::string> merged;
  for (auto& entry : over.entries) {
    const auto known = std::find_if(base.entries.begin(), base.entries.end(),
                                    [&entry](const auto& other) { return other.key == entry.key; });
    // A key that is repeated within one file stays repeated, so that it is reported.
    const bool repeated = !merged.insert(entry.key).second;
    if (known == base.entries.end() || repeated) {
      base.entries.push_back(std::move(entry));
      continue;
    }
    const auto section = sections.find(entry.key);
    if (section != sections.end()) {
      forget_other_plugin(known->value, entry.value, section->second);
    }
    known->origin = entry.origin;
    merge(known->value, std::move(entry.value), {});
  }
}

/// The text of a file. A byte-order mark before it is YAML's to skip.
std::string read_text(const std::string& name) {
  constexpr std::size_t kMiB = std::size_t{1} << 20U;
  constexpr std::size_t kMostMiB = 4;  // those that come with the programs have some KiB
  std::ifstream file(name, std::ios::binary);
  if (!file) throw InputError(name + ": there is no such file, or it cannot be read");
  std::string text;
  // Not by the file's size: some that the system makes up, as in /proc, have none and no end.
  for (std::string piece(kMiB / 16, '\0'); file && text.size() <= kMostMiB * kMiB;) {
    file.read(piece.data(), std::ssize(piece));
    text.append(piece, 0, static_cast<std::size_t>(file.gcount()));
  }
  if (text.starts_with(kDatabaseBeginning)) {
    throw InputError(name + ": is a table or the record of a run, must be a YAML file");
  }
  if (text.size() > kMostMiB * kMiB) {
    throw InputError(name + ": is larger than " + std::to_string(kMostMiB) +
                     " MiB, the most that a configuration may have");
  }
  // yaml-cpp reads a NUL as the beginning of an escape.
  if (const auto position = text.find('\0'); position != std::string::npos) {
    const auto before = std::string_view(text).substr(0, position);
    const auto line_begin = before.rfind('\n') + 1;  // 0 in the first line
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    throw InputError(name + ":" + std::to_string(line) + ":" +
                     std::to_string(position - line_begin + 1) +
                     ": a NUL byte, must be text in UTF-8");
  }
  return text;
}

DocumentNode parse_text(const std::string& text, const std::string& name,
                        const PluginSections& sections) {
  auto node = YamlSource(name, true).read(text);
  if (node.kind == Kind::null) node.kind = Kind::map;
  if (node.kind != Kind::map) {
    throw InputError(node.origin.text() + ": a configuration must be a map of keys and values");
  }
  expand_short_forms(node, sections);
  return node;
}

DocumentNode parse_file(const fs::path& file, const PluginSections& sections) {
  const auto name = file.string();
  return parse_text(read_text(name), name, sections);
}

/// The files that `node` extends. Takes the key out of `node`.
/// @param chain  the files that are being read, canonical: none may be extended again.
std::vector<fs::path> take_extends(DocumentNode& node, const fs::path& file,
                                   const std::vector<fs::path>& chain) {
  std::vector<fs::path> parents;
  std::erase_if(node.entries, [&](const DocumentNode::Entry& entry) {
    if (entry.key != "extends") return false;
    const auto refuse = [&entry](const Origin& origin, const std::string& message) {
      throw InputError(origin.text() + ": extends = " + entry.value.summary() + ", " + message);
    };
    if (!parents.empty()) refuse(entry.value.origin, "is given twice");
    for (const auto& item : entry.value.as_list()) {
      if (item.kind != Kind::scalar || item.text.empty()) {
        refuse(item.origin, "must be the name of a file, or a list of such names");
      }
      const auto parent = located_configuration(item.text, file);
      if (parent.empty()) {
        refuse(item.origin,
               "there is no file " + item.text + places_of_configuration(item.text, file));
      }
      if (!fs::is_regular_file(parent) && !fs::is_directory(parent)) {
        refuse(item.origin, "must be the name of a regular file");
      }
      if (std::find(chain.begin(), chain.end(), fs::weakly_canonical(parent)) != chain.end()) {
        refuse(item.origin, "which extends this file in turn");
      }
      parents.push_back(parent);
    }
    if (parents.empty()) refuse(entry.value.origin, "must name at least one file");
    return true;
  });
  return parents;
}

/// @param read  files so far; those that several files extend are read several times.
DocumentNode load_file(const fs::path& file, std::vector<fs::path>& chain, int& read,
                       const PluginSections& sections) {
  constexpr int kMostFiles = 1000;
  if (++read > kMostFiles) {
    throw InputError(file.string() + ": more than " + std::to_string(kMostFiles) +
                     " files are extended, each counted as often as it is");
  }
  if (const auto kind = other_kind(file); !kind.empty()) {
    throw InputError(file.string() + ": is " + kind + ", must be a YAML file");
  }
  chain.push_back(fs::weakly_canonical(file));
  auto node = parse_file(file, sections);
  const auto parents = take_extends(node, file, chain);
  std::optional<DocumentNode> base;
  for (const auto& parent : parents) {
    auto next = load_file(parent, chain, read, sections);
    if (base) {
      merge(*base, std::move(next), sections);
    } else {
      base = std::move(next);
    }
  }
  chain.pop_back();
  if (!base) return node;
  merge(*base, std::move(node), sections);
  return *base;
}

DocumentNode parse_override(const std::string& text, const PluginSections& sections) {
  const auto refuse = [&text](const std::string& message) {
    throw InputError(kCommandLine + ": '" + text + "', " + message);
  };
  const auto equals = text.find('=');
  auto path = text.substr(0, equals);
  if (equals == std::string::npos || path.empty() || path.front() == '.' || path.back() == '.' ||
      path.find("..") != std::string::npos) {
    refuse("must be key.path=value");
  }
  DocumentNode node;
  try {
    node = YamlSource(kCommandLine, false).read(text.substr(equals + 1));
  } catch (const InputError& error) {
    throw InputError(error.what() + (" in '" + text + "'"));
  }
  constexpr std::string_view kGenes = "space.training.";  // whose names have a dot
  for (auto dot = path.rfind('.'); dot != std::string::npos; dot = path.rfind('.')) {
    if (dot + 1 == kGenes.size() && path.starts_with(kGenes)) dot = kGenes.find('.');
    node = single_entry(path.substr(dot + 1), std::move(node));
    path.resize(dot);
  }
  node = single_entry(path, std::move(node));
  expand_short_forms(node, sections);
  return node;
}

/// The word that a plain scalar is, as the core schema of YAML 1.2 writes it.
std::optional<bool> parse_bool(const DocumentNode& node) {
  if (node.kind != Kind::scalar || node.quoted) return std::nullopt;
  const auto is_one_of = [&node](std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), node.text) != words.end();
  };
  if (is_one_of({"true", "True", "TRUE"})) return true;
  if (is_one_of({"false", "False", "FALSE"})) return false;
  return std::nullopt;
}

/// All of a text as a whole number, as that schema writes it: -17, +17, 0x11, 0o21.
std::optional<std::int64_t> whole_number_in(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : text.starts_with("0o") ? 8 : 10;
  const bool prefixed = base != 10 || text.starts_with('+');
  if (prefixed) text.remove_prefix(base == 10 ? 1 : 2);
  if (prefixed && text.starts_with('-')) return std::nullopt;  // a second sign
  std::int64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::optional<double> parse_number(const DocumentNode& node) {
  if (node.kind != Kind::scalar || node.quoted) return std::nullopt;
  if (const auto whole = whole_number_in(node.text)) return static_cast<double>(*whole);
  const auto number = number_in(node.text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::int64_t> parse_integer(const DocumentNode& node) {
  if (node.kind != Kind::scalar || node.quoted) return std::nullopt;
  if (const auto integer = whole_number_in(node.text)) return integer;
  constexpr double kExact = 9007199254740992.0;  // 2^53: from it on, another integer may be meant
  const auto number = parse_number(node);
  if (!number || *number != std::floor(*number) || std::abs(*number) >= kExact) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<std::string> parse_text(const DocumentNode& node) {
  if (node.kind != Kind::scalar) return std::nullopt;
  return node.text;
}

template <class Item>
using ParseItem = std::optional<Item> (*)(const DocumentNode&);

template <class Item>
std::optional<Value> parse_list(const DocumentNode& node, ParseItem<Item> parse_item) {
  std::vector<Item> items;
  for (const auto& child : node.as_list()) {
    const auto item = parse_item(child);
    if (!item) return std::nullopt;
    items.push_back(*item);
  }
  return items;
}

/// Reads `node` as the type that `like` holds.
std::optional<Value> parse_as(const Value& like, const DocumentNode& node) {
  switch (like.index()) {
    case 0:
      return parse_bool(node);
    case 1:
      return parse_integer(node);
    case 2:
      return parse_number(node);
    case 3:
      return parse_text(node);
    case 4:
      return parse_list<std::int64_t>(node, parse_integer);
    case 5:
      return parse_list<std::string>(node, parse_text);
    default:
      return parse_list<double>(node, parse_number);
  }
}

std::string with_article(const std::string& type) {
  if (type == "true or false" || type == "text") return type;
  return (type.front() == 'i' ? "an " : "a ") + type;
}

/// What was found instead of what was wanted.
std::string kind_text(const DocumentNode& node) {
  switch (node.kind) {
    case Kind::null:
      return "nothing";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a map";
    case Kind::scalar:
      break;
  }
  if (parse_number(node)) return "a number";
  return parse_bool(node) ? "true or false" : "text";
}

}  // namespace

std::optional<bool> truth_of(const DocumentNode& node) { return parse_bool(node); }

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

const Origin& DocumentNode::origin_of(std::string_view path) const {
  const auto dot = std::min(path.find('.'), path.size());
  const auto* inner = find(path.substr(0, dot));
  if (inner == nullptr) return origin;
  path.remove_prefix(std::min(dot + 1, path.size()));
  return path.empty() ? inner->origin : inner->origin_of(path);
}

std::vector<DocumentNode> DocumentNode::as_list() const {
  return kind == Kind::list ? items : std::vector<DocumentNode>{*this};
}

std::string DocumentNode::summary() const {
  if (kind == Kind::scalar) return quoted ? "'" + text + "'" : text;
  if (kind == Kind::null) return "(empty)";
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
  for (const auto& [origin, message] : sorted) {
    auto line = origin.text() + ": " + message;
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  throw InputError(join(lines, "\n"));
}

DocumentNode load_document(const fs::path& file, const std::vector<std::string>& overrides,
                           const PluginSections& sections) {
  std::vector<fs::path> chain;
  int read = 0;
  auto document = load_file(file, chain, read, sections);
  for (const auto& text : overrides) merge(document, parse_override(text, sections), sections);
  return document;
}

DocumentNode read_document(const std::string& text, const std::string& name,
                           const std::vector<std::string>& overrides,
                           const PluginSections& sections) {
  auto document = parse_text(text, name, sections);
  for (const auto& override_text : overrides) {
    merge(document, parse_override(override_text, sections), sections);
  }
  return document;
}

void check_keys(const std::string& path, const DocumentNode& node,
                const std::vector<std::string>& known, Diagnostics& diagnostics) {
  std::set<std::string> seen;
  for (const auto& entry : node.entries) {
    const auto name = path.empty() ? entry.key : path + "." + entry.key;
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      diagnostics.add(entry.origin, name + ": unknown key" + known_text(entry.key, known));
    } else if (!seen.insert(entry.key).second) {
      diagnostics.add(entry.origin, name + ": given twice");
    }
  }
}

bool read_value(const std::string& path, const DocumentNode& node, const Setting& setting,
                Diagnostics& diagnostics, Value& value) {
  const auto refuse = [&](const std::string& message) {
    diagnostics.add(node.origin, path + " = " + node.summary() + ", " + message);
    return false;
  };
  auto parsed = parse_as(setting.default_value, node);
  if (!parsed) {
    return refuse("must be " + with_article(setting.type_name()) + ", got " + kind_text(node));
  }
  if (const auto violation = setting.violation(*parsed); !violation.empty()) {
    return refuse(violation);
  }
  value = std::move(*parsed);
  return true;
}

Parameters read_section(const std::string& path, const DocumentNode* node,
                        const std::vector<Setting>& settings, Diagnostics& diagnostics,
                        const std::vector<std::string>& ignored) {
  static const DocumentNode kEmpty;
  Parameters parameters(settings);
  // In a file an empty section is one with its defaults, on a command line more likely a mistake.
  const bool empty_override = node != nullptr && node->kind == Kind::null && node->origin.line == 0;
  if (node == nullptr) node = &kEmpty;
  if (empty_override || (node->kind != Kind::map && node->kind != Kind::null)) {
    const auto given = empty_override ? " is empty" : " = " + node->summary();
    const bool named = std::any_of(settings.begin(), settings.end(), [](const auto& setting) {
      return setting.name == "mechanism";  // which may stand for the section
    });
    diagnostics.add(node->origin, path + given + ", must be " + (named ? "a mechanism, or " : "") +
                                      "a map of settings");
    return parameters;
  }
  auto known = ignored;
  for (const auto& setting : settings) known.push_back(setting.name);
  check_keys(path, *node, known, diagnostics);
  for (const auto& setting : settings) {
    const auto name = path + "." + setting.name;
    const auto* given = node->find(setting.name);
    Value value;
    if (given != nullptr) {
      if (read_value(name, *given, setting, diagnostics, value)) {
        parameters.set(setting.name, std::move(value));
      }
    } else if (setting.required) {
      diagnostics.add(node->origin, name + ": is missing, must be " +
                                        with_article(setting.type_name()) + " (" + setting.help +
                                        ")");
    }
  }
  return parameters;
}

}  // namespace nas
