#include "emulated_device.hpp"

#include <functional>
#include <memory>

#include "kernels/emulation.hpp"

namespace nas::nn {

namespace {

/// Operations of LibTorch on CPU tensors cannot be kept back, so that nothing is done while it
/// records, and a replay calls them.
class EmulatedGraph final : public DeviceGraph {
 public:
  void record(const std::function<void()>& operations) override {
    TORCH_CHECK(test::can_record, "this cannot be recorded");
    operations_ = operations;
    ++test::num_recordings;
  }
  void replay() override {
    operations_();
    ++test::num_replays;
  }

 private:
  std::function<void()> operations_;
};

}  // namespace

cuda::Stream current_stream(torch::Device /*device*/) { return nullptr; }

bool is_recording(torch::Device /*device*/) { return cuda::emulation::is_recording(); }

std::unique_ptr<DeviceGraph> new_graph(torch::Device /*device*/) {
  return std::make_unique<EmulatedGraph>();
}

}  // namespace nas::nn
