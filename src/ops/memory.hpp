#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace nas::nn {

/// Replaces Torch's CPU allocator for the rest of the process by one that keeps freed blocks of at
/// least 64 KiB for reuse and backs big ones with huge pages (page faults are a third of a
/// training step otherwise), and that counts for MemoryScope. Idempotent and thread-safe; tensors
/// made earlier stay valid.
void install_cpu_allocator();

/// Returns the blocks that are kept for reuse to the system.
void release_cached_memory();

/// Counts the CPU tensor memory that the constructing thread asks for while the scope lives, from
/// zero; installs the allocator. Blocks may be freed by any thread and after the scope's end. What
/// other threads allocate is not counted. Scopes nest: an inner scope's bytes count in the outer
/// ones too. Must end on the thread it began on, innermost first.
class MemoryScope {
 public:
  /// @param limit_bytes  an allocation that would raise current_bytes() above it throws
  /// MemoryLimitExceeded, naming both sizes, and leaves everything as it was; 0 = no limit.
  explicit MemoryScope(std::int64_t limit_bytes = 0);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  /// @return bytes asked for and not yet freed.
  [[nodiscard]] std::int64_t current_bytes() const;
  /// @return the sum of all that was asked for.
  [[nodiscard]] std::int64_t requested_bytes() const;
  /// @return the largest current_bytes() so far.
  [[nodiscard]] std::int64_t peak_bytes() const;

  struct Account;

 private:
  std::shared_ptr<Account> account_;
};

/// Watches the memory of tensors on a CUDA device, as LibTorch's caching allocator there counts it:
/// what it has handed out, to any thread. What it keeps for reuse is not in it. One scope per
/// device at a time: a second one restarts the first one's peak.
class DeviceMemoryScope {
 public:
  /// @param device  "cpu", "cuda", "cuda:0", ...; on the CPU, and in a LibTorch without CUDA,
  /// nothing is counted.
  explicit DeviceMemoryScope(const std::string& device);

  /// @return the most bytes at once so far, beyond those at the scope's beginning; 0 where nothing
  /// is counted.
  [[nodiscard]] std::int64_t peak_bytes() const;

 private:
  // Unused in a LibTorch without CUDA.
  [[maybe_unused]] int index_ = -1;  ///< of the device; -1 = nothing is counted
  [[maybe_unused]] std::int64_t before_ = 0;
};

}  // namespace nas::nn
