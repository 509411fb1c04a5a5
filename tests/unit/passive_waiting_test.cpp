#include "cli/passive_waiting.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

bool decide(std::int64_t threads, const std::map<std::string, std::string>& environment = {}) {
  return should_wait_passively(threads, [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(PassiveWaiting, IsForSeveralThreads) {
  EXPECT_FALSE(decide(1));
  EXPECT_TRUE(decide(2));
  EXPECT_TRUE(decide(2, {{"OMP_NUM_THREADS", "2"}}));
}

TEST(PassiveWaiting, LeavesTheUsersChoice) {
  EXPECT_FALSE(decide(2, {{"OMP_WAIT_POLICY", "ACTIVE"}}));
  EXPECT_FALSE(decide(2, {{"OMP_WAIT_POLICY", ""}}));
  EXPECT_FALSE(decide(2, {{"GOMP_SPINCOUNT", "1000"}}));
}

TEST(PassiveWaiting, IsSetOnceOnly) {
  EXPECT_FALSE(decide(2, {{"OMP_WAIT_POLICY", "PASSIVE"}})) << "else it would start for ever";
}

}  // namespace
}  // namespace nas
