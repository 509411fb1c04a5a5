#include "nn/loss.hpp"

#include <algorithm>
#include <optional>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/nn/functional/loss.h>

#include "kernels/cross_entropy.hpp"
#include "nn/product.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Logits at a time: they stay in the last-level cache, and the products are large enough.
constexpr std::int64_t kLogitBytes = std::int64_t{16} << 20U;

/// A multiple of what products take at once, at least that.
std::int64_t rows_at_once(const torch::Tensor& features, const torch::Tensor& embedding) {
  constexpr std::int64_t kMultiple = 128;
  const auto bytes = embedding.size(0) * static_cast<std::int64_t>(features.element_size());
  return std::max<std::int64_t>(kLogitBytes / bytes / kMultiple, 1) * kMultiple;
}

/// Calls run(row, Real*) for each row of `logits`, on LibTorch's threads.
template <class Run>
void for_rows(const torch::Tensor& logits, const Run& run) {
  const auto each = [&](auto* data) {
    at::parallel_for(0, logits.size(0), 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) run(row, data + row * logits.stride(0));
    });
  };
  if (logits.scalar_type() == at::kBFloat16) {
    each(reinterpret_cast<kernels::Bfloat16*>(logits.data_ptr<at::BFloat16>()));
  } else {
    AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "cross_entropy",
                               [&] { each(logits.data_ptr<scalar_t>()); });
  }
}

/// LibTorch's own losses say so, too.
void require_targets_below(std::int64_t vocabulary, const torch::Tensor& targets) {
  if (targets.numel() == 0) return;
  const auto largest = targets.max().item<std::int64_t>();
  TORCH_CHECK_INDEX(largest < vocabulary, "target ", largest, " must be below the vocabulary of ",
                    vocabulary);
}

/// The three products of a few rows of logits with the embedding matrix, E (V, D).
class OutputProducts {
 public:
  /// @param rows  at most so many at once.
  OutputProducts(const torch::Tensor& embedding, std::int64_t rows)
      : by_logits_(embedding), by_features_(embedding.t()) {
    // Rows begin at cache lines, and not a power of two apart, which would crowd the cache.
    const std::int64_t size = (embedding.size(0) + 15) / 16 * 16;
    logits_ = at::empty({rows, size % 1024 == 0 ? size + 16 : size}, embedding.options())
                  .narrow(1, 0, embedding.size(0));
  }

  torch::Tensor logits(const torch::Tensor& features) {
    const auto logits = logits_.narrow(0, 0, features.size(0));
    by_features_.multiply(features, logits);
    return logits;
  }

  /// @param logits  the gradient by them, in place.
  void backward(const torch::Tensor& logits, const torch::Tensor& features,
                const torch::Tensor& by_features, const torch::Tensor& by_embedding) {
    by_logits_.multiply(logits, by_features);
    PackedMatrix(features).multiply(logits.t(), by_embedding, by_embedding);
  }

 private:
  PackedMatrix by_logits_, by_features_;
  torch::Tensor logits_;
};

/// The same with rounded factors.
class RoundedOutputProducts {
 public:
  RoundedOutputProducts(const torch::Tensor& embedding, std::int64_t rows)
      : embedding_(rounded_factor(embedding)),
        logits_(at::empty({rows, embedding.size(0)}, embedding_.options())) {}

  torch::Tensor logits(const torch::Tensor& features) {
    features_ = rounded_factor(features);
    auto logits = logits_.narrow(0, 0, features.size(0));
    at::mm_out(logits, features_, embedding_.t());
    return logits;
  }

  void backward(const torch::Tensor& logits, const torch::Tensor& /*features*/,
                const torch::Tensor& by_features, const torch::Tensor& by_embedding) {
    by_features.copy_(at::mm(logits, embedding_));
    by_embedding.add_(at::mm(logits.t(), features_));
  }

 private:
  torch::Tensor embedding_, logits_, features_;
};

/// The loss with its gradients, on the CPU.
class LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& features,
                               const torch::Tensor& embedding, const torch::Tensor& targets,
                               bool rounded) {
    return rounded ? run<RoundedOutputProducts>(context, features, embedding, targets)
                   : run<OutputProducts>(context, features, embedding, targets);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto scaled = [&](const torch::Tensor& gradient) {
      // 1 in every training: then nothing is to be done.
      return gradients[0].item<double>() == 1.0 ? gradient : gradient * gradients[0];
    };
    return {scaled(saved[0]), scaled(saved[1]), {}, {}};
  }

 private:
  template <class Products>
  static torch::Tensor run(AutogradContext* context, const torch::Tensor& features,
                           const torch::Tensor& embedding, const torch::Tensor& targets) {
    const auto inputs = features.contiguous();
    const auto wanted = targets.contiguous();
    const auto* target = wanted.data_ptr<std::int64_t>();
    require_targets_below(embedding.size(0), wanted);
    const double weight = 1.0 / static_cast<double>(wanted.ge(0).sum().item<std::int64_t>());
    const auto by_features = at::empty_like(inputs);
    const auto by_embedding = at::zeros_like(embedding, at::MemoryFormat::Contiguous);
    const auto nll = at::empty({inputs.size(0)}, at::TensorOptions(at::kDouble));
    auto* nll_of = nll.data_ptr<double>();
    const std::int64_t step = rows_at_once(inputs, embedding);
    Products products(embedding, std::min(step, inputs.size(0)));
    for (std::int64_t first = 0; first < inputs.size(0); first += step) {
      const std::int64_t rows = std::min(step, inputs.size(0) - first);
      const auto input = inputs.narrow(0, first, rows);
      const auto logits = products.logits(input);
      for_rows(logits, [&](std::int64_t row, auto* values) {
        nll_of[first + row] =
            kernels::cross_entropy_gradient(values, logits.size(1), target[first + row], weight);
      });
      products.backward(logits, input, by_features.narrow(0, first, rows), by_embedding);
    }
    context->save_for_backward({by_features, by_embedding});
    return (nll.sum() * weight).to(features.scalar_type());
  }
};

}  // namespace

torch::Tensor linear_cross_entropy(const torch::Tensor& features, const torch::Tensor& embedding,
                                   const torch::Tensor& targets, NumericalMode mode) {
  if (mode != NumericalMode::reference && features.device().is_cpu()) {
    return LinearCrossEntropy::apply(features, embedding, targets, mode == NumericalMode::fast);
  }
  namespace F = torch::nn::functional;
  constexpr std::int64_t kIgnored = -100;
  return F::cross_entropy(linear(features, embedding, {}, mode),
                          targets.masked_fill(targets.lt(0), kIgnored),
                          F::CrossEntropyFuncOptions().ignore_index(kIgnored));
}

TokenScores score_tokens(const torch::Tensor& features, const torch::Tensor& embedding,
                         const torch::Tensor& targets, NumericalMode mode) {
  const at::NoGradGuard no_grad;
  const bool fused = mode != NumericalMode::reference && features.device().is_cpu();
  if (fused) require_targets_below(embedding.size(0), targets);
  std::optional<PackedMatrix> packed;
  if (mode == NumericalMode::exact && fused) packed.emplace(embedding.t());
  const std::int64_t step = rows_at_once(features, embedding);
  TokenScores scores{at::empty(targets.sizes(), targets.options().dtype(at::kDouble)),
                     at::empty(targets.sizes(), targets.options().dtype(at::kBool))};
  for (std::int64_t first = 0; first < features.size(0); first += step) {
    const std::int64_t rows = std::min(step, features.size(0) - first);
    const auto inputs = features.narrow(0, first, rows);
    torch::Tensor logits;
    if (packed) {
      logits = at::empty({rows, embedding.size(0)}, features.options());
      packed->multiply(inputs, logits);
    } else {
      logits = linear(inputs, embedding, {}, mode);
    }
    const auto target = targets.narrow(0, first, rows).contiguous();
    auto nll = scores.nll.narrow(0, first, rows);
    auto correct = scores.correct.narrow(0, first, rows);
    if (fused) {
      for_rows(logits, [&](std::int64_t row, const auto* values) {
        const auto score =
            kernels::cross_entropy(values, logits.size(1), target.data_ptr<std::int64_t>()[row]);
        nll.data_ptr<double>()[row] = score.nll;
        correct.data_ptr<bool>()[row] = score.correct;
      });
    } else {
      nll.copy_(at::log_softmax(logits, -1)
                    .gather(1, target.clamp_min(0).unsqueeze(1))
                    .squeeze(1)
                    .neg()
                    .masked_fill(target.lt(0), 0.0));
      correct.copy_(logits.argmax(-1) == target);
    }
  }
  return scores;
}

}  // namespace nas::nn
