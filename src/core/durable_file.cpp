#include "core/durable_file.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/host.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, int error) {
  throw MachineError(io_failure(path, error));
}

/// Repeats a system call that a signal interrupts: a stop is no failure of the file.
template <class Call>
int uninterrupted(Call call) {
  while (true) {
    const int result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// An open file or folder.
class Descriptor {
 public:
  /// Opens an existing path. @param flags  of open().
  Descriptor(fs::path path, int flags)
      : path_(std::move(path)),
        number_(uninterrupted([&] { return open(path_.c_str(), flags | O_CLOEXEC); })) {
    if (number_ < 0) fail(path_, errno);
  }
  /// Creates a file for writing.
  explicit Descriptor(fs::path path) : path_(std::move(path)), number_(open_anew(path_)) {
    if (number_ < 0) fail(path_, errno);
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto written = ::write(number_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_, errno);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  [[nodiscard]] std::string read() const {
    constexpr std::size_t kPiece = 1U << 20U;
    struct stat status {};
    if (fstat(number_, &status) != 0) fail(path_, errno);
    std::string bytes;
    bytes.reserve(static_cast<std::size_t>(status.st_size));
    for (std::size_t size = 0;;) {
      bytes.resize(size + kPiece);
      const auto got = ::read(number_, bytes.data() + size, kPiece);
      if (got < 0 && errno != EINTR) fail(path_, errno);
      size += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
      bytes.resize(size);
      if (got == 0) return bytes;
    }
  }
  void sync() const {
    if (!sync_descriptor(number_)) fail(path_, errno);
  }
  /// Some file systems report a failed write only now.
  void close() {
    const int number = std::exchange(number_, -1);
    if (::close(number) != 0 && errno != EINTR) fail(path_, errno);
  }

 private:
  fs::path path_;
  int number_;
};

}  // namespace

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return;
  const auto words = io_failure(folder, error.value());
  if (is_bad_path(error)) throw InputError(words);
  throw MachineError(words);
}

void check_folder(const std::filesystem::path& folder) {
  auto place = folder;
  std::error_code error;
  auto status = fs::status(place, error);
  while (status.type() == fs::file_type::not_found) {
    if (fs::is_symlink(place, error)) throw InputError(io_failure(place, EEXIST));
    place = place.has_relative_path() && place.has_parent_path() ? place.parent_path() : ".";
    status = fs::status(place, error);
  }
  if (fs::exists(status) && !fs::is_directory(status)) throw InputError(io_failure(place, ENOTDIR));
  if (access(place.c_str(), W_OK | X_OK) != 0) throw InputError(io_failure(place, errno));
}

void write_durably(const fs::path& file, std::string_view bytes) {
  write_durably(file, [bytes](const Write& write) { write(bytes); });
}

void write_durably(const fs::path& file, const std::function<void(const Write&)>& pieces) {
  const auto folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code error;
  // Not its parents: a run's folder that was removed or moved must not reappear, since it would
  // pass for the run.
  fs::create_directory(folder, error);
  if (error && error != std::errc::no_such_file_or_directory) fail(folder, error.value());
  const auto temporary = unfinished_name(file);
  try {
    Descriptor written(temporary);
    pieces([&written](std::string_view piece) { written.write(piece); });
    written.sync();
    written.close();
    fs::rename(temporary, file, error);
    if (error) fail(file, error.value());
    Descriptor(folder, O_RDONLY | O_DIRECTORY).sync();
  } catch (const MachineError&) {
    fs::remove(temporary, error);  // what is left of it takes space
    if (fs::exists(folder, error) || error) throw;
    throw MachineError(folder.string() + ": it, or a folder that it is in, was removed or moved");
  }
}

fs::path unfinished_name(const fs::path& file) {
  return file.string() + "." + host_name() + "." + std::to_string(getpid()) + ".tmp";
}

int open_anew(const fs::path& file) {
  std::error_code ignored;  // open() says what is still there
  fs::remove(file, ignored);
  return uninterrupted([&] {
    return open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  });
}

void sync_to_disk(const fs::path& path) { Descriptor(path, O_RDONLY).sync(); }

bool sync_descriptor(int descriptor) {
  // Some file systems cannot sync folders; they offer nothing better.
  return uninterrupted([=] { return fsync(descriptor); }) == 0 || errno == EINVAL;
}

int open_own_file(const fs::path& file, int flags, unsigned permissions) {
  // Without O_NONBLOCK, opening a pipe without a reader would never return.
  const int number =
      open(file.c_str(), flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, permissions);
  const int error = errno;
  if (number < 0 && error != ELOOP && error != ENXIO) {
    throw InputError(file.string() +
                     ": cannot be written: " + std::generic_category().message(error));
  }
  // One that was removed meanwhile has no name left.
  struct stat found {};
  if (number >= 0 && fstat(number, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink <= 1) {
    return number;
  }
  if (number >= 0) ::close(number);
  throw InputError(file.string() +
                   ": is a link or no regular file, must be a file without other names");
}

void remove_unfinished(const fs::path& file) {
  const auto begin = file.filename().string() + ".";
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), unknown)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(".tmp")) fs::remove(entry.path(), unknown);
  }
}

std::string read_bytes(const fs::path& file) { return Descriptor(file, O_RDONLY).read(); }

std::string other_kind(const fs::path& file) {
  std::error_code unknown;
  switch (fs::status(file, unknown).type()) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return "";
  }
}

void remove_file(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) fail(file, error.value());
}

}  // namespace nas
