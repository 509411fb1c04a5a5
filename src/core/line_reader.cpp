#include "core/line_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "core/error.hpp"

namespace nas {

LineReader::Got LineReader::next(std::string& line, std::chrono::milliseconds wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  for (;;) {
    const auto end = read_.find('\n', searched_);
    if (std::min(end, read_.size()) > kLongest) {
      throw InputError("a line of more than " + std::to_string(kLongest >> 20U) +
                       " MiB, must be shorter");
    }
    if (end != std::string::npos) {
      line = read_.substr(0, end);
      read_.erase(0, end + 1);
      searched_ = 0;
      return Got::line;
    }
    searched_ = read_.size();
    if (ended_) {
      line = std::exchange(read_, {});
      searched_ = 0;
      return line.empty() ? Got::end : Got::line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd waited{.fd = file_, .events = POLLIN, .revents = 0};
    const int ready = poll(&waited, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (ready == 0 || (ready < 0 && errno == EINTR)) return Got::nothing;
    std::array<char, 65536> part{};
    const auto size = read(file_, part.data(), part.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size > 0) read_.append(part.data(), static_cast<std::size_t>(size));
    ended_ = size <= 0;
  }
}

}  // namespace nas
