#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evaluation/at_work.hpp"
#include "evaluation/outcomes.hpp"
#include "evaluation/recall.hpp"
#include "evaluation/recording_evaluator.hpp"

namespace nas {

/// The half of an evaluator that has tasks measured, whatever asked for them: recalls what is known,
/// screens, submits to an executor, tries again what may come to something else, and stores results.
struct Measuring {
  Measuring(std::shared_ptr<Measurement> measured_by, Store& kept_in,
            RecordingEvaluator::Options chosen);
  virtual ~Measuring() = default;

  /// Whether asks are out that are answered one by one: then results are stored at once, however
  /// little they cost, and nothing is withdrawn when the time is spent.
  [[nodiscard]] virtual bool one_by_one() const = 0;
  [[nodiscard]] virtual bool out_of_time() const = 0;
  /// Says of asks what a report of progress is to say.
  virtual void describe(Progress& progress) const = 0;
  /// Called with what was recalled or measured.
  virtual void charge(const Evaluation& evaluation) = 0;
  /// Called once something is to be measured that is not known.
  virtual void about_to_measure() = 0;
  /// Called once an evaluation is known and stored.
  virtual void became_known() = 0;
  virtual void require_judgeable(const std::vector<Evaluation>& results) const = 0;

  void report(Progress::Kind kind, const Evaluation* evaluation = nullptr,
              const Evaluation* last = nullptr, const Advance& advance = {}) const;
  /// Recalls what is known of some tasks, screens the others one after the other, and has the
  /// remaining ones measured, the longest first.
  /// @param ask  that wants them first; -1: none.
  /// @return the tasks that were not known.
  std::vector<Task> begin(std::vector<Task> tasks, std::int64_t ask);
  /// The same, until nothing is at work. What was screened out or measured is known afterwards, and
  /// stored.
  void recall_or_measure(std::vector<Task> tasks, std::int64_t ask);
  /// What is known of a task before it is measured; ok: it can be.
  const Evaluation& screen(const Task& task);
  /// Waits for what happens next. @return whether something did: nothing does once no task is out.
  bool hear();
  /// Leaves a search of which something is out: what has finished by now is stored.
  [[noreturn]] void stop();

  std::shared_ptr<Measurement> measurement;
  Store& store;
  RecordingEvaluator::Options options;
  std::int64_t trained = 0;
  std::int64_t rejected = 0;  ///< evaluations screened out
  std::int64_t reused = 0;
  Recollection known{*measurement, store, options.recall};
  std::map<std::string, Evaluation> screened{};  ///< by id: what may be trained next
  struct Measured {
    Task task;
    Evaluation evaluation;
  };
  std::map<std::string, Measured> measuring{};  ///< what is being measured, by id
  std::shared_ptr<Executor> executor;
  Outcomes outcomes{static_cast<std::size_t>(options.failure_window)};
  AtWork at_work{store, options.stage, executor->workers()};

 private:
  [[nodiscard]] std::vector<const Evaluation*> measured(const std::vector<std::string>& ids) const;
  bool recall(const Task& task);
  void submit(const Task& task);
  void screen_out(Evaluation evaluation, const std::string& question);
  void handle(Executor::Event event);
  bool try_again(const Evaluation& result);
  void commit(std::vector<Evaluation> results);
};

}  // namespace nas
