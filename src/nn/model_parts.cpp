#include "nn/model_parts.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <torch/autograd.h>
#include <torch/custom_class.h>

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Groups = std::vector<std::vector<std::int64_t>>;

struct KeptGroups : torch::CustomClassHolder {
  Groups groups;
  explicit KeptGroups(Groups given) : groups(std::move(given)) {}
};

void keep(AutogradContext* context, const Groups& groups) {
  context->saved_data["groups"] = at::IValue::make_capsule(c10::make_intrusive<KeptGroups>(groups));
}

const Groups& kept(AutogradContext* context) {
  const auto capsule = context->saved_data["groups"].toCapsule();
  return static_cast<const KeptGroups&>(*capsule).groups;
}

/// x with each model's elements in one piece of memory.
torch::Tensor by_model(const torch::Tensor& x) {
  const bool whole = x.is_non_overlapping_and_dense() && x.stride(0) * x.size(0) == x.numel();
  return whole ? x : x.contiguous();
}

/// An empty tensor for some models, in memory as x (from by_model).
torch::Tensor empty_for(const torch::Tensor& x, std::int64_t models) {
  auto sizes = x.sizes().vec();
  sizes.front() = models;
  return at::empty_strided(sizes, x.strides(), x.options());
}

/// Copies one model's elements. All tensors are from by_model or empty_for.
void copy_model(const torch::Tensor& from, std::int64_t source, const torch::Tensor& to,
                std::int64_t target) {
  const auto bytes = static_cast<std::size_t>(from.numel() / from.size(0) *
                                              static_cast<std::int64_t>(from.element_size()));
  const auto* source_data = static_cast<const std::byte*>(from.data_ptr());
  auto* target_data = static_cast<std::byte*>(to.data_ptr());
  std::memcpy(target_data + static_cast<std::size_t>(target) * bytes,
              source_data + static_cast<std::size_t>(source) * bytes, bytes);
}

variable_list split(const torch::Tensor& given, const Groups& groups) {
  const auto x = by_model(given);
  variable_list parts;
  for (const auto& models : groups) {
    auto part = empty_for(x, static_cast<std::int64_t>(models.size()));
    for (std::size_t i = 0; i < models.size(); ++i) {
      copy_model(x, models[i], part, static_cast<std::int64_t>(i));
    }
    parts.push_back(part);
  }
  return parts;
}

/// @param given  undefined where a part is zero; not all of them.
torch::Tensor join(const variable_list& given, const Groups& groups) {
  const auto first = std::find_if(given.begin(), given.end(),
                                  [](const torch::Tensor& part) { return part.defined(); });
  const auto like = by_model(*first);
  const auto inner = like.strides().slice(1);
  std::int64_t models = 0;
  for (const auto& group : groups) models += static_cast<std::int64_t>(group.size());
  auto x = empty_for(like, models);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    auto part = given[g].defined()
                    ? by_model(given[g])
                    : empty_for(like, static_cast<std::int64_t>(groups[g].size())).zero_();
    if (part.strides().slice(1) != inner) part = empty_for(like, part.size(0)).copy_(part);
    for (std::size_t i = 0; i < groups[g].size(); ++i) {
      copy_model(part, static_cast<std::int64_t>(i), x, groups[g][i]);
    }
  }
  return x;
}

class SplitModels : public torch::autograd::Function<SplitModels> {
 public:
  static variable_list forward(AutogradContext* context, const torch::Tensor& x,
                               const Groups& groups) {
    keep(context, groups);
    context->set_materialize_grads(false);
    return split(x, groups);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {join(gradients, kept(context)), {}};
  }
};

class JoinModels : public torch::autograd::Function<JoinModels> {
 public:
  static torch::Tensor forward(AutogradContext* context, at::TensorList parts,
                               const Groups& groups) {
    keep(context, groups);
    return join(parts.vec(), groups);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto parts = split(gradients[0], kept(context));
    parts.emplace_back();
    return parts;
  }
};

}  // namespace

std::vector<torch::Tensor> split_models(const torch::Tensor& x, const Groups& groups) {
  if (groups.size() == 1) return {x};
  if (x.device().is_cpu()) return SplitModels::apply(x, groups);
  std::vector<torch::Tensor> parts;
  for (const auto& models : groups) {
    parts.push_back(x.index_select(0, index_on(x.device(), models)));
  }
  return parts;
}

torch::Tensor join_models(const std::vector<torch::Tensor>& parts, const Groups& groups) {
  if (groups.size() == 1) return parts.front();
  if (parts.front().device().is_cpu()) return JoinModels::apply(at::TensorList(parts), groups);
  std::vector<std::int64_t> order;
  for (const auto& models : groups) order.insert(order.end(), models.begin(), models.end());
  std::vector<std::int64_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return at::cat(parts).index_select(0, index_on(parts.front().device(), place));
}

torch::Tensor index_on(torch::Device device, const std::vector<std::int64_t>& indices) {
  // Never removed: recordings (nn/device_graph.hpp) hold on to addresses.
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::vector<std::int64_t>>, torch::Tensor> known;
  const std::lock_guard lock(mutex);
  auto& index = known[{device.str(), indices}];
  if (!index.defined()) index = at::tensor(indices, at::TensorOptions(at::kLong)).to(device);
  return index;
}

}  // namespace nas::nn
