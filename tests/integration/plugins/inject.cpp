// Preloaded into a program: lets one of its operations on files of a folder fail, or one of its
// larger allocations. NAS_INJECT = "OPERATION N HOW": HOW is EIO, ENOSPC, ENOMEM, kill or hang, at
// the N-th such operation, and the file NAS_INJECT_SAYS is made when it comes to that. With HOW =
// count, none fails, and that file says how many of each there were.
//
// NAS_INJECT = "clock HOURS jump" lets the wall clock be so many hours fast and slow in turn, at
// each look at it.

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

struct Operation {
  const char* name;
  std::atomic<long> calls{0};
};
std::array<Operation, 10> operations{{{"allocate"},
                                      {"mkdir"},
                                      {"new"},
                                      {"open"},
                                      {"read"},
                                      {"rename"},
                                      {"sync"},
                                      {"truncate"},
                                      {"unlink"},
                                      {"write"}}};

constexpr std::size_t kLarge = 4096;  // bytes of an allocation: tensors, texts, tables

/// Whether the folder was used. What allocates before that, initialisers of libraries, runs outside
/// of any handler: nothing could be said of it but that the program does not start.
std::atomic<bool> begun{false};

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct Plan {
  std::array<char, 16> operation{};
  long number = 0;
  std::array<char, 16> how{};

  Plan() {
    if (std::sscanf(setting("NAS_INJECT"), "%15s %ld %15s", operation.data(), &number,
                    how.data()) != 3) {
      operation[0] = '\0';
    }
  }
};

const Plan& plan() {
  static const Plan plan;
  return plan;
}

bool is(const std::array<char, 16>& text, const char* other) {
  return std::strcmp(text.data(), other) == 0;
}

std::FILE* says() { return std::fopen(setting("NAS_INJECT_SAYS"), "w"); }

/// Makes the file that says that it has come to the fault.
void mark() {
  if (auto* const file = says()) std::fclose(file);
}

/// Whether an operation is the one to fail; errno then says how.
bool fails(const char* name) {
  auto* operation = operations.begin();
  while (std::strcmp(operation->name, name) != 0) ++operation;
  const long number = ++operation->calls;
  if (!is(plan().operation, name) || number != plan().number) return false;
  mark();
  if (is(plan().how, "kill")) raise(SIGKILL);
  while (is(plan().how, "hang")) pause();
  errno = is(plan().how, "ENOSPC") ? ENOSPC : is(plan().how, "ENOMEM") ? ENOMEM : EIO;
  return true;
}

bool in_folder(const char* path) {
  const std::string_view folder = setting("NAS_INJECT_FOLDER");
  const bool in = !folder.empty() && path != nullptr &&
                  std::string_view(path).substr(0, folder.size()) == folder;
  if (in) begun = true;
  return in;
}

bool in_folder(int descriptor) {
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  return readlink(link.data(), path.data(), path.size() - 1) > 0 && in_folder(path.data());
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

__attribute__((destructor)) void tell_counts() {
  if (!is(plan().how, "count")) return;
  auto* const file = says();
  if (file == nullptr) return;
  for (const auto& operation : operations) {
    std::fprintf(file, "%s %ld\n", operation.name, operation.calls.load());
  }
  std::fclose(file);
}

}  // namespace

extern "C" {

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  va_end(arguments);
  static auto* const next = real<int(const char*, int, ...)>("open64");
  if (in_folder(path) && fails("open")) return -1;
  return next(path, flags, mode);
}
int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return open64(path, flags, mode);
}
// Of a folder that is there already, too: whoever writes durably makes it each time.
int mkdir(const char* path, mode_t mode) {
  static auto* const next = real<int(const char*, mode_t)>("mkdir");
  if (in_folder(path) && fails("mkdir")) return -1;
  return next(path, mode);
}
ssize_t read(int descriptor, void* bytes, std::size_t size) {
  static auto* const next = real<ssize_t(int, void*, std::size_t)>("read");
  if (in_folder(descriptor) && fails("read")) return -1;
  return next(descriptor, bytes, size);
}
ssize_t pread64(int descriptor, void* bytes, std::size_t size, off64_t place) {
  static auto* const next = real<ssize_t(int, void*, std::size_t, off64_t)>("pread64");
  if (in_folder(descriptor) && fails("read")) return -1;
  return next(descriptor, bytes, size, place);
}
ssize_t pread(int descriptor, void* bytes, std::size_t size, off_t place) {
  return pread64(descriptor, bytes, size, place);
}
ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  static auto* const next = real<ssize_t(int, const void*, std::size_t)>("write");
  if (in_folder(descriptor) && fails("write")) return -1;
  return next(descriptor, bytes, size);
}
ssize_t writev(int descriptor, const iovec* pieces, int count) {
  static auto* const next = real<ssize_t(int, const iovec*, int)>("writev");
  if (in_folder(descriptor) && fails("write")) return -1;
  return next(descriptor, pieces, count);
}
ssize_t pwrite64(int descriptor, const void* bytes, std::size_t size, off64_t place) {
  static auto* const next = real<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64");
  if (in_folder(descriptor) && fails("write")) return -1;
  return next(descriptor, bytes, size, place);
}
int fsync(int descriptor) {
  static auto* const next = real<int(int)>("fsync");
  if (in_folder(descriptor) && fails("sync")) return -1;
  return next(descriptor);
}
int fdatasync(int descriptor) {
  static auto* const next = real<int(int)>("fdatasync");
  if (in_folder(descriptor) && fails("sync")) return -1;
  return next(descriptor);
}
int ftruncate64(int descriptor, off64_t size) {
  static auto* const next = real<int(int, off64_t)>("ftruncate64");
  if (in_folder(descriptor) && fails("truncate")) return -1;
  return next(descriptor, size);
}
int ftruncate(int descriptor, off_t size) { return ftruncate64(descriptor, size); }
int rename(const char* from, const char* to) {
  static auto* const next = real<int(const char*, const char*)>("rename");
  if (in_folder(to) && fails("rename")) return -1;
  return next(from, to);
}
int unlink(const char* path) {
  static auto* const next = real<int(const char*)>("unlink");
  if (in_folder(path) && fails("unlink")) return -1;
  return next(path);
}
int remove(const char* path) {  // std::filesystem::remove calls it, and it not unlink() above
  static auto* const next = real<int(const char*)>("remove");
  if (in_folder(path) && fails("unlink")) return -1;
  return next(path);
}
int posix_memalign(void** place, std::size_t alignment, std::size_t size) {
  static auto* const next = real<int(void**, std::size_t, std::size_t)>("posix_memalign");
  if (size >= kLarge && fails("allocate")) return ENOMEM;
  return next(place, alignment, size);
}
int clock_gettime(clockid_t clock, timespec* time) {
  static auto* const next = real<int(clockid_t, timespec*)>("clock_gettime");
  const int code = next(clock, time);
  if (code != 0 || clock != CLOCK_REALTIME || !is(plan().operation, "clock")) return code;
  static std::atomic<long> looks{0};
  const long look = looks++;
  if (look == 0) mark();
  constexpr long kHour = 3600;
  time->tv_sec += (look % 2 == 0 ? plan().number : -plan().number) * kHour;
  return code;
}

}  // extern "C"

// The other forms of new call this one.
void* operator new(std::size_t size) {
  static auto* const next = real<void*(std::size_t)>("_Znwm");
  if (size >= kLarge && begun && fails("new")) throw std::bad_alloc();
  return next(size);
}
