#include "training/task.hpp"

namespace nas {
namespace {

/// Each position is asked for its target among all tokens of the vocabulary.
class NextToken final : public LearningTask {
 public:
  [[nodiscard]] torch::Tensor loss(const nn::Hidden& hidden, const torch::Tensor& targets,
                                   const torch::Tensor& counted) const override {
    return nn::linear_cross_entropy(hidden.features, hidden.output, targets, hidden.mode, counted);
  }

  [[nodiscard]] nn::TokenScores scores(const nn::Hidden& hidden,
                                       const torch::Tensor& targets) const override {
    return nn::score_tokens(hidden.features.flatten(1, 2), hidden.output, targets.flatten(1),
                            hidden.mode);
  }

  [[nodiscard]] std::vector<MeasuredValue> values() const override {
    return {{"perplexity", "1", false, &Scores::perplexity},
            {"published_perplexity", "1", false, &Scores::published_perplexity},
            {"accuracy", "1", true, &Scores::accuracy}};
  }
};

NAS_REGISTER_TASK(
    {.key = "next_token",
     .summary = "the target of each position among all tokens of the vocabulary: "
                "language models, recall; perplexity, published_perplexity, accuracy, "
                "bits_per_byte",
     .settings = {},
     .file = __FILE__},
    [](const Corpus&) -> std::shared_ptr<const LearningTask> {
      return std::make_shared<NextToken>();
    });

}  // namespace
}  // namespace nas
