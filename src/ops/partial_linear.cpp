#include "ops/partial_linear.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <torch/autograd.h>

#include "ops/kept.hpp"
#include "ops/model_parts.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The sizes of what is multiplied for each model.
struct Sizes {
  Sizes(const torch::Tensor& x, const torch::Tensor& weight)
      : rows(x.numel() / std::max<std::int64_t>(x.size(0) * x.size(-1), 1)),
        in(x.size(-1)),
        out(weight.size(1)) {}

  std::int64_t rows;
  std::int64_t in;
  std::int64_t out;
};

/// Calls run(place among all results, model, map, place within the map).
template <class Run>
void for_mapped(const std::vector<Models>& of_maps, const Run& run) {
  std::int64_t place = 0;
  for (std::size_t map = 0; map < of_maps.size(); ++map) {
    for (std::size_t i = 0; i < of_maps[map].size(); ++i) {
      run(place++, of_maps[map][i], map, static_cast<std::int64_t>(i));
    }
  }
}

/// Writes zeros for the models that no map has.
template <class Real>
void clear_others(const std::vector<Models>& of_maps, std::int64_t models, std::int64_t elements,
                  Real* x) {
  std::vector<bool> mapped(static_cast<std::size_t>(models));
  for_mapped(of_maps,
             [&](auto, auto model, auto, auto) { mapped[static_cast<std::size_t>(model)] = true; });
  for (std::int64_t r = 0; r < models; ++r) {
    if (!mapped[static_cast<std::size_t>(r)]) std::fill_n(x + r * elements, elements, Real{0});
  }
}

class PartialLinear : public torch::autograd::Function<PartialLinear> {
 public:
  /// @param parameters  weight and bias of each map.
  /// @param of_maps     which models the maps have, map by map.
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& given,
                               at::TensorList parameters, const std::vector<Models>& of_maps) {
    const auto x = given.contiguous();
    const Sizes sizes(x, parameters[0]);
    variable_list saved{x};
    std::int64_t models = 0;
    for (std::size_t map = 0; map < of_maps.size(); ++map) {
      saved.push_back(parameters[2 * map]);
      models += static_cast<std::int64_t>(of_maps[map].size());
    }
    auto shape = x.sizes().vec();
    shape.front() = models;
    shape.back() = sizes.out;
    auto y = at::empty(shape, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "partial_linear", [&] {
      for_mapped(of_maps, [&](auto place, auto model, std::size_t map, auto i) {
        const auto* weight =
            parameters[2 * map].template data_ptr<scalar_t>() + i * sizes.out * sizes.in;
        const auto* bias = parameters[2 * map + 1].template data_ptr<scalar_t>() + i * sizes.out;
        multiply_on_threads<scalar_t>(
            sizes.rows, sizes.out, sizes.in,
            {x.data_ptr<scalar_t>() + model * sizes.rows * sizes.in, sizes.in},
            {weight, 1, sizes.in}, {bias, 0},
            y.data_ptr<scalar_t>() + place * sizes.rows * sizes.out, sizes.out);
      });
    });
    context->save_for_backward(std::move(saved));
    keep(context, make_kept(of_maps));
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& of_maps = kept<std::vector<Models>>(context);
    const auto& x = saved[0];
    const auto by_y = gradients[0].contiguous();
    const Sizes sizes(x, saved[1]);
    const std::int64_t elements = sizes.rows * sizes.in;  // of a model
    const auto by_x = at::empty(x.sizes(), x.options());
    variable_list by_inputs{by_x};
    for (std::size_t map = 0; map < of_maps.size(); ++map) {
      const auto& weight = saved[1 + map];
      by_inputs.push_back(at::empty(weight.sizes(), weight.options()));
      by_inputs.push_back(at::empty({weight.size(0), sizes.out}, weight.options()));
    }
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "partial_linear_backward", [&] {
      for_mapped(of_maps, [&](auto place, auto model, std::size_t map, auto i) {
        const auto* in = x.data_ptr<scalar_t>() + model * elements;
        const auto* by_out = by_y.data_ptr<scalar_t>() + place * sizes.rows * sizes.out;
        const auto at = i * sizes.out * sizes.in;
        multiply_on_threads<scalar_t>(sizes.rows, sizes.in, sizes.out, {by_out, sizes.out},
                                      {saved[1 + map].template data_ptr<scalar_t>() + at, sizes.in},
                                      {}, by_x.data_ptr<scalar_t>() + model * elements, sizes.in);
        multiply_on_threads<scalar_t>(
            sizes.out, sizes.in, sizes.rows, {by_out, 1, sizes.out}, {in, sizes.in}, {},
            by_inputs[1 + 2 * map].template data_ptr<scalar_t>() + at, sizes.in);
        add_up_rows(sizes.rows, sizes.out, by_out,
                    by_inputs[2 + 2 * map].template data_ptr<scalar_t>() + i * sizes.out);
      });
      clear_others(of_maps, x.size(0), elements, by_x.data_ptr<scalar_t>());
    });
    by_inputs.emplace_back();
    return by_inputs;
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
  std::vector<torch::Tensor> parameters;
  std::vector<Models> of_maps;
  for (const auto& map : maps) {
    parameters.push_back(map.weight);
    parameters.push_back(map.bias);
    of_maps.push_back(map.models);
  }
  return PartialLinear::apply(x, at::TensorList(parameters), of_maps);
}

}  // namespace nas::nn
