#include "evaluation/device_pool.hpp"

#include <algorithm>

namespace nas {

std::vector<std::string> device_list(std::string_view setting) {
  std::vector<std::string> devices;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = setting.find(',');
    devices.emplace_back(setting.substr(0, comma));
    setting.remove_prefix(std::min(setting.size(), devices.back().size() + 1));
  }
  return devices;
}

std::shared_ptr<const std::string> DevicePool::borrow() {
  const std::lock_guard lock(mutex_);
  const auto fewest = std::min_element(workers_.begin(), workers_.end());
  ++*fewest;
  const auto give_back = [this, &workers = *fewest](const std::string* /*device*/) {
    const std::lock_guard lock_again(mutex_);
    --workers;
  };
  return {&devices_[static_cast<std::size_t>(fewest - workers_.begin())], give_back};
}

}  // namespace nas
