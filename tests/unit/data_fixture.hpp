#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "data/corpus.hpp"
#include "unit/message_of.hpp"

namespace nas {

/// @return number of names in a folder, hidden ones included.
inline std::size_t num_entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

template <class Call>
std::string error_of(Call call) {
  return message_of<InputError>(call);
}

/// @return the corpus of that key with some settings changed.
inline Corpus make_corpus(const std::string& key, std::int64_t context,
                          std::initializer_list<std::pair<std::string, Value>> changes,
                          const DataLocation& location = default_data_location()) {
  const auto& entry = corpora().at(key);
  Parameters settings(entry.description.settings);
  for (const auto& [name, value] : changes) settings.set(name, value);
  return entry.make(settings, context, location);
}

/// One window as it is read.
struct ReadWindow {
  std::vector<std::int64_t> input, target;
};
inline ReadWindow read_window(const Windows& windows, std::int64_t i, std::int64_t offset = 0) {
  ReadWindow window;
  window.input.resize(static_cast<std::size_t>(windows.length));
  window.target.resize(window.input.size());
  windows.read(i, offset, window.input.data(), window.target.data());
  return window;
}

}  // namespace nas
