#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace nas {

/// Makes a folder that is written to, before anything is.
/// @throws InputError if there can be none of this name; MachineError if the disk is full, say.
void make_folder(const std::filesystem::path& folder);

/// Whether make_folder() could, and files be written there, without making anything.
/// @throws InputError that names what stands in the way.
void check_folder(const std::filesystem::path& folder);

/// Creates or replaces a file of these bytes, with its folder, but not that folder's parents: by
/// way of FILE.HOST.PROCESS.tmp, so that a killed process or a power cut leaves the old file or the new one,
/// whole, also where several machines write it at once. On disk when it returns.
/// @throws MachineError that names the file, or its folder where no space is left or the folder
/// cannot be made; the old file stays.
void write_durably(const std::filesystem::path& file, std::string_view bytes);
/// The same of bytes that come in pieces. @param pieces  gives each to the function that it is given.
using Write = std::function<void(std::string_view)>;
void write_durably(const std::filesystem::path& file,
                   const std::function<void(const Write&)>& pieces);

/// The name that a file has while this process writes it: FILE.HOST.PROCESS.tmp.
std::filesystem::path unfinished_name(const std::filesystem::path& file);

/// Makes a file to write to it. Who may write to its folder may have guessed its name, and put a
/// link, a pipe or a second name of another file there: that is removed, and not written to.
/// @return its descriptor, closed where another program is executed; below 0 where it cannot be
/// made, and errno says why.
int open_anew(const std::filesystem::path& file);

/// Waits until a file or a folder is on disk. @throws MachineError that names it.
void sync_to_disk(const std::filesystem::path& path);

/// The same of an open one, also where signals interrupt it. @return whether it is; else errno says
/// why not.
bool sync_descriptor(int descriptor);

/// Opens a file to write to it where it lies, and makes it if it is not there. Who may write to its
/// folder may have put a link to another file there, or a second name of one: neither is written to.
/// @param flags  of open(): O_RDWR or O_WRONLY, and O_APPEND.
/// @return its descriptor, closed where another program is executed.
/// @throws InputError that names it if it is such a one, or cannot be written.
int open_own_file(const std::filesystem::path& file, int flags, unsigned permissions);

/// Removes what processes that were killed have left of writing a file durably.
void remove_unfinished(const std::filesystem::path& file);

/// @return a file's bytes. @throws MachineError that names it if it cannot be read.
std::string read_bytes(const std::filesystem::path& file);

/// What a file is that nothing is read from, since it may have no end, or never begin: "a folder", "a
/// pipe", "a socket" or "a device"; empty for a regular file, also one that standard input was
/// redirected from, and for none.
std::string other_kind(const std::filesystem::path& file);

/// How a file of SQLite begins, and so every store, comparison and table.
inline constexpr std::string_view kDatabaseBeginning = "SQLite format 3";

/// Removes a file; one that is not there is no error. @throws MachineError that names it.
void remove_file(const std::filesystem::path& file);

}  // namespace nas
