#include "table/search_pool.hpp"

#include <utility>

namespace nas {

SearchPool::SearchPool(std::size_t searches, std::function<ComparedSearch(std::size_t)> make,
                       int threads)
    : make_(std::move(make)), end_(searches) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // those that run would make all searches before they are joined
    const std::lock_guard lock(mutex_);
    end_ = 0;
    throw;
  }
}

SearchPool::~SearchPool() {
  const std::lock_guard lock(mutex_);
  end_ = 0;  // begin no more
}

std::vector<ComparedSearch> SearchPool::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return finished_.contains(taken_) || taken_ >= end_; });
  std::vector<ComparedSearch> result;
  for (auto next = finished_.find(taken_); next != finished_.end(); next = finished_.find(taken_)) {
    result.push_back(std::move(next->second));
    finished_.erase(next);
    ++taken_;
  }
  if (result.empty() && broken_) std::rethrow_exception(broken_);
  return result;
}

void SearchPool::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    const auto i = next_;
    if (i >= end_) return;
    ++next_;
    lock.unlock();
    try {
      auto finished = make_(i);
      lock.lock();
      finished_.emplace(i, std::move(finished));
    } catch (...) {
      lock.lock();
      if (i < end_) {
        end_ = i;
        broken_ = std::current_exception();
      }
    }
    changed_.notify_one();
  }
}

}  // namespace nas
