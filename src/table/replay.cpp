#include "table/replay.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "core/seed.hpp"

namespace nas {

namespace {

/// Fisher and Yates.
void shuffle(std::vector<std::int64_t>& numbers, std::uint64_t seed) {
  RandomEngine random(seed);
  for (std::size_t i = numbers.size(); i > 1; --i) {
    std::swap(numbers[i - 1],
              numbers[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
}

}  // namespace

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

std::vector<std::int64_t> redrawn_replicates(const Table& table, std::int64_t mechanism) {
  std::vector<std::int64_t> replicates;
  for (std::int64_t i = 0; i < table.most_replicates(); ++i) {
    if (table.has(mechanism, i)) replicates.push_back(i);
  }
  const auto common = table.num_replicates();
  const auto further = std::lower_bound(replicates.begin(), replicates.end(), common);
  if (replicates.end() - further > common) replicates.erase(replicates.begin(), further);
  return replicates;
}

std::vector<std::int64_t> redrawn_replicates(const Table& table, std::int64_t mechanism,
                                             const Draw& draw) {
  auto replicates = redrawn_replicates(table, mechanism);
  const std::string_view name = table.mechanism(mechanism);
  shuffle(replicates, derive_seed(draw.seed, draw.number, "draw", name));
  return replicates;
}

Replay::Replay(const Table& table, ReplayMode mode, std::uint64_t search_seed,
               std::optional<Draw> draw)
    : table_(&table), mode_(mode), seed_(search_seed), draw_(draw) {}

std::int64_t Replay::replicate(std::int64_t mechanism, std::int64_t n) const {
  if (mode_ == ReplayMode::mean) throw std::logic_error("replay: a mean is no one replicate");
  if (n >= kFirstHeldOutReplicate) return n - kFirstHeldOutReplicate;
  const auto& drawn_for = mode_ == ReplayMode::noisy ? table_->mechanism(mechanism) : "";
  std::vector<std::int64_t> pool(static_cast<std::size_t>(table_->num_replicates()));
  std::iota(pool.begin(), pool.end(), std::int64_t{0});
  shuffle(pool, derive_seed(seed_, 0, "replay", std::string_view(drawn_for)));
  const auto place = pool[static_cast<std::size_t>(n) % pool.size()];
  if (!draw_) return place;
  const auto redrawn = redrawn_replicates(*table_, mechanism, *draw_);
  return redrawn[static_cast<std::size_t>(place) % redrawn.size()];
}

}  // namespace nas
