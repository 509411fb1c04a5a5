#include "core/stop.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace nas {
namespace {

TEST(Stop, ADeadlineAsksForOneAndTakesItBack) {
  EXPECT_FALSE(stop_requested());
  {
    const StopDeadline deadline(0.02);
    EXPECT_FALSE(stopped_by_deadline());
    while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(stopped_by_deadline());
    request_stop();
    EXPECT_FALSE(stopped_by_deadline()) << "somebody else asked, too";
    request_stop(false);
  }
  EXPECT_FALSE(stop_requested());
  const StopDeadline passed(-1.0);
  EXPECT_TRUE(stop_requested());
}

TEST(Stop, AFarDeadlineIsNone) {
  const StopDeadline deadline(9e300);
  EXPECT_FALSE(stop_requested());
}

}  // namespace
}  // namespace nas
