// Attention by the fused kernels of numerical modes exact and fast.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "nn/attention_layer.hpp"
#include "ops/cpu_products.hpp"
#include "ops/device_operations.hpp"
#include "ops/model_parts.hpp"

namespace nas::nn {

namespace {

/// Rows of some models after those of others; undefined: there are none.
torch::Tensor joined_rows(const std::vector<torch::Tensor>& rows) {
  if (rows.empty()) return {};
  return rows.size() == 1 ? rows.front() : at::cat(rows);
}

/// Of products of a head's vectors of so many elements on the CPU; none: they are of float32.
std::optional<kernels::PairForm> pairs_of(NumericalMode mode, const torch::Tensor& q,
                                          std::int64_t width) {
  constexpr std::int64_t kMostWidth = 256;  // of vectors that are packed at once
  using By = CpuProducts::By;
  if (mode != NumericalMode::fast || !q.device().is_cpu() || q.scalar_type() != at::kFloat ||
      width > kMostWidth)
    return {};
  const auto by = cpu_products(mode).of(q.size(2) * width);
  if (by != By::pairs && by != By::tiles) return {};
  return pair_form(mode, by);
}

}  // namespace

void AttentionLayer::set_up_kernel() {
  auto& attention = parts_.front().attention;
  attention.resize(static_cast<std::size_t>(num_models_));
  // Rows of tensors that some models have are in the order of their groups.
  const auto take_rows = [&attention](const Models& models, std::int64_t ModelAttention::*row,
                                      std::int64_t& next) {
    for (const auto r : models) attention[static_cast<std::size_t>(r)].*row = next++;
  };
  for (std::int64_t r = 0; r < num_models_; ++r) {
    const auto ranges = patterns_.of(r).ranges().value();
    if (ranges.window == KeyRanges{}.window || parts_.front().full) continue;
    auto& model = attention[static_cast<std::size_t>(r)];
    model.window = ranges.window;
    model.globals = ranges.globals;
  }
  std::int64_t num_sinks = 0;
  for (const auto& [models, normalization] : normalizations_) {
    for (const auto r : models) {
      attention[static_cast<std::size_t>(r)].normalization = *normalization->fused();
    }
    if (auto sinks = normalization->sinks(); sinks.defined()) {
      take_rows(models, &ModelAttention::sinks, num_sinks);
      sinks_.push_back(std::move(sinks));
    }
  }
  std::int64_t num_biases = 0;
  for (const auto& [models, position] : positions_) {
    if (position->biases_scores()) take_rows(models, &ModelAttention::distance_biases, num_biases);
  }
  std::int64_t num_sums = 0;
  for (const auto& [models, decay] : decays_) {
    if (decay->decays_scores()) take_rows(models, &ModelAttention::sums, num_sums);
  }
  std::int64_t num_directions = 0;
  for (const auto& [models, similarity] : similarities_) {
    auto fused = *similarity->fused();
    maps_.push_back({models, std::move(fused.map)});
    for (const auto r : models) {
      attention[static_cast<std::size_t>(r)].score = fused.score;
    }
    if (fused.direction.defined()) {
      take_rows(models, &ModelAttention::direction, num_directions);
      directions_.push_back(std::move(fused.direction));
    }
  }
  if (parts_.size() == 1) return;
  parts_.back().attention = attention;
  for (auto& model : parts_.back().attention) model.window = model.globals = 0;
}

bool AttentionLayer::fuses_gates(const torch::Tensor& x) const {
  return gates_ && has_kernels(x.device());
}

bool AttentionLayer::has_kernel(const torch::Tensor& q) const {
  if (!fused_) return false;
  const auto* device = device_operations(q.device());
  if (device == nullptr) return q.device().is_cpu();
  return device->attention_fits(q, num_heads_) &&
         std::all_of(normalizations_.begin(), normalizations_.end(), [&](const auto& group) {
           return device->has_form_of(*group.option->fused());
         });
}

torch::Tensor AttentionLayer::distance_biases(const torch::Tensor& q) const {
  if (!biases_scores_) return {};
  std::vector<torch::Tensor> rows;
  for (const auto& [models, position] : positions_) {
    if (position->biases_scores()) rows.push_back(position->distance_biases(q.size(2), q));
  }
  return joined_rows(rows);
}

torch::Tensor AttentionLayer::sums(const torch::Tensor& input) const {
  if (decays_.empty()) return {};
  const auto parts = split_models({input}, decays_.models()).front();
  std::vector<torch::Tensor> rows;
  auto part = parts.begin();
  for (const auto& [models, decay] : decays_) {
    if (decay->decays_scores()) rows.push_back(decay->cumulative(*part));
    ++part;
  }
  return joined_rows(rows);
}

const torch::Tensor& AttentionLayer::described(Part& part, const Masks& masks,
                                               torch::Device device) {
  auto& described = part.described[masks.any_drops() ? 1 : 0];
  if (!described.defined() || described.device() != device) {
    described = device_operations(device)->described(part.attention, masks, device);
  }
  return described;
}

torch::Tensor AttentionLayer::fused_mixed(const torch::Tensor& q, const torch::Tensor& k,
                                          const torch::Tensor& v, const torch::Tensor& input,
                                          const torch::Tensor& inverse_temperature,
                                          const Pass& pass, std::uint64_t site) {
  if (num_maps() == 1) {
    return one_fused_map(score_vectors(q, k, maps_, map_width_), v, input, inverse_temperature,
                         pass, site);
  }
  const auto alone = [this](const torch::Tensor& vectors, std::size_t map) {
    return of_map(scored_heads(vectors).transpose(2, 3), map).flatten(3);
  };
  std::vector<torch::Tensor> weighted;
  for (std::size_t map = 0; map < num_maps(); ++map) {
    weighted.push_back(
        by_head(one_fused_map(score_vectors(alone(q, map), alone(k, map), maps_, map_width_), v,
                              input, inverse_temperature, pass, site)));
  }
  return combined(weighted).flatten(3);
}

torch::Tensor AttentionLayer::one_fused_map(std::array<torch::Tensor, 2> mapped,
                                            const torch::Tensor& v, const torch::Tensor& input,
                                            const torch::Tensor& inverse_temperature,
                                            const Pass& pass, std::uint64_t site) {
  // Of one width in the kernel: zeros in both factors add nothing.
  const auto width = std::max(map_width_, head_width_);
  const auto filled = [width](const torch::Tensor& vectors, std::int64_t from) {
    if (from == width) return vectors;
    return at::constant_pad_nd(in_parts(vectors, from), {0, width - from}).flatten(3);
  };
  for (auto& vectors : mapped) vectors = filled(vectors, map_width_);
  const auto values = filled(v, head_width_);
  auto directions = joined_rows(directions_);
  if (directions.defined() && map_width_ < width)
    directions = at::constant_pad_nd(directions, {0, width - map_width_});
  const auto& q = mapped[0];
  const auto sinks = joined_rows(sinks_);
  const auto biases = distance_biases(q), sums_of_decays = sums(input);
  const auto vectors = [this](const std::vector<std::int64_t>& heads, const torch::Tensor& all) {
    return heads.empty() ? all : of(heads, by_head(all), 3).flatten(3);
  };
  std::vector<torch::Tensor> results;
  for (auto& part : parts_) {
    AttentionTensors tensors{vectors(part.heads, mapped[0]), vectors(part.groups, mapped[1]),
                             vectors(part.groups, values), of(part.heads, inverse_temperature, 2)};
    tensors.directions = directions;
    tensors.distance_biases = of(part.heads, biases, 1);
    tensors.sums = sums_of_decays;
    tensors.sinks = of(part.heads, sinks, 1);
    ArrayAttention models{part.attention, masks(pass, site, results.size()),
                          mode_ == NumericalMode::tf32 || mode_ == NumericalMode::fast};
    if (device_operations(q.device()) != nullptr)
      models.on_device = described(part, models.masks, q.device());
    models.pairs = pairs_of(mode_, q, width);
    results.push_back(fused_attention(std::move(models), tensors));
  }
  if (width > head_width_)
    return in_parts(results.front(), width).narrow(-1, 0, head_width_).flatten(3);
  if (results.size() == 1) return results.front();
  for (auto& result : results) result = by_head(result);
  return joined(results, 3).flatten(3);
}

}  // namespace nas::nn
