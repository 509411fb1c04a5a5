// Exit status 77: there is no CUDA device.

#include <iostream>

#include <gtest/gtest.h>

#include "kernels/device_memory.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!nas::cuda::has_device()) {
    std::cout << "skipped: there is no CUDA device\n";
    return 77;
  }
  return RUN_ALL_TESTS();
}
