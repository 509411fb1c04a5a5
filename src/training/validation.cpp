#include "training/validation.hpp"

#include <algorithm>
#include <span>

#include "core/stop.hpp"
#include "ops/device_copy.hpp"
#include "training/batches.hpp"

namespace nas {

std::vector<std::int64_t> evenly_spaced(std::int64_t size, std::int64_t count) {
  if (count == 0 || count > size) count = size;
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) chosen[static_cast<std::size_t>(i)] = i * size / count;
  return chosen;
}

namespace {

/// The sum of each row of (R, N). On the CPU each row by itself: LibTorch's order of sums depends
/// on the shape, and a model's score may not depend on how many there are.
torch::Tensor row_sums(const torch::Tensor& rows) {
  if (!rows.device().is_cpu()) return rows.sum(1);
  std::vector<torch::Tensor> sums;
  for (const auto& row : rows.unbind(0)) sums.push_back(row.sum());
  return torch::stack(sums);
}

/// Adds up what batches say of each model, where the models are. It makes the host wait once, when
/// it is read: what is the same for all models is counted on the host.
class ScoreSums {
 public:
  ScoreSums(std::int64_t models, const SpecialTokens& special, const torch::Device& device)
      : special_(special),
        nll_(torch::zeros({models}, torch::TensorOptions(torch::kDouble).device(device))),
        batch_mean_nll_(torch::zeros_like(nll_)),
        pad_nll_(torch::zeros_like(nll_)),
        unknown_nll_(torch::zeros_like(nll_)),
        correct_(torch::zeros({models}, nll_.options().dtype(torch::kLong))) {}

  /// @param tokens   of all models, (R, N).
  /// @param targets  (N), where they are.   @param on_host  the same on the host.
  void add(const nn::TokenScores& tokens, const torch::Tensor& targets,
           std::span<const std::int64_t> on_host) {
    add_part(special_.pad, tokens.nll, targets, on_host, pad_nll_, counts_.pad_tokens);
    add_part(special_.unknown, tokens.nll, targets, on_host, unknown_nll_, counts_.unknown_tokens);
    correct_ += row_sums(tokens.correct);
    const auto nll = row_sums(tokens.nll);
    nll_ += nll;
    const auto scored =
        std::count_if(on_host.begin(), on_host.end(), [](auto target) { return target >= 0; });
    counts_.tokens += scored;
    if (scored == 0) return;
    batch_mean_nll_ += nll / static_cast<double>(scored);
    ++counts_.batches;
  }

  [[nodiscard]] std::vector<Scores> read() const {
    // As doubles, which count exactly: one copy.
    const auto sums =
        torch::stack({nll_, batch_mean_nll_, pad_nll_, unknown_nll_, correct_.to(torch::kDouble)},
                     1)
            .cpu();
    std::vector<Scores> scores(static_cast<std::size_t>(sums.size(0)), counts_);
    const auto* sum = sums.data_ptr<double>();
    for (auto& of_model : scores) {
      of_model.nll = *sum++;
      of_model.batch_mean_nll = *sum++;
      of_model.pad_nll = *sum++;
      of_model.unknown_nll = *sum++;
      of_model.correct = static_cast<std::int64_t>(*sum++);
    }
    return scores;
  }

 private:
  /// Adds the part on targets that are one token of the vocabulary.
  static void add_part(std::int32_t token, const torch::Tensor& nll, const torch::Tensor& targets,
                       std::span<const std::int64_t> on_host, torch::Tensor& sums,
                       std::int64_t& count) {
    if (token < 0) return;
    sums += row_sums(nll * (targets == token));
    count += std::count(on_host.begin(), on_host.end(), token);
  }

  SpecialTokens special_;
  torch::Tensor nll_, batch_mean_nll_, pad_nll_, unknown_nll_, correct_;  // (R)
  Scores counts_;  ///< of every model; its sums stay 0
};

}  // namespace

std::vector<Scores> validate(nn::TransformerArray& models, const Windows& windows,
                             std::span<const std::int64_t> scored, const SpecialTokens& special,
                             std::int64_t batch_size, const std::string& device,
                             const LearningTask& task) {
  const torch::NoGradGuard no_grad;
  const std::int64_t count = models.num_models();
  const torch::Device place(device);
  ScoreSums sums(count, special, place);
  while (!scored.empty()) {
    if (stop_requested()) throw StopRequested();
    const auto size = std::min(scored.size(), static_cast<std::size_t>(batch_size));
    const Batch batch = read_batch(
        windows, {scored.begin(), scored.begin() + static_cast<std::ptrdiff_t>(size)}, 0);
    scored = scored.subspan(size);
    const auto targets = nn::sent(batch.target, place);
    const auto for_all = [&](const torch::Tensor& x) {
      return x.unsqueeze(0).expand({count, x.size(0), x.size(1)});
    };
    sums.add(
        task.scores(models.hidden(for_all(nn::sent(batch.input, place)), nn::Pass{}),
                    for_all(targets)),
        targets.flatten(),
        {batch.target.data_ptr<std::int64_t>(), static_cast<std::size_t>(batch.target.numel())});
  }
  return sums.read();
}

}  // namespace nas
