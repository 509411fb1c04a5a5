#include "ops/partial_linear.hpp"

#include <algorithm>

#include "ops/model_parts.hpp"
#include "ops/product.hpp"

namespace nas::nn {

torch::Tensor partial_linear(const torch::Tensor& x, const std::vector<PartialMap>& maps,
                             NumericalMode mode) {
  TORCH_CHECK(!maps.empty(), "partial_linear of ", x.sizes(), " by no maps");
  std::vector<Models> groups;
  auto others = first_models(x.size(0));
  for (const auto& map : maps) {
    groups.push_back(map.models);
    for (const auto r : map.models) others.erase(std::find(others.begin(), others.end(), r));
  }
  if (!others.empty()) groups.push_back(others);
  const auto parts = split_models({x}, groups)[0];
  std::vector<torch::Tensor> results;
  for (std::size_t i = 0; i < maps.size(); ++i)
    results.push_back(linear(parts[i], maps[i].weight, Biases::of_all(maps[i].bias), mode));
  return results.size() == 1 ? results.front() : at::cat(results);
}

}  // namespace nas::nn
