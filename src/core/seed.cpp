#include "core/seed.hpp"

namespace nas {

namespace {

// FNV-1a, 64 bits: only to turn a name into a word; mix64 does the mixing.
std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

std::uint64_t combine(std::uint64_t run_seed, std::int64_t replicate, std::string_view purpose,
                      std::uint64_t last) {
  std::uint64_t z = mix64(run_seed);
  z = mix64(z ^ static_cast<std::uint64_t>(replicate));
  z = mix64(z ^ hash_name(purpose));
  return mix64(z ^ last);
}

}  // namespace

std::uint64_t derive_seed(std::uint64_t run_seed, std::int64_t replicate, std::string_view purpose,
                          std::string_view name) {
  return combine(run_seed, replicate, purpose, hash_name(name));
}

std::uint64_t derive_seed(std::uint64_t run_seed, std::int64_t replicate, std::string_view purpose,
                          std::int64_t index) {
  return combine(run_seed, replicate, purpose, static_cast<std::uint64_t>(index));
}

}  // namespace nas
