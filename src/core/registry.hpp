#pragma once

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

/// For registries: takes note of a registration. That a key is taken is a mistake of the library
/// that load_plugin() is loading, else a defect of the build, which aborts, naming the first.
/// @param fresh  whether the key was free.   @param first  file that registered the key first.
/// @return `fresh`.
bool note_registration(const std::string& kind, const std::string& key, bool fresh,
                       const std::string& first);

/// The same of a registration that says what cannot be. @param mistake  why, with the name of what it is of; empty: nothing.
void note_mistake(const std::string& mistake);

/// For what can only be known when everything has registered.
/// @param mistake  says what is wrong with what has registered since it was asked last; empty: nothing.
/// load_plugin() asks of a library that it has loaded, programs of what they are linked from.
bool check_registrations(std::function<std::string()> mistake);
/// @throws std::logic_error if something is wrong.
void require_sound_registrations();

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

  /// See note_registration(). @return whether the key was free; if not, what has it stays.
  bool add(PluginDescription description, std::function<Product(Args...)> make) {
    const std::string key = description.key;
    const auto [position, fresh] =
        entries_.try_emplace(key, Entry{std::move(description), std::move(make)});
    return note_registration(kind_, key, fresh, position->second.description.file);
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

  /// @return "unknown KIND 'KEY'" and known_text()
  [[nodiscard]] std::string unknown(std::string_view key) const {
    return "unknown " + kind_ + " '" + std::string(key) + "'" + known_text(key, keys());
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
