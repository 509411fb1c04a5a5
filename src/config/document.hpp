#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/parameters.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Where a piece of configuration was written.
struct Origin {
  std::string source;  ///< file, or "command line"
  int line = 0;        ///< from 1; 0 where the source has no lines
  int column = 0;      ///< from 1

  /// @return "file:line:column", or the source alone.
  [[nodiscard]] std::string text() const;
};

/// A YAML value that knows where it comes from.
struct DocumentNode {
  enum class Kind { null, scalar, list, map };
  struct Entry;

  Kind kind = Kind::null;
  std::string text{};                 ///< of a scalar
  bool quoted = false;                ///< a scalar in quotes is text, whatever it looks like
  std::vector<DocumentNode> items{};  ///< of a list
  std::vector<Entry> entries;         ///< of a map, in the order of the file
  Origin origin{};

  /// The value under a key of a map, nullptr if there is none.
  [[nodiscard]] const DocumentNode* find(std::string_view key) const;
  /// Where the value at a path of keys, "training.steps", is written; where it is not, what would hold
  /// it.
  [[nodiscard]] const Origin& origin_of(std::string_view path) const;
  /// @return the items of a list; of anything else, itself as a list of one.
  [[nodiscard]] std::vector<DocumentNode> as_list() const;
  /// @return the value as it would be written on one line, for messages.
  [[nodiscard]] std::string summary() const;
};

struct DocumentNode::Entry {
  std::string key;
  Origin origin;
  DocumentNode value;
};

/// Mistakes in a configuration, collected so that all are reported at once.
class Diagnostics {
 public:
  void add(const Origin& origin, const std::string& message);
  /// Number of mistakes so far.
  [[nodiscard]] std::size_t size() const { return mistakes_.size(); }
  /// @throws InputError with every mistake once, one per line, sorted by position, if there is any.
  void throw_if_any() const;

 private:
  std::vector<std::pair<Origin, std::string>> mistakes_;
};

/// A section whose settings belong to the plug-in that one of its keys names. A text in place of
/// the section, `problem: attention_search`, names the plug-in alone.
struct PluginSection {
  std::string key;                    ///< names the plug-in: "corpus" of the section data
  std::string plugin;                 ///< the plug-in where that key is absent
  std::vector<std::string> shared{};  ///< settings that every plug-in of the section has
};

/// Plug-in sections by the name of the section.
using PluginSections = std::map<std::string, PluginSection, std::less<>>;

/// Reads a file, what it extends (`extends: other.yaml`, or a list of which the later ones go
/// before the earlier ones; see located_configuration()), and overrides `key.path=value` in order.
///
/// Maps are merged key by key; lists and scalars are replaced; an empty value leaves a map as it
/// is. Where a plug-in section names another plug-in than before, only shared settings are kept.
/// @throws InputError "file:line:column: ..." if a file is missing, is no regular file or larger than
/// 4 MiB, is not valid YAML, or extends itself; "command line: ..." if an override is not of its form.
DocumentNode load_document(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides,
                           const PluginSections& sections);

/// The same of a text, which extends nothing.
/// @param name  of the text in messages.
DocumentNode read_document(const std::string& text, const std::string& name,
                           const std::vector<std::string>& overrides,
                           const PluginSections& sections);

/// Reads a map against what is declared: unknown, repeated, missing, ill-typed and out-of-range
/// keys go to `diagnostics`.
///
/// @param path      name of the section in messages, "training".
/// @param node      the map, or nullptr: all defaults.
/// @param ignored   further keys that are read elsewhere.
/// @return every setting, at its default where the given value is wrong.
Parameters read_section(const std::string& path, const DocumentNode* node,
                        const std::vector<Setting>& settings, Diagnostics& diagnostics,
                        const std::vector<std::string>& ignored = {});

/// What a node says that is `true` or `false` as the core schema of YAML 1.2 writes them (also True,
/// TRUE, ...); nothing for any other and for what is quoted.
std::optional<bool> truth_of(const DocumentNode& node);

/// Reads one value of a declared type and range, numbers as in the core schema of YAML 1.2. Integers
/// may be written 5000, +5000, 5e3, 5000.0, 0x1388 or 0o11610; numbers may be integers; a single
/// value stands for a list of one; what is quoted is text.
/// @return whether it is right; if not, `value` is unchanged.
bool read_value(const std::string& path, const DocumentNode& node, const Setting& setting,
                Diagnostics& diagnostics, Value& value);

/// Reports keys of `node` (a map) that are not `known`, and repeated ones.
/// @param path  name of the map in messages, empty for the whole document.
void check_keys(const std::string& path, const DocumentNode& node,
                const std::vector<std::string>& known, Diagnostics& diagnostics);

}  // namespace nas
