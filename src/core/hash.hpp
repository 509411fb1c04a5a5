#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// SHA-256 over what is fed to it.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* bytes, std::size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// @return 32 bytes. Call once, it or hex().
  std::string bytes();
  /// @return 64 lower-case hexadecimal digits.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// @return SHA-256 of `text`, 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);
/// @return SHA-256 of a file's bytes. @throws InputError if it cannot be read.
std::string sha256_file(const std::filesystem::path& path);

}  // namespace nas
