#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "table/comparison_store.hpp"

namespace nas {

/// Makes searches on threads of its own and returns what is finished in their order, however
/// many threads there are.
class SearchPool {
 public:
  /// @param searches  how many there are; their numbers are 0, 1, ...
  /// @param make      makes the search of a number; called by all threads at the same time.
  /// @param threads   at least 1.
  SearchPool(std::size_t searches, std::function<ComparedSearch(std::size_t)> make, int threads);
  /// Begins no more, and waits for the searches that are being made.
  ~SearchPool();
  SearchPool(const SearchPool&) = delete;
  SearchPool& operator=(const SearchPool&) = delete;

  /// Waits for the next searches in order. @return them, none after the last.
  /// @throws what a search has thrown, of several the first in order, once all before it are handed
  /// over.
  std::vector<ComparedSearch> take();

 private:
  void work();

  const std::function<ComparedSearch(std::size_t)> make_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::map<std::size_t, ComparedSearch> finished_{};
  std::size_t next_ = 0;
  std::size_t taken_ = 0;
  std::size_t end_;  ///< behind the last search, or the first that broke
  std::exception_ptr broken_{};
  std::vector<std::jthread> threads_{};  ///< last: they end before what they use
};

}  // namespace nas
