#include "training/batches.hpp"

#include <numeric>

#include "core/seed.hpp"
#include "core/shuffle.hpp"

namespace nas {

Batch read_batch(const Windows& windows, const std::vector<std::int64_t>& indices,
                 std::int64_t offset) {
  const auto rows = static_cast<std::int64_t>(indices.size());
  Batch batch{torch::empty({rows, windows.length}, torch::kInt64),
              torch::empty({rows, windows.length}, torch::kInt64)};
  auto* input = batch.input.data_ptr<std::int64_t>();
  auto* target = batch.target.data_ptr<std::int64_t>();
  for (const auto index : indices) {
    windows.read(index, offset, input, target);
    input += windows.length;
    target += windows.length;
  }
  return batch;
}

TrainingOrder::TrainingOrder(const Windows& windows, std::int64_t batch_size,
                             std::uint64_t run_seed, std::int64_t replicate)
    : windows_(&windows), batch_size_(batch_size), run_seed_(run_seed), replicate_(replicate) {}

TrainingOrder TrainingOrder::unshuffled(const Windows& windows, std::int64_t batch_size) {
  TrainingOrder order(windows, batch_size, 0, 0);
  order.shuffled_ = false;
  return order;
}

const TrainingOrder::Epoch& TrainingOrder::epoch(std::int64_t number) {
  Epoch& epoch = epochs_[number % 2];
  if (epoch.number == number) return epoch;
  epoch.number = number;
  epoch.permutation.resize(windows_->starts.size());
  std::iota(epoch.permutation.begin(), epoch.permutation.end(), std::int64_t{0});
  if (!shuffled_) return epoch;
  RandomEngine random(derive_seed(run_seed_, replicate_, "shuffle", number));
  shuffle(epoch.permutation, random);
  epoch.offset =
      RandomEngine(derive_seed(run_seed_, replicate_, "offset", number)).below(windows_->shift);
  return epoch;
}

Batch TrainingOrder::batch(std::int64_t step) {
  const std::int64_t size = windows_->size();
  Batch batch;
  std::int64_t first = step * batch_size_;
  for (const std::int64_t last = first + batch_size_; first < last;) {
    const Epoch& current = epoch(first / size);
    const std::int64_t begin = first % size;
    const std::int64_t end = std::min(size, begin + last - first);
    const Batch part = read_batch(
        *windows_, {current.permutation.begin() + begin, current.permutation.begin() + end},
        current.offset);
    batch = batch.input.defined() ? Batch{torch::cat({batch.input, part.input}),
                                          torch::cat({batch.target, part.target})}
                                  : part;
    first += end - begin;
  }
  return batch;
}

}  // namespace nas
