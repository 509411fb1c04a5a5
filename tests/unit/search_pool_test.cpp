#include "table/search_pool.hpp"

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "prelude.hpp"

namespace nas::testing {
namespace {

/// A search that its seed tells from the others.
ComparedSearch numbered(std::size_t number) {
  return {.seed = static_cast<std::int64_t>(number), .ended_by = "its end"};
}

std::vector<std::int64_t> first(std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Takes all there are. @param seeds  receives theirs.
void take_all(SearchPool& pool, std::vector<std::int64_t>& seeds) {
  for (auto searches = pool.take(); !searches.empty(); searches = pool.take()) {
    for (const auto& search : searches) seeds.push_back(search.seed);
  }
}

TEST(SearchPool, EachIsMadeOnceAndHandedOverInOrder) {
  constexpr std::size_t kSearches = 2000;
  for (const int threads : {1, 2, 8}) {
    std::vector<std::atomic<int>> made(kSearches);
    SearchPool pool(
        kSearches,
        [&made](std::size_t number) {
          ++made[number];
          if (number % 7 == 0) std::this_thread::yield();  // so that others overtake it
          return numbered(number);
        },
        threads);
    std::vector<std::int64_t> seeds;
    take_all(pool, seeds);
    EXPECT_EQ(seeds, first(kSearches)) << threads;
    EXPECT_TRUE(
        std::all_of(made.begin(), made.end(), [](const auto& times) { return times == 1; }));
    EXPECT_TRUE(pool.take().empty()) << "there are no more";
  }
}

TEST(SearchPool, OfNoSearchesThereIsNothing) {
  SearchPool pool(0, numbered, 2);
  EXPECT_TRUE(pool.take().empty());
}

TEST(SearchPool, WhatFailsComesBehindAllThatIsBeforeIt) {
  for (const int threads : {1, 4}) {
    SearchPool pool(
        1000,
        [](std::size_t number) {
          if (number == 57) throw std::runtime_error("search 57");
          return numbered(number);
        },
        threads);
    std::vector<std::int64_t> seeds;
    EXPECT_EQ(message_of<std::runtime_error>([&] { take_all(pool, seeds); }), "search 57");
    EXPECT_EQ(seeds, first(57)) << threads;
  }
}

TEST(SearchPool, OfSeveralThatFailTheFirstInOrderIsTold) {
  std::atomic<bool> later{false};
  SearchPool pool(
      4,
      [&later](std::size_t number) {
        if (number == 2) later = true;
        while (number == 1 && !later) std::this_thread::yield();
        if (number > 0) throw std::runtime_error("search " + std::to_string(number));
        return numbered(number);
      },
      2);
  std::vector<std::int64_t> seeds;
  EXPECT_EQ(message_of<std::runtime_error>([&] { take_all(pool, seeds); }), "search 1");
  EXPECT_EQ(seeds, first(1));
}

TEST(SearchPool, AStopEndsItBehindWhatIsFinished) {
  constexpr std::size_t kStop = 200;
  std::vector<std::int64_t> seeds;
  {
    SearchPool pool(
        1'000'000'000,
        [](std::size_t number) {
          if (number == kStop) request_stop();
          if (stop_requested()) throw StopRequested();
          return numbered(number);
        },
        4);
    EXPECT_THROW(take_all(pool, seeds), StopRequested);
  }
  request_stop(false);
  EXPECT_EQ(seeds, first(seeds.size()));
  EXPECT_LE(seeds.size(), kStop);
}

TEST(SearchPool, ItsEndBeginsNoMore) {
  SearchPool pool(1'000'000'000, numbered, 4);
  EXPECT_FALSE(pool.take().empty());
}

}  // namespace
}  // namespace nas::testing
