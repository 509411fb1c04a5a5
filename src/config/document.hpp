#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/parameters.hpp"

namespace nas {

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
  std::vector<Entry> entries{};       ///< of a map, in the order of the file
  Origin origin{};

  /// The value under a key of a map, nullptr if there is none.
  [[nodiscard]] const DocumentNode* find(std::string_view key) const;
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
  [[nodiscard]] bool empty() const { return mistakes_.empty(); }
  /// @throws InputError with every mistake, one a line, in the order of the files, if there is any.
  void throw_if_any() const;

 private:
  std::vector<std::pair<Origin, std::string>> mistakes_;
};

/// Reads a file, what it extends (`extends: other.yaml`, relative to it), and overrides
/// `key.path=value` in order. Maps are merged key by key, everything else is replaced.
///
/// @param selectors  sections whose other keys belong to the plug-in that one of their keys names,
/// e.g. {"data", "corpus"}:
///                   where that key changes, settings of the former plug-in are not inherited.
/// @throws InputError if a file is missing, is no YAML, extends itself, or an override is not of
/// that form.
DocumentNode load_document(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides,
                           const std::map<std::string, std::string>& selectors);

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

/// Reads one value of a declared type and range. @return whether it is right.
bool read_value(const std::string& path, const DocumentNode& node, const Setting& setting,
                Diagnostics& diagnostics, Value& value);

/// Reports keys of `node` (a map) that are not `known`, and repeated ones.
void check_keys(const std::string& path, const DocumentNode& node,
                const std::vector<std::string>& known, Diagnostics& diagnostics);

}  // namespace nas
