#include "ops/temperature.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "ops/kept.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Model = FusedTemperatures::Model;

/// The queries of an array.
struct Queries {
  std::int64_t models = 0;
  std::int64_t sequences = 0;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
};

/// What does not change between the passes and is no tensor.
struct Call {
  std::vector<Model> models;
  Queries queries;
};

double sigmoid(double z) { return 1.0 / (1.0 + std::exp(-z)); }

double divisor(const Model& model, double z) {
  switch (model.function) {
    case DivisorFunction::constant:
      break;
    case DivisorFunction::exponential:
      return model.scale * std::exp(z);
    case DivisorFunction::logistic:
      return model.scale * (sigmoid(z) + 0.5);
    case DivisorFunction::absolute:
      return model.scale * (std::abs(z) + 0.5);
  }
  return model.scale;
}

/// The derivative of a divisor w.r.t. z.
double divisor_slope(const Model& model, double z) {
  switch (model.function) {
    case DivisorFunction::constant:
      break;
    case DivisorFunction::exponential:
      return model.scale * std::exp(z);
    case DivisorFunction::logistic:
      return model.scale * sigmoid(z) * (1.0 - sigmoid(z));
    case DivisorFunction::absolute:
      return z == 0.0 ? 0.0 : std::copysign(model.scale, z);
  }
  return 0.0;
}

/// The logits of one model, in double: there are few of them, and sums over thousands of queries
/// are to be exact.
struct Logits {
  std::vector<double> values;
  std::int64_t sequence = 0;  ///< steps in `values`; 0 where all have one
  std::int64_t token = 0;
  std::int64_t head = 0;

  /// Calls run(query's place in (B, H, T), its logit's place in values).
  template <class Run>
  void for_queries(const Queries& queries, const Run& run) const {
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

/// @param all  logits of several models: (M, n), or (M, B, T, n) by token.
template <class Real>
Logits logits_of(const Model& model, const torch::Tensor& all, const Queries& queries) {
  const std::int64_t outputs = all.size(-1);
  const std::int64_t count = all.numel() / all.size(0);
  const auto* first = all.data_ptr<Real>() + model.row * count;
  Logits logits;
  logits.head = outputs == 1 ? 0 : 1;
  if (all.dim() == 2) {
    logits.values.assign(first, first + count);
  } else if (model.of_mean) {
    logits.sequence = outputs;
    logits.values.resize(static_cast<std::size_t>(queries.sequences * outputs));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto sequence = i / (queries.tokens * outputs);
      logits.values[static_cast<std::size_t>(sequence * outputs + i % outputs)] +=
          static_cast<double>(first[i]) / static_cast<double>(queries.tokens);
    }
  } else {
    logits.token = outputs;
    logits.sequence = outputs * queries.tokens;
    logits.values.assign(first, first + count);
  }
  return logits;
}

/// Writes gradients w.r.t. logits as logits_of() reads them. @param by_values  w.r.t. its values.
template <class Real>
void write_gradient(const Model& model, const std::vector<double>& by_values,
                    const Queries& queries, const torch::Tensor& by_all) {
  const std::int64_t outputs = by_all.size(-1);
  const std::int64_t count = by_all.numel() / by_all.size(0);
  auto* first = by_all.data_ptr<Real>() + model.row * count;
  for (std::int64_t i = 0; i < count; ++i) {
    if (by_all.dim() > 2 && model.of_mean) {
      const auto value = i / (queries.tokens * outputs) * outputs + i % outputs;
      first[i] = static_cast<Real>(by_values[static_cast<std::size_t>(value)] /
                                   static_cast<double>(queries.tokens));
    } else {
      first[i] = static_cast<Real>(by_values[static_cast<std::size_t>(i)]);
    }
  }
}

template <class Real>
void write_inverses(const Model& model, const variable_list& sources, const Queries& queries,
                    Real* out) {
  const std::int64_t count = queries.sequences * queries.heads * queries.tokens;
  if (model.source < 0) {
    std::fill_n(out, count, static_cast<Real>(1.0 / divisor(model, 0.0)));
    return;
  }
  auto logits = logits_of<Real>(model, sources[static_cast<std::size_t>(model.source)], queries);
  for (auto& value : logits.values) value = 1.0 / divisor(model, value);
  logits.for_queries(queries, [&](std::int64_t query, std::size_t at) {
    out[query] = static_cast<Real>(logits.values[at]);
  });
}

template <class Real>
void write_logit_gradients(const Model& model, const variable_list& sources, const Queries& queries,
                           const Real* by_inverses, const variable_list& by_sources) {
  if (model.source < 0) return;
  const auto source = static_cast<std::size_t>(model.source);
  const auto logits = logits_of<Real>(model, sources[source], queries);
  std::vector<double> by_values(logits.values.size());
  logits.for_queries(queries, [&](std::int64_t query, std::size_t at) {
    by_values[at] += static_cast<double>(by_inverses[query]);
  });
  for (std::size_t i = 0; i < by_values.size(); ++i) {
    const double inverse = 1.0 / divisor(model, logits.values[i]);
    by_values[i] *= -divisor_slope(model, logits.values[i]) * inverse * inverse;
  }
  write_gradient<Real>(model, by_values, queries, by_sources[source]);
}

class InverseTemperatures : public torch::autograd::Function<InverseTemperatures> {
 public:
  static torch::Tensor forward(AutogradContext* context, at::TensorList given,
                               const KeptPointer<Call>& call) {
    variable_list sources;
    for (const auto& source : given) sources.push_back(source.contiguous());
    const auto& queries = call->value.queries;
    const std::int64_t count = queries.sequences * queries.heads * queries.tokens;
    auto out = at::empty({queries.models, queries.sequences, queries.heads, queries.tokens, 1},
                         sources.front().options());
    AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "inverse_temperatures", [&] {
      at::parallel_for(0, queries.models, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          write_inverses(call->value.models[static_cast<std::size_t>(r)], sources, queries,
                         out.data_ptr<scalar_t>() + r * count);
        }
      });
    });
    context->save_for_backward(std::move(sources));
    keep(context, call);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& call = kept<Call>(context);
    const auto& queries = call.queries;
    const std::int64_t count = queries.sequences * queries.heads * queries.tokens;
    const auto sources = context->get_saved_variables();
    const auto by_inverses = gradients[0].contiguous();
    variable_list by_sources;
    for (const auto& source : sources) {
      by_sources.push_back(at::empty(source.sizes(), source.options()));
    }
    AT_DISPATCH_FLOATING_TYPES(by_inverses.scalar_type(), "inverse_temperatures_backward", [&] {
      at::parallel_for(0, queries.models, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          write_logit_gradients(call.models[static_cast<std::size_t>(r)], sources, queries,
                                by_inverses.data_ptr<scalar_t>() + r * count, by_sources);
        }
      });
    });
    by_sources.emplace_back();
    return by_sources;
  }
};

/// (R, 1, 1, 1, 1), of divisors that have no logits.
torch::Tensor constant_inverses(const std::vector<Model>& models, torch::ScalarType type) {
  std::vector<double> inverses;
  for (const auto& model : models) inverses.push_back(1.0 / divisor(model, 0.0));
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
  std::vector<torch::Tensor> logits;
  for (const auto& source : sources_) {
    logits.push_back(source.maps.empty() ? source.parameter
                                         : partial_linear(x, source.maps, mode_));
  }
  return InverseTemperatures::apply(at::TensorList(logits), make_kept(Call{models_, queries}));
}

}  // namespace nas::nn
