#include "training/validation.hpp"

#include <algorithm>
#include <numeric>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "training/batches.hpp"

namespace nas {

namespace {

constexpr std::int64_t kRows = 2048;

double total(const torch::Tensor& values) { return values.sum(torch::kFloat64).item<double>(); }

}  // namespace

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

Scores validate(nn::Transformer& model, const Windows& windows, const SpecialTokens& special,
                std::int64_t batch_size, const std::string& device) {
  const torch::NoGradGuard no_grad;
  Scores scores;
  for (std::int64_t first = 0; first < windows.size(); first += batch_size) {
    if (stop_requested()) throw StopRequested();
    std::vector<std::int64_t> indices(
        static_cast<std::size_t>(std::min(batch_size, windows.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    const Batch batch = read_batch(windows, indices, 0);
    const auto hidden = model.features(batch.input.to(device), {}).flatten(0, 1);
    const auto targets = batch.target.to(device).flatten();
    double batch_nll = 0.0;
    std::int64_t batch_tokens = 0;
    for (std::int64_t row = 0; row < hidden.size(0); row += kRows) {
      const std::int64_t rows = std::min(kRows, hidden.size(0) - row);
      const auto target = targets.narrow(0, row, rows);
      const auto logits = at::matmul(hidden.narrow(0, row, rows), model.embedding().t());
      const auto scored = target != kNotScored;
      const auto picked = at::log_softmax(logits, -1)
                              .gather(1, target.clamp_min(0).unsqueeze(1))
                              .squeeze(1)
                              .neg()
                              .masked_fill(scored.logical_not(), 0.0);
      const auto part = [&](std::int32_t token, double& nll, std::int64_t& tokens) {
        if (token < 0) return;
        const auto mask = target == token;
        nll += total(picked * mask);
        tokens += mask.sum().item<std::int64_t>();
      };
      part(special.pad, scores.pad_nll, scores.pad_tokens);
      part(special.unknown, scores.unknown_nll, scores.unknown_tokens);
      scores.correct += (logits.argmax(-1) == target).sum().item<std::int64_t>();
      batch_nll += total(picked);
      batch_tokens += scored.sum().item<std::int64_t>();
    }
    scores.nll += batch_nll;
    scores.tokens += batch_tokens;
    if (batch_tokens > 0) {
      scores.batch_mean_nll += batch_nll / static_cast<double>(batch_tokens);
      ++scores.batches;
    }
  }
  return scores;
}

}  // namespace nas
