#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace nas {

/// The comma-separated entries of `evaluation.device`.
std::vector<std::string> device_list(std::string_view setting);

/// Devices that workers share, least-loaded first, so that each device serves as many as another,
/// give or take one.
class DevicePool {
 public:
  /// @param devices  at least one; repeated ones serve more workers.
  explicit DevicePool(std::vector<std::string> devices)
      : devices_(std::move(devices)), workers_(devices_.size()) {}

  /// @return a device, which returns to the pool when the pointer goes. From any thread; the pool
  /// must outlive it.
  [[nodiscard]] std::shared_ptr<const std::string> borrow();
  [[nodiscard]] const std::vector<std::string>& devices() const { return devices_; }

 private:
  std::vector<std::string> devices_;
  std::vector<int> workers_;  ///< that have each device
  std::mutex mutex_;
};

}  // namespace nas
