#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/parameters.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// What every plug-in says about itself, without being constructed.
struct PluginDescription {
  std::string key;                  ///< = stem of its file
  std::string summary;              ///< one sentence, with the source paper
  std::vector<Setting> settings{};  ///< what it reads from its Parameters
  std::string file{};               ///< __FILE__ of the registration, for messages on duplicates
};

/// A map from key to factory. One accessor function per kind, defined in a .cpp around a
/// function-local static; plug-ins add themselves before main. Registering stores a function and
/// constructs nothing.
template <class Signature>
class Registry;

template <class Product, class... Args>
class Registry<Product(Args...)> {
 public:
  struct Entry {
    PluginDescription description;
    std::function<Product(Args...)> make;
  };

  /// @param kind  "algorithm", "corpus", ...: for messages.
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Aborts, naming both files, if the key is taken: two plug-ins of one name are a defect of the
  /// build.
  bool add(PluginDescription description, std::function<Product(Args...)> make) {
    const std::string key = description.key;
    const auto [position, fresh] =
        entries_.try_emplace(key, Entry{std::move(description), std::move(make)});
    if (!fresh) {
      std::fprintf(stderr, "%s '%s' is registered twice, first by %s\n", kind_.c_str(), key.c_str(),
                   position->second.description.file.c_str());
      std::abort();
    }
    return true;
  }

  [[nodiscard]] bool contains(std::string_view key) const {
    return entries_.find(key) != entries_.end();
  }

  /// @throws InputError naming the known keys and the nearest one if there is no such key.
  [[nodiscard]] const Entry& at(std::string_view key) const {
    const auto found = entries_.find(key);
    if (found == entries_.end()) throw InputError(unknown(key));
    return found->second;
  }

  /// @return "unknown KIND 'KEY', known: ...; did you mean ...?"
  [[nodiscard]] std::string unknown(std::string_view key) const {
    const std::string guess = nearest(key, keys());
    return "unknown " + kind_ + " '" + std::string(key) + "', known: " + join(keys()) +
           (guess.empty() ? "" : "; did you mean " + guess + "?");
  }

  /// @return all keys, sorted.
  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& entry : entries_) keys.push_back(entry.first);
    return keys;
  }

  [[nodiscard]] const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace nas
