#include "ops/score_vectors.hpp"

#include <algorithm>
#include <utility>

#include <ATen/Dispatch.h>

#include "kernels/unit_vectors.hpp"
#include "ops/array_op.hpp"
#include "ops/model_parts.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

using Kind = VectorMap::Kind;

/// Calls run(first row, rows) on LibTorch's threads.
template <class Run>
void for_rows(std::int64_t rows, const Run& run) {
  constexpr std::int64_t kGrain = 1024;
  at::parallel_for(0, rows, kGrain,
                   [&](std::int64_t begin, std::int64_t end) { run(begin, end - begin); });
}

/// The maps of all models but those of a kind of its own, which are not mapped here. Of q and k, then
/// weight and bias of each map of pairs.
struct MapVectors {
  /// The models of a map.
  struct Group {
    Kind kind;
    Models models;
  };
  std::vector<Group> groups;
  std::int64_t width;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    const Tensors out{unwritten(in[0]), unwritten(in[1])};
    // Pairs need their inputs, unit vectors their results; of q, then k, each model by model.
    for (const auto& x : {in[0], in[1]}) saved.push_back(kept(x, Kind::pair, width));
    const bool any_unit = num_models(Kind::unit) > 0;
    for (const auto& y : out) saved.push_back(any_unit ? y : torch::Tensor());
    for (const auto& x : {in[0], in[1]}) saved.push_back(kept(x, Kind::unit, 1));
    for (std::size_t i = 2; i < in.size(); i += 2) saved.push_back(in[i]);
    AT_DISPATCH_FLOATING_TYPES(in[0].scalar_type(), "score_vectors", [&] {
      for_models([&](std::size_t i, Kind kind, auto model, auto nth, std::size_t map, auto place) {
        const auto* x = row_of<scalar_t>(in[i], model);
        auto* y = row_of<scalar_t>(out[i], model);
        const auto elements = elements_of(in[i]);
        if (kind == Kind::pair) {
          const auto of = half<scalar_t>(in[i], in[2 + 2 * map], place, i);
          of.forward(x, i == 0 ? row_of<scalar_t>(in[3 + 2 * map], place) : nullptr, y);
          std::copy_n(x, elements, row_of<scalar_t>(saved[i], nth));
        } else if (kind == Kind::unit) {
          auto* inverse = row_of<scalar_t>(saved[4 + i], nth);
          for_rows(elements / width, [&](std::int64_t row, std::int64_t rows) {
            const auto first = row * width;
            kernels::unit_vectors<scalar_t>(rows, width, x + first, y + first, inverse + row);
          });
        } else {
          std::copy_n(x, elements, y);
        }
      });
    });
    return out;
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    auto by = unwritten(by_out);
    for (std::size_t i = 6; i < saved.size(); ++i) {
      by.push_back(unwritten(saved[i]));
      by.push_back(at::empty({saved[i].size(0), width}, saved[i].options()));
    }
    AT_DISPATCH_FLOATING_TYPES(by_out[0].scalar_type(), "score_vectors_backward", [&] {
      for_models([&](std::size_t i, Kind kind, auto model, auto nth, std::size_t map, auto place) {
        const auto* by_y = row_of<scalar_t>(by_out[i], model);
        auto* by_x = row_of<scalar_t>(by[i], model);
        const auto elements = elements_of(by[i]);
        if (kind == Kind::pair) {
          const auto of = half<scalar_t>(by[i], saved[6 + map], place, i);
          of.backward(
              row_of<scalar_t>(saved[i], nth), by_y, by_x,
              row_of<scalar_t>(by[2 + 2 * map], place) + static_cast<std::int64_t>(i) * width,
              2 * width);
          if (i == 0) {
            add_up_rows(of.rows, width, by_y, row_of<scalar_t>(by[3 + 2 * map], place));
          }
        } else if (kind == Kind::unit) {
          const auto* y = row_of<scalar_t>(saved[2 + i], model);
          const auto* inverse = row_of<scalar_t>(saved[4 + i], nth);
          for_rows(elements / width, [&](std::int64_t row, std::int64_t rows) {
            const auto first = row * width;
            kernels::unit_vectors_backward<scalar_t>(rows, width, y + first, inverse + row,
                                                     by_y + first, by_x + first);
          });
        } else {
          std::copy_n(by_y, elements, by_x);
        }
      });
    });
    return by;
  }

 private:
  /// Calls run(0 for q and 1 for k, kind, model, which one of those of its kind, which map of pairs,
  /// place in the map).
  template <class Run>
  void for_models(const Run& run) const {
    std::array<std::int64_t, 4> of_kind{};
    std::size_t pairs = 0;
    for (const auto& [kind, models] : groups) {
      auto& next = of_kind.at(static_cast<std::size_t>(kind));
      for (std::int64_t place = 0; place < std::ssize(models); ++place, ++next) {
        for (std::size_t i = 0; i < 2; ++i) {
          run(i, kind, models[static_cast<std::size_t>(place)], next, pairs, place);
        }
      }
      if (kind == Kind::pair) ++pairs;
    }
  }

  [[nodiscard]] std::int64_t num_models(Kind kind) const {
    std::int64_t count = 0;
    for (const auto& group : groups) {
      if (group.kind == kind) count += std::ssize(group.models);
    }
    return count;
  }

  /// Of a model.
  static std::int64_t elements_of(const torch::Tensor& x) { return x.numel() / x.size(0); }

  /// Memory for `size` numbers of each vector in x of the models of a kind.
  [[nodiscard]] torch::Tensor kept(const torch::Tensor& x, Kind kind, std::int64_t size) const {
    return at::empty({num_models(kind), elements_of(x) / width * size}, x.options());
  }

  /// What a model's vectors in q (half 0) or k (1) are mapped by. @param weight  (M, d, 2 d).
  template <class Real>
  [[nodiscard]] LinearMap<Real> half(const torch::Tensor& x, const torch::Tensor& weight,
                                     std::int64_t place, std::size_t which) const {
    return {elements_of(x) / width,
            width,
            width,
            {row_of<Real>(weight, place) + static_cast<std::int64_t>(which) * width, 2 * width, 1}};
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
  Tensors in{q, k};
  MapVectors mapping{{}, width};
  for (const auto& [models, map] : maps) {
    mapping.groups.push_back({map.kind, models});
    if (map.kind != Kind::pair) continue;
    TORCH_CHECK(map.weight.sizes() == at::IntArrayRef({std::ssize(models), width, 2 * width}) &&
                    map.bias.sizes() == at::IntArrayRef({std::ssize(models), width}) &&
                    map.weight.is_contiguous() && map.bias.is_contiguous(),
                "maps of pairs of ", models.size(), " models have weight ", map.weight.sizes(),
                " and bias ", map.bias.sizes(),
                ", must be contiguous (M, d, 2 d) and (M, d), d = ", width);
    in.push_back(map.weight);
    in.push_back(map.bias);
  }
  auto mapped = array_op(std::move(mapping), in);
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
