#include "ops/memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "ops/torch_compat.hpp"

#ifdef NAS_TORCH_CUDA
#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace nas::nn {

struct MemoryScope::Account {
  std::shared_ptr<Account> outer;
  std::int64_t limit = 0;
  std::atomic<std::int64_t> current{0};
  std::atomic<std::int64_t> peak{0};
  std::atomic<std::int64_t> requested{0};
};

namespace {

using Account = MemoryScope::Account;

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSmallestCached = std::size_t{64} << 10U;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;

thread_local std::shared_ptr<Account> open_account;

void refund(Account* account, std::int64_t bytes) {
  for (; account != nullptr; account = account->outer.get()) account->current -= bytes;
}

void charge(Account* innermost, std::int64_t bytes) {
  for (auto* account = innermost; account != nullptr; account = account->outer.get()) {
    const auto current = account->current += bytes;
    if (account->limit > 0 && current > account->limit) {
      for (auto* charged = innermost; charged != account; charged = charged->outer.get()) {
        charged->current -= bytes;
      }
      account->current -= bytes;
      throw MemoryLimitExceeded(
          "a tensor of " + human_bytes(bytes) + " beside " + human_bytes(current - bytes) +
          " in use would exceed the memory limit of " + human_bytes(account->limit));
    }
  }
  // Only the thread of the scope charges, so that nobody else moves the peak.
  for (auto* account = innermost; account != nullptr; account = account->outer.get()) {
    account->peak = std::max(account->peak.load(), account->current.load());
    account->requested += bytes;
  }
}

/// Lies before a block's first byte.
struct alignas(kAlignment) Header {
  std::size_t capacity;  ///< header included
  std::int64_t bytes;    ///< what was asked for
  std::shared_ptr<Account> account;
};

/// Sizes are rounded up to an eighth of their power of two, so that similar tensors share blocks.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::max(std::bit_floor(bytes) / 8, kAlignment);
  return (bytes + step - 1) / step * step;
}

/// Freed blocks by capacity.
class BlockCache {
 public:
  void* take(std::size_t capacity) {
    if (capacity >= kSmallestCached) {
      const std::lock_guard lock(mutex_);
      auto& blocks = free_[capacity];
      if (!blocks.empty()) {
        void* block = blocks.back();
        blocks.pop_back();
        return block;
      }
    }
    void* block = fresh(capacity);
    if (block == nullptr) {
      release();
      block = fresh(capacity);
    }
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }

  void give(void* block, std::size_t capacity) {
    if (capacity < kSmallestCached) {
      std::free(block);
      return;
    }
    const std::lock_guard lock(mutex_);
    free_[capacity].push_back(block);
  }

  void release() {
    const std::lock_guard lock(mutex_);
    for (auto& [capacity, blocks] : free_) {
      for (void* block : blocks) std::free(block);
      blocks.clear();
    }
  }

 private:
  static void* fresh(std::size_t capacity) {
    const bool huge = capacity >= kHugePage;
    void* block = nullptr;
    if (posix_memalign(&block, huge ? kHugePage : kAlignment, capacity) != 0) return nullptr;
    // Advice only: without huge pages the block is as good, and slower.
    if (huge) madvise(block, capacity, MADV_HUGEPAGE);
    return block;
  }

  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;
};

// Never destroyed: tensors in static variables are freed after it would be.
BlockCache& block_cache() {
  static auto* cache = new BlockCache;  // NOLINT(cppcoreguidelines-owning-memory)
  return *cache;
}

void free_block(void* data) {
  if (data == nullptr) return;
  auto* header = static_cast<Header*>(data) - 1;
  const auto capacity = header->capacity;
  refund(header->account.get(), header->bytes);
  header->~Header();
  block_cache().give(header, capacity);
}

class CpuAllocator final : public AllocatorOfThisTorch<> {
 public:
  [[nodiscard]] at::DeleterFnPtr raw_deleter() const override { return &free_block; }

 protected:
  [[nodiscard]] c10::DataPtr take(std::size_t bytes) const override {
    if (bytes == 0) return {nullptr, nullptr, &free_block, at::kCPU};
    const auto signed_bytes = static_cast<std::int64_t>(bytes);
    charge(open_account.get(), signed_bytes);
    const std::size_t capacity = rounded(bytes + sizeof(Header));
    void* block = nullptr;
    try {
      block = block_cache().take(capacity);
    } catch (const std::bad_alloc&) {
      refund(open_account.get(), signed_bytes);
      throw;
    }
    auto* header = new (block) Header{capacity, signed_bytes, open_account};
    void* data = header + 1;
    return {data, data, &free_block, at::kCPU};
  }
};

}  // namespace

void install_cpu_allocator() {
  static CpuAllocator allocator;
  static std::once_flag installed;
  std::call_once(installed, [] { c10::SetCPUAllocator(&allocator, /*priority=*/1); });
}

void release_cached_memory() { block_cache().release(); }

MemoryScope::MemoryScope(std::int64_t limit_bytes) : account_(std::make_shared<Account>()) {
  install_cpu_allocator();
  account_->limit = limit_bytes;
  account_->outer = open_account;
  open_account = account_;
}

MemoryScope::~MemoryScope() { open_account = account_->outer; }

std::int64_t MemoryScope::current_bytes() const { return account_->current; }

std::int64_t MemoryScope::requested_bytes() const { return account_->requested; }

std::int64_t MemoryScope::peak_bytes() const { return account_->peak; }

#ifdef NAS_TORCH_CUDA
namespace {

/// Of both of the allocator's pools, that for small blocks and that for large ones.
auto allocated_bytes(int device) {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device))
      .allocated_bytes.front();
}

}  // namespace

DeviceMemoryScope::DeviceMemoryScope(const std::string& device) {
  const c10::Device place(device);
  if (!place.is_cuda()) return;
  index_ = place.has_index() ? place.index() : c10::cuda::current_device();
  (void)at::empty({0}, at::TensorOptions(place));  // there is an allocator once something was asked
  c10::cuda::CUDACachingAllocator::resetPeakStats(static_cast<c10::DeviceIndex>(index_));
  before_ = allocated_bytes(index_).current;
}

std::int64_t DeviceMemoryScope::peak_bytes() const {
  return index_ < 0 ? 0 : allocated_bytes(index_).peak - before_;
}
#else
DeviceMemoryScope::DeviceMemoryScope(const std::string& /*device*/) {}

std::int64_t DeviceMemoryScope::peak_bytes() const { return 0; }
#endif

}  // namespace nas::nn
