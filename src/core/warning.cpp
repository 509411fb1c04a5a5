#include "core/warning.hpp"

#include <iostream>
#include <mutex>
#include <utility>

#include <unistd.h>

#include "core/format.hpp"
#include "core/terminal.hpp"

namespace nas {

namespace {

std::mutex& mutex() {
  static std::mutex one;
  return one;
}

std::shared_ptr<const WarningListener::Function>& latest() {
  static std::shared_ptr<const WarningListener::Function> listener;
  return listener;
}

/// @return the one before.
std::shared_ptr<const WarningListener::Function> exchange(
    std::shared_ptr<const WarningListener::Function> listener) {
  const std::lock_guard lock(mutex());
  return std::exchange(latest(), std::move(listener));
}

}  // namespace

void warn(std::string_view text) {
  std::unique_lock lock(mutex());
  if (const auto listener = latest()) {
    lock.unlock();  // it may warn itself
    (*listener)(std::string(text));
    return;
  }
  write_warning(text);
}

void write_warning(std::string_view text) {
  // A progress display may stand where the cursor is.
  const char* begin = is_terminal(STDERR_FILENO) ? "\r\033[K" : "";
  std::cerr << std::string(begin) + "warning: " + printable(text) + "\n" << std::flush;
}

WarningListener::WarningListener(Function listener)
    : before_(exchange(std::make_shared<const Function>(std::move(listener)))) {}

WarningListener::~WarningListener() { exchange(std::move(before_)); }

}  // namespace nas
