#include "ops/model_parts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "ops/array_op.hpp"

namespace nas::nn {

namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

std::int64_t num_models(const Groups& groups) {
  std::int64_t models = 0;
  for (const auto& group : groups) models += static_cast<std::int64_t>(group.size());
  return models;
}

/// An empty tensor for some models, otherwise of the sizes of x.
torch::Tensor empty_for(const torch::Tensor& x, std::int64_t models) {
  auto sizes = x.sizes().vec();
  sizes.front() = models;
  return at::empty(sizes, x.options());
}

/// The bytes of one model's part of x.
std::size_t model_bytes(const torch::Tensor& x) {
  return x.nbytes() / static_cast<std::size_t>(x.size(0));
}

std::byte* bytes_of(const torch::Tensor& x) { return static_cast<std::byte*>(x.data_ptr()); }

/// Appends the parts of x.
void split(const torch::Tensor& given, const Groups& groups, Tensors& parts) {
  const auto x = given.contiguous();
  const auto size = model_bytes(x);
  for (const auto& models : groups) {
    auto part = empty_for(x, static_cast<std::int64_t>(models.size()));
    auto* to = bytes_of(part);
    for (const auto model : models) {
      std::memcpy(to, bytes_of(x) + static_cast<std::size_t>(model) * size, size);
      to += size;
    }
    parts.push_back(std::move(part));
  }
}

/// @param parts  undefined where a part is zero; not all of them.
torch::Tensor join(at::TensorList parts, const Groups& groups) {
  const auto& like = *std::find_if(parts.begin(), parts.end(),
                                   [](const torch::Tensor& part) { return part.defined(); });
  auto x = empty_for(like, num_models(groups));
  const auto size = model_bytes(x);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto part = parts[g].defined() ? parts[g].contiguous() : parts[g];
    TORCH_CHECK(!part.defined() || (part.scalar_type() == like.scalar_type() &&
                                    part.size(0) == std::ssize(groups[g]) &&
                                    part.sizes().slice(1) == like.sizes().slice(1)),
                "models with ", part.sizes(), " and others with ", like.sizes(),
                " cannot be joined: of ", groups[g].size(), " models here");
    for (std::size_t i = 0; i < groups[g].size(); ++i) {
      auto* to = bytes_of(x) + static_cast<std::size_t>(groups[g][i]) * size;
      if (part.defined()) {
        std::memcpy(to, bytes_of(part) + i * size, size);
      } else {
        std::memset(to, 0, size);
      }
    }
  }
  return x;
}

/// The parts of several tensors, those of the first one first.
struct SplitModels {
  static constexpr bool kAnyStrides = true;
  static constexpr bool kSomeGradients = true;
  Groups groups;

  Tensors forward(const Tensors& in, Tensors& /*saved*/) const {
    Tensors parts;
    for (const auto& x : in) split(x, groups, parts);
    return parts;
  }
  Tensors backward(const Tensors& /*saved*/, const Tensors& by_out) const {
    const at::TensorList by_parts(by_out);
    Tensors by_all;
    for (std::size_t first = 0; first < by_out.size(); first += groups.size()) {
      const auto of_one = by_parts.slice(first, groups.size());
      const bool any = std::any_of(of_one.begin(), of_one.end(),
                                   [](const torch::Tensor& part) { return part.defined(); });
      by_all.push_back(any ? join(of_one, groups) : torch::Tensor());
    }
    return by_all;
  }
};

struct JoinModels {
  static constexpr bool kAnyStrides = true;
  Groups groups;

  Tensors forward(const Tensors& in, Tensors& /*saved*/) const { return {join(in, groups)}; }
  Tensors backward(const Tensors& /*saved*/, const Tensors& by_out) const {
    Tensors parts;
    split(by_out[0], groups, parts);
    return parts;
  }
};

}  // namespace

std::vector<std::vector<torch::Tensor>> split_models(const std::vector<torch::Tensor>& all,
                                                     const Groups& groups) {
  std::vector<std::vector<torch::Tensor>> parts;
  if (groups.size() == 1) {
    for (const auto& x : all) parts.push_back({x});
  } else if (all.front().device().is_cpu()) {
    const auto flat = array_op(SplitModels{groups}, all);
    for (auto first = flat.begin(); first != flat.end();
         first += static_cast<std::ptrdiff_t>(groups.size())) {
      parts.emplace_back(first, first + static_cast<std::ptrdiff_t>(groups.size()));
    }
  } else {
    for (const auto& x : all) {
      parts.emplace_back();
      for (const auto& models : groups) {
        parts.back().push_back(x.index_select(0, index_on(x.device(), models)));
      }
    }
  }
  return parts;
}

torch::Tensor join_models(const std::vector<torch::Tensor>& parts, const Groups& groups) {
  if (groups.size() == 1) return parts.front();
  if (parts.front().device().is_cpu()) return array_op(JoinModels{groups}, parts)[0];
  std::vector<std::int64_t> order;
  for (const auto& models : groups) order.insert(order.end(), models.begin(), models.end());
  std::vector<std::int64_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return at::cat(parts).index_select(0, index_on(parts.front().device(), place));
}

torch::Tensor index_on(torch::Device device, const std::vector<std::int64_t>& indices) {
  // Never removed: captured graphs (DeviceGraph) hold addresses. Nor destroyed at the end
  // of the process, when the device's allocator may be gone already.
  using Known = std::map<std::pair<std::string, std::vector<std::int64_t>>, torch::Tensor>;
  static std::mutex mutex;
  static auto& known = *new Known;
  const std::lock_guard lock(mutex);
  auto& index = known[{device.str(), indices}];
  if (!index.defined()) index = at::tensor(indices, at::TensorOptions(at::kLong)).to(device);
  return index;
}

}  // namespace nas::nn
