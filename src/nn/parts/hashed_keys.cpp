#include "nn/parts/hashed_keys.hpp"

#include <utility>

#include "ops/device_copy.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// Which of the keys (M, B, H, T) of one round the queries from a place on see. @param earlier
/// (T - first, T), j < i.
torch::Tensor newest_of_hash(const torch::Tensor& hashes, const torch::Tensor& earlier,
                             std::int64_t first, std::int64_t most) {
  const auto same =
      hashes.slice(-1, first).unsqueeze(-1).eq(hashes.unsqueeze(-2)).logical_and(earlier);
  const auto so_new = same.flip(-1).cumsum(-1, at::kInt).flip(-1);
  return same.logical_and(so_new.le(most));
}

}  // namespace

torch::Tensor unit_keys(const torch::Tensor& queries) {
  constexpr double kEpsilon = 1e-6;
  return queries * (queries.square().sum(-1, /*keepdim=*/true) + kEpsilon).rsqrt();
}

HashedKeys::HashedKeys(torch::Tensor rotations, std::int64_t most)
    : rotations_(std::move(rotations)), most_(most) {}

torch::Tensor HashedKeys::hashes(const torch::Tensor& keys) const {
  if (rotations_.device() != keys.device()) rotations_ = sent(rotations_.cpu(), keys.device());
  const auto turned = keys.to(at::kDouble).unsqueeze(3).matmul(rotations_);
  return at::cat({turned, turned.neg()}, -1).argmax(-1);
}

torch::Tensor HashedKeys::visible(const torch::Tensor& keys, std::int64_t first) const {
  const at::NoGradGuard no_grad;
  const auto places = at::arange(keys.size(3), keys.options().dtype(at::kLong));
  const auto queries = places.slice(0, first).unsqueeze(1);
  const auto earlier = queries.gt(places);
  const auto own = queries.eq(places);
  return model_by_model(
      [&](const torch::Tensor& part) {
        const auto of_rounds = hashes(part);
        auto shown = newest_of_hash(of_rounds.select(3, 0), earlier, first, most_);
        for (std::int64_t round = 1; round < of_rounds.size(3); ++round) {
          shown.logical_or_(newest_of_hash(of_rounds.select(3, round), earlier, first, most_));
        }
        return shown.logical_or(shown.any(-1, /*keepdim=*/true).logical_not().logical_and(own));
      },
      keys);
}

}  // namespace nas::nn
