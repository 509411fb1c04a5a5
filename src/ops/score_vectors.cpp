#include "ops/score_vectors.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "kernels/unit_vectors.hpp"
#include "ops/kept.hpp"
#include "ops/model_parts.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Kind = VectorMap::Kind;

/// What does not change between the passes and is no tensor. Weights and biases are in a list, in
/// the order of the maps that have them.
struct Call {
  std::vector<MappedModels> maps;  ///< their tensors are not read
  std::int64_t width;

  Call(std::vector<MappedModels> given, std::int64_t given_width)
      : maps(std::move(given)), width(given_width) {
    for (auto& [models, map] : maps) map = {.kind = map.kind};
  }

  [[nodiscard]] std::int64_t num_models(Kind kind) const {
    std::int64_t count = 0;
    for (const auto& [models, map] : maps) {
      if (map.kind == kind) count += std::ssize(models);
    }
    return count;
  }

  /// Calls run(kind, model, which one of those of its kind, which of the weights, place in them).
  template <class Run>
  void for_models(const Run& run) const {
    std::array<std::int64_t, 4> of_kind{};
    std::size_t weights = 0;
    for (const auto& [models, map] : maps) {
      auto& next = of_kind.at(static_cast<std::size_t>(map.kind));
      for (std::int64_t place = 0; place < std::ssize(models); ++place) {
        run(map.kind, models[static_cast<std::size_t>(place)], next++, weights, place);
      }
      if (map.kind == Kind::pair) ++weights;
    }
  }
};

/// The vectors of a model, in q or in k.
struct Sizes {
  std::int64_t rows, width;
  [[nodiscard]] std::int64_t elements() const { return rows * width; }
  /// Of a model's weight.
  [[nodiscard]] std::int64_t weights() const { return 2 * width * width; }
};

Sizes sizes_of(const torch::Tensor& x, std::int64_t width) {
  return {x.numel() / (x.size(0) * width), width};
}

/// Those of q and k, which has fewer vectors where heads share keys.
using BothSizes = std::array<Sizes, 2>;

/// Where what is kept of the vectors of q (input 0) or k (1) begins: q's, then k's, model by model.
/// @param size  of what is kept: &Sizes::rows or &Sizes::elements.
template <class Size>
std::int64_t kept_begin(const BothSizes& sizes, std::int64_t nth, std::size_t input,
                        const Size& size) {
  const auto of_q = std::invoke(size, sizes[0]);
  return nth * (of_q + std::invoke(size, sizes[1])) + (input == 0 ? 0 : of_q);
}

/// Calls run(first row, rows) on LibTorch's threads.
template <class Run>
void for_rows(std::int64_t rows, const Run& run) {
  constexpr std::int64_t kGrain = 1024;
  at::parallel_for(0, rows, kGrain,
                   [&](std::int64_t begin, std::int64_t end) { run(begin, end - begin); });
}

/// y (rows, d) = bias + x W_i', i the half of the weight.
template <class Real>
void map_half(const Sizes& size, const Real* x, const Real* weight, std::size_t half,
              const Real* bias, Real* y) {
  const auto offset = static_cast<std::int64_t>(half) * size.width;
  kernels::Initial<Real> initial;
  if (bias != nullptr) initial = {bias, 0};
  multiply_on_threads<Real>(size.rows, size.width, size.width, {x, size.width, 1},
                            {weight + offset, 1, 2 * size.width}, initial, y, size.width);
}

/// The gradients of map_half() w.r.t. x and its half of the weight.
template <class Real>
void map_half_backward(const Sizes& size, const Real* x, const Real* weight, std::size_t half,
                       const Real* by_y, Real* by_x, Real* by_weight) {
  const auto offset = static_cast<std::int64_t>(half) * size.width;
  multiply_on_threads<Real>(size.rows, size.width, size.width, {by_y, size.width, 1},
                            {weight + offset, 2 * size.width, 1}, {}, by_x, size.width);
  multiply_on_threads<Real>(size.width, size.width, size.rows, {by_y, 1, size.width},
                            {x, size.width, 1}, {}, by_weight + offset, 2 * size.width);
}

class Mapped : public torch::autograd::Function<Mapped> {
 public:
  /// @param parameters  weight and bias of every map that has them.
  static variable_list forward(AutogradContext* context, const torch::Tensor& given_q,
                               const torch::Tensor& given_k, at::TensorList parameters,
                               const KeptPointer<Call>& call) {
    const auto q = given_q.contiguous();
    const auto k = given_k.contiguous();
    const BothSizes sizes{sizes_of(q, call->value.width), sizes_of(k, call->value.width)};
    variable_list out{at::empty(q.sizes(), q.options()), at::empty(k.sizes(), k.options())};
    const auto given_vectors =
        at::empty({call->value.num_models(Kind::pair), sizes[0].elements() + sizes[1].elements()},
                  q.options());
    const auto inverse_lengths =
        at::empty({call->value.num_models(Kind::unit), sizes[0].rows + sizes[1].rows}, q.options());
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "score_vectors", [&] {
      call->value.for_models([&](Kind kind, auto model, auto nth, std::size_t map, auto place) {
        for (std::size_t i = 0; i < 2; ++i) {
          const auto& size = sizes.at(i);
          const auto at = model * size.elements();
          const auto* x = (i == 0 ? q : k).template data_ptr<scalar_t>() + at;
          auto* y = out[i].template data_ptr<scalar_t>() + at;
          if (kind == Kind::same || kind == Kind::own) {
            std::copy_n(x, size.elements(), y);
          } else if (kind == Kind::unit) {
            auto* inverse = inverse_lengths.template data_ptr<scalar_t>() +
                            kept_begin(sizes, nth, i, &Sizes::rows);
            for_rows(size.rows, [&](std::int64_t row, std::int64_t rows) {
              kernels::unit_vectors<scalar_t>(rows, size.width, x + row * size.width,
                                              y + row * size.width, inverse + row);
            });
          } else {
            const auto* weight =
                parameters[2 * map].template data_ptr<scalar_t>() + place * size.weights();
            const auto* bias =
                parameters[2 * map + 1].template data_ptr<scalar_t>() + place * size.width;
            map_half<scalar_t>(size, x, weight, i, i == 0 ? bias : nullptr, y);
            std::copy_n(x, size.elements(),
                        given_vectors.template data_ptr<scalar_t>() +
                            kept_begin(sizes, nth, i, &Sizes::elements));
          }
        }
      });
    });
    // Pairs need their inputs, unit vectors their results.
    variable_list saved{given_vectors, torch::Tensor(), torch::Tensor()};
    if (call->value.num_models(Kind::unit) > 0) {
      saved[1] = out[0];
      saved[2] = out[1];
    }
    saved.push_back(inverse_lengths);
    for (std::size_t i = 0; i < parameters.size(); i += 2) saved.push_back(parameters[i]);
    context->save_for_backward(std::move(saved));
    keep(context, call);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const auto& call = kept<Call>(context);
    const auto saved = context->get_saved_variables();
    const std::array<torch::Tensor, 2> by_out{outer[0].contiguous(), outer[1].contiguous()};
    const BothSizes sizes{sizes_of(by_out[0], call.width), sizes_of(by_out[1], call.width)};
    variable_list by_inputs;
    for (const auto& by_y : by_out) by_inputs.push_back(at::empty(by_y.sizes(), by_y.options()));
    for (std::size_t i = 4; i < saved.size(); ++i) {
      by_inputs.push_back(at::empty(saved[i].sizes(), saved[i].options()));
      by_inputs.push_back(at::empty({saved[i].size(0), call.width}, saved[i].options()));
    }
    AT_DISPATCH_FLOATING_TYPES(by_out[0].scalar_type(), "score_vectors_backward", [&] {
      const auto data = [](const torch::Tensor& x) { return x.data_ptr<scalar_t>(); };
      call.for_models([&](Kind kind, auto model, auto nth, std::size_t map, auto place) {
        for (std::size_t i = 0; i < 2; ++i) {
          const auto& size = sizes.at(i);
          const auto at = model * size.elements();
          const auto* by_y = data(by_out.at(i)) + at;
          auto* by_x = data(by_inputs[i]) + at;
          if (kind == Kind::same || kind == Kind::own) {
            std::copy_n(by_y, size.elements(), by_x);
          } else if (kind == Kind::unit) {
            const auto* y = data(saved[1 + i]) + at;
            const auto* inverse = data(saved[3]) + kept_begin(sizes, nth, i, &Sizes::rows);
            for_rows(size.rows, [&](std::int64_t row, std::int64_t rows) {
              const auto first = row * size.width;
              kernels::unit_vectors_backward<scalar_t>(rows, size.width, y + first, inverse + row,
                                                       by_y + first, by_x + first);
            });
          } else {
            const auto of_weight = place * size.weights();
            map_half_backward<scalar_t>(
                size, data(saved[0]) + kept_begin(sizes, nth, i, &Sizes::elements),
                data(saved[4 + map]) + of_weight, i, by_y, by_x,
                data(by_inputs[2 + 2 * map]) + of_weight);
            if (i == 0) {
              add_up_rows(size.rows, size.width, by_y,
                          data(by_inputs[3 + 2 * map]) + place * size.width);
            }
          }
        }
      });
    });
    by_inputs.emplace_back();
    return by_inputs;
  }
};

/// (M, ..., N d) as (M, ..., N, d), and back.
torch::Tensor apart(const torch::Tensor& x, std::int64_t width) {
  return x.unflatten(-1, {x.size(-1) / width, width});
}
torch::Tensor side_by_side(const torch::Tensor& x) { return x.flatten(-2); }

std::array<torch::Tensor, 2> mapped_by_operations(const torch::Tensor& q, const torch::Tensor& k,
                                                  const VectorMap& map, std::int64_t width) {
  if (map.kind == Kind::same) return {q, k};
  if (map.kind == Kind::own) return map.function(q, k);
  if (map.kind == Kind::unit) {
    return {side_by_side(unit(apart(q, width))), side_by_side(unit(apart(k, width)))};
  }
  const auto terms =
      pair_terms(apart(q, width), apart(k, width), map.weight, map.bias, NumericalMode::exact);
  return {side_by_side(terms[0]), side_by_side(terms[1])};
}

/// Maps the groups of models whose kind of map is to be applied, each for itself.
template <class IsApplied>
std::array<torch::Tensor, 2> mapped_apart(const torch::Tensor& q, const torch::Tensor& k,
                                          const std::vector<MappedModels>& maps, std::int64_t width,
                                          const IsApplied& is_applied) {
  std::vector<Models> groups;
  for (const auto& [models, map] : maps) groups.push_back(models);
  auto parts = split_models({q, k}, groups);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (!is_applied(maps[i].map.kind)) continue;
    auto vectors = mapped_by_operations(parts[0][i], parts[1][i], maps[i].map, width);
    parts[0][i] = std::move(vectors[0]);
    parts[1][i] = std::move(vectors[1]);
  }
  return {join_models(parts[0], groups), join_models(parts[1], groups)};
}

std::array<torch::Tensor, 2> mapped_at_once(const torch::Tensor& q, const torch::Tensor& k,
                                            const std::vector<MappedModels>& maps,
                                            std::int64_t width) {
  std::vector<torch::Tensor> parameters;
  for (const auto& [models, map] : maps) {
    if (map.kind != Kind::pair) continue;
    TORCH_CHECK(map.weight.sizes() == at::IntArrayRef({std::ssize(models), width, 2 * width}) &&
                    map.bias.sizes() == at::IntArrayRef({std::ssize(models), width}) &&
                    map.weight.is_contiguous() && map.bias.is_contiguous(),
                "maps of pairs of ", models.size(), " models have weight ", map.weight.sizes(),
                " and bias ", map.bias.sizes(),
                ", must be contiguous (M, d, 2 d) and (M, d), d = ", width);
    parameters.push_back(map.weight);
    parameters.push_back(map.bias);
  }
  auto mapped = Mapped::apply(q, k, at::TensorList(parameters), make_kept(Call(maps, width)));
  return {std::move(mapped[0]), std::move(mapped[1])};
}

}  // namespace

torch::Tensor unit(const torch::Tensor& x) {
  return x / x.norm(2, -1, /*keepdim=*/true).clamp_min(kernels::kShortestLength);
}

std::array<torch::Tensor, 2> pair_terms(const torch::Tensor& q, const torch::Tensor& k,
                                        const torch::Tensor& weight, const torch::Tensor& bias,
                                        NumericalMode mode) {
  const auto halves = weight.chunk(2, 2);
  return {linear(q, halves[0], Biases::of_all(bias), mode), linear(k, halves[1], {}, mode)};
}

std::array<torch::Tensor, 2> score_vectors(const torch::Tensor& q, const torch::Tensor& k,
                                           const std::vector<MappedModels>& maps,
                                           std::int64_t width) {
  TORCH_CHECK(q.sizes().slice(0, 3) == k.sizes().slice(0, 3) && q.size(-1) % width == 0 &&
                  k.size(-1) % width == 0,
              "vectors of ", width, " numbers do not lie side by side in q ", q.sizes(), " and k ",
              k.sizes());
  const auto have = [&](const auto& is_kind) {
    return std::any_of(maps.begin(), maps.end(),
                       [&](const MappedModels& mapped) { return is_kind(mapped.map.kind); });
  };
  const auto is_own = [](Kind kind) { return kind == Kind::own; };
  const auto is_given = [](Kind kind) { return kind == Kind::unit || kind == Kind::pair; };
  std::array<torch::Tensor, 2> vectors{q, k};
  if (have(is_given)) {
    vectors = q.device().is_cpu() ? mapped_at_once(q, k, maps, width)
                                  : mapped_apart(q, k, maps, width, is_given);
  }
  return have(is_own) ? mapped_apart(vectors[0], vectors[1], maps, width, is_own) : vectors;
}

}  // namespace nas::nn
