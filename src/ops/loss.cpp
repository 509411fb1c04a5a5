#include "ops/loss.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "kernels/cross_entropy.hpp"
#include "ops/array_op.hpp"
#include "ops/cpu_products.hpp"
#include "ops/device_operations.hpp"
#include "ops/divergence_loss.hpp"
#include "ops/logit_rows.hpp"
#include "ops/product.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

/// @param bytes  of a logit.
std::int64_t rows_at_once(const OutputLayer& layer, std::int64_t bytes) {
  return std::min(logit_rows(layer.vocabulary(), bytes), layer.tokens());
}

/// LibTorch's own losses throw likewise. @param targets  contiguous.
void require_targets_below(std::int64_t vocabulary, const torch::Tensor& targets) {
  if (targets.numel() == 0) return;
  const auto* first = targets.data_ptr<std::int64_t>();
  const auto largest = *std::max_element(first, first + targets.numel());
  TORCH_CHECK_INDEX(largest < vocabulary, "target ", largest, " must be below the vocabulary of ",
                    vocabulary);
}

/// (R, ..., D) as (R, N, D).
torch::Tensor as_rows(const torch::Tensor& x) { return x.view({x.size(0), -1, x.size(-1)}); }

// The products of a few rows of logits with E, of one model after the other:
//   rows()                 at once, at most;
//   of(layer)              the same products of another layer;
//   take(model)            goes on with that model;
//   logits(first, rows)    computes logits of tokens [first, first + rows), row_size() apart;
//   keep(row)              after a row of logits became its dL/d(logits);
//   backward(first, rows)  from these, where the logits were: writes dL/d(features), adds dL/dE.

/// Rows begin at cache lines, and not a power of two apart, which would crowd the cache.
std::int64_t padded_row(std::int64_t vocabulary) {
  const std::int64_t size = (vocabulary + 15) / 16 * 16;
  return size % 1024 == 0 ? size + 16 : size;
}

/// Their memory is used by all models.
template <class Real>
class ExactProducts {
 public:
  using Logit = Real;

  explicit ExactProducts(const OutputLayer& layer)
      : layer_(layer),
        row_size_(padded_row(layer.vocabulary())),
        logits_(rows() * row_size_),
        to_logits_(kernels::packed_size(layer.width(), layer.vocabulary())) {
    if (!layer.by_features.defined()) return;
    from_logits_.emplace(kernels::packed_size(layer.vocabulary(), layer.width()));
    features_.emplace(kernels::packed_size(rows(), layer.width()));
  }

  [[nodiscard]] ExactProducts of(const OutputLayer& layer) const { return ExactProducts(layer); }
  [[nodiscard]] std::int64_t rows() const { return rows_at_once(layer_, sizeof(Real)); }

  void take(std::int64_t model) {
    model_ = model;
    const Real* e = part(layer_.embedding);
    kernels::pack<Real>({e, 1, width()}, width(), vocabulary(), to_logits_.data());
    if (from_logits_) {
      kernels::pack<Real>({e, width(), 1}, vocabulary(), width(), from_logits_->data());
    }
  }

  Real* logits(std::int64_t first, std::int64_t rows) {
    multiply_on_threads<Real>(rows, vocabulary(), width(),
                              {part(layer_.features) + first * width(), width(), 1},
                              to_logits_.data(), {}, logits_.data(), row_size_);
    return logits_.data();
  }

  static void keep(Real* /*row*/) {}

  void backward(std::int64_t first, std::int64_t rows) {
    multiply_on_threads<Real>(rows, width(), vocabulary(), {logits_.data(), row_size_, 1},
                              from_logits_->data(), {}, part(layer_.by_features) + first * width(),
                              width());
    kernels::pack<Real>({part(layer_.features) + first * width(), width(), 1}, rows, width(),
                        features_->data());
    Real* by_embedding = part(layer_.by_embedding);
    multiply_on_threads<Real>(vocabulary(), width(), rows, {logits_.data(), 1, row_size_},
                              features_->data(), {by_embedding, width()}, by_embedding, width());
  }

  [[nodiscard]] std::int64_t row_size() const { return row_size_; }

 private:
  [[nodiscard]] std::int64_t width() const { return layer_.width(); }
  [[nodiscard]] std::int64_t vocabulary() const { return layer_.vocabulary(); }
  /// Of the present model.
  [[nodiscard]] Real* part(const torch::Tensor& tensor) const {
    return tensor.data_ptr<Real>() + model_ * tensor.stride(0);
  }

  const OutputLayer& layer_;
  std::int64_t model_ = 0;
  std::int64_t row_size_;
  Scratch<Real> logits_, to_logits_;
  std::optional<Scratch<Real>> from_logits_, features_;  // for gradients
};

/// By pairs of bfloat16 numbers, to which gradients w.r.t. logits are rounded some columns at a time, so that these stay in
/// the second-level cache.
class PairedProducts {
 public:
  using Logit = float;

  PairedProducts(const OutputLayer& layer, kernels::PairForm form)
      : layer_(layer),
        form_(form),
        row_size_(padded_row(layer.vocabulary())),
        logits_(rows() * row_size_),
        rounded_(rows() * form.parts * pairs_of(std::max(width(), kColumns))),
        to_logits_(packed_pairs(width(), vocabulary(), form)) {
    if (!layer.by_features.defined()) return;
    from_logits_.emplace(packed_pairs(vocabulary(), width(), form_));
    packed_logits_.emplace(packed_pairs(rows(), kColumns, form_));
    packed_features_.emplace(packed_pairs(rows(), width(), form_));
  }

  [[nodiscard]] PairedProducts of(const OutputLayer& layer) const { return {layer, form_}; }
  [[nodiscard]] std::int64_t rows() const { return rows_at_once(layer_, sizeof(float)); }

  void take(std::int64_t model) {
    model_ = model;
    const float* e = part(layer_.embedding);
    kernels::pack_pairs({e, 1, width()}, width(), vocabulary(), 0, width(), to_logits_.data(),
                        form_);
    for (std::int64_t word = 0; from_logits_ && word < vocabulary(); word += kColumns) {
      pack_pairs_on_threads(std::min(kColumns, vocabulary() - word), width(), e + word * width(),
                            width(), from_logits_->data() + packed_pairs(word, width(), form_),
                            form_);
    }
  }

  float* logits(std::int64_t first, std::int64_t rows) {
    const float* features = part(layer_.features) + first * width();
    round_pairs_on_threads(rows, width(), features, width(), rounded_.data(), form_);
    multiply_pairs_on_threads(rows, vocabulary(), pairs_of(width()), {rounded_.data()},
                              to_logits_.data(), {}, logits_.data(), row_size_, form_);
    return logits_.data();
  }

  /// One part is rounded in place, while the row is in a near cache.
  void keep(float* row) const {
    if (form_.parts == 1) kernels::round_pairs(1, vocabulary(), row, row_size_, row, form_);
  }

  void backward(std::int64_t first, std::int64_t rows) {
    float* const by_features = part(layer_.by_features) + first * width();
    pack_pairs_on_threads(rows, width(), part(layer_.features) + first * width(), width(),
                          packed_features_->data(), form_);
    for (std::int64_t word = 0; word < vocabulary(); word += kColumns) {
      const auto words = std::min(kColumns, vocabulary() - word);
      const bool rounded = form_.parts == 1;
      const float* by_logits = logits_.data() + (rounded ? word / 2 : word);
      kernels::LeftPairs left{by_logits, 0, 0, row_size_};
      if (!rounded) {
        round_pairs_on_threads(rows, words, by_logits, row_size_, rounded_.data(), form_);
        left = {rounded_.data()};
      }
      multiply_pairs_on_threads(rows, width(), pairs_of(words), left,
                                from_logits_->data() + packed_pairs(word, width(), form_),
                                {word == 0 ? nullptr : by_features, width()}, by_features, width(),
                                form_);
      pack_pairs_on_threads(rows, words, by_logits, row_size_, packed_logits_->data(), form_,
                            rounded);
      float* const by_embedding = part(layer_.by_embedding) + word * width();
      multiply_pairs_on_threads(words, width(), pairs_of(rows), {packed_logits_->data(), words, 0},
                                packed_features_->data(), {by_embedding, width()}, by_embedding,
                                width(), form_);
    }
  }

  [[nodiscard]] std::int64_t row_size() const { return row_size_; }

 private:
  static constexpr std::int64_t kColumns = kernels::kColumnBlock;

  [[nodiscard]] std::int64_t width() const { return layer_.width(); }
  [[nodiscard]] std::int64_t vocabulary() const { return layer_.vocabulary(); }
  /// Of the present model.
  [[nodiscard]] float* part(const torch::Tensor& tensor) const {
    return tensor.data_ptr<float>() + model_ * tensor.stride(0);
  }

  const OutputLayer& layer_;
  kernels::PairForm form_;
  std::int64_t model_ = 0;
  std::int64_t row_size_;
  Scratch<float> logits_, rounded_, to_logits_;
  std::optional<Scratch<float>> from_logits_, packed_logits_, packed_features_;  // for gradients
};

/// With factors and results rounded to bfloat16, by LibTorch.
class RoundedProducts {
 public:
  using Logit = kernels::Bfloat16;

  explicit RoundedProducts(const OutputLayer& layer)
      : layer_(layer),
        all_embedding_(rounded_factor(layer.embedding)),
        all_features_(rounded_factor(layer.features)) {}

  [[nodiscard]] RoundedProducts of(const OutputLayer& layer) const {
    return RoundedProducts(layer);
  }
  [[nodiscard]] std::int64_t rows() const { return rows_at_once(layer_, 4); }

  void take(std::int64_t model) {
    model_ = model;
    embedding_ = all_embedding_[model];
    features_ = all_features_[model];
  }

  Logit* logits(std::int64_t first, std::int64_t rows) {
    logits_ = multiply_rounded(features_.narrow(0, first, rows), embedding_.t());
    return reinterpret_cast<Logit*>(logits_.data_ptr<at::BFloat16>());
  }

  void backward(std::int64_t first, std::int64_t rows) {
    layer_.by_features[model_].narrow(0, first, rows).copy_(multiply_rounded(logits_, embedding_));
    layer_.by_embedding[model_].add_(
        multiply_rounded(logits_.t(), features_.narrow(0, first, rows)));
  }

  static void keep(Logit* /*row*/) {}

  [[nodiscard]] std::int64_t row_size() const { return layer_.vocabulary(); }

 private:
  const OutputLayer& layer_;
  std::int64_t model_ = 0;
  torch::Tensor all_embedding_, all_features_, embedding_, features_, logits_;
};

/// Calls run(products) with those of a mode.
template <class Run>
void with_products(const OutputLayer& layer, NumericalMode mode, const Run& run) {
  if (layer.features.scalar_type() == at::kDouble) {
    run(ExactProducts<double>(layer));
    return;
  }
  using By = CpuProducts::By;
  const auto by = cpu_products(mode).of(layer.vocabulary() * layer.width());
  if (by == By::float32) {
    run(ExactProducts<float>(layer));
  } else if (by == By::library) {
    run(RoundedProducts(layer));
  } else {
    run(PairedProducts(layer, pair_form(mode, by)));
  }
}

/// Calls each(model, token, logits of the token) on LibTorch's threads, and then(first, rows) after
/// each piece of a model's tokens.
template <class Products, class Each, class Then>
void for_tokens(const OutputLayer& layer, Products& products, const Each& each, const Then& then) {
  const std::int64_t step = products.rows();
  for (std::int64_t model = 0; model < layer.models(); ++model) {
    products.take(model);
    for (std::int64_t first = 0; first < layer.tokens(); first += step) {
      const std::int64_t rows = std::min(step, layer.tokens() - first);
      auto* logits = products.logits(first, rows);
      constexpr std::int64_t kGrain = 8;
      at::parallel_for(0, rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) each(model, first + i, logits + i * products.row_size());
      });
      then(first, rows);
    }
  }
}

/// How many targets of each model are scored.
std::vector<double> counts(const torch::Tensor& targets) {
  std::vector<double> count(static_cast<std::size_t>(targets.size(0)), 0.0);
  const auto* target = targets.data_ptr<std::int64_t>();
  const auto per_model = targets.numel() / targets.size(0);
  for (std::int64_t i = 0; i < targets.numel(); ++i) {
    if (target[i] >= 0) ++count[static_cast<std::size_t>(i / per_model)];
  }
  return count;
}

/// @param x  (R).
bool all_ones(const torch::Tensor& x) {
  return AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "all_ones", [&] {
    const auto* first = x.data_ptr<scalar_t>();
    return std::all_of(first, first + x.size(0), [](auto factor) { return factor == 1; });
  });
}

/// The losses (R) with their gradients, on the CPU.
torch::Tensor with_gradients(const OutputLayer& layer, const torch::Tensor& targets,
                             const torch::Tensor& counted, NumericalMode mode) {
  require_targets_below(layer.vocabulary(), targets);
  const auto* target = targets.data_ptr<std::int64_t>();
  auto weights = counts(counted);
  for (auto& weight : weights) weight = 1.0 / weight;
  std::vector<double> nll(static_cast<std::size_t>(targets.numel()));
  with_products(layer, mode, [&](auto&& products) {
    for_tokens(
        layer, products,
        [&](std::int64_t model, std::int64_t token, auto* logits) {
          const auto i = model * layer.tokens() + token;
          nll[static_cast<std::size_t>(i)] = kernels::cross_entropy_gradient(
              logits, layer.vocabulary(), target[i], weights[static_cast<std::size_t>(model)]);
          products.keep(logits);
        },
        [&](std::int64_t first, std::int64_t rows) { products.backward(first, rows); });
  });
  auto losses = at::empty({layer.models()}, layer.features.options());
  AT_DISPATCH_FLOATING_TYPES(losses.scalar_type(), "linear_cross_entropy", [&] {
    for (std::int64_t model = 0; model < layer.models(); ++model) {
      const auto first = nll.begin() + model * layer.tokens();
      losses.data_ptr<scalar_t>()[model] =
          static_cast<scalar_t>(std::accumulate(first, first + layer.tokens(), 0.0) *
                                weights[static_cast<std::size_t>(model)]);
    }
  });
  return losses;
}

/// The losses of rows, and with them their gradients with respect to the first two of four tensors.
struct MadeForward {
  static Tensors backward(const Tensors& saved, const Tensors& by_out) {
    const auto& factors = by_out[0];
    // All 1 in every training run: then nothing is to be done.
    if (const auto* device = device_operations(factors.device())) {
      for (const auto& x : saved) device->scale(x, factors);
      return {saved[0], saved[1], {}, {}};
    }
    if (factors.device().is_cpu() && all_ones(factors)) return {saved[0], saved[1], {}, {}};
    Tensors by;
    for (const auto& x : saved) {
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
      sizes.front() = x.size(0);
      by.push_back(x * factors.view(sizes));
    }
    by.resize(4);
    return by;
  }
};

/// Of features, embedding, targets, and those that are counted where they are others.
struct LinearCrossEntropy : MadeForward {
  NumericalMode mode;

  explicit LinearCrossEntropy(NumericalMode chosen) : mode(chosen) {}

  Tensors forward(const Tensors& in, Tensors& saved) const {
    const auto* device = device_operations(in[0].device());
    const OutputLayer layer{
        as_rows(in[0]), in[1], as_rows(unwritten(in[0])),
        device == nullptr ? at::zeros(in[1].sizes(), in[1].options()) : unwritten(in[1])};
    saved = {layer.by_features.view(in[0].sizes()), layer.by_embedding};
    const auto& counted = in[3].defined() ? in[3] : in[2];
    return {device == nullptr
                ? with_gradients(layer, in[2], counted, mode)
                : device->linear_cross_entropy(layer, in[2].flatten(1), counted.flatten(1), mode)};
  }
};

/// The products of two models' logits of the same tokens, for for_tokens(); those of the second are read.
template <class Products>
struct BothProducts {
  Products own, told;
  std::int64_t first = 0;
  typename Products::Logit* told_logits = nullptr;

  [[nodiscard]] std::int64_t rows() const { return own.rows(); }
  void take(std::int64_t model) {
    own.take(model);
    told.take(model);
  }
  auto* logits(std::int64_t begin, std::int64_t rows) {
    first = begin;
    told_logits = told.logits(begin, rows);
    return own.logits(begin, rows);
  }
  [[nodiscard]] const auto* told_row(std::int64_t token) const {
    return told_logits + (token - first) * told.row_size();
  }
  [[nodiscard]] std::int64_t row_size() const { return own.row_size(); }
};

/// Of features, embedding, and nothing else.
struct LinearDivergence : MadeForward {
  OutputLayer told;
  NumericalMode mode;
  std::int64_t counted;

  LinearDivergence(OutputLayer other, NumericalMode chosen, std::int64_t tokens)
      : told(std::move(other)), mode(chosen), counted(tokens) {}

  Tensors forward(const Tensors& in, Tensors& saved) const {
    const OutputLayer layer{as_rows(in[0]), in[1], as_rows(unwritten(in[0])),
                            at::zeros(in[1].sizes(), in[1].options())};
    saved = {layer.by_features.view(in[0].sizes()), layer.by_embedding};
    const auto weight = 1.0 / static_cast<double>(counted);
    std::vector<double> nats(static_cast<std::size_t>(layer.models() * layer.tokens()));
    with_products(layer, mode, [&](auto&& products) {
      using Products = std::decay_t<decltype(products)>;
      auto of_told = products.of(told);
      BothProducts<Products> both{std::move(products), std::move(of_told)};
      for_tokens(
          layer, both,
          [&](std::int64_t model, std::int64_t token, auto* logits) {
            nats[static_cast<std::size_t>(model * layer.tokens() + token)] =
                kernels::divergence_gradient(logits, both.told_row(token), layer.vocabulary(),
                                             weight);
            both.own.keep(logits);
          },
          [&](std::int64_t first, std::int64_t rows) { both.own.backward(first, rows); });
    });
    auto losses = at::empty({layer.models()}, at::TensorOptions(at::kDouble));
    for (std::int64_t model = 0; model < layer.models(); ++model) {
      const auto first = nats.begin() + model * layer.tokens();
      losses.data_ptr<double>()[model] =
          std::accumulate(first, first + layer.tokens(), 0.0) * weight;
    }
    return {losses.to(layer.features.scalar_type())};
  }
};

/// -log softmax(logits)[target] by LibTorch's operations, 0 where nothing is asked.
torch::Tensor nll_by_operations(const torch::Tensor& logits, const torch::Tensor& targets) {
  return at::log_softmax(logits, -1)
      .gather(2, targets.clamp_min(0).unsqueeze(2))
      .squeeze(2)
      .neg()
      .masked_fill(targets.lt(0), 0.0);
}

}  // namespace

torch::Tensor linear_cross_entropy(const torch::Tensor& features, const torch::Tensor& embedding,
                                   const torch::Tensor& targets, NumericalMode mode,
                                   const torch::Tensor& counted) {
  if (mode != NumericalMode::reference && has_kernels(features.device())) {
    return array_op(LinearCrossEntropy{mode}, {features, embedding, targets, counted})[0];
  }
  const auto logits = linear(features.flatten(1, -2), embedding, {}, mode);
  const auto wanted = targets.flatten(1);
  return nll_by_operations(logits, wanted).sum(1) /
         (counted.defined() ? counted.flatten(1) : wanted).ge(0).sum(1);
}

torch::Tensor linear_divergence(const torch::Tensor& features, const torch::Tensor& embedding,
                                const OutputLayer& told, NumericalMode mode, std::int64_t counted) {
  const auto rows = features.flatten(1, -2);
  TORCH_CHECK(told.models() == rows.size(0) && told.tokens() == rows.size(1) &&
                  told.vocabulary() == embedding.size(1) &&
                  told.features.scalar_type() == features.scalar_type(),
              "linear_divergence: features ", rows.sizes(), " of a vocabulary of ",
              embedding.size(1), " beside ", told.features.sizes(), " of one of ",
              told.vocabulary());
  if (counted == 0) counted = rows.size(1);
  if (mode != NumericalMode::reference && features.device().is_cpu())
    return array_op(LinearDivergence(told, mode, counted), {features, embedding, {}, {}})[0];
  const auto p = linear(told.features, told.embedding, {}, mode).log_softmax(-1);
  const auto q = linear(rows, embedding, {}, mode).log_softmax(-1);
  return (p.exp() * (p - q)).sum({1, 2}) / counted;
}

TokenScores score_tokens(const torch::Tensor& features, const torch::Tensor& embedding,
                         const torch::Tensor& targets, NumericalMode mode) {
  TORCH_CHECK(features.dim() == 3 && targets.sizes() == features.sizes().slice(0, 2),
              "score_tokens: features ", features.sizes(), " and targets ", targets.sizes(),
              ", must be (R, N, D) and (R, N)");
  const at::NoGradGuard no_grad;
  const OutputLayer layer{features.contiguous(), embedding.contiguous()};
  const auto* device = device_operations(features.device());
  if (mode != NumericalMode::reference && device != nullptr) {
    return device->score_tokens(layer, targets.contiguous(), mode);
  }
  TokenScores scores{at::empty(targets.sizes(), targets.options().dtype(at::kDouble)),
                     at::empty(targets.sizes(), targets.options().dtype(at::kBool))};
  if (mode != NumericalMode::reference && features.device().is_cpu()) {
    const auto wanted = targets.contiguous();
    require_targets_below(embedding.size(1), wanted);
    with_products(layer, mode, [&](auto&& products) {
      for_tokens(
          layer, products,
          [&](std::int64_t model, std::int64_t token, const auto* logits) {
            const auto i = model * layer.tokens() + token;
            const auto score = kernels::cross_entropy(logits, layer.vocabulary(),
                                                      wanted.data_ptr<std::int64_t>()[i]);
            scores.nll.data_ptr<double>()[i] = score.nll;
            scores.correct.data_ptr<bool>()[i] = score.correct;
          },
          [](std::int64_t, std::int64_t) {});
    });
    return scores;
  }
  const auto step = logit_rows(embedding.size(1), features.element_size());
  for (std::int64_t first = 0; first < layer.tokens(); first += step) {
    const std::int64_t rows = std::min(step, layer.tokens() - first);
    const auto logits = linear(features.narrow(1, first, rows), embedding, {}, mode);
    const auto target = targets.narrow(1, first, rows);
    scores.nll.narrow(1, first, rows).copy_(nll_by_operations(logits, target));
    scores.correct.narrow(1, first, rows).copy_(logits.argmax(-1) == target);
  }
  return scores;
}

Divergences divergences(const torch::Tensor& features, const torch::Tensor& embedding,
                        const torch::Tensor& log_p, const torch::Tensor& likeliest,
                        const torch::Tensor& targets, NumericalMode mode) {
  TORCH_CHECK(features.scalar_type() == at::kFloat && features.device().is_cpu() &&
                  log_p.is_contiguous() && log_p.size(0) == features.size(0) &&
                  log_p.size(1) == embedding.size(1),
              "divergences: features ", features.sizes(), " and log-probabilities ", log_p.sizes(),
              " of a vocabulary of ", embedding.size(1));
  const at::NoGradGuard no_grad;
  const auto tokens = features.size(0), vocabulary = embedding.size(1);
  require_targets_below(vocabulary, targets);
  // Their logits less their log-probabilities: log sum e^z, were the models one.
  const auto shifts = (features * embedding[0].index_select(0, likeliest)).sum(-1) -
                      log_p.gather(1, likeliest.unsqueeze(1)).squeeze(1);
  const auto options = features.options().dtype(at::kDouble);
  Divergences found{at::empty({tokens}, options), at::zeros({tokens}, options),
                    at::empty({tokens}, options.dtype(at::kLong))};
  const auto* shift = shifts.data_ptr<float>();
  const auto* target = targets.data_ptr<std::int64_t>();
  auto* nll = found.nll.data_ptr<double>();
  std::vector<kernels::Divergence> sums(static_cast<std::size_t>(tokens));
  // As many that they stay in the last-level cache, and the products are large enough.
  const auto step = std::clamp<std::int64_t>((std::int64_t{1} << 20U) / tokens / 256, 1, 16) * 256;
  for (std::int64_t first = 0; first < vocabulary; first += step) {
    const auto size = std::min(step, vocabulary - first);
    const auto logits = linear(features.unsqueeze(0), embedding.narrow(1, first, size), {}, mode);
    at::parallel_for(0, tokens, 8, [&](std::int64_t begin, std::int64_t end) {
      for (auto t = begin; t < end; ++t) {
        const auto* z = logits.data_ptr<float>() + t * size;
        const auto own = target[t] - first;
        if (own >= 0 && own < size && target[t] >= 0) nll[t] = -static_cast<double>(z[own]);
        kernels::add_divergence(z, log_p.data_ptr<float>() + t * vocabulary + first, first, size,
                                shift[t], sums[static_cast<std::size_t>(t)]);
      }
    });
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto& of = sums[static_cast<std::size_t>(t)];
    found.nats.data_ptr<double>()[t] = of.nats(static_cast<double>(shift[t]));
    if (target[t] >= 0) nll[t] += of.log_sum();
    found.likeliest.data_ptr<std::int64_t>()[t] = of.likeliest;
  }
  return found;
}

}  // namespace nas::nn
