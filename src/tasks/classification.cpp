#include <string>

#include "core/error.hpp"
#include "training/task.hpp"

namespace nas {
namespace {

/// Each window has one label, which its last position is asked for among the labels 0 .. C-1:
///
///   p(c) = softmax(h_T O')_c over the first C rows of the output matrix O
///
/// The others get no part of the probability, so that guessing among C labels is chance.
class Classification final : public LearningTask {
 public:
  explicit Classification(const Corpus& corpus) : labels_(corpus.labels) {
    if (labels_ < 2 || labels_ > corpus.vocabulary) {
      throw InputError(corpus.name + ": the corpus has " + std::to_string(labels_) +
                       " labels, must be 2 to its vocabulary of " +
                       std::to_string(corpus.vocabulary));
    }
    require_labels(corpus.name, "train", corpus.train);
    require_labels(corpus.name, "valid", corpus.valid);
    require_labels(corpus.name, "test", corpus.test);
    for (const auto& [name, windows] : corpus.further) require_labels(corpus.name, name, windows);
  }

  [[nodiscard]] torch::Tensor loss(const nn::Hidden& hidden, const torch::Tensor& targets,
                                   const torch::Tensor& counted) const override {
    return nn::linear_cross_entropy(last(hidden.features), label_rows(hidden), last(targets),
                                    hidden.mode,
                                    counted.defined() ? last(counted) : torch::Tensor());
  }

  [[nodiscard]] nn::TokenScores scores(const nn::Hidden& hidden,
                                       const torch::Tensor& targets) const override {
    const auto asked = nn::score_tokens(last(hidden.features).flatten(1, 2), label_rows(hidden),
                                        last(targets).flatten(1), hidden.mode);
    // Of all tokens, of which one in a window is asked.
    nn::TokenScores scores{torch::zeros(targets.sizes(), asked.nll.options()),
                           torch::zeros(targets.sizes(), asked.correct.options())};
    scores.nll.select(2, -1).copy_(asked.nll);
    scores.correct.select(2, -1).copy_(asked.correct);
    return {scores.nll.flatten(1), scores.correct.flatten(1)};
  }

  [[nodiscard]] std::vector<MeasuredValue> values() const override {
    return {{"accuracy", "1", true, &Scores::accuracy},
            {"mean_nll", "nat", false,
             [](const Scores& scores) { return scores.nll / static_cast<double>(scores.tokens); }}};
  }

 private:
  /// The last position of (R, B, T, ...), (R, B, 1, ...).
  static torch::Tensor last(const torch::Tensor& x) {
    return x.narrow(2, x.size(2) - 1, 1).contiguous();
  }

  [[nodiscard]] torch::Tensor label_rows(const nn::Hidden& hidden) const {
    return hidden.output.narrow(1, 0, labels_).contiguous();
  }

  /// @throws InputError where a window asks for another thing than one label at its end.
  void require_labels(const std::string& corpus, const std::string& split,
                      const Windows& windows) const {
    std::vector<std::int64_t> input(static_cast<std::size_t>(windows.length));
    std::vector<std::int64_t> target(input.size());
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      windows.read(i, 0, input.data(), target.data());
      for (std::size_t t = 0; t < target.size(); ++t) {
        const bool is_last = t + 1 == target.size();
        if (is_last ? target[t] >= 0 && target[t] < labels_ : target[t] < 0) continue;
        throw InputError(corpus + ": window " + std::to_string(i) + " of " + split +
                         " has target " + std::to_string(target[t]) + " at position " +
                         std::to_string(t) + ", must be " +
                         (is_last ? "a label below " + std::to_string(labels_)
                                  : std::to_string(kNotScored) + " but at the last position"));
      }
    }
  }

  std::int64_t labels_;
};

NAS_REGISTER_TASK(
    {.key = "classification",
     .summary = "one label of each window, asked for at its last position among the labels alone; "
                "accuracy, mean_nll",
     .settings = {},
     .file = __FILE__},
    [](const Corpus& corpus) -> std::shared_ptr<const LearningTask> {
      return std::make_shared<Classification>(corpus);
    });

}  // namespace
}  // namespace nas
