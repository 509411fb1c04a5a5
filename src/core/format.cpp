#include "core/format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace nas {

namespace {

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, args...);
  return buffer.data();
}

}  // namespace

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::optional<double> number_in(std::string_view text) {
  double number = 0.0;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e15) return "unknown";
  const auto s = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  if (s < 60) return print("%lld s", s);
  if (s < 3600) return print("%lld min %02lld s", s / 60, s % 60);
  if (s < 86400) return print("%lld h %02lld min", s / 3600, s % 3600 / 60);
  return print("%lld d %lld h", s / 86400, s % 86400 / 3600);
}

std::string limit_text(double seconds) {
  return seconds < 60.0 ? shortest(seconds) + " s" : human_duration(seconds);
}

std::string human_count(double value) {
  if (std::abs(value) >= 999.5e15) return print("%.3g", value);
  static constexpr std::array<const char*, 6> kPrefix{"", " k", " M", " G", " T", " P"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < kPrefix.size()) {
    value /= 1000;
    ++prefix;
  }
  return print("%.3g%s", value, kPrefix.at(prefix));
}

std::string human_bytes(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1024.0 * 1024.0) return print("%.0f KiB", value / 1024.0);
  if (value < 1024.0 * 1024.0 * 1024.0) return print("%.0f MiB", value / (1024.0 * 1024.0));
  if (value < 1024.0 * 1024.0 * 1024.0 * 1024.0) {
    return print("%.2f GiB", value / (1024.0 * 1024.0 * 1024.0));
  }
  constexpr double kTebi = 1024.0 * 1024.0 * 1024.0 * 1024.0;
  return value < 1024.0 * kTebi ? print("%.4g TiB", value / kTebi)
                                : print("%.4g PiB", value / 1024.0 / kTebi);
}

std::string printable(std::string_view text) {
  const auto dumped = nlohmann::json(std::string(text))
                          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto valid = nlohmann::json::parse(dumped).get<std::string>();
  std::string shown;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    const bool c0 = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
    const bool c1 = byte == 0xC2 && static_cast<unsigned char>(valid[i + 1]) < 0xA0;  // 2 bytes
    if (c0 || c1) {
      shown += "\uFFFD";
      if (c1) ++i;
    } else {
      shown += valid[i];
    }
  }
  return shown;
}

}  // namespace nas
