#include "table/replay.hpp"

#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/seed.hpp"

namespace nas {

ReplayMode parse_replay_mode(std::string_view text) {
  if (text == "noisy") return ReplayMode::noisy;
  if (text == "mean") return ReplayMode::mean;
  if (text == "paired") return ReplayMode::paired;
  throw InputError("mode = " + std::string(text) + ", must be one of noisy, mean, paired");
}

std::string_view to_string(ReplayMode mode) {
  if (mode == ReplayMode::noisy) return "noisy";
  return mode == ReplayMode::mean ? "mean" : "paired";
}

Replay::Replay(const Table& table, ReplayMode mode, std::uint64_t search_seed)
    : table_(&table), mode_(mode), seed_(search_seed) {}

std::int64_t Replay::replicate(std::int64_t mechanism, std::int64_t n) const {
  if (mode_ == ReplayMode::mean) throw std::logic_error("replay: a mean is no one replicate");
  const auto& drawn_for = mode_ == ReplayMode::noisy ? table_->mechanism(mechanism) : "";
  RandomEngine random(derive_seed(seed_, 0, "replay", std::string_view(drawn_for)));
  std::vector<std::int64_t> pool(static_cast<std::size_t>(table_->num_replicates()));
  std::iota(pool.begin(), pool.end(), std::int64_t{0});
  for (std::size_t i = pool.size(); i > 1; --i) {  // Fisher and Yates
    std::swap(pool[i - 1],
              pool[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  return pool[static_cast<std::size_t>(n) % pool.size()];
}

}  // namespace nas
