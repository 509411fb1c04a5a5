#include "training/validation.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "training/batches.hpp"

namespace nas {

Windows evenly_spaced(const Windows& windows, std::int64_t count) {
  if (count == 0 || count >= windows.size()) return windows;
  Windows few = windows;
  few.starts.clear();
  few.targets.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t window = i * windows.size() / count;
    few.starts.push_back(windows.starts[static_cast<std::size_t>(window)]);
    if (windows.targets.empty()) continue;
    const auto first = windows.targets.begin() + window * windows.length;
    few.targets.insert(few.targets.end(), first, first + windows.length);
  }
  return few;
}

namespace {

/// Adds what a batch says to the scores of one model.
///
/// @param nll, correct  of the batch's tokens.   @param target  likewise.
void add(const torch::Tensor& nll, const torch::Tensor& correct, const torch::Tensor& target,
         const SpecialTokens& special, Scores& scores) {
  const auto part = [&](std::int32_t token, double& sum, std::int64_t& count) {
    if (token < 0) return;
    const auto mask = target == token;
    sum += (nll * mask).sum().item<double>();
    count += mask.sum().item<std::int64_t>();
  };
  part(special.pad, scores.pad_nll, scores.pad_tokens);
  part(special.unknown, scores.unknown_nll, scores.unknown_tokens);
  scores.correct += correct.sum().item<std::int64_t>();
  const double batch_nll = nll.sum().item<double>();
  const auto batch_tokens = target.ge(0).sum().item<std::int64_t>();
  scores.nll += batch_nll;
  scores.tokens += batch_tokens;
  if (batch_tokens > 0) {
    scores.batch_mean_nll += batch_nll / static_cast<double>(batch_tokens);
    ++scores.batches;
  }
}

}  // namespace

std::vector<Scores> validate(nn::TransformerArray& models, const Windows& windows,
                             const SpecialTokens& special, std::int64_t batch_size,
                             const std::string& device) {
  const torch::NoGradGuard no_grad;
  const std::int64_t count = models.num_models();
  std::vector<Scores> scores(static_cast<std::size_t>(count));
  for (std::int64_t first = 0; first < windows.size(); first += batch_size) {
    if (stop_requested()) throw StopRequested();
    std::vector<std::int64_t> indices(
        static_cast<std::size_t>(std::min(batch_size, windows.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    const Batch batch = read_batch(windows, indices, 0);
    const auto targets = batch.target.to(device);
    const auto for_all = [&](const torch::Tensor& x) {
      return x.unsqueeze(0).expand({count, x.size(0), x.size(1)});
    };
    const auto tokens = models.scores(for_all(batch.input.to(device)), for_all(targets));
    for (std::int64_t model = 0; model < count; ++model) {
      add(tokens.nll[model], tokens.correct[model], targets.flatten(), special,
          scores[static_cast<std::size_t>(model)]);
    }
  }
  return scores;
}

}  // namespace nas
