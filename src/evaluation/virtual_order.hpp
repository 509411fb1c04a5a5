#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace nas {

/// The order in which asks that are out together would be answered if each had a worker of its own,
/// as fast as all others: an ask made at the time t is answered at t + cost, where t is when the last
/// one was answered. Nothing in it is measured, so that it is the same wherever and whenever the
/// evaluations really finish.
class VirtualOrder {
 public:
  /// Begins an ask, which is answered no earlier than those of the same candidate before it.
  /// @param number  of the ask: of equal times, the smaller is answered first.
  /// @param cost    of what is evaluated for it, any unit; 0 where nothing is.
  void begin(std::int64_t number, const std::string& candidate, double cost) {
    auto& time = candidates_[candidate];
    time = std::max(time, now_ + cost);
    times_[number] = time;
    out_.emplace(time, number);
  }
  /// @return the number of the ask that is answered next; one is out.
  [[nodiscard]] std::int64_t first() const { return out_.begin()->second; }
  /// Tells an ask that is out.
  void tell(std::int64_t number) {
    const auto found = times_.find(number);
    now_ = std::max(now_, found->second);
    out_.erase({found->second, number});
    times_.erase(found);
  }

 private:
  double now_ = 0.0;
  std::set<std::pair<double, std::int64_t>> out_{};
  std::map<std::int64_t, double> times_{};      ///< of what is out
  std::map<std::string, double> candidates_{};  ///< when each is answered last
};

}  // namespace nas
