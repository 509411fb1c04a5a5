#include "ops/temperature.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/Dispatch.h>

#include "ops/array_op.hpp"

namespace nas::nn {

namespace {

using Model = FusedTemperatures::Model;

/// The queries of an array.
struct Queries {
  std::int64_t models = 0;
  std::int64_t sequences = 0;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
};

/// A divisor and its derivative w.r.t. z.
struct Divisor {
  double value, slope;
};

Divisor divisor(const Model& model, double z) {
  switch (model.function) {
    case DivisorFunction::constant:
      break;
    case DivisorFunction::exponential: {
      const double value = model.scale * std::exp(z);
      return {value, value};
    }
    case DivisorFunction::logistic: {
      const double sigmoid = 1.0 / (1.0 + std::exp(-z));
      return {model.scale * (sigmoid + 0.5), model.scale * sigmoid * (1.0 - sigmoid)};
    }
    case DivisorFunction::absolute:
      return {model.scale * (std::abs(z) + 0.5), z == 0.0 ? 0.0 : std::copysign(model.scale, z)};
  }
  return {model.scale, 0.0};
}

/// Where the logits of one model lie in its row of a source: (n), or (B, T, n) by token.
struct Logits {
  const Queries& queries;
  std::int64_t outputs;  ///< 1, or one for each head
  std::int64_t count;    ///< elements of the row
  bool by_token, of_mean;

  Logits(const Model& model, const torch::Tensor& source, const Queries& of)
      : queries(of),
        outputs(source.size(-1)),
        count(source.numel() / source.size(0)),
        by_token(source.dim() > 2),
        of_mean(by_token && model.of_mean) {}

  /// Which logit element i is of, alone or as one of a mean.
  [[nodiscard]] std::size_t of_element(std::int64_t i) const {
    if (of_mean) i = i / (queries.tokens * outputs) * outputs + i % outputs;
    return static_cast<std::size_t>(i);
  }
  /// How many elements are averaged.
  [[nodiscard]] double share() const { return of_mean ? static_cast<double>(queries.tokens) : 1.0; }

  /// In double: there are few of them, and sums over thousands of queries are to be exact.
  template <class Real>
  [[nodiscard]] std::vector<double> values(const Real* elements) const {
    std::vector<double> values(of_mean ? of_element(count - 1) + 1
                                       : static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      values[of_element(i)] += static_cast<double>(elements[i]) / share();
    }
    return values;
  }

  /// Calls run(query's place in (B, H, T), its logit).
  template <class Run>
  void for_queries(const Run& run) const {
    const std::int64_t head = outputs == 1 ? 0 : 1;
    const std::int64_t token = by_token && !of_mean ? outputs : 0;
    const std::int64_t sequence = of_mean ? outputs : token * queries.tokens;
    std::int64_t query = 0;
    for (std::int64_t b = 0; b < queries.sequences; ++b) {
      for (std::int64_t h = 0; h < queries.heads; ++h) {
        for (std::int64_t t = 0; t < queries.tokens; ++t) {
          run(query++, static_cast<std::size_t>(b * sequence + t * token + h * head));
        }
      }
    }
  }
};

template <class Real>
void write_inverses(const Model& model, const Tensors& sources, const Queries& queries, Real* out) {
  const std::int64_t count = queries.sequences * queries.heads * queries.tokens;
  if (model.source < 0) {
    std::fill_n(out, count, static_cast<Real>(1.0 / divisor(model, 0.0).value));
    return;
  }
  const auto& source = sources[static_cast<std::size_t>(model.source)];
  const Logits logits(model, source, queries);
  auto values = logits.values(row_of<Real>(source, model.row));
  for (auto& value : values) value = 1.0 / divisor(model, value).value;
  logits.for_queries([&](std::int64_t query, std::size_t logit) {
    out[query] = static_cast<Real>(values[logit]);
  });
}

template <class Real>
void write_logit_gradients(const Model& model, const Tensors& sources, const Queries& queries,
                           const Real* by_inverses, const Tensors& by_sources) {
  if (model.source < 0) return;
  const auto& source = sources[static_cast<std::size_t>(model.source)];
  const Logits logits(model, source, queries);
  const auto values = logits.values(row_of<Real>(source, model.row));
  std::vector<double> by_values(values.size());
  logits.for_queries([&](std::int64_t query, std::size_t logit) {
    by_values[logit] += static_cast<double>(by_inverses[query]);
  });
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto [value, slope] = divisor(model, values[i]);
    const double inverse = 1.0 / value;
    by_values[i] *= -slope * inverse * inverse;
  }
  auto* by = row_of<Real>(by_sources[static_cast<std::size_t>(model.source)], model.row);
  for (std::int64_t i = 0; i < logits.count; ++i) {
    by[i] = static_cast<Real>(by_values[logits.of_element(i)] / logits.share());
  }
}

/// Of logits.
struct InverseTemperatures {
  std::vector<Model> models;
  Queries queries;

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = in;
    auto out = at::empty({queries.models, queries.sequences, queries.heads, queries.tokens, 1},
                         in.front().options());
    AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "inverse_temperatures", [&] {
      for_each([&](const Model& model, std::int64_t r) {
        write_inverses(model, in, queries, row_of<scalar_t>(out, r));
      });
    });
    return {out};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    auto by = unwritten(saved);
    AT_DISPATCH_FLOATING_TYPES(by_out[0].scalar_type(), "inverse_temperatures_backward", [&] {
      for_each([&](const Model& model, std::int64_t r) {
        write_logit_gradients(model, saved, queries, row_of<const scalar_t>(by_out[0], r), by);
      });
    });
    return by;
  }

 private:
  template <class Run>
  void for_each(const Run& run) const {
    at::parallel_for(0, queries.models, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) run(models[static_cast<std::size_t>(r)], r);
    });
  }
};

/// (R, 1, 1, 1, 1), of divisors that have no logits.
torch::Tensor constant_inverses(const std::vector<Model>& models, torch::ScalarType type) {
  std::vector<double> inverses;
  for (const auto& model : models) inverses.push_back(1.0 / divisor(model, 0.0).value);
  return at::tensor(inverses, at::TensorOptions(at::kDouble)).to(type).view({-1, 1, 1, 1, 1});
}

}  // namespace

FusedTemperatures::FusedTemperatures(const std::vector<Group>& groups,
                                     const std::vector<double>& factors, std::int64_t heads,
                                     NumericalMode mode)
    : models_(factors.size()), num_heads_(heads), mode_(unrounded(mode)) {
  for (const auto& [of_group, form] : groups) {
    std::int64_t source = -1;
    std::int64_t row = 0;
    if (form.weight.defined()) {
      source = static_cast<std::int64_t>(source_of_maps(form.weight.size(1)));
      auto& maps = sources_[static_cast<std::size_t>(source)].maps;
      for (const auto& map : maps) row += static_cast<std::int64_t>(map.models.size());
      maps.push_back({of_group, form.weight, form.bias});
    } else if (form.parameter.defined()) {
      source = static_cast<std::int64_t>(sources_.size());
      sources_.push_back({form.parameter, {}});
    }
    TORCH_CHECK((source >= 0) == (form.function != DivisorFunction::constant),
                "a temperature that is no constant has a parameter or a weight, others neither");
    for (const auto r : of_group) {
      const auto model = static_cast<std::size_t>(r);
      models_[model] = {form.function, form.scale * factors[model], source, row++, form.of_mean};
    }
  }
}

std::size_t FusedTemperatures::source_of_maps(std::int64_t outputs) {
  auto found = std::find_if(sources_.begin(), sources_.end(), [&](const Source& source) {
    return !source.maps.empty() && source.maps.front().weight.size(1) == outputs;
  });
  if (found == sources_.end()) found = sources_.insert(found, Source());
  return static_cast<std::size_t>(found - sources_.begin());
}

torch::Tensor FusedTemperatures::inverses(const torch::Tensor& x) {
  const Queries queries{x.size(0), x.size(1), num_heads_, x.size(2)};
  if (sources_.empty()) {
    if (!constants_.defined() || constants_.scalar_type() != x.scalar_type()) {
      constants_ = constant_inverses(models_, x.scalar_type());
    }
    return constants_.expand({queries.models, queries.sequences, queries.heads, queries.tokens, 1});
  }
  Tensors logits;
  for (const auto& source : sources_) {
    logits.push_back(source.maps.empty() ? source.parameter
                                         : partial_linear(x, source.maps, mode_));
  }
  return array_op(InverseTemperatures{models_, queries}, logits)[0];
}

}  // namespace nas::nn
