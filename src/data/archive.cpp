#include "data/archive.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <archive.h>
#include <archive_entry.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/stop.hpp"
#include "data/file.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

struct CloseArchive {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using Reader = std::unique_ptr<archive, CloseArchive>;

[[noreturn]] void refuse(const fs::path& file, archive* reader) {
  const char* reason = archive_error_string(reader);
  throw InputError(file.string() + ": not a readable archive" +
                   (reason == nullptr ? "" : ": " + std::string(reason)));
}

/// @param formats  lets it read those of an archive's.
template <class Formats>
Reader open(const fs::path& file, const Formats& formats) {
  Reader reader(archive_read_new());
  formats(reader.get());
  constexpr std::size_t kBlockBytes = 1U << 16U;
  if (archive_read_open_filename(reader.get(), file.c_str(), kBlockBytes) != ARCHIVE_OK) {
    refuse(file, reader.get());
  }
  return reader;
}

void of_archives(archive* reader) {
  // Not all that there are: some start programs of the path, and some take any text for an archive.
  archive_read_support_filter_gzip(reader);
  archive_read_support_filter_bzip2(reader);
  archive_read_support_filter_xz(reader);
  archive_read_support_filter_zstd(reader);
  archive_read_support_format_ar(reader);
  archive_read_support_format_tar(reader);
  archive_read_support_format_zip(reader);
}

void of_gzip(archive* reader) {
  archive_read_support_filter_gzip(reader);
  archive_read_support_format_raw(reader);
}

bool leads_out(const fs::path& entry) {
  const fs::path normal = entry.lexically_normal();
  return normal.is_absolute() || normal.empty() || *normal.begin() == "..";
}

// Of entries of one name one may be a file, the other the folder of a third.
[[noreturn]] void fail_to_write(const fs::path& file, const fs::path& path, int error) {
  const auto failure = io_failure(path, error);
  if (!is_bad_path({error, std::generic_category()})) throw MachineError(failure);
  throw InputError(file.string() + ": cannot be unpacked: " + failure);
}

constexpr const char* kUnpackYourself = ": unpack it yourself if it is what it says";

/// What an archive may still take of the disk.
class Allowance {
 public:
  Allowance(const fs::path& file, std::int64_t always)
      : file_(file), all_(static_cast<std::uintmax_t>(always)) {
    constexpr std::uintmax_t kTimes = 100;  // texts become ten times as long at the most
    std::error_code missing;                // reported by the reader
    const auto size = fs::file_size(file, missing);
    if (!missing) all_ = std::max(all_, kTimes * size);
    left_ = all_;
  }

  void take(std::uintmax_t bytes) {
    if (bytes > left_) {
      throw InputError(file_.string() + ": unpacks to more than " + std::to_string(all_) +
                       " bytes, a hundred times its size" + kUnpackYourself);
    }
    left_ -= bytes;
  }
  /// An empty file, and a folder, takes a block of the disk, too.
  void take_blocks(std::ptrdiff_t number) {
    constexpr std::uintmax_t kBlockBytes = 4096;
    take(kBlockBytes * static_cast<std::uintmax_t>(number));
  }

 private:
  const fs::path& file_;
  std::uintmax_t all_;
  std::uintmax_t left_ = 0;
};

void write_entry(const fs::path& file, archive* reader, const fs::path& folder,
                 const fs::path& name, Allowance& allowance) {
  const fs::path destination = folder / name;
  std::error_code error;
  const bool made = fs::create_directories(destination.parent_path(), error);
  if (error) fail_to_write(file, destination.parent_path(), error.value());
  allowance.take_blocks(made ? std::distance(name.begin(), name.end()) : 1);
  const File out(std::fopen(destination.c_str(), "wb"));
  if (out == nullptr) fail_to_write(file, destination, errno);
  std::array<char, 1U << 16U> buffer{};
  while (true) {
    if (stop_requested()) throw StopRequested();
    const auto read = archive_read_data(reader, buffer.data(), buffer.size());
    if (read < 0) refuse(file, reader);
    if (read == 0) break;
    const auto bytes = static_cast<std::size_t>(read);
    allowance.take(bytes);
    if (std::fwrite(buffer.data(), 1, bytes, out.get()) != bytes) {
      fail_to_write(file, destination, errno);
    }
  }
  if (std::fflush(out.get()) != 0) fail_to_write(file, destination, errno);
}

/// Puts in place of a package's three files what it installs.
void unpack_package(const fs::path& folder, std::int64_t always) {
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(folder)) parts.push_back(entry.path());
  for (const auto& part : parts) {
    if (part.filename().string().starts_with("data.tar")) unpack(part, folder, always);
  }
  for (const auto& part : parts) fs::remove(part);
}

}  // namespace

std::string read_gzip(const fs::path& file) {
  const Reader reader = open(file, of_gzip);
  archive_entry* entry = nullptr;
  if (archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK ||
      archive_filter_count(reader.get()) < 2) {  // the file itself counts
    throw InputError(file.string() + ": not compressed by gzip");
  }
  constexpr auto kMost = static_cast<std::size_t>(4 * kArchiveBytes);
  std::string bytes;
  std::vector<char> buffer(std::size_t{1} << 20U);
  while (true) {
    if (stop_requested()) throw StopRequested();
    const auto read = archive_read_data(reader.get(), buffer.data(), buffer.size());
    if (read < 0) refuse(file, reader.get());
    if (read == 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(read));
    if (bytes.size() > kMost) {
      throw InputError(file.string() + ": holds more than " + std::to_string(kMost) + " bytes");
    }
  }
}

void unpack(const fs::path& archive, const fs::path& folder, std::int64_t always) {
  const Reader reader = open(archive, of_archives);
  Allowance allowance(archive, always);
  archive_entry* entry = nullptr;
  for (std::int64_t num_entries = 1;; ++num_entries) {
    if (stop_requested()) throw StopRequested();
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status < ARCHIVE_WARN) refuse(archive, reader.get());
    if (num_entries > kArchiveEntries) {
      throw InputError(archive.string() + ": holds more than " + std::to_string(kArchiveEntries) +
                       " files and folders" + kUnpackYourself);
    }
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr || leads_out(name)) {
      throw InputError(archive.string() + ": entry '" + (name == nullptr ? "" : name) +
                       "' must lie inside the folder that it is unpacked to");
    }
    write_entry(archive, reader.get(), folder, name, allowance);
  }
  const bool is_package =
      (archive_format(reader.get()) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_AR &&
      fs::exists(folder / "debian-binary");
  if (is_package) unpack_package(folder, always);
}

}  // namespace nas
