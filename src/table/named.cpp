#include "table/named.hpp"

#include <array>
#include <fstream>

#include "core/error.hpp"
#include "store/store.hpp"
#include "table/format.hpp"

namespace nas {

namespace fs = std::filesystem;

// By the application_id in the header of SQLite.
bool is_table(const fs::path& file) {
  constexpr std::streamoff kPlace = 68;
  std::array<char, 4> bytes{};
  std::ifstream(file, std::ios::binary).seekg(kPlace).read(bytes.data(), std::ssize(bytes));
  int id = 0;
  for (const char byte : bytes) id = id * 256 + static_cast<unsigned char>(byte);
  return id == table_format::kKind.application_id;
}

fs::path store_named(const fs::path& word) {
  const auto file = store_file(word);
  if (!fs::exists(file)) throw InputError(file.string() + ": no such store; give a run's folder");
  if (fs::is_regular_file(file) && is_table(file)) {
    throw InputError(file.string() + ": is a table, must be a run's folder; nas-data table info " +
                     file.string() + " describes it");
  }
  return file;
}

}  // namespace nas
