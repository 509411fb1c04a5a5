#include "models/generation.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "core/seed.hpp"
#include "nn/decoder.hpp"

namespace nas {

namespace {

/// The logits behind a sequence that grows.
class NextLogits {
 public:
  explicit NextLogits(nn::Transformer& model)
      : model_(&model), architecture_(model.array().architectures().front()) {
    try {
      decoder_.emplace(model);
    } catch (const InputError&) {  // NOLINT(bugprone-empty-catch): whole sequences it is
    }
  }

  /// @param ids  those of the last call and more.   @return (V).
  torch::Tensor operator()(const std::vector<std::int64_t>& ids) {
    const bool bounded = architecture_.genes.position_embedding == "learned";
    const auto seen = bounded ? std::min(std::ssize(ids), architecture_.context) : std::ssize(ids);
    if (!decoder_ || seen < std::ssize(ids)) {
      const auto last = at::tensor(std::vector<std::int64_t>(ids.end() - seen, ids.end()));
      return model_->logits(last.unsqueeze(0), nn::Pass{})[0][-1];
    }
    torch::Tensor logits;
    while (decoder_->tokens() < std::ssize(ids)) {
      const auto next = ids[static_cast<std::size_t>(decoder_->tokens())];
      logits = decoder_->step(at::tensor(std::vector<std::int64_t>{next}))[0];
    }
    return logits;
  }

 private:
  nn::Transformer* model_;
  const Architecture& architecture_;
  std::optional<nn::Decoder> decoder_;
};

/// Makes impossible what Choice::top_k and top_p leave out.
void keep_likeliest(torch::Tensor& logits, const Choice& choice) {
  const bool by_number = choice.top_k > 0 && choice.top_k < logits.numel();
  if (!by_number && choice.top_p >= 1.0) return;
  auto [sorted, order] = logits.sort(/*stable=*/true, 0, /*descending=*/true);
  auto kept = logits.numel();
  if (by_number) kept = choice.top_k;
  if (choice.top_p < 1.0) {
    const auto shares =
        at::softmax(sorted.slice(0, 0, kept).to(at::kDouble) / choice.temperature, 0);
    // Tokens before which the share is not reached.
    kept = ((shares.cumsum(0) - shares) < choice.top_p).sum().item<std::int64_t>();
    kept = std::max<std::int64_t>(kept, 1);
  }
  logits.index_fill_(0, order.slice(0, kept), -std::numeric_limits<float>::infinity());
}

std::int64_t draw(const torch::Tensor& logits, double temperature, RandomEngine& random) {
  // From the largest down: no quotient overflows, however small the temperature.
  const auto sums =
      ((logits.to(at::kDouble) - logits.max()) / temperature).exp().cumsum(0).contiguous();
  const auto* begin = sums.data_ptr<double>();
  const auto* last = begin + sums.numel() - 1;
  return std::upper_bound(begin, last, random.uniform() * *last) - begin;
}

}  // namespace

std::vector<std::int64_t> generate(nn::Transformer& model, std::vector<std::int64_t> ids,
                                   std::int64_t tokens, const Choice& choice) {
  const at::NoGradGuard no_grad;
  NextLogits next(model);
  RandomEngine random(choice.seed);
  for (std::int64_t i = 0; i < tokens; ++i) {
    auto logits = next(ids).clone();
    if (!logits.isfinite().all().item<bool>()) {
      throw InputError(
          "a logit is infinite or no number: the weights are damaged, or of a training run that "
          "diverged");
    }
    for (const auto id : choice.never) logits[id] = -std::numeric_limits<float>::infinity();
    if (choice.temperature > 0.0) keep_likeliest(logits, choice);
    ids.push_back(choice.temperature > 0.0 ? draw(logits, choice.temperature, random)
                                           : logits.argmax().item<std::int64_t>());
  }
  return ids;
}

}  // namespace nas
