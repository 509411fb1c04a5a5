#include "ops/product.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>

#include <ATen/Context.h>
#include <ATen/Dispatch.h>

#include "ops/array_op.hpp"
#include "ops/cpu_products.hpp"
#include "ops/device_operations.hpp"
#include "ops/model_parts.hpp"

namespace nas::nn {

namespace {

/// (R, rows, columns).
torch::Tensor as_rows(const torch::Tensor& x) { return x.reshape({x.size(0), -1, x.size(-1)}); }

/// The sizes of x with another last one.
std::vector<std::int64_t> with_last(const torch::Tensor& x, std::int64_t last) {
  auto sizes = x.sizes().vec();
  sizes.back() = last;
  return sizes;
}

/// Gradients (M, n) w.r.t. the biases of the models that have one, from those w.r.t. y (R, ..., n).
torch::Tensor bias_gradient(const torch::Tensor& by_y, const std::vector<std::int64_t>& rows) {
  const auto n = by_y.size(-1);
  const auto m =
      c10::multiply_integers(by_y.sizes().slice(1, static_cast<std::size_t>(by_y.dim()) - 2));
  const auto biased = std::count_if(rows.begin(), rows.end(), [](auto row) { return row >= 0; });
  auto by_bias = at::empty({biased, n}, by_y.options());
  AT_DISPATCH_FLOATING_TYPES(by_y.scalar_type(), "bias_gradient", [&] {
    at::parallel_for(0, std::ssize(rows), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        auto* sums = row_of<scalar_t>(by_bias, rows[static_cast<std::size_t>(r)]);
        if (sums != nullptr) add_up_rows<scalar_t>(m, n, row_of<scalar_t>(by_y, r), sums);
      }
    });
  });
  return by_bias;
}

/// Of x, weight and bias.
struct ExactLinear {
  static constexpr bool kAnyStrides = true;  // of the weight
  std::vector<std::int64_t> bias_rows;       ///< none: there are no biases

  Tensors forward(const Tensors& in, Tensors& saved) const {
    const auto x = in[0].contiguous();
    const auto bias = bias_rows.empty() ? torch::Tensor() : in[2].contiguous();
    saved = {x, in[1]};
    auto y = at::empty(with_last(x, in[1].size(1)), x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear", [&] {
      for (std::int64_t r = 0; r < x.size(0); ++r) {
        const auto row = bias.defined() ? bias_rows[static_cast<std::size_t>(r)] : -1;
        LinearMap<scalar_t>::of(x, in[1], r)
            .forward(row_of<scalar_t>(x, r), row_of<scalar_t>(bias, row), row_of<scalar_t>(y, r));
      }
    });
    return {y};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto by_y = by_out[0].contiguous();
    auto by = unwritten(saved);
    AT_DISPATCH_FLOATING_TYPES(by_y.scalar_type(), "linear_backward", [&] {
      for (std::int64_t r = 0; r < by_y.size(0); ++r) {
        LinearMap<scalar_t>::of(saved[0], saved[1], r)
            .backward(row_of<scalar_t>(saved[0], r), row_of<scalar_t>(by_y, r),
                      row_of<scalar_t>(by[0], r), row_of<scalar_t>(by[1], r));
      }
    });
    by.push_back(bias_rows.empty() ? torch::Tensor() : bias_gradient(by_y, bias_rows));
    return by;
  }
};

/// Products of rounded factors, or of others on a device, for each model, (R, m, n). On the CPU one
/// model after the other: a batched product guarantees nothing about its members.
torch::Tensor rounded_product(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.device().is_cpu()) return at::bmm(a, b);
  return for_each_model(a.size(0), [&](std::int64_t r) { return multiply_rounded(a[r], b[r]); });
}

/// Of x, then weight and bias of each map of it: by pairs of bfloat16 numbers; float32.
struct PairedLinears {
  static constexpr bool kAnyStrides = true;
  kernels::PairForm form;
  std::vector<std::vector<std::int64_t>> bias_rows;  ///< of each map; none: it has no biases

  Tensors forward(const Tensors& in, Tensors& saved) const {
    const auto x = in[0].contiguous();
    const auto width = x.size(-1), rows = x.numel() / (x.size(0) * width);
    saved = {x};
    Tensors results, biases;
    for (std::size_t i = 0; i < bias_rows.size(); ++i) {
      saved.push_back(with_lines(in[2 * i + 1]));
      results.push_back(at::empty(with_last(x, saved.back().size(1)), x.options()));
      biases.push_back(bias_rows[i].empty() ? torch::Tensor() : in[2 * i + 2].contiguous());
    }
    const Scratch<float> left(rows * form.parts * pairs_of(width));
    for (std::int64_t r = 0; r < x.size(0); ++r) {
      round_pairs_on_threads(rows, width, row_of<float>(x, r), width, left.data(), form);
      for (std::size_t i = 0; i < bias_rows.size(); ++i) {
        const float* added =
            biases[i].defined()
                ? row_of<float>(biases[i], bias_rows[i][static_cast<std::size_t>(r)])
                : nullptr;
        const auto lines = view_of(saved[i + 1], r);
        multiply_in_blocks(rows, results[i].size(-1), width, left.data(),
                           {lines.data, lines.column, lines.row}, {added, 0},
                           row_of<float>(results[i], r));
      }
    }
    return results;
  }

  /// Gradients w.r.t. x of further maps are added by their products.
  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto& x = saved[0];
    const auto width = x.size(-1), rows = x.numel() / (x.size(0) * width);
    Tensors given, by{unwritten(x)};
    std::int64_t widest = 0;
    for (std::size_t i = 0; i < by_out.size(); ++i) {
      given.push_back(by_out[i].contiguous());
      widest = std::max(widest, given[i].size(-1));
      by.push_back(unwritten(saved[i + 1]));
      by.push_back(bias_rows[i].empty() ? torch::Tensor() : bias_gradient(given[i], bias_rows[i]));
    }
    const auto step = rows_at_once(rows, width * widest);
    const Scratch<float> along(step * form.parts * pairs_of(widest)),
        across(packed_pairs(step, widest, form)), packed(packed_pairs(step, width, form));
    std::vector<Scratch<float>> weights;  // packed once for all rows
    for (std::size_t i = 0; step < rows && i < given.size(); ++i) {
      weights.emplace_back(packed_pairs(given[i].size(-1), width, form));
    }
    for (std::int64_t r = 0; r < x.size(0); ++r) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const auto out = given[i].size(-1);
        kernels::pack_pairs(view_of(saved[i + 1], r), out, width, 0, out, weights[i].data(), form);
      }
      for (std::int64_t first = 0; first < rows; first += step) {
        const auto size = std::min(step, rows - first);
        pack_pairs_on_threads(size, width, row_of<float>(x, r) + first * width, width,
                              packed.data(), form);
        float* const by_x = row_of<float>(by[0], r) + first * width;
        for (std::size_t i = 0; i < given.size(); ++i) {
          const auto out = given[i].size(-1);
          const float* by_y = row_of<float>(given[i], r) + first * out;
          float* const by_weight = row_of<float>(by[2 * i + 1], r);
          round_pairs_on_threads(size, out, by_y, out, along.data(), form);
          const kernels::Initial<float> before{i == 0 ? nullptr : by_x, width};
          if (weights.empty()) {
            multiply_in_blocks(size, width, out, along.data(), view_of(saved[i + 1], r), before,
                               by_x);
          } else {
            multiply_pairs_on_threads(size, width, pairs_of(out), {along.data()}, weights[i].data(),
                                      before, by_x, width, form);
          }
          pack_pairs_on_threads(size, out, by_y, out, across.data(), form);
          multiply_pairs_on_threads(out, width, pairs_of(size), {across.data(), out, 0},
                                    packed.data(), {first == 0 ? nullptr : by_weight, width},
                                    by_weight, width, form);
        }
      }
    }
    return by;
  }

 private:
  static kernels::MatrixView<float> view_of(const torch::Tensor& weight, std::int64_t r) {
    return {weight.data_ptr<float>() + r * weight.stride(0), weight.stride(1), weight.stride(2)};
  }

  /// Rows of gradients that stay in the cache as pairs, of small maps, whose own gradients stay there, too.
  static std::int64_t rows_at_once(std::int64_t rows, std::int64_t weights) {
    constexpr std::int64_t kRows = 256, kWeights = std::int64_t{1} << 18U;
    return weights <= kWeights ? std::min(rows, kRows) : rows;
  }

  /// With contiguous rows or columns.
  static torch::Tensor with_lines(const torch::Tensor& weight) {
    return weight.stride(1) == 1 || weight.stride(2) == 1 ? weight : weight.contiguous();
  }

  /// C (m, n) = initial + A B of pairs of A (m, k), as many columns of B at a time as stay in the cache.
  void multiply_in_blocks(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                          kernels::MatrixView<float> b, kernels::Initial<float> initial,
                          float* c) const {
    const std::int64_t step = std::min(n, kernels::kColumnBlock);
    const Scratch<float> packed(packed_pairs(k, step, form));
    for (std::int64_t first = 0; first < n; first += step) {
      const std::int64_t columns = std::min(step, n - first);
      kernels::pack_pairs(b.at(0, first), k, columns, 0, k, packed.data(), form);
      multiply_pairs_on_threads(m, columns, pairs_of(k), {a}, packed.data(), initial.at(0, first),
                                c + first, n, form);
    }
  }
};

/// Of x, weight and, on the CPU, where LibTorch's sums depend on what else is in a tensor, bias.
struct RoundedLinear {
  static constexpr bool kAnyStrides = true;
  std::vector<std::int64_t> bias_rows{};

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = {rounded_factor(as_rows(in[0])), rounded_factor(in[1])};
    auto y = rounded_product(saved[0], saved[1].transpose(1, 2)).to(in[0].scalar_type());
    for (std::size_t r = 0; r < bias_rows.size(); ++r) {
      if (bias_rows[r] >= 0) y[static_cast<std::int64_t>(r)] += in[2][bias_rows[r]];
    }
    return {y.view(with_last(in[0], in[1].size(1)))};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto by_y = by_out[0].contiguous();
    const auto type = by_y.scalar_type();
    const auto rounded = rounded_factor(as_rows(by_y));
    return {rounded_product(rounded, saved[1]).to(type).view(with_last(by_y, saved[1].size(2))),
            rounded_product(rounded.transpose(1, 2), saved[0]).to(type),
            bias_rows.empty() ? torch::Tensor() : bias_gradient(by_y, bias_rows)};
  }
};

/// (R, n), 0 for models that have none; undefined if none has.
torch::Tensor of_all_models(const Biases& bias) {
  if (!bias.values.defined()) return {};
  std::vector<std::int64_t> biased;
  for (std::size_t r = 0; r < bias.rows.size(); ++r) {
    if (bias.rows[r] >= 0) biased.push_back(static_cast<std::int64_t>(r));
  }
  if (biased.size() == bias.rows.size()) return bias.values;
  return at::zeros({std::ssize(bias.rows), bias.values.size(1)}, bias.values.options())
      .index_copy(0, index_on(bias.values.device(), biased), bias.values);
}

/// y (R, ..., n) with each model's bias.
torch::Tensor add_biases(const torch::Tensor& y, const Biases& bias) {
  if (!bias.values.defined()) return y;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(y.dim()), 1);
  sizes.front() = y.size(0);
  sizes.back() = y.size(-1);
  return y + of_all_models(bias).view(sizes);
}

/// Of x, then weight and bias of each map of it, on a device with kernels.
struct DeviceLinear {
  static constexpr bool kAnyStrides = true;
  bool rounds;         ///< factors, to bfloat16
  bool keeps = false;  ///< results as products give them

  Tensors forward(const Tensors& in, Tensors& saved) const {
    saved = {factor(as_rows(in[0]))};
    Tensors results;
    for (std::size_t i = 1; i < in.size(); i += 2) {
      const auto& weight = in[i];
      saved.push_back(factor(weight));
      saved.push_back(in[i + 1]);
      auto y = rounded_product(saved[0], saved[i].transpose(1, 2))
                   .view(with_last(in[0], weight.size(1)));
      if (in[i + 1].defined()) {
        const auto sum =
            y.scalar_type() == weight.scalar_type() ? y : at::empty(y.sizes(), weight.options());
        map(y, {in[i + 1].contiguous(), {}}, sum);
        y = sum;
      }
      results.push_back(keeps ? y : y.to(weight.scalar_type()));
    }
    return results;
  }

  /// That w.r.t. x is as products give it.
  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    const auto& x = saved[0];
    const auto type = x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type();
    Tensors by(1);
    for (std::size_t i = 1; i < saved.size(); i += 2) {
      const auto by_y = by_out[i / 2].contiguous();
      const auto by_bias = saved[i + 1].defined() ? unwritten(saved[i + 1]) : torch::Tensor();
      const auto given = as_rows(with_sums(by_y, by_bias, x.scalar_type()));
      if (!by[0].defined()) {
        by[0] = rounded_product(given, saved[i]);
      } else if (x.device().is_cpu()) {
        by[0] += rounded_product(given, saved[i]);
      } else {
        by[0].baddbmm_(given, saved[i]);
      }
      by.push_back(rounded_product(given.transpose(1, 2), x).to(type));
      by.push_back(by_bias);
    }
    auto sizes = by_out[0].sizes().vec();
    sizes.back() = x.size(-1);
    by[0] = by[0].view(sizes);
    return by;
  }

 private:
  [[nodiscard]] torch::Tensor factor(const torch::Tensor& x) const {
    return rounds ? rounded_factor(x) : x;
  }

  static void map(const torch::Tensor& x, const MapBias& bias, const torch::Tensor& out) {
    const Masks none{std::vector<kernels::Dropout>(static_cast<std::size_t>(x.size(0)))};
    device_operations(x.device())->map(kernels::Map::drop, {x}, bias, out, none);
  }

  /// The gradient w.r.t. y as a factor of products; writes that w.r.t. the bias if defined.
  [[nodiscard]] torch::Tensor with_sums(const torch::Tensor& by_y, const torch::Tensor& by_bias,
                                        at::ScalarType type) const {
    if (!by_bias.defined()) return factor(by_y);
    const bool converts = by_y.scalar_type() != type;
    const auto rounded =
        converts ? at::empty(by_y.sizes(), by_y.options().dtype(type)) : torch::Tensor();
    map(by_y, {{}, by_bias}, rounded);
    return converts ? rounded : factor(by_y);
  }
};

bool has_device_form(const torch::Tensor& x, NumericalMode mode) {
  return mode != NumericalMode::reference && device_operations(x.device()) != nullptr;
}

torch::Tensor linear_by_operations(const torch::Tensor& x, const torch::Tensor& weight,
                                   const Biases& bias) {
  if (!x.device().is_cpu()) {
    return add_biases(as_rows(x).bmm(weight.transpose(1, 2)).view(with_last(x, weight.size(1))),
                      bias);
  }
  return for_each_model(x.size(0), [&](std::int64_t r) {
    const auto row = bias.values.defined() ? bias.rows[static_cast<std::size_t>(r)] : -1;
    return row < 0 ? at::linear(x[r], weight[r]) : at::linear(x[r], weight[r], bias.values[row]);
  });
}

struct ContiguousGradient {
  static constexpr bool kAnyStrides = true;
  static Tensors forward(const Tensors& in, Tensors& /*saved*/) { return in; }
  static Tensors backward(const Tensors& /*saved*/, const Tensors& by_out) {
    return {by_out[0].contiguous()};
  }
};

}  // namespace

void set_float_products(torch::Device device, NumericalMode mode) {
  if (!device.is_cuda()) return;
  static std::mutex mutex;
  static std::optional<bool> in_tf32;  // unknown: what the environment says
  const bool wanted = mode == NumericalMode::tf32;
  const std::lock_guard lock(mutex);
  if (in_tf32 == wanted) return;
  at::globalContext().setAllowTF32CuBLAS(wanted);
  in_tf32 = wanted;
}

NumericalMode unrounded(NumericalMode mode) {
  return mode == NumericalMode::fast ? NumericalMode::exact : mode;
}

torch::Tensor rounded_factor(const torch::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kBFloat16);
}

torch::Tensor multiply_rounded(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.scalar_type() == at::kBFloat16) return at::mm(a, b);
  auto product = at::empty({a.size(0), b.size(1)}, a.options());
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "multiply_rounded", [&] {
    const auto view = [](const torch::Tensor& matrix) {
      return kernels::MatrixView<scalar_t>{matrix.data_ptr<scalar_t>(), matrix.stride(0),
                                           matrix.stride(1)};
    };
    multiply_on_threads<scalar_t>(a.size(0), b.size(1), a.size(1), view(a), view(b), {},
                                  product.data_ptr<scalar_t>(), b.size(1));
  });
  return product;
}

Biases Biases::of_all(const torch::Tensor& values) {
  Biases biases{values, std::vector<std::int64_t>(static_cast<std::size_t>(values.size(0)))};
  std::iota(biases.rows.begin(), biases.rows.end(), std::int64_t{0});
  return biases;
}

torch::Tensor with_contiguous_gradient(const torch::Tensor& x) {
  return x.requires_grad() ? array_op(ContiguousGradient(), {x})[0] : x;
}

namespace {

void require_fitting(const torch::Tensor& x, const torch::Tensor& weight) {
  TORCH_CHECK(x.dim() >= 2 && weight.dim() == 3 && x.size(0) == weight.size(0) &&
                  x.size(-1) == weight.size(2),
              "linear: x ", x.sizes(), " does not fit weights ", weight.sizes());
}

/// On the CPU.
CpuProducts::By way_of(const torch::Tensor& x, const torch::Tensor& weight, NumericalMode mode) {
  return x.scalar_type() == at::kFloat ? cpu_products(mode).of(weight.size(1) * weight.size(2))
                                       : CpuProducts::By::float32;
}

std::vector<std::int64_t> rows_of(const Biases& bias) {
  return bias.values.defined() ? bias.rows : std::vector<std::int64_t>();
}

}  // namespace

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const Biases& bias,
                     NumericalMode mode) {
  require_fitting(x, weight);
  if (has_device_form(x, mode)) return linears_of(x, {{weight, bias}}, mode)[0];
  using By = CpuProducts::By;
  if (!x.device().is_cpu()) {
    if (mode != NumericalMode::fast) return linear_by_operations(x, weight, bias);
    return add_biases(array_op(RoundedLinear(), {x, weight, {}})[0], bias);
  }
  if (mode == NumericalMode::reference) return linear_by_operations(x, weight, bias);
  const auto by = way_of(x, weight, mode);
  const Tensors in{x, weight, bias.values};
  if (by == By::float32) return array_op(ExactLinear{rows_of(bias)}, in)[0];
  if (by == By::library) return array_op(RoundedLinear{rows_of(bias)}, in)[0];
  return array_op(PairedLinears{pair_form(mode, by), {rows_of(bias)}}, in)[0];
}

void try_products(NumericalMode mode, CpuProducts::By by, const torch::Tensor& x,
                  const torch::Tensor& weight, const torch::Tensor& by_y) {
  const auto run = [&](const auto& op) {
    Tensors saved;
    const auto y = op.forward({x, weight}, saved);
    return op.backward(saved, {by_y});
  };
  if (by == CpuProducts::By::float32) {
    run(ExactLinear());
  } else if (by == CpuProducts::By::library) {
    run(RoundedLinear());
  } else {
    run(PairedLinears{pair_form(mode, by), {{}}});
  }
}

std::vector<torch::Tensor> linears_of(const torch::Tensor& x,
                                      const std::vector<std::pair<torch::Tensor, Biases>>& maps,
                                      NumericalMode mode) {
  using By = CpuProducts::By;
  const bool on_device = has_device_form(x, mode), on_cpu = x.device().is_cpu();
  Tensors in{x}, results;
  std::vector<std::vector<std::int64_t>> bias_rows;
  std::optional<By> by;  // of all maps
  for (const auto& [weight, bias] : maps) {
    require_fitting(x, weight);
    in.push_back(weight);
    in.push_back(on_device ? of_all_models(bias) : bias.values);
    bias_rows.push_back(rows_of(bias));
    const auto of_map = on_cpu ? way_of(x, weight, mode) : By::float32;
    by = by.value_or(of_map) == of_map ? of_map : By::float32;
  }
  if (on_device) return array_op(DeviceLinear{mode == NumericalMode::fast}, in);
  if (by == By::pairs || by == By::tiles) {
    return array_op(PairedLinears{pair_form(mode, *by), bias_rows}, in);
  }
  for (const auto& [weight, bias] : maps) results.push_back(linear(x, weight, bias, mode));
  return results;
}

Biased linear_before_bias(const torch::Tensor& x, const torch::Tensor& weight, const Biases& bias,
                          NumericalMode mode) {
  if (!has_device_form(x, mode) || !bias.values.defined()) return linear(x, weight, bias, mode);
  require_fitting(x, weight);
  const DeviceLinear product{mode == NumericalMode::fast, /*keeps=*/true};
  return {array_op(product, {x, weight, {}})[0], of_all_models(bias)};
}

torch::Tensor with_bias(const Biased& sum) {
  if (!sum.bias.defined()) return sum.values;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(sum.values.dim()), 1);
  sizes.front() = sum.bias.size(0);
  sizes.back() = sum.bias.size(1);
  return sum.values + sum.bias.view(sizes);
}

}  // namespace nas::nn
