#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evaluation/measurement.hpp"
#include "store/store.hpp"

namespace nas {

/// The key of the answer to a task: its id where it is measured to the end.
std::string question_of(const std::string& id, std::int64_t until);
std::string question_of(const Task& task);

/// Steps of training that an evaluation has taken, as far as its curve shows.
std::int64_t steps_of(const Evaluation& evaluation);

/// The evaluations that a process knows by their questions, and where it finds others: in the store,
/// or elsewhere. What comes from elsewhere is stored when it answers.
class Recollection {
 public:
  using Elsewhere = std::function<std::optional<Evaluation>(const std::string& id)>;
  /// @param elsewhere  may be empty.
  Recollection(Measurement& measurement, Store& store, Elsewhere elsewhere)
      : measurement_(measurement), store_(store), elsewhere_(std::move(elsewhere)) {}

  [[nodiscard]] bool contains(const std::string& question) const {
    return known_.contains(question);
  }
  [[nodiscard]] const Evaluation& at(const std::string& question) const {
    return known_.at(question);
  }
  /// Makes an evaluation known: an expensive one without its identity, which is several times as
  /// large as the rest, and which the task has that asks for it.
  const Evaluation& keep(const std::string& question, Evaluation evaluation);
  /// What answers a question that was answered before.
  const Evaluation& recall(const std::string& question);

  /// What there is of an id, which is not known yet; null: nothing. It is not stored.
  const Evaluation* look_up(const std::string& id);
  /// What the store says of a task, as it is recorded: its evaluation, or a part of it that is long
  /// enough. A rung of what costs little is measured again, which needs no checkpoint.
  std::optional<Evaluation> find_answer(const Task& task);

  /// Commits evaluations, and of those that are paused the part that is known.
  void record(std::vector<Evaluation> evaluations);
  /// Leaves to a training run that fails what it had come to before, which the store has as a part:
  /// asks were answered by that, and are again where the search is repeated.
  void keep_part(Evaluation& evaluation) const;

  /// Where evaluations are cheap, there may be millions: leaves those that were measured to their
  /// ends to the store. @param wanted  returns the questions that are not left.
  void forget(const std::function<std::set<std::string>()>& wanted);
  /// Reads what forget() may have left to the store.
  void recall_forgotten(const std::string& id);

 private:
  struct Found {
    Evaluation evaluation;
    bool elsewhere = false;  ///< and not in the store
  };
  [[nodiscard]] std::optional<Found> take(const std::string& id);
  [[nodiscard]] std::optional<Evaluation> find_recorded(const std::string& id);
  [[nodiscard]] std::optional<Evaluation> find_paused(const Task& task);

  Measurement& measurement_;
  Store& store_;
  Elsewhere elsewhere_;
  std::map<std::string, Evaluation> known_{};
  std::size_t num_kept_ = 0;              ///< of these when some were forgotten last
  std::map<std::string, Found> found_{};  ///< by id, by look_up()
};

}  // namespace nas
