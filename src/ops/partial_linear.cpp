#include "ops/partial_linear.hpp"

#include <algorithm>
#include <utility>

#include <ATen/Dispatch.h>

#include "ops/array_op.hpp"
#include "ops/model_parts.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// Of x, then weight and bias of each map.
struct PartialLinear {
  std::vector<Models> of_maps;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    const auto& x = in[0];
    saved = {x};
    auto shape = x.sizes().vec();
    shape.front() = 0;
    shape.back() = in[1].size(1);
    for (std::size_t map = 0; map < of_maps.size(); ++map) {
      saved.push_back(in[1 + 2 * map]);
      shape.front() += std::ssize(of_maps[map]);
    }
    auto y = at::empty(shape, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "partial_linear", [&] {
      for_mapped([&](auto place, auto model, std::size_t map, auto i) {
        LinearMap<scalar_t>::of(x, in[1 + 2 * map], i)
            .forward(row_of<scalar_t>(x, model), row_of<scalar_t>(in[2 + 2 * map], i),
                     row_of<scalar_t>(y, place));
      });
    });
    return {y};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto& x = saved[0];
    const auto& by_y = by_out[0];
    Tensors by{unwritten(x)};
    for (std::size_t map = 0; map < of_maps.size(); ++map) {
      const auto& weight = saved[1 + map];
      by.push_back(unwritten(weight));
      by.push_back(at::empty({weight.size(0), weight.size(1)}, weight.options()));
    }
    std::vector<bool> mapped(static_cast<std::size_t>(x.size(0)));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "partial_linear_backward", [&] {
      for_mapped([&](auto place, auto model, std::size_t map, auto i) {
        const auto of = LinearMap<scalar_t>::of(x, saved[1 + map], i);
        const auto* by_out_rows = row_of<scalar_t>(by_y, place);
        of.backward(row_of<scalar_t>(x, model), by_out_rows, row_of<scalar_t>(by[0], model),
                    row_of<scalar_t>(by[1 + 2 * map], i));
        add_up_rows<scalar_t>(of.rows, of.out, by_out_rows, row_of<scalar_t>(by[2 + 2 * map], i));
        mapped[static_cast<std::size_t>(model)] = true;
      });
      for (std::int64_t r = 0; r < x.size(0); ++r) {
        if (mapped[static_cast<std::size_t>(r)]) continue;
        std::fill_n(row_of<scalar_t>(by[0], r), x.numel() / x.size(0), scalar_t{0});
      }
    });
    return by;
  }

 private:
  /// Calls run(place among all results, model, map, place within the map).
  template <class Run>
  void for_mapped(const Run& run) const {
    std::int64_t place = 0;
    for (std::size_t map = 0; map < of_maps.size(); ++map) {
      for (std::size_t i = 0; i < of_maps[map].size(); ++i) {
        run(place++, of_maps[map][i], map, static_cast<std::int64_t>(i));
      }
    }
  }
};

void require_fitting(const torch::Tensor& x, const std::vector<PartialMap>& maps) {
  TORCH_CHECK(!maps.empty() && x.dim() >= 2, "partial_linear of ", x.sizes(), " by ", maps.size(),
              " maps");
  for (const auto& map : maps) {
    const auto models = static_cast<std::int64_t>(map.models.size());
    const auto out = maps.front().weight.size(1);
    TORCH_CHECK(map.weight.sizes() == at::IntArrayRef({models, out, x.size(-1)}) &&
                    map.bias.sizes() == at::IntArrayRef({models, out}) &&
                    map.weight.is_contiguous() && map.bias.is_contiguous(),
                "partial_linear: weights ", map.weight.sizes(), " and biases ", map.bias.sizes(),
                " of ", models, " models do not fit x ", x.sizes(), " and ", out,
                " outputs, or are not contiguous");
  }
}

torch::Tensor partial_linear_by_operations(const torch::Tensor& x,
                                           const std::vector<PartialMap>& maps,
                                           NumericalMode mode) {
  std::vector<torch::Tensor> parts;
  for (const auto& map : maps) {
    const bool all = static_cast<std::int64_t>(map.models.size()) == x.size(0);
    const auto part = all ? x : x.index_select(0, index_on(x.device(), map.models));
    parts.push_back(linear(part, map.weight, Biases::of_all(map.bias), mode));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

}  // namespace

torch::Tensor partial_linear(const torch::Tensor& x, const std::vector<PartialMap>& maps,
                             NumericalMode mode) {
  require_fitting(x, maps);
  if (mode != NumericalMode::exact || !x.device().is_cpu()) {
    return partial_linear_by_operations(x, maps, mode);
  }
  Tensors in{x};
  std::vector<Models> of_maps;
  for (const auto& map : maps) {
    in.push_back(map.weight);
    in.push_back(map.bias);
    of_maps.push_back(map.models);
  }
  return array_op(PartialLinear{std::move(of_maps)}, in)[0];
}

}  // namespace nas::nn
