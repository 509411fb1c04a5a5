#include "data/archive.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include <archive.h>
#include <archive_entry.h>

#include "core/error.hpp"
#include "core/fault.hpp"

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

Reader open(const fs::path& file) {
  Reader reader(archive_read_new());
  // Not all that there are: some start programs of the path, and some take any text for an archive.
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_filter_bzip2(reader.get());
  archive_read_support_filter_xz(reader.get());
  archive_read_support_filter_zstd(reader.get());
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_zip(reader.get());
  constexpr std::size_t kBlockBytes = 1U << 16U;
  if (archive_read_open_filename(reader.get(), file.c_str(), kBlockBytes) != ARCHIVE_OK) {
    refuse(file, reader.get());
  }
  return reader;
}

bool leads_out(const fs::path& entry) {
  const fs::path normal = entry.lexically_normal();
  return normal.is_absolute() || normal.empty() || *normal.begin() == "..";
}

/// Bytes that an archive may unpack to. Texts become ten times as long at the most.
std::uintmax_t largest_content(const fs::path& file) {
  constexpr std::uintmax_t kTimes = 100;
  constexpr std::uintmax_t kAlways = std::uintmax_t{64} << 20U;
  std::error_code missing;  // reported by the reader
  const auto size = fs::file_size(file, missing);
  return missing ? 0 : std::max(kAlways, kTimes * size);
}

/// @param left  bytes that may still be unpacked.
void write_entry(const fs::path& file, archive* reader, const fs::path& destination,
                 std::uintmax_t& left) {
  std::error_code error;
  fs::create_directories(destination.parent_path(), error);
  // Of entries of one name one may be a file, the other the folder of a third.
  if (error && is_bad_path(error)) {
    throw InputError(file.string() + ": cannot be unpacked: " +
                     io_failure(destination.parent_path(), error.value()));
  }
  if (error) throw MachineError(io_failure(destination.parent_path(), error.value()));
  std::ofstream out(destination, std::ios::binary);
  std::array<char, 1U << 16U> buffer{};
  while (true) {
    const auto bytes = archive_read_data(reader, buffer.data(), buffer.size());
    if (bytes < 0) refuse(file, reader);
    if (bytes == 0) break;
    if (static_cast<std::uintmax_t>(bytes) > left) {
      throw InputError(
          file.string() + ": unpacks to more than " + std::to_string(largest_content(file)) +
          " bytes, a hundred times its size: unpack it yourself if it is what it says");
    }
    left -= static_cast<std::uintmax_t>(bytes);
    out.write(buffer.data(), bytes);
  }
  if (!out.flush()) throw InputError(destination.string() + ": cannot be written");
}

}  // namespace

void unpack(const fs::path& archive, const fs::path& folder) {
  const Reader reader = open(archive);
  auto left = largest_content(archive);
  archive_entry* entry = nullptr;
  while (true) {
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) return;
    if (status < ARCHIVE_WARN) refuse(archive, reader.get());
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr || leads_out(name)) {
      throw InputError(archive.string() + ": entry '" + (name == nullptr ? "" : name) +
                       "' must lie inside the folder that it is unpacked to");
    }
    write_entry(archive, reader.get(), folder / name, left);
  }
}

}  // namespace nas
