#include "evaluation/device_pool.hpp"

#include <thread>

#include "prelude.hpp"

namespace nas::testing {
namespace {

TEST(DeviceList, IsPartedByCommas) {
  EXPECT_THAT(device_list("auto"), ElementsAre("auto"));
  EXPECT_THAT(device_list("cuda:0,cuda:12"), ElementsAre("cuda:0", "cuda:12"));
  EXPECT_THAT(device_list(""), ElementsAre(""));
  EXPECT_THAT(device_list(",cpu,"), ElementsAre("", "cpu", ""));
}

TEST(DevicePool, LendsWhatFewestHave) {
  DevicePool pool({"cuda:0", "cuda:1"});
  auto first = pool.borrow();
  const auto second = pool.borrow();
  EXPECT_EQ(*first, "cuda:0");
  EXPECT_EQ(*second, "cuda:1");
  EXPECT_EQ(*pool.borrow(), "cuda:0");
  const auto third = pool.borrow();
  EXPECT_EQ(*third, "cuda:0") << "what nobody kept is back";
  EXPECT_EQ(*pool.borrow(), "cuda:1");
  first.reset();
  EXPECT_EQ(*pool.borrow(), "cuda:0") << "one each again";
}

TEST(DevicePool, ServesWorkersOfOneNumberEach) {
  DevicePool pool({"cpu", "cpu"});
  std::vector<std::shared_ptr<const std::string>> loans(8);
  std::vector<std::thread> workers;
  for (auto& loan : loans) workers.emplace_back([&] { loan = pool.borrow(); });
  for (auto& worker : workers) worker.join();
  const auto of_first = std::count_if(loans.begin(), loans.end(), [&](const auto& loan) {
    return loan.get() == &pool.devices().front();
  });
  EXPECT_EQ(of_first, 4);
}

}  // namespace
}  // namespace nas::testing
