#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "core/visibility.hpp"
#include "data/corpus.hpp"
#include "genotype/architecture.hpp"
#include "nn/transformer.hpp"
#include "ops/loss.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// A value that follows from the sums over a split.
struct MeasuredValue {
  std::string name;  ///< "accuracy"; in Evaluation::values
  std::string unit;  ///< "1", "nat", "bit"
  bool maximise = false;
  std::function<double(const Scores&)> of;
};

/// What a model is asked, and what its answers are measured by: hidden states and targets become a
/// loss, and sums over the tokens of a split, from which values follow. Of a corpus's `train` it
/// makes what is trained on, of the other splits what is recorded.
///
/// The sums that any task has (Scores: nll, tokens, correct) are those of scores(); they determine
/// perplexity and accuracy, in records of every task.
class LearningTask {
 public:
  virtual ~LearningTask() = default;

  /// @param targets  (R, B, T) int64, below 0 where nothing is asked; a part of the batch.
  /// @param counted  targets of the whole batch, (R, B', T); undefined: `targets`.
  /// @return (R), differentiable: the sum of the losses of targets, over the number of all that are
  /// counted, so that parts of a batch add up to its mean. In nats.
  [[nodiscard]] virtual torch::Tensor loss(const nn::Hidden& hidden, const torch::Tensor& targets,
                                           const torch::Tensor& counted) const = 0;
  /// What each token's answer says about its target, (R, B T); without gradients.
  [[nodiscard]] virtual nn::TokenScores scores(const nn::Hidden& hidden,
                                               const torch::Tensor& targets) const = 0;
  /// What follows from the sums of a split, in the order in which it is shown. Values of these names
  /// are recorded; others of perplexity, accuracy, ... are no objectives of the task.
  [[nodiscard]] virtual std::vector<MeasuredValue> values() const = 0;
};

/// The task of text and recall.
std::shared_ptr<const LearningTask> next_token();
/// The task that a corpus names. @throws InputError for an unknown one, and where a further split of
/// the corpus has no windows, or a name that does not begin with "test_".
std::shared_ptr<const LearningTask> task_of(const Corpus& corpus);
/// What is known of both beside what any corpus has: empty for the next token without further splits;
/// else `task`: its name and values, and `further_splits`: windows, length and targets of each.
nlohmann::json task_facts(const Corpus& corpus, const LearningTask& task);
/// Which split a model of learned positions cannot read, in words; empty: it reads all of them.
std::string unreadable_split(const Corpus& corpus, const Architecture& architecture);

/// Records what a task measures on the validation split, from the end of the curve, and on further
/// splits by their names: <split>_<value>, <split>_tokens.
///
/// @param further  of the splits of Corpus::further that were scored.
void set_task_values(Evaluation& evaluation, const LearningTask& task,
                     const std::map<std::string, Scores>& further);

/// Registers a task from its own .cpp: `NAS_REGISTER_TASK(description, function);`
#define NAS_REGISTER_TASK(...) \
  [[maybe_unused]] static const bool nas_registered_task = ::nas::tasks().add(__VA_ARGS__)

}  // namespace nas
